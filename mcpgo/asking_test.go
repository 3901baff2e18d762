package mcpgo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
	"github.com/tripseal/tripseal/mcpgo"
)

type chosen struct {
	Yes bool `json:"yes"`
}

type removed struct {
	Done string `json:"done"`
}

// remove asks two questions, one after the other.
func remove(_ context.Context, ask *elicit.Asker, in struct{ Dir string }) (removed, error) {
	id, err := elicit.Once(ask, "id", func() (string, error) { return secret, nil })
	if err != nil {
		return removed{}, err
	}
	for _, key := range []string{"ok", "sure"} {
		if _, err := elicit.Form[chosen](ask, key, "Delete "+in.Dir+"?").Value(); err != nil {
			return removed{}, err
		}
	}
	return removed{fmt.Sprintf("deleted %s with %d", in.Dir, len(id))}, nil
}

// deep asks without being handed the asker.
func deep(ctx context.Context) error {
	_, err := elicit.Form[chosen](elicit.From(ctx), "ok", "Sure?").Value()
	return err
}

func addAsking(srv *server.MCPServer) {
	srv.AddTool(mcp.NewTool("remove", mcp.WithString("dir")), mcpgo.AskingTool(remove))
	srv.AddTool(mcp.NewTool("deep"), mcpgo.WithAsker(func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if got, ok := elicit.From(ctx).Request().(mcp.CallToolRequest); !ok || got.Params.Name != "deep" {
			return nil, errors.New("another request")
		}
		if !elicit.From(ctx).Can(tripseal.KindForm) || elicit.From(ctx).Can(tripseal.KindRoots) {
			return nil, errors.New("other capabilities")
		}
		if err := deep(ctx); err != nil {
			return mcp.NewToolResultText("not asked"), nil // the call asks, whatever the handler returns
		}
		return mcp.NewToolResultText("asked deep inside"), nil
	}))
	srv.AddTool(mcp.NewTool("many"), mcpgo.AskingTool(func(_ context.Context, ask *elicit.Asker, _ struct{}) (removed, error) {
		url := elicit.URL(ask, "url", "Pay", "https://pay.example")
		roots := elicit.Roots(ask, "roots")
		poem, err := elicit.Sample[mcp.CreateMessageResult](ask, "poem", mcp.CreateMessageParams{
			MaxTokens: 7, Messages: []mcp.SamplingMessage{{Role: "user", Content: mcp.NewTextContent("a poem")}},
		}).Value()
		if err != nil {
			return removed{}, err
		}
		if _, err := url.Value(); err != nil {
			return removed{}, err
		}
		where, err := roots.Value()
		if err != nil {
			return removed{}, err
		}
		return removed{fmt.Sprint(poem.Model, " ", where[0].URI)}, nil
	}))
	srv.AddPrompt(mcp.NewPrompt("deep"), mcpgo.PromptWithAsker(func(ctx context.Context, _ mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("prompted", nil), deep(ctx)
	}))
}

func askingRig(t *testing.T) *rig {
	r := newRig(t, server.WithElicitation())
	addAsking(r.srv)
	return r
}

func answer(key, content string) string {
	return `,"inputResponses":{"` + key + `":{"action":"accept","content":` + content + `},"ghost":{"action":"accept"}}`
}

const dir = `,"arguments":{"dir":"/tmp"}`

func TestAHandlerAsksInTheMiddleOfItsCode(t *testing.T) {
	for name, open := range map[string]func(*rig) caller{"HTTP": func(r *rig) caller { return r.overHTTP() }, "stdio": (*rig).overStdio} {
		t.Run(name, func(t *testing.T) {
			r := askingRig(t)
			send := open(r)
			first := send("alice", tool("remove", dir+answer("ok", `{"yes":true}`)))
			if !strings.Contains(first, `"ok":{"method":"elicitation/create"`) || !strings.Contains(first, `Delete /tmp?`) {
				t.Fatalf("the first round: %s", first)
			}
			second := send("alice", tool("remove", dir+token(t, first)+answer("ok", `{"yes":true}`)))
			if !strings.Contains(second, `"sure":{"method":`) || strings.Contains(second, `"ok":{"method"`) {
				t.Fatalf("the second round: %s", second)
			}
			again := send("alice", tool("remove", dir+token(t, second)+answer("ok", `{"yes":true}`))) // answers another question
			if !strings.Contains(again, `"sure":{"method":`) {
				t.Errorf("without the answer: %s", again)
			}
			last := send("alice", tool("remove", dir+token(t, again)+answer("sure", `{"yes":true,"more":null}`)))
			if !strings.Contains(last, `"done":"deleted /tmp with 24"`) {
				t.Errorf("the last round: %s", last)
			}
			for what, message := range map[string]string{
				"another user": tool("remove", dir+token(t, second)+answer("sure", `{"yes":true}`)), "a forged state": tool("remove", dir+forged),
			} {
				if got := send("mallory", message); name == "HTTP" && !strings.Contains(got, "requestState") || strings.Contains(got, `"done"`) && name == "HTTP" {
					t.Errorf("%s: %s", what, got)
				}
			}
			for _, c := range [][2]string{
				{`{"yes":"hush"}`, "the answer to the question ok does not fit what was asked"}, {`{}`, "does not fit"},
			} {
				if got := send("alice", tool("remove", dir+token(t, first)+answer("ok", c[0]))); !strings.Contains(got, c[1]) || !strings.Contains(got, `"isError":true`) || strings.Contains(got, "hush") {
					t.Errorf("%s: %s", c[0], got)
				}
			}
			refused := strings.Replace(answer("ok", `{}`), "accept", "decline", 1)
			if got := send("alice", tool("remove", dir+token(t, first)+refused)); !strings.Contains(got, "the question ok was declined") || !strings.Contains(got, `"isError":true`) {
				t.Errorf("a refusal: %s", got)
			}
			if got := send("alice", call("prompts/get", `"name":"deep"`, token(t, send("alice", call("prompts/get", `"name":"deep"`, "")))+answer("ok", `{"yes":true}`))); !strings.Contains(got, "prompted") {
				t.Errorf("a prompt: %s", got)
			}
			if got := send("alice", call("prompts/get", `"name":"deep"`, token(t, send("alice", call("prompts/get", `"name":"deep"`, "")))+refused)); !strings.Contains(got, "-32602") || !strings.Contains(got, "the question ok was declined") {
				t.Errorf("a prompt and a refusal: %s", got)
			}
			if got := send("alice", tool("deep", token(t, send("alice", tool("deep", "")))+answer("ok", `{"yes":true}`))); !strings.Contains(got, "asked deep inside") {
				t.Errorf("deep inside: %s", got)
			}
			if text := r.log.String(); strings.Contains(text, "hush") || strings.Contains(text, secret) {
				t.Errorf("the log: %s", text)
			}
		})
	}
}

func TestEveryKindOfQuestionIsAsked(t *testing.T) {
	send := askingRig(t).overHTTP()
	everything := strings.NewReplacer(`{"elicitation":{}}`, `{"elicitation":{"url":{}},"sampling":{},"roots":{}}`)
	asked := send("alice", everything.Replace(tool("many", "")))
	for _, want := range []string{`"maxTokens":7`, `"mode":"url"`, `"url":"https://pay.example"`, `"method":"roots/list"`, `"elicitationId":"`} {
		if !strings.Contains(asked, want) {
			t.Errorf("%s is not in %s", want, asked)
		}
	}
	given := `,"inputResponses":{"url":{"action":"accept"},"roots":{"roots":[{"uri":"file:///a"}]},"poem":{"role":"assistant","model":"m","content":{"type":"text","text":"x"}}}`
	if got := send("alice", everything.Replace(tool("many", token(t, asked)+given))); !strings.Contains(got, `"done":"m file:///a"`) {
		t.Error(got)
	}
	if got := send("alice", tool("many", "")); !strings.Contains(got, "-32021") {
		t.Errorf("a client that cannot answer: %s", got)
	}
}

// TestPublishedClientsAreAsked asks clients of both revisions. mcp-go itself asks the older ones, and keeps the state.
func TestPublishedClientsAreAsked(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		for name, want := range map[string]string{"remove": "deleted  with 24", "deep": "asked deep inside"} {
			r := askingRig(t)
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
				t.Errorf("%s, %s: %s; the log: %s", revision, name, got, r.log.String())
			}
		}
	}
}

func TestWithoutADoorACallThatWouldAskFails(t *testing.T) {
	for name, open := range openings {
		send := open(askingRig(t))
		for _, message := range []string{tool("remove", dir), call("prompts/get", `"name":"deep"`, "")} {
			if got := send("alice", message); !strings.Contains(got, "Internal error") || strings.Contains(got, "requestState") || strings.Contains(got, secret) {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// TestAToolThatCallsOthersLendsThemNothing passes the context of an answered call on to another tool, and to the same
// tool of another server.
func TestAToolThatCallsOthersLendsThemNothing(t *testing.T) {
	r, other := askingRig(t), askingRig(t)
	var got []string
	r.srv.AddTool(mcp.NewTool("gateway"), mcpgo.WithAsker(func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := deep(ctx)
		for _, handler := range []server.ToolHandlerFunc{mcpgo.AskingTool(remove)} {
			result, err := handler(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "remove"}})
			got = append(got, fmt.Sprint(result, err))
		}
		for _, srv := range []*server.MCPServer{r.srv, other.srv} {
			got = append(got, fmt.Sprint(srv.HandleMessage(ctx, []byte(older("deep", "")))))
		}
		return mcp.NewToolResultText("done"), err
	}))
	send := r.overHTTP()
	asked := send("alice", tool("gateway", ""))
	if last := send("alice", tool("gateway", token(t, asked)+answer("ok", `{"yes":true}`))); !strings.Contains(last, "done") {
		t.Error(last)
	}
	for _, text := range got {
		if strings.Contains(text, "asked deep inside") || strings.Contains(text, "deleted") || strings.Contains(text, "elicit ") {
			t.Errorf("a tool that was called: %s", text)
		}
	}
}

// TestTheStatesOfOneHandlerReachNoOther keeps the name of a tool, and moves it to a handler without package elicit and
// back, as a new release may do.
func TestTheStatesOfOneHandlerReachNoOther(t *testing.T) {
	r := askingRig(t)
	send := r.overHTTP()
	first := send("alice", tool("deep", ""))
	second := send("alice", tool("remove", dir))
	byHand := send("alice", tool("ask", ""))
	for _, name := range []string{"deep", "remove"} {
		r.srv.AddTool(mcp.NewTool(name), ask)
	}
	for name, asked := range map[string]string{"deep": first, "remove": second} {
		if got := send("alice", tool(name, token(t, asked)+answer("ok", `{"yes":true}`))); name == "deep" && !strings.Contains(got, `"ok":{"method"`) {
			t.Errorf("%s by hand: %s", name, got)
		}
	}
	r.srv.AddTool(mcp.NewTool("ask"), mcpgo.WithAsker(func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("answered"), deep(ctx)
	}))
	if got := send("alice", tool("ask", token(t, byHand)+answers)); !strings.Contains(got, `"ok":{"method"`) {
		t.Errorf("with a state by hand: %s", got)
	}
}
