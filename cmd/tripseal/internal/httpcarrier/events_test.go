package httpcarrier

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// sealSecret does in these tests what the core of the proxy does otherwise: it seals a message. It
// replaces "secret" with "sealed", and drops a message that has the word "drop".
func sealSecret(message []byte) []byte {
	if bytes.Contains(message, []byte("drop")) {
		return nil
	}
	return bytes.ReplaceAll(message, []byte("secret"), []byte("sealed"))
}

// pieces is a body that comes in the given pieces.
type pieces struct {
	rest   []string
	err    error // the error after the last piece; nil means io.EOF
	closed bool
	before func() // called before each read; may be nil
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.before != nil {
		p.before()
	}
	if len(p.rest) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		return 0, io.EOF
	}
	n := copy(b, p.rest[0])
	if p.rest[0] = p.rest[0][n:]; p.rest[0] == "" {
		p.rest = p.rest[1:]
	}
	return n, nil
}

func (p *pieces) Close() error { p.closed = true; return nil }

// bytewise returns each byte of a text as a piece.
func bytewise(text string) (parts []string) {
	for i := range len(text) {
		parts = append(parts, text[i:i+1])
	}
	return parts
}

func newEvents(most int, last string, parts ...string) *events {
	return &events{
		from: &pieces{rest: parts}, seal: sealSecret, most: most, share: &share{of: &budget{limit: 1 << 30}},
		last: func() []byte {
			if last == "" {
				return nil
			}
			return []byte(last)
		},
		fault: func(error) {},
	}
}

func rewritten(t *testing.T, parts ...string) string {
	t.Helper()
	out, err := io.ReadAll(newEvents(1<<20, "", parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// The output "same" means that the client gets exactly what the server sent.
const same = "same"

// streams has test cases: what the server sends, and what the client gets.
var streams = []struct{ name, in, out string }{
	{"nothing", "", same},
	{"LF", "data: {\"a\":1}\n\n", same},
	{"CR", "data: {\"a\":1}\r\r", same},
	{"CRLF", "data: {\"a\":1}\r\n\r\n", same},
	{"LF, CRLF", "data: {\"a\":1}\n\r\n", same},
	{"CRLF, LF", "data: {\"a\":1}\r\n\n", same},
	{"CR, CRLF", "data: {\"a\":1}\r\r\n", same},
	{"LF, CR", "data: {\"a\":1}\n\r", same},
	{"two events", "data: 1\n\ndata: 2\r\rdata: 3\r\n\r\n", same},
	{"fields and no space", "id:7\nevent:message\nretry: 10\ndata:  {\"a\" : 1.0 , \"b\":12345678901234567890}\n\n", same},
	{"byte order mark", "\ufeffdata: 1\n\n", same},
	{"half a mark", "\xef\xbbdata: 1\n\n", "\n"},
	{"mark only", "\ufeff", same},
	{"mark in the middle", "data: 1\n\n\ufeffdata: 2\n\n", "data: 1\n\n\n"},
	{"keep-alives", ":\r\n:\r\n: ping\n:\r:\n\n", same},
	{"empty lines", "\n\r\n\r\r\n\n", same},
	{"empty data", "id: 1\ndata:\n\ndata\n\ndata: \r\n\r\n", same},
	{"several data lines", "data: {\ndata:  \"a\":1\ndata: }\n\n", same},
	{"no data", "id: 1\nretry: 5\n\n", same},

	{"state, LF", "data: secret\n\n", "data: sealed\n\n"},
	{"state, CR", "data: secret\r\r", "data: sealed\n\n"},
	{"state, CRLF", "data: secret\r\n\r\n", "data: sealed\n\n"},
	{"state, CR, LF, CRLF", "data: secret\r\r\ndata: secret\n\r\ndata: secret\r\n\r", "data: sealed\n\ndata: sealed\n\ndata: sealed\n\n"},
	{"state after a mark", "\ufeffdata: secret\n\n", "\ufeffdata: sealed\n\n"},
	{"state, no space", "data:secret\n\n", "data: sealed\n\n"},
	{"state with fields", "id: 7\r\nevent: message\r\nretry: 9\r\ndata: secret\r\n\r\n", "id: 7\nevent: message\nretry: 9\ndata: sealed\n\n"},
	{"state over lines", "data: {\ndata: secret\ndata: }\n\n", "data: { sealed }\n\n"},
	{"state over CR lines", "data: {\rdata: secret\rdata: }\r\r", "data: { sealed }\n\n"},
	{"comment inside", "data: {\n: ping\r\ndata: secret}\n\n", ": ping\r\ndata: { sealed}\n\n"},
	{"comment inside, CR", "data: 1\r: x\rid: 2\r\r", ": x\rdata: 1\rid: 2\r\r"},
	{"state between others", "data: 1\n\ndata: secret\n\ndata: 2\n\n", "data: 1\n\ndata: sealed\n\ndata: 2\n\n"},

	{"dropped", "data: 1\n\nid: 4\r\ndata: drop\r\n\r\ndata: 2\n\n", "data: 1\n\ndata: 2\n\n"},
	{"of another type", "event: ping\ndata: 17 o'clock\n\n", ""},
	{"the last type counts", "event: ping\nevent: message\ndata: secret\n\n", "event: ping\nevent: message\ndata: sealed\n\n"},
	{"of another type and empty", "event: ping\ndata:\n\n", same},
	{"a line that is no field", "data: 1\nsecret\n\n", "data: 1\n\n"},
	{"a field in another spelling", "Data: secret\n\n", "\n"},
	{"a field after a space", " data: secret\r\rdata : secret\r\r", "\n\n"},
	{"cut in the data", "data: 1\n\ndata: secr", "data: 1\n\n"},
	{"cut after the data", "data: secret\n", ""},
	{"cut after CR", "data: secret\r", ""},
	{"cut in CRLF", "data: secret\r\n\r", "data: sealed\n\n"},
	{"cut in a comment", ": secret", ""},
}

func TestAnEventLeavesAsItCameUnlessItsMessageChanges(t *testing.T) {
	for _, s := range streams {
		want := s.out
		if want == same {
			want = s.in
		}
		if got := rewritten(t, s.in); got != want {
			t.Errorf("%s: %q becomes %q, not %q", s.name, s.in, got, want)
		}
	}
}

func TestItDoesNotMatterWhereAStreamIsSplit(t *testing.T) {
	for _, s := range streams {
		whole := rewritten(t, s.in)
		for i := range s.in {
			if got := rewritten(t, s.in[:i], s.in[i:]); got != whole {
				t.Errorf("%s: split at %d it becomes %q, not %q", s.name, i, got, whole)
			}
			for j := i; j < len(s.in); j++ {
				if got := rewritten(t, s.in[:i], s.in[i:j], s.in[j:]); got != whole {
					t.Errorf("%s: split at %d and %d it becomes %q, not %q", s.name, i, j, got, whole)
				}
			}
		}
		if got := rewritten(t, bytewise(s.in)...); got != whole {
			t.Errorf("%s: byte by byte it becomes %q, not %q", s.name, got, whole)
		}
	}
}

// A comment must be sent when its line ends, because no empty line follows a keep-alive comment. An
// event must be sent when its empty line ends.
func TestCommentsAndEventsLeaveAtOnce(t *testing.T) {
	for _, s := range []struct{ in, out string }{
		{":\r\n", ":\r\n"}, {":\r", ":\r"}, {": ping\n", ": ping\n"},
		{"data: 1\n\n", "data: 1\n\n"}, {"data: 1\r\n\r\n", "data: 1\r\n\r\n"}, {"data: secret\r\r", "data: sealed\n\n"},
		{"data: {\n: ping\n", ": ping\n"},
	} {
		// A second read fails, so the first one must be enough.
		e := newEvents(1<<20, "", s.in)
		e.from.(*pieces).err = errors.New("read again")
		buffer := make([]byte, 100)
		n, err := e.Read(buffer)
		if got := string(buffer[:n]); got != s.out || err != nil || e.ended {
			t.Errorf("%q: %q, %v", s.in, got, err)
		}
	}
}

func TestAStreamThatEndsEarlyEndsWithAnAnswer(t *testing.T) {
	for _, s := range []struct {
		name string
		from []string
		err  error
	}{
		{"end", []string{": ping\n"}, nil},
		{"cut", []string{": ping\n", "data: secr"}, errors.New("connection reset")},
		{"no empty line", []string{": ping\n", "data: secret\n"}, io.ErrUnexpectedEOF},
	} {
		e := newEvents(1<<20, `{"failed":1}`, s.from...)
		e.from.(*pieces).err = s.err
		out, err := io.ReadAll(e)
		if want := ": ping\ndata: {\"failed\":1}\n\n"; string(out) != want || err != nil {
			t.Errorf("%s: %q, %v", s.name, out, err)
		}
	}
}

func TestAnEventThatIsTooLongEndsTheStream(t *testing.T) {
	for name, in := range map[string]string{
		"one line":   "data: " + strings.Repeat("secret", 100),
		"many lines": strings.Repeat("data: secret\n", 100) + "\n",
		"comment":    ":" + strings.Repeat("secret", 100) + "\n",
		"after one":  "data: 1\n\nid: " + strings.Repeat("secret", 100),
	} {
		for _, reader := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader} {
			e := newEvents(256, `{"failed":1}`)
			fault := error(nil)
			e.fault = func(err error) { fault = err }
			e.from = io.NopCloser(reader(strings.NewReader(in + "\n\ndata: 2\n\n")))
			out, err := io.ReadAll(e)
			want := "data: {\"failed\":1}\n\n"
			if name == "after one" {
				want = "data: 1\n\n" + want
			}
			if string(out) != want || err != nil || fault != errTooLong {
				t.Errorf("%s: %q, %v, %v", name, out, err, fault)
			}
		}
	}
	exact := "data: " + strings.Repeat("1", 248) + "\n\n"
	if out, _ := io.ReadAll(newEvents(256, "", exact+exact)); string(out) != exact+exact {
		t.Errorf("events of exactly the limit: %q", out)
	}
}

func TestAStreamHoldsItsShareOnlyWhileItHoldsBytes(t *testing.T) {
	b := &budget{limit: 1 << 20}
	e := newEvents(1<<20, "failed", "data: "+strings.Repeat("1", 200<<10), "\n\n", ":\n")
	e.share.of = b
	waiting := int64(0) // the bytes that were held when the stream was last read
	e.from.(*pieces).before = func() { waiting = b.used.Load() }
	buffer, got := make([]byte, 64<<10), 0
	most := int64(0)
	for got < 200<<10 {
		n, err := e.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		got += n
		most = max(most, b.used.Load())
	}
	if most < 200<<10 {
		t.Errorf("only %d bytes were held", most)
	}
	if n, _ := e.Read(buffer); string(buffer[:n]) != ":\n" || waiting > chunkSize {
		t.Errorf("%q, and %d bytes were held before", buffer[:n], waiting)
	}
	e.Close()
	if b.used.Load() != 0 || !e.from.(*pieces).closed {
		t.Errorf("%d bytes are held after the end", b.used.Load())
	}
}

func TestAStreamBeyondTheBudgetEnds(t *testing.T) {
	e := newEvents(1<<20, `{"failed":1}`, "data: "+strings.Repeat("1", 200<<10)+"\n\n")
	e.share.of = &budget{limit: 100 << 10}
	fault := error(nil)
	e.fault = func(err error) { fault = err }
	out, err := io.ReadAll(e)
	if string(out) != "data: {\"failed\":1}\n\n" || err != nil || fault != errNoBudget {
		t.Errorf("%q, %v, %v", out, err, fault)
	}
}

func TestALineEndsAtItsFirstCROrLF(t *testing.T) {
	for _, at := range []int{0, 1, 1022, 1023, 1024, 1025, 2047, 2048, 5000} {
		for _, end := range []string{"\n", "\r", "\r\n", "\n\r", "\r" + strings.Repeat("x", 2000) + "\n", "\n" + strings.Repeat("x", 2000) + "\r"} {
			text := strings.Repeat("x", at) + end
			if got := lineLength([]byte(text)); got != at+1 {
				t.Errorf("a line of %d bytes before %.2q has a length of %d", at, end, got)
			}
		}
		if got := lineLength([]byte(strings.Repeat("x", at))); got != at {
			t.Errorf("%d bytes without an end have a length of %d", at, got)
		}
	}
}
