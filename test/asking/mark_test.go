package asking

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	gomcp "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/wire"
)

// TestAMarkThatAHandlerRepeatsMovesNoAnswer gives a client the mark of its call while the call runs, and lets the client
// send it with first calls: to the same server, to a server behind another door, and to one that the middleware protects.
func TestAMarkThatAHandlerRepeatsMovesNoAnswer(t *testing.T) {
	for _, sdk := range []string{"go-sdk", "mcp-go"} {
		var servers []replica
		var others []reply
		runs, seen := 0, ""
		handle := func(_ context.Context, ask *elicit.Asker, _ struct{}) (value, error) {
			mark := ""
			switch req := ask.Request().(type) {
			case *mcp.CallToolRequest:
				mark = fmt.Sprint(req.Params.Meta[wire.MarkName])
			case gomcp.CallToolRequest:
				mark = fmt.Sprint(req.Params.Meta.AdditionalFields[wire.MarkName])
			}
			if runs++; runs == 2 {
				seen = mark
				for _, server := range servers {
					others = append(others, server.sendMeta("", "", `,"com.github.tr\u0069pseal/call":"`+mark+`"`))
				}
			}
			_, err := elicit.Form[value](ask, "k", "Sure?").Value()
			return value{mark}, err
		}
		boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		srv := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		mcp.AddTool(srv, &mcp.Tool{Name: "t"}, gosdk.AskingTool(handle))
		gosdk.Protect(srv, boundary, &gosdk.Options{AllowAnonymous: true})
		web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, &mcp.StreamableHTTPOptions{Stateless: true}))
		t.Cleanup(web.Close)
		servers = []replica{serve(t, sdk, tripseal.Ephemeral(), handle), serve(t, sdk, tripseal.Ephemeral(), handle), overHTTP(t, web.URL)}
		asked := servers[0].send("", "")
		done := servers[0].send(asked.Result.RequestState, `{"k":{"action":"accept","content":{"value":"x"}}}`)
		if done.Error != nil || len(done.Result.StructuredContent.Value) > 0 || len(seen) < 20 || len(others) != 3 {
			t.Fatalf("%s: the mark is %q, and the client got %+v", sdk, seen, done)
		}
		for i, other := range others {
			if other.Result.RequestState == "" {
				t.Errorf("%s: the call to server %d got %+v", sdk, i, other)
			}
		}
	}
}
