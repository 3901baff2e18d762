package mcpgo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
	"github.com/tripseal/tripseal/mcpgo/mcpgotest"
)

type booking struct {
	Room int `json:"room"`
}

// book is the handler of a tool that keeps a booking in its state.
func book(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	b, present, err := mcpgo.State[booking](ctx, req)
	if err != nil {
		return nil, err
	}
	if present {
		return mcp.NewToolResultText(jsonText(b)), nil
	}
	r := question().ToolResult()
	return r, mcpgo.SetState(ctx, r, booking{Room: 7})
}

func jsonText(v any) string { text, _ := json.Marshal(v); return string(text) }

func TestAStateComesBackAsAGoValue(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	srv.AddTool(mcp.NewTool("book"), book)
	asked := send(alice, t, srv, "tools/call", `"name":"book"`)
	if r := send(alice, t, srv, "tools/call", `"name":"book","requestState":`+quote(asked.Result.RequestState)); r.text() != `{"room":7}` {
		t.Errorf("got %s", r.raw)
	}
}

func TestStateFailsOnAServerThatIsNotProtected(t *testing.T) {
	var text bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(before)
	srv := server.NewMCPServer("test", "1")
	srv.AddTool(mcp.NewTool("book"), book)
	r := send(t.Context(), t, srv, "tools/call", `"name":"book","requestState":"{\"room\":1}"`)
	if r.Error == nil || r.Error.Message != mcpgo.ErrNotProtected.Error() || !strings.Contains(text.String(), "level=ERROR") {
		t.Errorf("got %s, log %s", r.raw, text.String())
	}
	if err := mcpgo.SetState(t.Context(), question().ToolResult(), 1); !errors.Is(err, mcpgo.ErrNotProtected) {
		t.Errorf("SetState: %v", err)
	}
}

// A handler of a protected server passes its context to another server. In the handler of that
// server, Sealed must return false.
func TestTheContextOfAProtectedCallMarksNoOtherServer(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	inner := server.NewMCPServer("inner", "1")
	sealed := true
	inner.AddTool(mcp.NewTool("t"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		sealed = mcpgo.Sealed(ctx)
		return mcp.NewToolResultText(""), nil
	})
	srv.AddTool(mcp.NewTool("outer"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if !mcpgo.Sealed(ctx) {
			t.Error("the protected call is not marked")
		}
		send(ctx, t, inner, "tools/call", `"name":"t"`)
		return mcp.NewToolResultText(""), nil
	})
	send(alice, t, srv, "tools/call", `"name":"outer"`)
	if sealed {
		t.Error("another server's call counts as protected")
	}
}

// A handler may build a request from the arguments of its call, and pass this request to the
// handler of another tool. A state in this request was never sealed.
func TestStateRefusesARequestThatAHandlerBuilt(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	srv.AddTool(mcp.NewTool("book"), book)
	srv.AddTool(mcp.NewTool("call"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var inner mcp.CallToolRequest
		if err := req.BindArguments(&inner.Params); err != nil {
			return nil, err
		}
		return srv.GetTool(inner.Params.Name).Handler(ctx, inner)
	})
	srv.AddPrompt(mcp.NewPrompt("book"), func(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		var inner mcp.GetPromptRequest
		inner.Params.RequestState = req.Params.Arguments["state"]
		_, _, err := mcpgo.State[booking](ctx, inner)
		return mcp.NewGetPromptResult("", nil), err
	})
	forged := `"requestState":"{\"room\":1}"`
	first := send(alice, t, srv, "tools/call", `"name":"call","arguments":{"name":"book"}`)
	if first.Result.RequestState == "" {
		t.Fatalf("a request without a state is a first round: %s", first.raw)
	}
	for name, r := range map[string]reply{
		"a first round": send(alice, t, srv, "tools/call", `"name":"call","arguments":{"name":"book",`+forged+`}`),
		"a prompt":      send(alice, t, srv, "prompts/get", `"name":"book","arguments":{"state":"{\"room\":1}"}`),
	} {
		if r.Error == nil || r.Error.Message != mcpgo.ErrNotProtected.Error() {
			t.Errorf("%s: %s", name, r.raw)
		}
	}
	// In a later round, mcpgo.State also refuses a request into which the handler wrote another
	// state. But the handler may write "", and begin anew.
	var seen []string
	srv.AddTool(mcp.NewTool("again"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.RequestState == "" {
			r := question().ToolResult()
			return r, mcpgo.SetState(ctx, r, booking{Room: 7})
		}
		for _, state := range []string{req.Params.RequestState, `{"room":1}`, ""} {
			req.Params.RequestState = state
			b, present, err := mcpgo.State[booking](ctx, req)
			seen = append(seen, fmt.Sprint(b.Room, present, errors.Is(err, mcpgo.ErrNotProtected)))
		}
		return mcp.NewToolResultText(""), nil
	})
	asked := send(alice, t, srv, "tools/call", `"name":"again"`)
	send(alice, t, srv, "tools/call", `"name":"again","requestState":`+quote(asked.Result.RequestState))
	if want := []string{"7 true false", "0 false true", "0 false false"}; !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}

func TestAHandlerCanBeTestedDirectly(t *testing.T) {
	r, err := book(mcpgotest.Context(t), mcp.CallToolRequest{})
	if err != nil || r.RequestState != `{"room":7}` {
		t.Errorf("got %v, %v", r, err)
	}
	var retry mcp.CallToolRequest
	retry.Params.RequestState = r.RequestState
	if r, err := book(mcpgotest.Context(t), retry); err != nil || r.Content[0].(mcp.TextContent).Text != `{"room":7}` {
		t.Errorf("the next round: %v, %v", r, err)
	}
	_, _, err = mcpgo.State[booking](mcpgotest.Context(t), "a string")
	if err == nil {
		t.Error("State read a string")
	}
	for _, result := range []any{nil, "a string", (*mcp.CallToolResult)(nil), (*mcp.GetPromptResult)(nil), mcp.CallToolResult{}} {
		if mcpgo.SetState(mcpgotest.Context(t), result, 1) == nil {
			t.Errorf("SetState wrote into a %T", result)
		}
	}
}

// This handler opens and seals its state itself, on a server without Protect.
func TestAHandlerCanSealItsOwnState(t *testing.T) {
	l := new(log)
	p := mcpgo.Prepare(boundary(t, l, nil), &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
	srv := server.NewMCPServer("test", "1")
	handler := func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		request, err := p.Request(ctx, req)
		if err != nil {
			return nil, err
		}
		round, err := p.Boundary().Open(ctx, request, req.Params.RequestState)
		if err != nil {
			return nil, mcpgo.WireError(err)
		}
		if state, ok := round.State(); ok {
			return mcp.NewToolResultText(answered(state, p.Answers(ctx, &round, req))), nil
		}
		asking := question()
		result := asking.ToolResult()
		questions, err := p.Questions(ctx, result.InputRequests)
		if err != nil {
			return nil, err
		}
		state := secret
		result.RequestState, err = p.Boundary().Seal(ctx, &round, &state, questions...)
		return result, err
	}
	srv.AddTool(mcp.NewTool("ask"), handler)
	alice := as(t.Context(), "alice")
	good := token(alice, t, srv)
	if r := retry(alice, t, srv, good); r.text() != accepted {
		t.Errorf("got %s", r.raw)
	}
	isRejected(t, retry(as(t.Context(), "bob"), t, srv, good))
	isRejected(t, retry(alice, t, srv, "forged"))

	p.Install(srv)
	isInternal(t, send(alice, t, srv, "tools/call", `"name":"ask","arguments":{"x":1}`))
	has(t, l, "although its server is protected")
	if _, err := p.Request(alice, 1); err == nil {
		t.Error("a request of an unknown type was sealed")
	}
}

// If each question in a token has a digest of its wording, a package such as gosdk/elicit asked
// these questions. A handler that seals its state itself must not get the answers to them.
func TestAnswersDropsTheAnswersToQuestionsWhoseWordingIsPinned(t *testing.T) {
	l := new(log)
	p := mcpgo.Prepare(boundary(t, l, nil), &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
	alice, state := as(t.Context(), "alice"), secret
	var req mcp.CallToolRequest
	req.Params.Name = "ask"
	if err := json.Unmarshal([]byte(`{"ok":{"action":"accept"}}`), &req.Params.InputResponses); err != nil {
		t.Fatal(err)
	}
	for digest, want := range map[[16]byte]int{{}: 1, {1}: 0} {
		request, err := p.Request(alice, req)
		if err != nil {
			t.Fatal(err)
		}
		round, _ := p.Boundary().Open(alice, request, "")
		token, err := p.Boundary().Seal(alice, &round, &state, tripseal.Question{Key: "ok", Kind: tripseal.KindForm, Digest: digest})
		if err != nil {
			t.Fatal(err)
		}
		if round, err = p.Boundary().Open(alice, request, token); err != nil {
			t.Fatal(err)
		}
		if got := p.Answers(alice, &round, req); len(got) != want {
			t.Errorf("with the digest %x: %v", digest, got)
		}
	}
	has(t, l, "answers=1")
}

// If a newer mcp-go adds a field, this test must fail, so that somebody looks at the new field.
func TestTheFieldsThatTheAdapterCopiesAreKnown(t *testing.T) {
	for _, known := range []struct {
		of     any
		fields string
	}{
		{mcp.CallToolRequest{}, "Request Header Params"},
		{mcp.GetPromptRequest{}, "Request Params Header"},
		{mcp.ReadResourceRequest{}, "Request Header Params"},
		{mcp.CallToolParams{}, "Name Arguments Meta Task MultiRoundTripParams RawArguments"},
		{mcp.GetPromptParams{}, "Name Arguments Meta MultiRoundTripParams"},
		{mcp.ReadResourceParams{}, "URI Arguments Meta MultiRoundTripParams"},
		{mcp.MultiRoundTripParams{}, "InputResponses RequestState"},
		{mcp.MultiRoundTripResult{}, "InputRequests RequestState"},
		{mcp.CallToolResult{}, "Result MultiRoundTripResult Content StructuredContent RawStructuredContent IsError"},
		{mcp.GetPromptResult{}, "Result MultiRoundTripResult Description Messages"},
		{mcp.ReadResourceResult{}, "CacheableResult MultiRoundTripResult Contents"},
		{mcp.InputRequest{}, "Method Elicitation Sampling Roots"},
		{mcp.InputResponse{}, "Elicitation Sampling Roots raw"},
		{mcp.CreateTaskResult{}, "Result Task Content StructuredContent IsError"},
		{mcp.TaskResultResult{}, "Result Content StructuredContent IsError"},
	} {
		var fields []string
		for field := range slices.Values(reflect.VisibleFields(reflect.TypeOf(known.of))) {
			if len(field.Index) == 1 {
				fields = append(fields, field.Name)
			}
		}
		if got := strings.Join(fields, " "); got != known.fields {
			t.Errorf("%T has the fields %q, not %q: look at what is new, and whether it carries a state", known.of, got, known.fields)
		}
	}
	// The adapter must have a hook after each kind of request whose result carries a state or a
	// cursor.
	var hooks []string
	for field := range slices.Values(reflect.VisibleFields(reflect.TypeOf(server.Hooks{}))) {
		if strings.HasPrefix(field.Name, "OnAfter") {
			hooks = append(hooks, strings.TrimPrefix(field.Name, "OnAfter"))
		}
	}
	if got, want := strings.Join(hooks, " "), "Initialize Ping Discover SubscriptionsListen SetLevel ListResources ListResourceTemplates ReadResource Subscribe Unsubscribe "+
		"ListPrompts GetPrompt ListTools CallTool GetTask ListTasks TaskResult CancelTask Complete"; got != want {
		t.Errorf("the after-hooks are %q", got)
	}
}
