package httpcarrier

import (
	"io"
	"slices"
	"strings"
	"testing"
)

// dispatched reads a stream as the specification of server-sent events says, and returns the
// messages that a client sees.
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
		out := rewritten(t, in)
		var want []string
		for _, message := range dispatched(in) {
			sealed := sealSecret([]byte(message))
			switch {
			case sealed == nil:
			case string(sealed) == message:
				want = append(want, message)
			default:
				want = append(want, strings.ReplaceAll(string(sealed), "\n", " "))
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
		if split := rewritten(t, in[:i], in[i:]); split != out {
			t.Errorf("%q split at %d becomes %q, not %q", in, i, split, out)
		}
		if split := rewritten(t, bytewise(in)...); split != out {
			t.Errorf("%q byte by byte becomes %q, not %q", in, split, out)
		}
		small := newEvents(16, "last", in)
		if short, err := io.ReadAll(small); err != nil || !small.ended || len(short) > len(in)+64 {
			t.Errorf("%q with a limit: %q, %v", in, short, err)
		}
	})
}
