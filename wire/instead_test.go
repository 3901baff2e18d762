package wire_test

import (
	"context"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// TestTheErrorOfTheServerReachesTheClient sets an error for a call, as a server whose SDK cannot send it does.
func TestTheErrorOfTheServerReachesTheClient(t *testing.T) {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral()})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := wire.New(wire.Config{Boundary: boundary})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid cursor"}}`
	const notice = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`
	for _, answer := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{}}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"x"}}`,
		asking(`"secret"`, ""), `{"id":7,"result":{},"result":{}}`,
	} {
		x := engine.Open(context.Background(), carriers[0].call(""), tripseal.User("alice"))
		x.AnswerWith(tripseal.WireError{Code: -32602, Message: "Invalid cursor"})
		if x.IsPlainAnswer(`{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`) {
			t.Error("an answer that is to be replaced passes unread")
		}
		if out := x.Seal(context.Background(), notice); out != notice {
			t.Errorf("a notification became %s", out)
		}
		if out := x.Seal(context.Background(), answer); out != want || !x.Answered() {
			t.Errorf("%s became %s", answer, out)
		}
	}
}

// TestANullInAFormOfAnOlderClientCountsAsAbsent answers a question of the server, as clients of older revisions do.
func TestANullInAFormOfAnOlderClientCountsAsAbsent(t *testing.T) {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral()})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := wire.New(wire.Config{Boundary: boundary})
	if err != nil {
		t.Fatal(err)
	}
	for sent, want := range map[string]string{
		`{"action":"accept","content":{"name":"x","note":null}}`: `{"action":"accept","content":{"name":"x"}}`,
		`{ "action":"accept","content": {"a":1.0} }`:             `{ "action":"accept","content": {"a":1.0} }`,
		`{"roots":[{"uri":"file:///a","name":null}]}`:            `{"roots":[{"uri":"file:///a","name":null}]}`,
		`{"tools":null}`: `{"tools":null}`,
	} {
		x := engine.Open(context.Background(), `{"jsonrpc":"2.0","id":7,"result":`+sent+` , "x":1}`, tripseal.User("alice"))
		if want := `{"jsonrpc":"2.0","id":7,"result":` + want + ` , "x":1}`; x.Forward != want {
			t.Errorf("%s: the server got %q", sent, x.Forward)
		}
	}
}
