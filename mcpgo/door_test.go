package mcpgo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
	"github.com/tripseal/tripseal/wire"
)

// doors has the ways to a server through a door.
var doors = map[string]func(*rig) caller{
	"HTTP":       func(r *rig) caller { return r.overHTTP() },
	"no session": func(r *rig) caller { return r.overHTTP(server.WithStateLess(true)) },
	"stdio":      (*rig).overStdio,
	"built by hand": func(r *rig) caller {
		mcpgo.Guard(r.srv, r.engine)
		mcpgo.Guard(r.srv, r.engine) // twice does no harm
		handler := r.engine.Handler(server.NewStreamableHTTPServer(r.srv), wire.Options{User: userOf})
		web := httptest.NewServer(handler)
		r.t.Cleanup(web.Close)
		return r.poster(web.URL)
	},
}

func throughDoors(t *testing.T, test func(t *testing.T, r *rig, send caller)) {
	for name, open := range doors {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			test(t, r, open(r))
		})
	}
}

func TestAHandlerSeesItsStateAndTheAnswer(t *testing.T) {
	throughDoors(t, func(t *testing.T, r *rig, send caller) {
		for _, c := range [][2]string{{"tools/call", `"name":"ask"`}, {"prompts/get", `"name":"ask"`}} {
			state := token(t, send("alice", call(c[0], c[1], "")))
			if got := send("alice", call(c[0], c[1], state+answers)); !strings.Contains(got, saw) {
				t.Errorf("%s: %s\n%s", c[0], got, &r.log)
			}
		}
		state := token(t, send("alice", tool("remember", "")))
		if got := send("alice", tool("remember", state+answers)); !strings.Contains(got, "remembered a title") {
			t.Errorf("%s\n%s", got, &r.log)
		}
	})
}

// attacks sends what no handler may see: forged states and answers, and the state of another call.
func attacks(t *testing.T, r *rig, send caller, name string) {
	t.Helper()
	genuine := token(t, send("alice", tool("ask", "")))
	rejected := string(tripseal.Wire(tripseal.ErrRejected).Data)
	for what, more := range map[string]string{
		"a forged state": forged, "a forged state and answers": forged + answers,
		"a state of another tool": genuine + answers,
		"a changed state":         genuine[:len(genuine)-5] + `AAAA"` + answers,
	} {
		if got := send("alice", tool(name, more)); !strings.Contains(got, rejected) {
			t.Errorf("%s: %s\n%s", what, got, &r.log)
		} else if strings.Contains(got, secret) {
			t.Errorf("%s: the handler saw it: %s", what, got)
		}
	}
	if got := send("alice", tool(name, answers)); strings.Contains(got, "yes") {
		t.Errorf("answers to no question: %s", got)
	}
	if got := send("alice", tool(name, "")); strings.Contains(got, secret) {
		t.Errorf("a first call: %s", got)
	}
}

func TestForgedStatesReachNoHandler(t *testing.T) {
	throughDoors(t, func(t *testing.T, r *rig, send caller) {
		attacks(t, r, send, "echo")
		attacks(t, r, send, "remember")
		for _, c := range [][2]string{{"prompts/get", `"name":"ask"`}, {"resources/read", `"uri":"test://echo"`}} {
			got := send("alice", call(c[0], c[1], forged+answers))
			if strings.Contains(got, secret) || !strings.Contains(got, "-32602") {
				t.Errorf("%s: %s", c[0], got)
			}
		}
	})
}

func TestAnotherUserCannotUseAState(t *testing.T) {
	r := newRig(t)
	send := r.overHTTP()
	state := token(t, send("alice", tool("ask", "")))
	for user, want := range map[string]string{"bob": "-32602", "": "-32602", "alice": saw} {
		if got := send(user, tool("ask", state+answers)); !strings.Contains(got, want) {
			t.Errorf("%s: %s", user, got)
		}
	}
}

// late adds what authors add late: hooks of every kind, some of which replace results, middleware that rewrites
// arguments, a recovery, filters.
func late(r *rig) {
	hooks := new(server.Hooks)
	hooks.AddBeforeAny(func(context.Context, any, mcp.MCPMethod, any) {})
	hooks.AddOnSuccess(func(_ context.Context, _ any, _ mcp.MCPMethod, _ any, result any) {
		if got, ok := result.(*mcp.CallToolResult); ok && len(got.Content) == 0 && !got.NeedsInput() {
			got.Content = []mcp.Content{mcp.NewTextContent("nothing")}
		}
	})
	hooks.AddOnError(func(context.Context, any, mcp.MCPMethod, any, error) {})
	hooks.AddBeforeCallTool(func(_ context.Context, _ any, req *mcp.CallToolRequest) {
		if arguments := req.GetArguments(); arguments != nil {
			arguments["hooked"] = true
		}
	})
	hooks.AddAfterCallTool(func(_ context.Context, _ any, req *mcp.CallToolRequest, result any) {
		if req.Params.Name != "leak" {
			return
		}
		*result.(*mcp.CallToolResult) = *question().ToolResult() // a hook that asks in the handler's place
	})
	hooks.AddAfterListTools(func(_ context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
		result.NextCursor = mcp.Cursor(secret)
	})
	hooks.AddAfterGetPrompt(func(context.Context, any, *mcp.GetPromptRequest, *mcp.GetPromptResult) {})
	hooks.AddOnRegisterSession(func(context.Context, server.ClientSession) {})
	server.WithHooks(hooks)(r.srv)
	server.WithRecovery()(r.srv)
	server.WithToolFilter(func(_ context.Context, tools []mcp.Tool) []mcp.Tool { return tools })(r.srv)
	r.srv.Use(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			req.Params.Arguments = map[string]any{"tenant": "own"}
			req.Params.RawArguments = nil
			return next(ctx, req)
		}
	})
	r.srv.AddTool(mcp.NewTool("leak"), echo)
}

// TestWhatAnAuthorAddsLateOpensNothing adds hooks and middleware after the line, replaces the hooks once more, and
// attacks through each.
func TestWhatAnAuthorAddsLateOpensNothing(t *testing.T) {
	throughDoors(t, func(t *testing.T, r *rig, send caller) {
		late(r)
		late(r)
		for _, name := range []string{"ask", "leak"} {
			state := token(t, send("alice", tool(name, `,"arguments":{"a":1}`)))
			got := send("alice", tool(name, state+answers+`,"arguments":{"a":1}`))
			if name == "ask" && !strings.Contains(got, saw) || name == "leak" && token(t, got) == state {
				t.Errorf("%s: %s\n%s", name, got, &r.log)
			}
			if got := send("alice", tool(name, state+answers+`,"arguments":{"a":2}`)); !strings.Contains(got, "-32602") {
				t.Errorf("%s with other arguments: %s", name, got)
			}
		}
		attacks(t, r, send, "echo")
		list := `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{` + meta + `}}`
		if got := send("alice", list); !strings.Contains(got, `"nextCursor":"mc1.`) || strings.Contains(got, secret) {
			t.Errorf("a cursor of a hook: %s", got)
		}
		forgery := strings.Replace(list, `"params":{`, `"params":{"cursor":"Zm9yZ2Vk",`, 1)
		if got := send("alice", forgery); !strings.Contains(got, "Invalid cursor") {
			t.Errorf("a forged cursor: %s", got)
		}
	})
}

func TestToolsOfASessionAreProtected(t *testing.T) {
	r := newRig(t)
	hooks := new(server.Hooks)
	hooks.AddOnRegisterSession(func(_ context.Context, s server.ClientSession) {
		if with, ok := s.(server.SessionWithTools); ok {
			with.SetSessionTools(map[string]server.ServerTool{"own": {Tool: mcp.NewTool("own"), Handler: echo}})
		}
	})
	server.WithHooks(hooks)(r.srv)
	url := r.door()
	session := r.initialize(url, "alice", "{}")
	for what, more := range map[string]string{"a state": forged, "answers": answers} {
		_, _, got := r.request("POST", url, older("own", more),
			userHeader, "alice", "Mcp-Session-Id", session)
		if strings.Contains(got, secret) || strings.Contains(got, "yes") {
			t.Errorf("%s: %s", what, got)
		}
	}
	_, _, got := r.request("POST", url, older("own", ""),
		userHeader, "alice", "Mcp-Session-Id", session)
	if !strings.Contains(got, "got  and null") {
		t.Errorf("the tool does not work: %s\n%s", got, &r.log)
	}
}

// initialize begins a session of revision 2025-11-25, and returns its id.
func (r *rig) initialize(url, user, capabilities string) (session string) {
	r.t.Helper()
	_, header, text := r.request("POST", url, initializing(capabilities), userHeader, user)
	session = header.Get("Mcp-Session-Id")
	if session == "" {
		r.t.Fatalf("no session: %s\n%s", text, &r.log)
	}
	return session
}

func initializing(capabilities string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` +
		capabilities + `,"clientInfo":{"name":"c","version":"1"}}}`
}

func TestASessionBelongsToItsUser(t *testing.T) {
	r := newRig(t)
	url := r.door()
	session := r.initialize(url, "alice", "{}")
	if strings.HasPrefix(session, "mcp-session") {
		t.Errorf("the session's id is not sealed: %s", session)
	}
	echoing := older("echo", "")
	headers := func(user, id string) []string { return []string{userHeader, user, "Mcp-Session-Id", id} }
	for _, stolen := range [][2]string{
		{"bob", session}, {"", session}, {"alice", "mcp-session-1"}, {"alice", session + "A"},
	} {
		for method, body := range map[string]string{"POST": echoing, "GET": "", "DELETE": ""} {
			status, _, text := r.request(method, url, body, append(headers(stolen[0], stolen[1]), "Last-Event-ID", "1")...)
			if status != 404 || strings.Contains(text, "got") {
				t.Errorf("%s as %q: %d %s", method, stolen[0], status, text)
			}
		}
	}
	_, _, text := r.request("POST", url, echoing, headers("alice", session)...)
	if !strings.Contains(text, "got  and null") {
		t.Errorf("the session of alice: %s", text)
	}
	if status, _, _ := r.request("DELETE", url, "", headers("alice", session)...); status != 200 {
		t.Errorf("alice cannot end her session: %d", status)
	}
}

// yes is a user who accepts every question.
type yes struct{}

func (yes) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"yes": true},
	}}, nil
}

// published calls the tool with the published client, which asks its user.
func published(t *testing.T, over transport.Interface, revision, name string) string {
	t.Helper()
	c := client.NewClient(over, client.WithElicitationHandler(yes{}), client.WithProtocolVersion(revision))
	t.Cleanup(func() { c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: revision, ClientInfo: mcp.Implementation{Name: "client", Version: "1"},
		Capabilities: mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{}},
	}}); err != nil {
		t.Fatal(err)
	}
	result, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: name}})
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEveryClientIsAskedAndFinishes asks clients of the old and of the new revision. The old ones are asked over the
// stream of their session.
func TestEveryClientIsAskedAndFinishes(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		for name, want := range map[string]string{"ask": saw, "remember": "remembered a title"} {
			t.Run(revision+" "+name+" HTTP", func(t *testing.T) {
				r := newRig(t, server.WithElicitation())
				options := []transport.StreamableHTTPCOption{transport.WithHTTPHeaders(map[string]string{userHeader: "alice"})}
				if revision == "2025-11-25" {
					//lint:ignore SA1019 older clients listen like that
					options = append(options, transport.WithContinuousListening())
				}
				over, err := transport.NewStreamableHTTP(r.door(), options...)
				if err != nil {
					t.Fatal(err)
				}
				if got := published(t, over, revision, name); !strings.Contains(got, want) {
					t.Errorf("%s\n%s", got, &r.log)
				}
			})
			t.Run(revision+" "+name+" stdio", func(t *testing.T) {
				over := transport.NewStdio(os.Args[0], []string{"MCPGO_TEST_SERVE=1"})
				if got := published(t, over, revision, name); !strings.Contains(got, want) {
					t.Error(got)
				}
			})
		}
	}
}

// TestAnOlderClientCannotForgeAState sends a state in a message of an older revision.
func TestAnOlderClientCannotForgeAState(t *testing.T) {
	r := newRig(t, server.WithElicitation())
	url := r.door()
	session := r.initialize(url, "alice", `{"elicitation":{}}`)
	p := r.stdio("alice")
	p.write(initializing(`{"elicitation":{}}`))
	p.read()
	for _, more := range []string{forged, forged + answers} {
		message := older("echo", more)
		_, _, got := r.request("POST", url, message, userHeader, "alice", "Mcp-Session-Id", session)
		p.write(message)
		for _, got := range []string{got, p.read()} {
			if !strings.Contains(got, "-32602") || strings.Contains(got, secret) {
				t.Errorf("%s: %s", more, got)
			}
		}
	}
}

func TestTheTextOfAPanicNeverReachesTheClient(t *testing.T) {
	throughDoors(t, func(t *testing.T, r *rig, send caller) {
		for _, message := range []string{
			tool("panic", ""), call("prompts/get", `"name":"panic"`, ""), call("resources/read", `"uri":"test://panic"`, ""),
		} {
			got := send("alice", message)
			if !strings.Contains(got, `"code":-32603,"message":"Internal error"`) || strings.Contains(got, panicked) {
				t.Errorf("%s: %s", message, got)
			}
		}
		text := r.log.String()
		if strings.Count(text, "panic of type string") < 3 || !strings.Contains(text, "addHandlers") ||
			strings.Contains(text, panicked) {
			t.Errorf("the log: %s", text)
		}
		if got := send("alice", tool("echo", "")); !strings.Contains(got, "got") {
			t.Errorf("after a panic: %s", got)
		}
	})
}

// TestAMarkOfTheClientGetsNowhere sends marks over standard input and output, where the door tells the server with a
// mark that a call came through it.
func TestAMarkOfTheClientGetsNowhere(t *testing.T) {
	r := newRig(t)
	var marks []string
	r.srv.AddTool(mcp.NewTool("meta"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		mark, _ := req.Params.Meta.AdditionalFields[wire.MarkName].(string)
		marks = append(marks, mark)
		return mcp.NewToolResultText(fmt.Sprint(mcpgo.Sealed(ctx), req.Params.Meta.AdditionalFields)), nil
	})
	send := r.overStdio()
	own := func(more string) string {
		return strings.Replace(tool("meta", ""), `"_meta":{`, `"_meta":{`+more, 1)
	}
	const mine = `"` + wire.MarkName + `":"mine",`
	for _, more := range []string{"", mine, `"com.github.tripseal\/call":"mine",` + mine} {
		got := send("", own(more))
		mark := marks[len(marks)-1]
		if mark == "" || strings.Contains(got, mark) || strings.Contains(got, "mine") || !strings.Contains(got, "true map") {
			t.Errorf("%s: %s", more, got)
		}
	}
	mcpgo.Guard(r.srv, r.engine)
	for _, mark := range []string{marks[0], "mine", ""} { // of a call that has its answer
		message := strings.Replace(tool("echo", forged), `"_meta":{`, `"_meta":{"`+wire.MarkName+`":"`+mark+`",`, 1)
		if got := r.bare()("", message); strings.Contains(got, secret) || !strings.Contains(got, "-32603") {
			t.Errorf("the mark %q: %s", mark, got)
		}
	}
}
