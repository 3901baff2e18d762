package mcpgo_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
	"github.com/tripseal/tripseal/mcpgo"
)

// If outer middleware or a hook sets an argument, the handler gets it in every round, for current
// and for older clients.
func TestEnforcedArgumentsHoldInEveryRound(t *testing.T) {
	hooks := new(server.Hooks)
	hooks.AddBeforeCallTool(func(_ context.Context, _ any, req *mcp.CallToolRequest) { req.GetArguments()["tenant"] = "own" })
	middleware := func(change func(*mcp.CallToolRequest)) server.ServerOption {
		return server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
			return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				change(&req)
				return next(ctx, req)
			}
		})
	}
	for name, option := range map[string]server.ServerOption{
		"hook":     server.WithHooks(hooks),
		"in place": middleware(func(req *mcp.CallToolRequest) { req.GetArguments()["tenant"] = "own" }),
		"replaced": middleware(func(req *mcp.CallToolRequest) {
			args := maps.Clone(req.GetArguments())
			args["tenant"] = "own"
			req.Params.Arguments = args
		}),
	} {
		for _, revision := range []string{"2026-07-28", "2025-11-25"} {
			t.Run(name+" "+revision, func(t *testing.T) {
				l := new(log)
				srv := protected(t, l, server.WithElicitation(), option)
				var seen []string
				srv.AddTool(mcp.NewTool("wipe"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					seen = append(seen, req.GetString("tenant", ""))
					if req.Params.RequestState == "" {
						return question().ToolResult(), nil
					}
					return mcp.NewToolResultText(strings.Join(seen, " ")), nil
				})
				c := dial(t, srv, "in process", "alice", new(yes), client.WithProtocolVersion(revision))
				if got, err := callTool(as(t.Context(), "alice"), c, "wipe", map[string]any{"tenant": "another's"}); err != nil || got != "own own" {
					t.Errorf("got %q, %v\n%s", got, err, l)
				}
			})
		}
	}
}

// A handler may change its arguments at any depth before it asks, for example to fill in
// defaults.
func TestAHandlerThatChangesItsArgumentsStartsEachRoundWithWhatArrived(t *testing.T) {
	l := new(log)
	srv := protected(t, l, server.WithElicitation())
	var seen []string
	srv.AddTool(mcp.NewTool("deep"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		args := req.GetArguments()
		seen = append(seen, jsonText(args))
		if req.Params.RequestState == "" {
			args["list"].([]any)[0].(map[string]any)["a"] = "changed"
			args["list"].([]any)[1] = "changed"
			args["list"] = nil
			args["more"] = true
			return question().ToolResult(), nil
		}
		return mcp.NewToolResultText("done"), nil
	})
	srv.AddPrompt(mcp.NewPrompt("defaults"), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		seen = append(seen, jsonText(req.Params.Arguments))
		if req.Params.Arguments != nil {
			req.Params.Arguments["lang"] = "en"
		}
		if req.Params.RequestState == "" {
			return question().PromptResult(), nil
		}
		return mcp.NewGetPromptResult("done", []mcp.PromptMessage{}), nil
	})
	c := dial(t, srv, "in process", "alice", new(yes), client.WithProtocolVersion("2025-11-25"))
	if got, err := callTool(as(t.Context(), "alice"), c, "deep", map[string]any{"list": []any{map[string]any{"a": 1}, 2}}); err != nil || got != "done" {
		t.Errorf("got %q, %v\n%s", got, err, l)
	}
	for _, args := range []string{`{}`, `{"a":"b"}`} {
		session := fakeOlder{}
		r := message(srv.WithContext(as(t.Context(), "alice"), session), t, srv, `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"defaults","arguments":`+args+`}}`)
		if r.Result.Description != "done" {
			t.Errorf("%s: %s\n%s", args, r.raw, l)
		}
	}
	want := `[{"list":[{"a":1},2]} {"list":[{"a":1},2]} {} {} {"a":"b"} {"a":"b"}]`
	if got := fmt.Sprint(seen); got != want {
		t.Errorf("the handlers saw %s, want %s", got, want)
	}
}

// fakeOlder is the session of an older client that accepts every question.
type fakeOlder struct{ server.SessionWithClientInfo }

func (fakeOlder) SessionID() string       { return "older" }
func (fakeOlder) Initialized() bool       { return true }
func (fakeOlder) ProtocolVersion() string { return "2025-11-25" }
func (fakeOlder) GetClientCapabilities() mcp.ClientCapabilities {
	return mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{}}
}
func (fakeOlder) RequestElicitation(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return new(yes).Elicit(context.Background(), mcp.ElicitationRequest{})
}

// flipping is the session of an older client that declares its capabilities only during a call,
// when *can becomes true.
type flipping struct {
	fakeOlder
	can *bool
}

func (f flipping) GetClientCapabilities() mcp.ClientCapabilities {
	if !*f.can {
		return mcp.ClientCapabilities{}
	}
	return f.fakeOlder.GetClientCapabilities()
}

func TestAClientThatDeclaresItsCapabilitiesDuringACallChangesNoArguments(t *testing.T) {
	srv, can := protected(t, new(log), server.WithElicitation()), false
	var seen []string
	srv.AddTool(mcp.NewTool("delete"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		seen = append(seen, jsonText(req.GetArguments()))
		delete(req.GetArguments(), "dry_run")
		can = true
		if req.Params.RequestState == "" {
			return question().ToolResult(), nil
		}
		return mcp.NewToolResultText("done"), nil
	})
	ctx := srv.WithContext(as(t.Context(), "alice"), flipping{can: &can})
	r := message(ctx, t, srv, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete","arguments":{"dry_run":true}}}`)
	if got := fmt.Sprint(seen); got != `[{"dry_run":true}]` || r.text() == "done" { // the client is not asked
		t.Errorf("the handler saw %s; %s", got, r.raw)
	}
}

// Outer middleware may set a timeout. Then it cancels the context when it returns, and mcp-go sends
// the result only after that.
func TestATimeoutInOuterMiddlewareBreaksNothing(t *testing.T) {
	l := new(log)
	srv := protected(t, l, server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return next(ctx, req)
		}
	}))
	alice := as(t.Context(), "alice")
	for range 3000 {
		token(alice, t, srv)
	}
	if r := retry(alice, t, srv, token(alice, t, srv)); r.text() != accepted {
		t.Errorf("got %s", r.raw)
	}
}

// A client may ask for a task although the tool does not support tasks. The state in such a call
// must still be checked.
func TestATaskOnAToolWithoutTasksChangesNothing(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	isRejected(t, send(alice, t, srv, "tools/call", `"name":"echo","task":{},"requestState":"forged"`))
	asked := send(alice, t, srv, "tools/call", `"name":"ask","arguments":{"x":1},"task":{}`)
	r := send(alice, t, srv, "tools/call", `"name":"ask","arguments":{"x":1},"task":{},"requestState":`+quote(asked.Result.RequestState)+`,"inputResponses":{"ok":{"action":"accept","content":{"yes":true}}}`)
	if r.text() != accepted {
		t.Errorf("got %s", r.raw)
	}
}

// older sends a call of a tool, from an older client that accepts every question.
func older(t *testing.T, srv *server.MCPServer, params string) reply {
	t.Helper()
	return message(srv.WithContext(as(t.Context(), "alice"), fakeOlder{}), t, srv, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+params+`}}`)
}

// A hook may read the arguments in a goroutine of its own. Run this test with the race detector.
func TestNothingWritesToArgumentsThatOthersRead(t *testing.T) {
	l, hooks := new(log), new(server.Hooks)
	var readers sync.WaitGroup
	hooks.AddBeforeCallTool(func(_ context.Context, _ any, req *mcp.CallToolRequest) {
		args := req.Params.Arguments
		readers.Go(func() { jsonText(args) })
	})
	srv := protected(t, l, server.WithElicitation(), server.WithHooks(hooks))
	members := make(map[string]any)
	for i := range 200 {
		members[fmt.Sprint("a", i)] = []any{i}
	}
	for range 20 {
		if r := older(t, srv, `"name":"ask","arguments":`+jsonText(members)); r.text() != accepted {
			t.Fatalf("got %s", r.raw)
		}
	}
	readers.Wait()
}

func TestWhatAHandlerKeepsOfItsArgumentsStaysAsItLeftIt(t *testing.T) {
	l := new(log)
	srv := protected(t, l, server.WithElicitation())
	var kept map[string]any
	srv.AddTool(mcp.NewTool("pay"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.RequestState == "" {
			kept = req.GetArguments()
			kept["amount"] = min(kept["amount"].(float64), 100)
			return question().ToolResult(), nil
		}
		return mcp.NewToolResultText(fmt.Sprint("paid ", kept["amount"])), nil
	})
	if r := older(t, srv, `"name":"pay","arguments":{"amount":5000}`); r.text() != "paid 100" {
		t.Errorf("got %s", r.raw)
	}
}

// notFound is an error whose method Unwrap panics if the pointer is nil. Its method Error does
// not.
type notFound struct{ cause error }

func (*notFound) Error() string   { return "not found" }
func (e *notFound) Unwrap() error { return e.cause }

func TestAnErrorWhoseMethodsPanicFailsTheCallAlone(t *testing.T) {
	for _, text := range []string{"", "start over"} {
		l := new(log)
		srv := server.NewMCPServer("test", "1", server.WithTaskCapabilities(true, true, true))
		mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true, RejectedText: text, Logger: l.logger()})
		srv.AddTool(mcp.NewTool("find", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, (*notFound)(nil)
		})
		isInternal(t, send(t.Context(), t, srv, "tools/call", `"name":"find"`))
		if r := result(t.Context(), t, srv, `"name":"find","task":{}`); !strings.Contains(r.raw, "Internal error") {
			t.Errorf("as a task: %s", r.raw)
		}
	}
}

// All older clients of a stateless server share one session. The session has the capabilities that
// the last client declared.
func TestAnOlderClientOfAStatelessServerIsNotAsked(t *testing.T) {
	l := new(log)
	srv := protected(t, l)
	srv.EnableSampling()
	srv.AddTool(mcp.NewTool("summarise"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		user, _ := userFromContext(ctx)
		return server.NewInputRequestBuilder(secret).Sample("s", mcp.CreateMessageParams{MaxTokens: 5,
			Messages: []mcp.SamplingMessage{{Role: "user", Content: mcp.NewTextContent("private data of " + user)}}}).ToolResult(), nil
	})
	url := listening(t, server.NewStreamableHTTPServer(srv, server.WithStateLess(true), server.WithHTTPContextFunc(fromHeader)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	do := func(verb, user, body string) *http.Response {
		request, err := http.NewRequestWithContext(ctx, verb, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-User", user)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	stream := do(http.MethodGet, "bob", "")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
			if strings.Contains(lines.Text(), "alice") {
				t.Errorf("bob got %s", lines.Text())
				cancel()
			}
		}
	}()
	io.Copy(io.Discard, do(http.MethodPost, "bob", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"clientInfo":{"name":"x","version":"1"},"capabilities":{"sampling":{}}}}`).Body)
	answer := do(http.MethodPost, "alice", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"summarise"}}`)
	if body, _ := io.ReadAll(answer.Body); !strings.Contains(string(body), "Missing required client capabilities") {
		t.Errorf("alice got %s", body)
	}
	cancel()
	<-done
}

// TestAnOlderClientIsNotAskedIfItsArgumentsHaveNoCopy uses arguments that contain themselves, so
// the handler gets no copy of them. The handler deletes an argument in the first round. In a second
// round, mcp-go would call the handler without this argument. The test uses a format that does not
// carry the arguments, because the native format seals no token for them.
func TestAnOlderClientIsNotAskedIfItsArgumentsHaveNoCopy(t *testing.T) {
	l := new(log)
	format, err := compat.McpD([]byte(strings.Repeat("k", 32)), compat.McpDOptions{})
	if err != nil {
		t.Fatal(err)
	}
	srv := server.NewMCPServer("test", "1", server.WithElicitation(), asHook(func(_ context.Context, r *mcp.CallToolRequest) { r.GetArguments()["c"] = r.GetArguments() }))
	mcpgo.Protect(srv, boundary(t, l, func(c *tripseal.Config) {
		c.Keys, c.Format, c.Audience = nil, format, "test"
		c.Waive = tripseal.ClaimAudience | tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimQuestions | tripseal.ClaimFlow
	}), &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
	srv.AddTool(mcp.NewTool("delete"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if _, dry := req.GetArguments()["dry_run"]; !dry {
			t.Error("the handler lost dry_run")
		}
		delete(req.GetArguments(), "dry_run")
		if req.Params.RequestState == "" {
			return question().ToolResult(), nil
		}
		return mcp.NewToolResultText("done"), nil
	})
	isInternal(t, older(t, srv, `"name":"delete","arguments":{"dry_run":true}`))
	has(t, l, "the handler has no copy of them")
}

// slowOlder is the session of an older client that answers after an hour.
type slowOlder struct {
	fakeOlder
	asked *int
}

func (s slowOlder) RequestElicitation(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	*s.asked++
	time.Sleep(time.Hour)
	return s.fakeOlder.RequestElicitation(ctx, r)
}

// TestAnOlderClientThatAnswersLateIsNotAskedAgain uses a client that answers after its token has
// expired. With AskAgain, mcp-go would ask it ten times.
func TestAnOlderClientThatAnswersLateIsNotAskedAgain(t *testing.T) {
	for _, again := range []tripseal.AskAgain{tripseal.AskAgainIfExpired, tripseal.AskAgainAlways} {
		synctest.Test(t, func(t *testing.T) {
			l, asked := new(log), 0
			srv := server.NewMCPServer("test", "1", server.WithElicitation())
			mcpgo.Protect(srv, boundary(t, l, func(c *tripseal.Config) { c.AskAgain = again }), &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
			addHandlers(srv)
			ctx := srv.WithContext(as(t.Context(), "alice"), slowOlder{asked: &asked})
			r := message(ctx, t, srv, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}`)
			if isRejected(t, r); asked != 1 {
				t.Errorf("the client was asked %d times", asked)
			}
		})
	}
}

// answersAll is the session of an older client that answers questions of all kinds.
type answersAll struct {
	fakeOlder
	form   *mcp.ElicitationResult
	sample *mcp.CreateMessageResult
	roots  *mcp.ListRootsResult
}

func (answersAll) GetClientCapabilities() mcp.ClientCapabilities {
	return mcp.ClientCapabilities{Elicitation: new(mcp.ElicitationCapability), Sampling: new(mcp.SamplingCapability), Roots: new(struct {
		ListChanged bool `json:"listChanged,omitempty"`
	})}
}
func (s answersAll) RequestElicitation(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return s.form, nil
}
func (s answersAll) RequestSampling(context.Context, mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return s.sample, nil
}
func (s answersAll) ListRoots(context.Context, mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	return s.roots, nil
}

// TestEachTryGetsAnswersOfItsOwn uses outer middleware. The middleware runs two tries of a call at
// the same time. In each try, the handler overwrites everything that it can reach in its answers.
// Run this test with the race detector.
func TestEachTryGetsAnswersOfItsOwn(t *testing.T) {
	meta := func() *mcp.Meta { return &mcp.Meta{AdditionalFields: map[string]any{"m": "sent"}} }
	noted := func() mcp.Annotated {
		priority := 0.5
		return mcp.Annotated{Annotations: &mcp.Annotations{Audience: []mcp.Role{"sent"}, Priority: &priority}}
	}
	use := mcp.ToolUseContent{Type: "tool_use", ID: "sent", Name: "sent", Meta: meta(), Input: map[string]any{"dry_run": "sent"}}
	blocks := []mcp.Content{
		use,
		mcp.TextContent{Type: "text", Text: "sent", Meta: meta(), Annotated: noted()},
		mcp.ToolResultContent{Type: "tool_result", ToolUseID: "sent", Meta: meta(),
			Content: []mcp.Content{mcp.TextContent{Type: "text", Text: "sent", Meta: meta()}}},
		&mcp.EmbeddedResource{Type: "resource", Meta: meta(), Resource: mcp.TextResourceContents{URI: "sent", Meta: meta().AdditionalFields}},
	}
	for name, content := range map[string]any{"a block": use, "a list": blocks, "a map": map[string]any{"type": "text", "text": "sent", "more": []any{"sent"}}} {
		session := answersAll{
			form: &mcp.ElicitationResult{Result: mcp.Result{Meta: meta()}, ElicitationResponse: mcp.ElicitationResponse{
				Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"list": []any{"sent"}}}},
			sample: &mcp.CreateMessageResult{Result: mcp.Result{Meta: meta()}, Model: "sent", SamplingMessage: mcp.SamplingMessage{Role: "assistant", Content: content}},
			roots:  &mcp.ListRootsResult{Result: mcp.Result{Meta: meta()}, Roots: []mcp.Root{{URI: "sent", Meta: meta()}}},
		}
		want := jsonText(session.form) + jsonText(session.sample) + jsonText(session.roots)
		srv := protected(t, new(log), server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
			return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if req.Params.RequestState == "" {
					return next(ctx, req)
				}
				var other sync.WaitGroup
				other.Go(func() { next(ctx, req) })
				defer other.Wait()
				return next(ctx, req)
			}
		}))
		srv.EnableSampling()
		var mu sync.Mutex
		tries := 0
		srv.AddTool(mcp.NewTool("plan"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answers := req.Params.InputResponses
			if req.Params.RequestState == "" {
				return question().Roots("r").Sample("s", mcp.CreateMessageParams{MaxTokens: 1}).ToolResult(), nil
			}
			form, sample, roots := server.ElicitationResponse(answers, "ok"), server.SamplingResponse(answers, "s"), server.RootsResponse(answers, "r")
			if form == nil || sample == nil || roots == nil {
				t.Errorf("%s: no answers", name)
				return mcp.NewToolResultText(""), nil
			}
			if got := jsonText(form) + jsonText(sample) + jsonText(roots); got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
			for _, answer := range []any{form, sample, roots} {
				overwrite(reflect.ValueOf(answer))
			}
			mu.Lock()
			defer mu.Unlock()
			tries++
			return mcp.NewToolResultText("done"), nil
		})
		r := message(srv.WithContext(as(t.Context(), "alice"), session), t, srv, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plan"}}`)
		if r.text() != "done" || tries != 2 {
			t.Errorf("%s: %d tries, %s", name, tries, r.raw)
		}
		if now := jsonText(session.form) + jsonText(session.sample) + jsonText(session.roots); now != want {
			t.Errorf("%s: the client's answers became %s", name, now)
		}
	}
}

// overwrite replaces every string that can be replaced in v, at every depth.
func overwrite(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
		if v.Elem().Kind() == reflect.String && v.CanSet() {
			v.Set(reflect.ValueOf("overwritten"))
			return
		}
		overwrite(v.Elem())
	case reflect.String:
		if v.CanSet() {
			v.SetString("overwritten")
		}
	case reflect.Float64:
		if v.CanSet() {
			v.SetFloat(-1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			overwrite(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			overwrite(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			overwrite(v.MapIndex(key))
			v.SetMapIndex(key, reflect.ValueOf("overwritten"))
		}
	}
}
