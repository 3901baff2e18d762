package mcpgo_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
	"github.com/tripseal/tripseal/mcpgo/mcpgotest"
	"github.com/tripseal/tripseal/wire"
)

// openings has the transports of mcp-go without a door. The server is guarded, because another transport of it has one.
var openings = map[string]func(*rig) caller{
	"bare": (*rig).bare,
	"streamable HTTP": func(r *rig) caller {
		web := httptest.NewServer(server.NewStreamableHTTPServer(r.srv))
		r.t.Cleanup(web.Close)
		return r.poster(web.URL)
	},
	"the door of another engine": func(r *rig) caller {
		other := newRig(r.t)
		handler := other.engine.Handler(server.NewStreamableHTTPServer(r.srv), wire.Options{User: userOf})
		web := httptest.NewServer(handler)
		r.t.Cleanup(web.Close)
		send := r.poster(web.URL)
		return func(user, message string) string {
			// The other door rejects what is forged, but lets its own states through.
			return send(user, strings.Replace(message, forged, other.genuine(), 1))
		}
	},
	"the older SSE transport": (*rig).overSSE,
	"stdio": func(r *rig) caller {
		fromClient, toServer := io.Pipe()
		fromServer, toClient := io.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			server.NewStdioServer(r.srv).Listen(context.Background(), fromClient, toClient)
		}()
		r.t.Cleanup(func() {
			toServer.Close()
			<-ended
		})
		p := &pipe{r.t, toServer, bufio.NewScanner(fromServer)}
		return func(_, message string) string {
			p.write(message)
			return p.read()
		}
	},
}

// genuine returns a state of the tool echo that the engine has sealed.
func (r *rig) genuine() string {
	x := r.engine.Open(context.Background(), tool("echo", ""), tripseal.User("alice"))
	return token(r.t, x.Seal(context.Background(), `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required",`+
		`"requestState":"`+secret+`","inputRequests":{"ok":{"method":"elicitation/create","params":{}}}}}`))
}

func (r *rig) overSSE() caller {
	web := httptest.NewServer(server.NewSSEServer(r.srv))
	r.t.Cleanup(web.Close)
	response, err := http.Get(web.URL + "/sse")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	next := func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		r.t.Fatal("the stream has ended")
		return ""
	}
	endpoint := web.URL + next()
	return func(_, message string) string {
		r.request(http.MethodPost, endpoint, message)
		return next()
	}
}

func TestWithoutADoorNothingIsTrustedAndNothingAsks(t *testing.T) {
	for name, open := range openings {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			mcpgo.Handler(r.srv, r.engine, wire.Options{User: userOf})
			send := open(r)
			if got := send("alice", tool("echo", "")); !strings.Contains(got, "got  and null") {
				t.Errorf("a call that asks nothing: %s", got)
			}
			refused := 0
			for _, message := range []string{
				tool("echo", forged), tool("ask", forged+answers), tool("ask", ""), tool("remember", ""), tool("remember", forged),
				call("prompts/get", `"name":"ask"`, forged), call("prompts/get", `"name":"ask"`, ""),
				call("resources/read", `"uri":"test://echo"`, forged),
			} {
				got := send("alice", message)
				if strings.Contains(got, secret) || strings.Contains(got, `"input_required"`) || !strings.Contains(got, `"error"`) {
					t.Errorf("%s\nis not refused: %s", message, got)
				}
				refused++ // with a record by Guard, except where State fails already
			}
			text := r.log.String()
			if name != "the door of another engine" && strings.Count(text, "came through no door") < refused-1 ||
				!strings.Contains(text, "mcpgo.Handler") || strings.Contains(text, secret) {
				t.Errorf("the log: %s", text)
			}
		})
	}
}

// TestAnswersWithoutADoorAreRefused sends answers without a state: an unguarded handler would take them.
func TestAnswersWithoutADoorAreRefused(t *testing.T) {
	for name, open := range openings {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			mcpgo.Guard(r.srv, r.engine)
			got := open(r)("alice", tool("echo", answers))
			if strings.Contains(got, "yes") {
				t.Errorf("the handler saw answers to no question: %s", got)
			}
		})
	}
}

// TestAClientInTheProcessIsAskedOnlyThroughADoor has mcp-go ask an older client in the process, which has no door.
func TestAClientInTheProcessIsAskedOnlyThroughADoor(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		r := newRig(t, server.WithElicitation())
		mcpgo.Guard(r.srv, r.engine)
		over := func() transport.Interface {
			return transport.NewInProcessTransportWithOptions(r.srv, transport.WithElicitationHandler(yes{}))
		}
		got := published(t, over(), revision, "ask")
		if strings.Contains(got, secret) || !strings.Contains(got, "Internal error") {
			t.Errorf("%s: %s", revision, got)
		}
		if got := published(t, over(), revision, "echo"); !strings.Contains(got, "got  and null") {
			t.Errorf("%s: %s", revision, got)
		}
	}
}

// TestStateFailsWithoutADoor calls handlers of a server whose author forgot the line.
func TestStateFailsWithoutADoor(t *testing.T) {
	r := newRig(t)
	for _, more := range []string{"", `,"requestState":"{\"title\":\"forged\"}"`} {
		got := r.bare()("", tool("remember", more))
		if !strings.Contains(got, "has not come through a door") || strings.Contains(got, "forged") {
			t.Errorf("%s: %s", more, got)
		}
	}
	asking := question().ToolResult()
	err := mcpgo.SetState(t.Context(), asking, draft{"a title"})
	if !errors.Is(err, mcpgo.ErrNotProtected) || asking.RequestState != secret {
		t.Errorf("SetState: %v", err)
	}
	if mcpgo.Sealed(t.Context()) {
		t.Error("Sealed is true without a door")
	}
}

// TestAnotherServerInTheProcessIsNotBehindTheDoor calls an unguarded server with the context of a call that came
// through a door.
func TestAnotherServerInTheProcessIsNotBehindTheDoor(t *testing.T) {
	r, other := newRig(t), newRig(t)
	r.srv.AddTool(mcp.NewTool("pass on"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text, err := json.Marshal(other.srv.HandleMessage(ctx, []byte(older("remember", `,"requestState":"{}"`))))
		return mcp.NewToolResultText(string(text)), err
	})
	if got := r.overHTTP()("alice", tool("pass on", "")); !strings.Contains(got, "has not come through a door") {
		t.Error(got)
	}
}

func TestAForgottenEngineIsLoud(t *testing.T) {
	r := newRig(t)
	for name, line := range map[string]func(){
		"no engine": func() { mcpgo.Handler(r.srv, nil, wire.Options{User: userOf}) },
		"no server": func() { mcpgo.Guard(nil, r.engine) },
		"no user":   func() { mcpgo.Handler(r.srv, r.engine, wire.Options{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			line()
		}()
	}
}

// TestAHandlerCanBeTestedWithoutAServer calls a handler as a test of an author does.
func TestAHandlerCanBeTestedWithoutAServer(t *testing.T) {
	ctx := mcpgotest.Context(t)
	asked, err := release(ctx, mcp.CallToolRequest{})
	if err != nil || asked.RequestState != `{"version":"1.0.0"}` {
		t.Fatalf("%+v, %v", asked, err)
	}
	again := mcp.CallToolRequest{}
	again.Params.RequestState = asked.RequestState
	if done, err := release(ctx, again); err != nil || done.Content[0] != mcp.Content(mcp.NewTextContent("not released")) {
		t.Errorf("%+v, %v", done, err)
	}
}
