package stdiocarrier

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
)

func TestLinesWithoutStateAreNotChanged(t *testing.T) {
	r := connect(t)
	toServer := []string{
		`{"jsonrpc":"2.0","method":"notifications/odd","params":{"n":12345678901234567890,"f":1.0,"com.example/ext":null}}`,
		"  \t{ \"method\" :\t\"x\" , \"jsonrpc\":\"2.0\" }  ",
		`{"params":{"Name":1,"name":2},"unknown":{"a":[1,2,{}]},"jsonrpc":"2.0","id":"π\u00e9","method":"custom/method"}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"a":1E400,"b":"\/"},"_meta":{"progressToken":1}}}` + "\r",
		`{"jsonrpc":"2.0","id":"of the server","result":{"action":"accept"}}`,
		`{"jsonrpc":"2.0","id":8,"method":"x","params":{"text":"` + "a\u2028b\u0085" + `"}}`,
	}
	for _, line := range toServer {
		r.send(line)
	}
	if got := r.received(); !slices.Equal(got, toServer) {
		t.Errorf("the server got\n%q\nand not\n%q", got, toServer)
	}
	toClient := []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"n":12345678901234567890,"f":1.0}}`,
		` { "id" : "π\u00e9", "result" : { "x":1.0 , "resultType":"complete" } , "jsonrpc":"2.0"}` + "\r",
		`{"result":{"resultType":"complete","content":[{"n":1e-7,"_":"\u0041"}],"structuredContent":{"big":98765432109876543210}},"id":7,"jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","id":"of the server","method":"elicitation/create","params":{"message":"Sure?"}}`,
		`{"jsonrpc":"2.0","id":8,"error":{"code":-1,"message":"no","data":{"requestState":1}}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`,
	}
	r.say(toClient...)
	for _, line := range toClient {
		r.expect(line)
	}
}

func TestBlankLinesAreIgnored(t *testing.T) {
	r := connect(t)
	for _, line := range []string{"", "\r", " \t ", `{"jsonrpc":"2.0","method":"x"}`, ""} {
		r.send(line)
	}
	if got := r.received(); len(got) != 1 {
		t.Errorf("the server got %q", got)
	}
	r.say("", "\r", "  ", `{"jsonrpc":"2.0","method":"y"}`)
	r.expect(`{"jsonrpc":"2.0","method":"y"}`)
}

func TestALineThatIsNotAMessageIsRefused(t *testing.T) {
	r := connect(t)
	for _, line := range []string{`hello`, `[]`, `{"jsonrpc":"2.0","id":1,"method":"x"} {}`, "\xef\xbb\xbf{}", `{"method":"x"`, "{\"method\":\"\xff\"}", "{\f\"method\":\"x\"}"} {
		r.send(line)
		r.expectError("null", invalidRequest)
	}
	if got := r.received(); len(got) != 0 {
		t.Errorf("the server got %q", got)
	}
	r.say("Listening on port 1", `[{"jsonrpc":"2.0","id":1,"result":{"requestState":"`+r.secret+`"}}]`, `{"jsonrpc":"2.0","method":"y"}`)
	r.expect(`{"jsonrpc":"2.0","method":"y"}`)
}

func TestALineThatIsTooLongIsDroppedWhole(t *testing.T) {
	r := connect(t)
	// If only the first bytes were dropped, the tail would be a message of its own.
	tail := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","requestState":"forged"}}`
	r.send(strings.Repeat(" ", maxClientLine+1-len(tail)) + tail)
	r.expectError("null", invalidRequest)
	longest := strings.Repeat(" ", maxClientLine-len(`{"jsonrpc":"2.0","method":"x"}`)) + `{"jsonrpc":"2.0","method":"x"}`
	r.send(longest)
	if got := r.received(); len(got) != 1 || got[0] != longest {
		t.Errorf("the server got %d lines", len(got))
	}

	r.send(call("1", "deploy", ""))
	r.order("say-long", map[string]any{"text": r.secret, "count": maxServerLine})
	r.say(`{"jsonrpc":"2.0","method":"y"}`, ask("1", r.secret))
	r.expect(`{"jsonrpc":"2.0","method":"y"}`)
	r.tokenOf(r.next(), "1")
	if !strings.Contains(r.log.String(), "a line of the server was dropped: it is too long") {
		t.Errorf("the operator was told %q", r.log)
	}
}

func TestTheLongestLineOfTheServerPasses(t *testing.T) {
	message := []byte(`{"jsonrpc":"2.0","method":"y"}`)
	for length, want := range map[int]error{maxServerLine: nil, maxServerLine + 1: errTooLong} {
		text := strings.Repeat(" ", length-len(message)) + string(message)
		for _, end := range []string{"\n", ""} {
			lines := newLineReader(strings.NewReader(text+end+"{}"), maxServerLine)
			if end == "" {
				lines = newLineReader(strings.NewReader(text), maxServerLine)
			}
			if line, err := lines.readMessage(); !errors.Is(err, want) || err == nil && len(line) != length {
				t.Errorf("%d bytes and %q: %d bytes, %v", length, end, len(line), err)
			}
			if line, err := lines.readMessage(); end == "\n" && string(line) != "{}" || end == "" && err != io.EOF {
				t.Errorf("%d bytes and %q, the line after it: %q, %v", length, end, line, err)
			}
		}
	}
}

// A server or a client that also ends lines at carriage returns would read the text after a carriage
// return as a separate message.
func TestALineWithACarriageReturnInsideIsRefused(t *testing.T) {
	r := connect(t)
	forged := call("2", "deploy", `,"requestState":"forged"`)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + "\r" + forged + "\r}}")
	r.expectError("null", invalidRequest)
	r.send(forged + "\r" + forged)
	r.expectError("null", invalidRequest)
	if got := r.received(); len(got) != 0 {
		t.Errorf("the server got %q", got)
	}

	r.send(call("3", "deploy", ""))
	r.say(`{"jsonrpc":"2.0","id":3,"result":{"structuredContent":`+"\r"+ask("3", r.secret)+"\r}}", `{"jsonrpc":"2.0","method":"y","params":`+"\r"+ask("3", r.secret)+"\r}", `{"jsonrpc":"2.0","method":"z"}`)
	r.expectError("3", internalError)
	r.expect(`{"jsonrpc":"2.0","method":"z"}`)
}

func TestASlowClientHoldsTheServerBack(t *testing.T) {
	written, release := make(chan struct{}), make(chan struct{})
	server := &endless{line: []byte(`{"jsonrpc":"2.0","method":"y","params":{"text":"` + strings.Repeat("x", 1000) + `"}}` + "\n")}
	client := writerFunc(func(p []byte) (int, error) {
		close(written)
		<-release
		return 0, io.ErrClosedPipe
	})
	s := &session{proxy: newProxy(t, tripseal.Config{}), client: newLineWriter(client), log: io.Discard}
	ended := make(chan error)
	go func() { ended <- s.fromServer(context.Background(), server) }()
	<-written
	close(release)
	if err := <-ended; !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if server.read > 1<<17 {
		t.Errorf("%d bytes were read for a client that took none", server.read)
	}
}

func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	var out strings.Builder
	w := newLineWriter(&out)
	if err := w.write([]byte("one")); err != nil {
		t.Fatal(err)
	}
	w.close()
	for range 2 {
		if err := w.write([]byte("two")); err == nil || out.String() != "one\n" {
			t.Errorf("%v, %q", err, out.String())
		}
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// endless is a stream without an end.
type endless struct {
	line []byte
	read int
}

func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		k := copy(p[n:], e.line[e.read%len(e.line):])
		n += k
		e.read += k
	}
	return n, nil
}
