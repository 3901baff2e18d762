package gosdk_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

// sealer has a handler that seals its own state. The handler asks one question. When it gets its
// state back, it is done.
type sealer struct {
	*gosdk.Protector
	seen []string // the keys of the answers that each run got
}

func (s *sealer) handle(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	round, err := s.Boundary().Open(ctx, s.Request(req), req.Params.RequestState)
	if err != nil {
		return nil, gosdk.WireError(err)
	}
	s.seen = append(s.seen, strings.Join(slices.Sorted(maps.Keys(s.Answers(ctx, &round, req))), ","))
	if state, ok := round.State(); ok {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done with " + state}}}, nil
	}
	requests, state := mcp.InputRequestMap{"q": form("Really?")}, "step=1"
	questions, err := gosdk.Questions(req, requests)
	if err != nil {
		return nil, err
	}
	token, err := s.Boundary().Seal(ctx, &round, &state, questions...)
	if err != nil {
		return nil, gosdk.WireError(err)
	}
	return &mcp.CallToolResult{InputRequests: requests, RequestState: token}, nil
}

func newSealer(t *testing.T, b *book, user *string) (*sealer, *mcp.Server) {
	s := &sealer{Protector: gosdk.NewProtector(boundary(t, b, nil), &gosdk.Options{
		Logger: b.logger(), User: func(context.Context, *mcp.RequestExtra) (string, error) { return *user, nil },
	})}
	server := newServer()
	for _, name := range []string{"seals", "other"} {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, s.handle)
	}
	return s, server
}

// On a server without the middleware, a handler can seal its states itself. Its tokens are bound
// to the tool, the arguments and the user, as with the middleware.
func TestAHandlerThatSealsByItselfGetsEveryBinding(t *testing.T) {
	b, user := &book{}, "alice"
	s, server := newSealer(t, b, &user)
	session := connect(t, server, raw(), revision2026)
	asked, err := callTool(t, session, &mcp.CallToolParams{Name: "seals", Arguments: map[string]any{"a": 1}})
	if err != nil || !strings.HasPrefix(asked.RequestState, "ms1.") || len(asked.InputRequests) != 1 {
		t.Fatalf("%+v, %v", asked, err)
	}
	answer := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "x"}}
	good := mcp.CallToolParams{
		Name: "seals", Arguments: map[string]any{"a": 1}, RequestState: asked.RequestState,
		InputResponses: mcp.InputResponseMap{"q": answer, "unasked": answer, "kind": &mcp.ListRootsResult{}},
	}
	for name, change := range map[string]func(*mcp.CallToolParams){
		"changed":         func(p *mcp.CallToolParams) { p.RequestState = forged(p.RequestState) },
		"plaintext":       func(p *mcp.CallToolParams) { p.RequestState = "step=1" },
		"another tool":    func(p *mcp.CallToolParams) { p.Name = "other" },
		"other arguments": func(p *mcp.CallToolParams) { p.Arguments = map[string]any{"a": 2} },
		"another user":    func(*mcp.CallToolParams) { user = "mallory" },
	} {
		params := good
		change(&params)
		runs := len(s.seen)
		if _, err := callTool(t, session, &params); wireText(err) != invalidState || len(s.seen) != runs {
			t.Errorf("%s: %s", name, wireText(err))
		}
		user = "alice"
	}
	result, err := callTool(t, session, &good)
	if err != nil || text(result) != "done with step=1" || s.seen[len(s.seen)-1] != "q" {
		t.Errorf("%q, %v, after %q", text(result), err, s.seen)
	}
	if !strings.Contains(b.String(), "answers=2") {
		t.Errorf("the log does not say that answers were dropped: %s", b)
	}
	// A first round gets no answers. A question that the client cannot answer is not asked.
	params := good
	params.RequestState = ""
	if _, err := callTool(t, session, &params); err != nil || s.seen[len(s.seen)-1] != "" {
		t.Errorf("a first round: %v, %q", err, s.seen)
	}
	mute := connect(t, server, &mcp.ClientOptions{}, revision2026)
	if _, err := callTool(t, mute, &mcp.CallToolParams{Name: "seals"}); !strings.Contains(wireText(err), "-32021") {
		t.Errorf("a client that cannot answer: %s", wireText(err))
	}
	older := connect(t, server, answering(), revision2025)
	if result, err := callTool(t, older, &mcp.CallToolParams{Name: "seals"}); err != nil || text(result) != "done with step=1" {
		t.Errorf("an older client: %q, %v", text(result), err)
	}
}

// Protector.Request returns the arguments of every kind of call, as a copy: a change of the
// copy does not change the handler's arguments.
func TestARequestHasTheArgumentsThatArrived(t *testing.T) {
	p := gosdk.NewProtector(boundary(t, &book{}, nil), &gosdk.Options{User: func(context.Context, *mcp.RequestExtra) (string, error) { return "u", nil }})
	arguments := []byte(`{"a":1}`)
	for want, req := range map[string]mcp.Request{
		`tools/call t {"a":1}`:    &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "t", Arguments: arguments}},
		`prompts/get p {"b":"2"}`: &mcp.GetPromptRequest{Params: &mcp.GetPromptParams{Name: "p", Arguments: map[string]string{"b": "2"}}},
		`resources/read r:1 `:     &mcp.ReadResourceRequest{Params: &mcp.ReadResourceParams{URI: "r:1"}},
	} {
		got := p.Request(req)
		user, failed := got.Principal.Identify(t.Context())
		if text := got.Method + " " + got.Target + " " + string(got.Arguments); text != want || user != "u" || failed != nil {
			t.Errorf("%s: %s, %v, %s", want, text, failed, user)
		}
		clear(got.Arguments)
	}
	if string(arguments) != `{"a":1}` {
		t.Error("the arguments are the handler's")
	}
	// Two arguments that are not UTF-8 would look alike as JSON.
	invalid := p.Request(&mcp.GetPromptRequest{Params: &mcp.GetPromptParams{Name: "p", Arguments: map[string]string{"b": "\xff"}}})
	if round, err := p.Boundary().Open(t.Context(), invalid, ""); err != nil {
		t.Error(err)
	} else if _, err = p.Boundary().Seal(t.Context(), &round, nil); err == nil {
		t.Error("arguments that are not UTF-8 were sealed")
	}
	// A unit test of a handler has neither a session nor a client that could lack a capability.
	bare := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "t"}}
	if questions, err := gosdk.Questions(bare, mcp.InputRequestMap{"q": form("?")}); err != nil || len(questions) != 1 {
		t.Errorf("%v, %v", questions, err)
	}
}
