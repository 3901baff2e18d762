package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// upstream stands for an MCP server that does not seal its state. A door would send the
// message to the server over HTTP or standard input.
func upstream(message string) (answer string) {
	if strings.Contains(message, `"requestState":"step=1"`) {
		return `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"deployed"}]}}`
	}
	return `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"step=1","inputRequests":{` +
		`"sure":{"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object"}}}}}}`
}

// carry takes a message of a client to the server, and returns the answer for the client, or
// "" if there is none. It is what a door does for each message.
func carry(ctx context.Context, engine *wire.Engine, user, message string) string {
	exchange := engine.Open(ctx, message, tripseal.User(user))
	if exchange.Forward == "" {
		return exchange.Reply // the server must not see the message
	}
	return exchange.Seal(ctx, upstream(exchange.Forward))
}

// An engine seals the state that a server sends, and opens it when the client sends it back.
func Example() {
	boundary, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: "deploy.example.com", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := wire.New(wire.Config{Boundary: boundary})
	if err != nil {
		log.Fatal(err)
	}

	// call returns a call of the tool deploy. It adds the given members to the params. The constant
	// meta says what the client can do.
	call := func(members string) string {
		const meta = `"_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy",` + meta + members + `}}`
	}
	ctx := context.Background()
	var asked struct{ Result struct{ RequestState string } }
	if err := json.Unmarshal([]byte(carry(ctx, engine, "alice", call(""))), &asked); err != nil {
		log.Fatal(err)
	}
	fmt.Println("The client gets a token that begins with", asked.Result.RequestState[:4])

	answer := call(`,"requestState":"` + asked.Result.RequestState + `","inputResponses":{"sure":{"action":"accept"}}`)
	fmt.Println("bob:  ", carry(ctx, engine, "bob", answer))
	fmt.Println("alice:", carry(ctx, engine, "alice", answer))
	// Output:
	// The client gets a token that begins with ms1.
	// bob:   {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid or expired requestState","data":{"reason":"invalid_request_state"}}}
	// alice: {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"deployed"}]}}
}
