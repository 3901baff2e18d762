package wire_test

import (
	"io"
	"strings"
	"testing"

	"github.com/tripseal/tripseal/wire"
)

func TestLinesWithoutStateAreNotChanged(t *testing.T) {
	r := exactPipe(t)
	for _, line := range []string{
		`{"jsonrpc":"2.0","method":"notifications/odd","params":{"n":12345678901234567890,"x.example/y":null}}`,
		"  \t{ \"method\" :\t\"x\" , \"jsonrpc\":\"2.0\" }  ",
		`{"params":{"Name":1,"name":2},"unknown":{"a":[1,2,{}]},"jsonrpc":"2.0","id":"π\u00e9","method":"custom/x"}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"a":1E400,"b":"\/"}}}` + "\r",
		`{"jsonrpc":"2.0","id":"of the server","result":{"action":"accept"}}`,
		`{"jsonrpc":"2.0","id":8,"method":"x","params":{"text":"` + "a\u2028b\u0085" + `"}}`,
		`{"jsonrpc":"2.0","method":"x","params":"` + strings.Repeat("long ", 1<<18) + `"}`,
	} {
		r.send(line)
		r.serverGot(line)
	}
	for _, line := range []string{
		aside,
		` { "id" : "π\u00e9", "result" : { "x":1.0 , "resultType":"complete" } , "jsonrpc":"2.0"}` + "\r",
		`{"result":{"resultType":"complete","x":[{"n":1e-7,"_":"\u0041"}],"y":98765432109876543210},"id":7,"jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","id":"of the server","method":"elicitation/create","params":{"message":"Sure?"}}`,
		`{"jsonrpc":"2.0","id":8,"error":{"code":-1,"message":"no","data":{"requestState":1}}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`,
	} {
		r.say(line)
		r.clientGot(line)
	}
}

func TestBlankLinesAreIgnored(t *testing.T) {
	r := exactPipe(t)
	r.send("", "\r", " \t ", `{"jsonrpc":"2.0","method":"x"}`, "")
	r.serverGot(`{"jsonrpc":"2.0","method":"x"}`)
	r.say("", "\r", "  ", aside)
	r.clientGot(aside)
	if text := r.log.String(); strings.Contains(text, "WARN") {
		t.Error(text)
	}
}

func TestALineThatIsNotAMessageIsRefused(t *testing.T) {
	r := exactPipe(t)
	for _, line := range []string{
		`hello`, `[]`, `{"jsonrpc":"2.0","id":1,"method":"x"} {}`,
		"\xef\xbb\xbf{}", `{"method":"x"`, "{\"method\":\"\xff\"}", "{\f\"method\":\"x\"}",
	} {
		r.send(line)
		r.clientGotError("", -32600)
	}
	r.serverGot()
	r.say("Listening on port 1", `[{"jsonrpc":"2.0","id":1,"result":{"requestState":"`+canary+`"}}]`, aside)
	r.clientGot(aside)
}

func TestALineThatIsTooLongIsDroppedWhole(t *testing.T) {
	r := exactPipe(t)
	r.send(pipeCall("1", "deploy", ""))
	r.server.take()
	for _, size := range []int{1 << 30, 1 << 16} { // in one piece, and in many
		// If only the first bytes were dropped, the tail would be a message of its own.
		for _, tail := range []string{pipeCall("2", "x", state("forged")), pipeCall("3", "x", "")} {
			long := strings.Repeat(" ", wire.DefaultMaxRequest+1-len(tail)) + tail + "\n" + aside + "\n"
			if size == 1<<16 { // the tail comes whole, in a piece after the one that is too much
				long = strings.Repeat(" ", size+200) + long
			}
			inPieces(t, r.pipe.Client, long, size)
			r.serverGot(aside)
			r.clientGotError("", -32600)
		}
		longest := padded(aside, wire.DefaultMaxRequest)
		inPieces(t, r.pipe.Client, longest+"\n", size)
		r.serverGot(longest)

		tail := `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`
		inPieces(t, r.pipe.Server, strings.Repeat(" ", wire.DefaultMaxAnswer+1-len(tail))+tail+"\n"+aside+"\n", size)
		r.clientGot(aside)
		longest = padded(aside, wire.DefaultMaxAnswer)
		inPieces(t, r.pipe.Server, longest+"\n", size)
		r.clientGot(longest)
	}
	if text := r.log.String(); strings.Count(text, "a line of the server was dropped") != 2 ||
		strings.Count(text, "a line of the client was refused") != 4 || strings.Contains(text, "deploy") {
		t.Errorf("the operator was told %s", text)
	}
	io.WriteString(r.pipe.Client, strings.Repeat("x", wire.DefaultMaxRequest+1))
	r.clientGot()
	r.pipe.Client.Close()
	r.clientGotError("", -32600)
	r.say(pipeAsk("1", canary))
	r.clientGotToken("1")
}

// padded returns the message with one more member, so that it has this length.
func padded(message string, length int) string {
	const member = `{"pad":"",`
	return `{"pad":"` + strings.Repeat("x", length-len(message)-len(member)+1) + `",` + message[1:]
}

func inPieces(t *testing.T, to io.Writer, text string, size int) {
	t.Helper()
	for len(text) > 0 {
		piece := text[:min(size, len(text))]
		text = text[len(piece):]
		if n, err := io.WriteString(to, piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
}

func TestLinesMayComeInPiecesOfAnySize(t *testing.T) {
	for _, size := range []int{1, 2, 7, 100, 1 << 20} {
		r := exactPipe(t)
		longest := `{"jsonrpc":"2.0","method":"x","params":"` + strings.Repeat("x", 50<<10) + `"}`
		inPieces(t, r.pipe.Client, aside+"\n\n"+longest+"\r\n"+aside+"\n"+pipeCall("1", "deploy", ""), size)
		r.serverGot(aside, longest+"\r", aside)
		for range 2 {
			r.pipe.Client.Close() // the last line needs no line feed
		}
		r.serverGot(pipeCall("1", "deploy", ""))
		if _, err := io.WriteString(r.pipe.Client, aside+"\n"); err == nil {
			t.Error("a client could write after its end")
		}
		inPieces(t, r.pipe.Server, aside+"\n"+pipeAsk("1", canary)+"\n", size)
		if got := r.client.take(); len(got) != 2 || got[0] != aside {
			t.Errorf("the client got %q", got)
		} else {
			token(t, got[1])
		}
	}
}

// A server or a client that also ends lines at carriage returns would read the text after one as a message of its own.
func TestALineWithACarriageReturnInsideIsRefused(t *testing.T) {
	r := exactPipe(t)
	forged := pipeCall("2", "deploy", state("forged"))
	for _, line := range []string{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + "\r" + forged + "\r}}",
		forged + "\r" + forged} {
		r.send(line)
		r.clientGotError("", -32600)
	}
	r.serverGot()
	r.send(pipeCall("3", "deploy", ""))
	r.say(`{"jsonrpc":"2.0","method":"y","params":` + "\r" + pipeAsk("3", canary) + "\r}")
	r.clientGot()
	r.say(`{"jsonrpc":"2.0","id":3,"result":{"x":` + "\r" + pipeAsk("3", canary) + "\r}}")
	r.clientGotError("3", -32603)
}
