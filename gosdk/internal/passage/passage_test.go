package passage

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

// TestARoundOfACallBeginsAnew checks that a new round gets a new asker, and that the handler need
// not return the questions of the previous round any more.
func TestARoundOfACallBeginsAnew(t *testing.T) {
	call, made := &Call{}, 0
	within := func() any {
		asker, ok := call.Within(&mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}}, "", nil, func() any { made++; return made })
		if !ok {
			t.Error("the request is another one")
		}
		return asker
	}
	if within() != within() {
		t.Error("one run has two askers")
	}
	call.Owe(mcp.InputRequestMap{"roots": &mcp.ListRootsParams{}})
	before := within()
	call.Begin(new(tripseal.Round))
	if call.Owes() || within() == before {
		t.Error("the round before counts")
	}
}

// TestOnlyAQuestionThatIsOwedIsSettled checks the methods Owe and Owes. After a call of Owe, Owes
// returns true until the SDK sends one of the questions that Owe got. A form with another message
// is not one of them.
func TestOnlyAQuestionThatIsOwedIsSettled(t *testing.T) {
	form, sample := &mcp.ElicitParams{Mode: "form", Message: "Delete?"}, &mcp.CreateMessageParams{}
	for _, c := range []struct {
		sent    mcp.InputRequest
		settled bool
	}{
		{&mcp.ElicitParams{Message: "Delete?"}, true}, {&mcp.ElicitParams{Message: "Delete it?"}, false},
		{&mcp.ElicitParams{Mode: "url", Message: "Delete?"}, false}, {&mcp.CreateMessageWithToolsParams{}, true},
		{&mcp.ListRootsParams{}, false}, {nil, false}, {(*mcp.ElicitParams)(nil), false},
	} {
		call := &Call{}
		call.Owe(mcp.InputRequestMap{"form": form, "sample": sample})
		if call.Sends(c.sent); call.Owes() == c.settled {
			t.Errorf("%#v", c.sent)
		}
	}
}

// TestArgumentsAreComparedByValue checks that arguments are equal if they mean the same. Arguments
// that have no digest are equal only if their bytes are equal.
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
