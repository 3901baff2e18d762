package passage

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestARoundOfACallBeginsAnew: a key and a result of the round before do not count.
func TestARoundOfACallBeginsAnew(t *testing.T) {
	call := &Call{}
	ask := func() bool {
		_, part := call.Within(&mcp.CallToolRequest{}, "", nil, func() any { return t })
		return call.AsksIn(part, "confirm") && !call.Pended()
	}
	if !ask() || ask() {
		t.Error("a key is for one part")
	}
	call.Pend()
	call.Begin(nil)
	if !ask() {
		t.Error("the round before counts")
	}
}

// TestArgumentsAreComparedByValue: what cannot be digested is only its own bytes' equal.
func TestArgumentsAreComparedByValue(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "{}", true}, {`{"a":1.0}`, `{"a":1}`, true}, {`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":1}`, `{"A":1}`, false}, {`{`, `{`, true}, {`{`, `[`, false}, {`{"a":1,"a":1}`, `{"a":1}`, false}, {`{"a":1}`, `{"a":1,"a":1}`, false},
	} {
		if got := sameValue([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}
