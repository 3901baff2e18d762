package wire

import (
	"slices"
	"strings"
	"testing"
)

// sealSecret stands for the engine: it replaces "secret", and drops a message that has the word "drop".
func sealSecret(message string) string {
	if strings.Contains(message, "drop") {
		return ""
	}
	return strings.ReplaceAll(message, "secret", "sealed")
}

func newEvents(most int) *events {
	return &events{seal: func(message []byte) []byte { return []byte(sealSecret(string(message))) }, dropped: func(string) {}, most: most, share: &share{of: newBudget(1 << 30)}}
}

// fed returns what the client gets of a stream that comes in parts.
func (e *events) fed(parts ...string) (out string) {
	for _, part := range parts {
		e.feed([]byte(part))
		out += string(e.out)
		e.out = e.out[:0]
	}
	return out
}

func rewritten(parts ...string) string { return newEvents(1 << 20).fed(parts...) }

// bytewise returns each byte of a text as a part.
func bytewise(text string) (parts []string) {
	for i := range len(text) {
		parts = append(parts, text[i:i+1])
	}
	return parts
}

// The output "same" means that the client gets what the server sent, with LF as the line end.
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
	{"fields", "id:7\nevent:message\nretry: 10\ndata:  {\"a\" : 1.0 , \"b\":12345678901234567890}\n\n", same},
	{"byte order mark", "\ufeffdata: 1\n\n", same},
	{"half a mark", "\xef\xbbdata: 1\n\n", "\n"},
	{"mark only", "\ufeff", ""},
	{"mark in the middle", "data: 1\n\n\ufeffdata: 2\n\n", "data: 1\n\n\n"},
	{"keep-alives", ":\r\n:\r\n: ping\n:\r:\n\n", same},
	{"empty lines", "\n\r\n\r\r\n\n", same},
	{"empty data", "id: 1\ndata:\n\ndata\n\ndata: \r\n\r\n", "id: 1\ndata: \n\ndata: \n\ndata: \n\n"},
	{"several data lines", "data: {\ndata:  \"a\":1\ndata: }\n\n", same},
	{"no data", "id: 1\nretry: 5\n\n", same},

	{"state, LF", "data: secret\n\n", "data: sealed\n\n"},
	{"state, CR", "data: secret\r\r", "data: sealed\n\n"},
	{"state, CRLF", "data: secret\r\n\r\n", "data: sealed\n\n"},
	{"state, CR, LF, CRLF", "data: secret\r\r\ndata: secret\n\r\ndata: secret\r\n\r",
		"data: sealed\n\ndata: sealed\n\ndata: sealed\n\n"},
	{"state after a mark", "\ufeffdata: secret\n\n", "data: sealed\n\n"},
	{"state, no space", "data:secret\n\n", "data: sealed\n\n"},
	{"state with fields", "id: 7\r\nevent: message\r\nretry: 9\r\ndata: secret\r\n\r\n",
		"id: 7\nevent: message\nretry: 9\ndata: sealed\n\n"},
	{"state over lines", "data: {\ndata: secret\ndata: }\n\n", "data: {\ndata: sealed\ndata: }\n\n"},
	{"state over CR lines", "data: {\rdata: secret\rdata: }\r\r", "data: {\ndata: sealed\ndata: }\n\n"},
	{"comment inside", "data: {\n: ping\r\ndata: secret}\n\n", ": ping\ndata: {\ndata: sealed}\n\n"},
	{"comment inside, CR", "data: 1\r: x\rid: 2\r\r", ": x\nid: 2\ndata: 1\n\n"},
	{"comment after CR", "data: secret\r:x\r\n\n", ":x\ndata: sealed\n\n"},
	{"state between others", "data: 1\n\ndata: secret\n\ndata: 2\n\n", "data: 1\n\ndata: sealed\n\ndata: 2\n\n"},

	{"dropped", "data: 1\n\nid: 4\r\ndata: drop\r\n\r\ndata: 2\n\n", "data: 1\n\ndata: 2\n\n"},
	{"a type does not last", "event: ping\ndata: 1\n\ndata: secret\n\n", "data: sealed\n\n"},
	{"of another type", "event: ping\ndata: 17 o'clock\n\n", ""},
	{"the last type counts", "event: ping\nevent: message\ndata: secret\n\n", "event: ping\nevent: message\ndata: sealed\n\n"},
	{"of another type and empty", "event: ping\ndata:\n\n", "event: ping\ndata: \n\n"},
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
			want = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\ufeff", "").Replace(s.in)
		}
		if got := rewritten(s.in); got != want {
			t.Errorf("%s: %q becomes %q, not %q", s.name, s.in, got, want)
		}
	}
}

func TestItDoesNotMatterWhereAStreamIsSplit(t *testing.T) {
	for _, s := range streams {
		whole := rewritten(s.in)
		for i := range s.in {
			for j := i; j < len(s.in); j++ {
				if got := rewritten(s.in[:i], s.in[i:j], s.in[j:]); got != whole {
					t.Errorf("%s: split at %d and %d it becomes %q, not %q", s.name, i, j, got, whole)
				}
			}
		}
		if got := rewritten(bytewise(s.in)...); got != whole {
			t.Errorf("%s: byte by byte it becomes %q, not %q", s.name, got, whole)
		}
	}
}

func TestALineEndInAMessageStaysInItsEvent(t *testing.T) {
	e := newEvents(1 << 20)
	if e.sendData([]byte("{\n\"a\": 1}")); string(e.out) != "data: {\ndata: \"a\": 1}\n" {
		t.Errorf("%q", e.out)
	}
}

// A comment must be sent when its line ends, because no empty line follows a keep-alive comment. An event must be sent
// when its empty line ends. rewritten feeds nothing after it.
func TestCommentsAndEventsLeaveAtOnce(t *testing.T) {
	for in, out := range map[string]string{
		":\r\n": ":\n", ":\r": ":\n", ": ping\n": ": ping\n", "data: 1\n\n": "data: 1\n\n", "data: 1\r\r": "data: 1\n\n",
		"data: secret\r\r": "data: sealed\n\n", "data: {\n: ping\n": ": ping\n",
	} {
		if got := rewritten(in); got != out {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestAClientMayComeBackOnlyIfItGotAnIDOrATime(t *testing.T) {
	for in, resumes := range map[string]bool{
		"": false, "data: 1\n\n": false, ":id: 1\n\n": false, "id: 1\ndata: 1": false, "id: 1\ndata: drop\n\n": false,
		"id: 1\nevent: x\ndata: 1\n\n": false, "ID: 1\ndata: 1\n\n": false, "id: 1\ndata: 1\n\n": true,
		"id: 1\ndata:\n\n":                        true,
		"id: 1\nevent: x\ndata: 1\n\ndata: 2\n\n": false, "id: 1\ndata: 1\n\ndata: 2\n\n": true,
		"retry: 1\n\n": true, "id: 1\ndata: secret\n\n": true, "retry: 5\nno field\n\n": true,
	} {
		e := newEvents(1 << 20)
		if e.fed(in); e.resumes != resumes {
			t.Errorf("%q: %v", in, e.resumes)
		}
	}
}

func TestAnEventOfAnotherTypeIsReportedWithItsType(t *testing.T) {
	e, kinds := newEvents(1<<20), ""
	e.dropped = func(kind string) { kinds += kind + " " }
	e.fed("event: endpoint\ndata: /x\n\n", "event: message\ndata: 1\n\n", "event:\ndata: 1\n\n",
		"event: ping\ndata:\n\n", "event: y\ndata: secret\n\n")
	if kinds != "endpoint y " {
		t.Errorf("%q", kinds)
	}
}

func TestAnEventThatIsTooLongEndsTheStream(t *testing.T) {
	for name, in := range map[string]string{
		"one line":   "data: " + strings.Repeat("secret", 100),
		"many lines": strings.Repeat("data: secret\n", 100) + "\n",
		"many ids":   strings.Repeat("id: secret\n", 100) + "\n",
		"comment":    ":" + strings.Repeat("secret", 100) + "\n",
	} {
		for _, parts := range [][]string{{"data: 1\n\n" + in}, bytewise("data: 1\n\n" + in)} {
			e := newEvents(256)
			out := e.fed(append(parts, "\n\ndata: 2\n\n")...)
			if out != "data: 1\n\n" || e.failed != errTooLong || e.size() != cap(e.out) {
				t.Errorf("%s: %q, %v, %d", name, out, e.failed, e.size())
			}
		}
	}
	exact := "data: " + strings.Repeat("1", 248) + "\n\n"
	if e := newEvents(256); e.fed(exact+exact) != exact+exact || e.failed != nil {
		t.Errorf("events of exactly the limit: %v", e.failed)
	}
}

func TestAStreamBeyondTheBudgetEnds(t *testing.T) {
	e := newEvents(1 << 20)
	e.share.of = newBudget(100 << 10)
	if out := e.fed("data: "+strings.Repeat("1", 200<<10), "\n\n"); out != "" || e.failed != errNoBudget {
		t.Errorf("%q, %v", out, e.failed)
	}
	e = newEvents(1 << 20)
	long := "data: " + strings.Repeat("1", 200<<10)
	if e.feed([]byte(long)); e.share.held < 2*int64(len(long)) {
		t.Errorf("%d bytes are held for %d", e.share.held, len(long))
	}
}

// dispatched reads a stream as the specification of server-sent events says, and returns the messages that a
// client sees.
func dispatched(stream string) (messages []string) {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(stream, "\n")
	var data []string
	kind := ""
	for _, line := range lines[:len(lines)-1] {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if message := strings.Join(data, "\n"); strings.Trim(message, " \t\n") != "" && (kind == "" || kind == "message") {
				messages = append(messages, message)
			}
			data, kind = nil, ""
		case name == "data":
			data = append(data, value)
		case name == "event":
			kind = value
		}
	}
	return messages
}

func FuzzEvents(f *testing.F) {
	for _, s := range streams {
		f.Add([]byte(s.in), uint16(len(s.in)/2))
	}
	f.Fuzz(func(t *testing.T, stream []byte, at uint16) {
		in := string(stream)
		out := rewritten(in)
		var want []string
		for _, message := range dispatched(in) {
			if sealed := sealSecret(message); sealed != "" {
				want = append(want, sealed)
			}
		}
		if got := dispatched(out); !slices.Equal(got, want) {
			t.Errorf("%q becomes %q: the client sees %q, not %q", in, out, got, want)
		}
		for line := range strings.SplitSeq(strings.ReplaceAll(strings.TrimPrefix(out, "\ufeff"), "\r", "\n"), "\n") {
			name, _, _ := strings.Cut(line, ":")
			if strings.Contains(line, "secret") && !slices.Contains([]string{"", "id", "event", "retry"}, name) {
				t.Errorf("%q becomes %q, with a secret", in, out)
			}
		}
		i := min(int(at), len(in))
		if split := rewritten(in[:i], in[i:]); split != out {
			t.Errorf("%q split at %d becomes %q, not %q", in, i, split, out)
		}
		if split := rewritten(bytewise(in)...); split != out {
			t.Errorf("%q byte by byte becomes %q, not %q", in, split, out)
		}
		small := newEvents(16)
		if short := small.fed(in); len(short) > len(in)+64 || small.failed == nil && short != out {
			t.Errorf("%q with a limit: %q, %v", in, short, small.failed)
		}
	})
}
