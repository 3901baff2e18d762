package mcpgo_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
)

func TestAHandlerSeesItsStateAndItsAnswers(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	if r := retry(alice, t, srv, token(alice, t, srv)); r.text() != accepted {
		t.Errorf("got %s", r.raw)
	}
	r := send(alice, t, srv, "prompts/get", `"name":"ask","arguments":{"a":"1"}`)
	r = send(alice, t, srv, "prompts/get", `"name":"ask","arguments":{"a":"1"},"requestState":`+quote(r.Result.RequestState)+`,"inputResponses":{"ok":{"action":"accept","content":{"yes":true}}}`)
	if r.text() != accepted {
		t.Errorf("got %s", r.raw)
	}
}

func TestEveryOtherStateIsRejectedAlike(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	good := token(alice, t, srv)
	other := token(as(t.Context(), "bob"), t, srv)
	foreign := token(alice, t, protected(t, l))
	call := func(params string) reply { return send(alice, t, srv, "tools/call", params) }
	state := func(token string) string { return `"requestState":` + quote(token) }
	for name, r := range map[string]reply{
		"forged":          call(`"name":"ask","arguments":{"x":1},` + state("ms1.abc")),
		"plaintext":       call(`"name":"ask","arguments":{"x":1},` + state(secret)),
		"cut":             call(`"name":"ask","arguments":{"x":1},` + state(good[:len(good)-1])),
		"longer":          call(`"name":"ask","arguments":{"x":1},` + state(good+"A")),
		"another tool":    call(`"name":"ask_too","arguments":{"x":1},` + state(good)),
		"other arguments": call(`"name":"ask","arguments":{"x":2},` + state(good)),
		"two arguments":   call(`"name":"ask","arguments":{"x":1,"x":1},` + state(good)),
		"another user":    call(`"name":"ask","arguments":{"x":1},` + state(other)),
		"another service": call(`"name":"ask","arguments":{"x":1},` + state(foreign)),
		"a prompt":        send(alice, t, srv, "prompts/get", `"name":"ask",`+state(good)),
		"a resource":      send(alice, t, srv, "resources/read", `"uri":"test://r",`+state(good)),
		"nobody":          send(t.Context(), t, srv, "tools/call", `"name":"ask","arguments":{"x":1},`+state(good)),
		"unknown user":    send(as(t.Context(), "mallory"), t, srv, "tools/call", `"name":"ask","arguments":{"x":1},`+state(good)),
		"another case":    call(`"name":"ask","arguments":{"x":1},"RequestState":` + quote(secret)),
	} {
		t.Run(name, func(t *testing.T) { isRejected(t, r) })
	}
	if r := retry(alice, t, srv, good); r.text() != accepted {
		t.Errorf("the good one: %s", r.raw)
	}
}

func TestAnswersThatNobodyAskedForAreDropped(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	for name, answers := range map[string]string{
		"another key":       `{"other":{"action":"accept"}}`,
		"null":              `{"ok":null}`,
		"null inside":       `{"ok":{"action":"accept","content":{"a":[{"b":null}]}}}`,
		"another kind":      `{"ok":{"roots":[{"uri":"file:///"}]}}`,
		"a sample":          `{"ok":{"role":"user","model":"m","content":{"type":"text","text":"x"}}}`,
		"no action":         `{"ok":{"content":{"yes":true}}}`,
		"an unknown action": `{"ok":{"action":"yes"}}`,
		"not an object":     `{"ok":[]}`,
		"a list of fields":  `{"ok":{"action":"accept","content":[1]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := send(alice, t, srv, "tools/call", `"name":"ask","arguments":{"x":1},"requestState":`+quote(token(alice, t, srv))+`,"inputResponses":`+answers)
			if want := `state="` + secret + `" answers=0`; r.text() != want {
				t.Errorf("got %s, want %s", r.raw, want)
			}
		})
	}
	if r := send(alice, t, srv, "tools/call", `"name":"echo","inputResponses":{"ok":{"action":"accept"}}`); r.text() != `state="" answers=0` {
		t.Errorf("on a first round: %s", r.raw)
	}
	if r := send(alice, t, srv, "resources/read", `"uri":"test://r","inputResponses":{"ok":{"action":"accept"}}`); r.text() != `state="" answers=0` {
		t.Errorf("a resource: %s", r.raw)
	}
}

// A question asks for a form, a sample or roots. An answer of another kind does not reach the
// handler.
func TestAnAnswerIsReadAsTheKindThatWasAskedFor(t *testing.T) {
	l := new(log)
	srv := server.NewMCPServer("test", "1")
	mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true, Logger: l.logger()})
	srv.AddTool(mcp.NewTool("all"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.RequestState == "" {
			return question().Sample("sample", mcp.CreateMessageParams{MaxTokens: 1}).Roots("roots").ToolResult(), nil
		}
		var got []string
		for key := range req.Params.InputResponses {
			if server.ElicitationResponse(req.Params.InputResponses, key) != nil {
				got = append(got, key+" as a form")
			}
			if server.SamplingResponse(req.Params.InputResponses, key) != nil {
				got = append(got, key+" as a sample")
			}
			if server.RootsResponse(req.Params.InputResponses, key) != nil {
				got = append(got, key+" as roots")
			}
		}
		return mcp.NewToolResultText(strings.Join(got, ", ")), nil
	})
	const (
		form   = `{"action":"accept","content":{}}`
		sample = `{"role":"user","model":"m","content":{"type":"text","text":"x"}}`
		roots  = `{"roots":[{"uri":"file:///"}]}`
	)
	for answers, want := range map[string]string{
		`{"ok":` + form + `}`:        "ok as a form",
		`{"sample":` + sample + `}`:  "sample as a sample",
		`{"roots":` + roots + `}`:    "roots as roots",
		`{"roots":{"roots":[]}}`:     "roots as roots",
		`{"ok":` + sample + `}`:      "",
		`{"sample":` + form + `}`:    "",
		`{"sample":` + roots + `}`:   "",
		`{"roots":` + form + `}`:     "",
		`{"roots":{"roots":[null]}}`: "",
		`{"roots":{"roots":null}}`:   "",
		`{"roots":{}}`:               "",
		`{"sample":{"action":"accept","content":{"type":"text","text":"x"}}}`: "",
		`{"sample":{"role":"user","model":"m"}}`:                              "",
		`{"sample":{"role":"user","content":[]}}`:                             "",
		`{"sample":{"role":"user","content":[null]}}`:                         "",
		`{"sample":{"role":"user","content":"x"}}`:                            "",
	} {
		asked := send(t.Context(), t, srv, "tools/call", `"name":"all"`)
		r := send(t.Context(), t, srv, "tools/call", `"name":"all","requestState":`+quote(asked.Result.RequestState)+`,"inputResponses":`+answers)
		if r.Error != nil || r.text() != want {
			t.Errorf("%s: got %s, want %q", answers, r.raw, want)
		}
	}
}

func TestADeclinedFormHasNoContent(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	r := send(alice, t, srv, "tools/call", `"name":"ask","arguments":{"x":1},"requestState":`+quote(token(alice, t, srv))+`,"inputResponses":{"ok":{"action":"decline","content":{"yes":true}}}`)
	if want := `state="` + secret + `" answers=1 action=decline content=<nil>`; r.text() != want {
		t.Errorf("got %s", r.raw)
	}
}

func TestAPanicTellsTheClientNothing(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l, server.WithRecovery()), as(t.Context(), "alice")
	isInternal(t, send(alice, t, srv, "tools/call", `"name":"panic"`))
	isInternal(t, send(alice, t, srv, "prompts/get", `"name":"panic"`))
	isInternal(t, send(alice, t, srv, "resources/read", `"uri":"test://panic"`))
	has(t, l, "a handler panicked")
	has(t, l, "main_test.go")
	if strings.Contains(l.String(), secret) {
		t.Errorf("the log has the panic's value: %s", l)
	}
}

// Before 1.2, mcp-go panics on a prompt without a result.
func TestAHandlerWithoutAResultFailsItsCall(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	srv.AddTool(mcp.NewTool("nil"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
	srv.AddPrompt(mcp.NewPrompt("nil"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { return nil, nil })
	isInternal(t, send(alice, t, srv, "tools/call", `"name":"nil"`))
	isInternal(t, send(alice, t, srv, "prompts/get", `"name":"nil"`))
}

func TestAStateOnACompleteResultIsDropped(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	shared := &mcp.CallToolResult{MultiRoundTripResult: mcp.MultiRoundTripResult{RequestState: secret}}
	srv.AddTool(mcp.NewTool("done"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return shared, nil })
	if r := send(alice, t, srv, "tools/call", `"name":"done"`); r.Error != nil || r.Result.RequestState != "" {
		t.Errorf("got %s", r.raw)
	}
	if shared.RequestState != secret {
		t.Error("the handler's own result was changed")
	}
	has(t, l, "ResultType mcp.ResultTypeInputRequired (mcp-go)")
}

// If a handler returns a state and does not ask, the log advises to set ResultType to
// mcp.ResultTypeInputRequired. The advice must work.
func TestAHandlerAsksWithoutQuestionsThroughItsResultType(t *testing.T) {
	srv, alice := protected(t, new(log)), as(t.Context(), "alice")
	for name, questions := range map[string]mcp.InputRequests{"none": nil, "empty": {}} {
		srv.AddTool(mcp.NewTool(name), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if req.Params.RequestState != "" {
				return mcp.NewToolResultText(answered(req.Params.RequestState, req.Params.InputResponses)), nil
			}
			return &mcp.CallToolResult{Result: mcp.Result{ResultType: mcp.ResultTypeInputRequired},
				MultiRoundTripResult: mcp.MultiRoundTripResult{InputRequests: questions, RequestState: secret}}, nil
		})
		asked := send(alice, t, srv, "tools/call", `"name":"`+name+`"`)
		if asked.Result.ResultType != "input_required" || !strings.HasPrefix(asked.Result.RequestState, "ms1.") {
			t.Fatalf("%s: %s", name, asked.raw)
		}
		if r := send(alice, t, srv, "tools/call", `"name":"`+name+`","requestState":`+quote(asked.Result.RequestState)); r.text() != `state="`+secret+`" answers=0` {
			t.Errorf("%s: %s", name, r.raw)
		}
	}
}

func TestQuestionsOnACompleteResultAreRefused(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	srv.AddTool(mcp.NewTool("half"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := question().ToolResult()
		r.ResultType = ""
		return r, nil
	})
	isInternal(t, send(alice, t, srv, "tools/call", `"name":"half"`))
	has(t, l, "mcp.ResultTypeInputRequired")
}

func TestAClientIsAskedOnlyWhatItDeclared(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	srv.AddTool(mcp.NewTool("more"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return question().Elicit("url", mcp.ElicitationParams{Mode: "url", URL: "https://example.com", ElicitationID: "1", Message: "m"}).
			Sample("tools", mcp.CreateMessageParams{Tools: []mcp.Tool{mcp.NewTool("x")}}).ToolResult(), nil
	})
	r := send(alice, t, srv, "tools/call", `"name":"more"`)
	if r.Error == nil || r.Error.Message != "Missing required client capabilities: elicitation.form, elicitation.url, sampling.tools" {
		t.Errorf("got %s", r.raw)
	}
	undeclared := strings.Replace(meta, `{"elicitation":{},"sampling":{},"roots":{}}`, `{}`, 1)
	r = message(alice, t, srv, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+undeclared+`,"name":"ask"}}`)
	if r.Error == nil || !strings.HasPrefix(r.Error.Message, "Missing required client capabilities") || r.Result.RequestState != "" {
		t.Errorf("got %s", r.raw)
	}
}

func TestQuestionsThatCannotBeSentAreRefused(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	for name, question := range map[string]mcp.InputRequest{
		"zero": {}, "no_params": {Method: mcp.MethodElicitationCreate}, "no_message": {Method: mcp.MethodSamplingCreateMessage},
		"unknown": {Method: "tools/call"},
	} {
		srv.AddTool(mcp.NewTool(name), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Result: mcp.Result{ResultType: mcp.ResultTypeInputRequired},
				MultiRoundTripResult: mcp.MultiRoundTripResult{InputRequests: mcp.InputRequests{"q": question}, RequestState: secret}}, nil
		})
		isInternal(t, send(alice, t, srv, "tools/call", `"name":"`+name+`"`))
	}
}

// A token is bound to the arguments that arrived, even if the handler changes them before it
// asks.
func TestAHandlerCannotChangeWhatItsTokenIsBoundTo(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	srv.AddTool(mcp.NewTool("change"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.RequestState != "" {
			return mcp.NewToolResultText("done"), nil
		}
		delete(req.GetArguments(), "dry_run")
		copy(req.Params.RawArguments, `{}                       `)
		return question().ToolResult(), nil
	})
	srv.AddPrompt(mcp.NewPrompt("change"), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if req.Params.RequestState != "" {
			return mcp.NewGetPromptResult("done", nil), nil
		}
		delete(req.Params.Arguments, "dry_run")
		return question().PromptResult(), nil
	})
	for _, method := range []string{"tools/call", "prompts/get"} {
		asked := send(alice, t, srv, method, `"name":"change","arguments":{"dry_run":"true"}`)
		state := `,"requestState":` + quote(asked.Result.RequestState)
		isRejected(t, send(alice, t, srv, method, `"name":"change","arguments":{}`+state))
		if r := send(alice, t, srv, method, `"name":"change","arguments":{"dry_run":"true"}`+state); r.text() != "done" {
			t.Errorf("%s: the honest retry: %s", method, r.raw)
		}
	}
}

func TestRejectedTextIsTheSameForEveryReason(t *testing.T) {
	l := new(log)
	srv := server.NewMCPServer("test", "1")
	mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{Principal: userFromContext, RejectedText: mcpgo.StartOver, Logger: l.logger()})
	addHandlers(srv)
	alice := as(t.Context(), "alice")
	good := token(alice, t, srv)
	forged := retry(alice, t, srv, "ms1.x")
	lent := retry(as(t.Context(), "bob"), t, srv, good)
	if forged.raw != lent.raw || !forged.Result.IsError || forged.text() != mcpgo.StartOver {
		t.Errorf("got %s and %s", forged.raw, lent.raw)
	}
	isRejected(t, send(alice, t, srv, "prompts/get", `"name":"ask","requestState":"ms1.x"`))
}

func TestUnsolicitedAnswersReachOnlyTheToolsThatWantThem(t *testing.T) {
	l := new(log)
	srv := server.NewMCPServer("test", "1")
	mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true, Unsolicited: []string{"echo", "misspelt"}, Logger: l.logger()})
	addHandlers(srv)
	if r := send(t.Context(), t, srv, "tools/call", `"name":"echo","inputResponses":{"ok":{"action":"accept"},"no":null}`); r.text() != `state="" answers=1 action=accept content=<nil>` {
		t.Errorf("got %s", r.raw)
	}
	asked := send(t.Context(), t, srv, "tools/call", `"name":"ask"`)
	isRejected(t, send(t.Context(), t, srv, "tools/call", `"name":"echo","requestState":`+quote(asked.Result.RequestState)))
	send(t.Context(), t, srv, "tools/list", "")
	has(t, l, "tool=misspelt")
}

func TestForgettingWhoIsCallingPanics(t *testing.T) {
	l := new(log)
	for name, f := range map[string]func(){
		"no options":   func() { mcpgo.Prepare(boundary(t, l, nil), nil) },
		"no principal": func() { mcpgo.Prepare(boundary(t, l, nil), &mcpgo.Options{}) },
		"no boundary":  func() { mcpgo.Prepare(nil, &mcpgo.Options{AllowAnonymous: true}) },
		"no server": func() {
			mcpgo.Prepare(boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true}).Install(nil)
		},
		"twice": func() {
			p := mcpgo.Prepare(boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true})
			srv := server.NewMCPServer("test", "1")
			p.Install(srv)
			p.Install(srv)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "mcpgo: ") {
					t.Errorf("got %q", text)
				}
			}()
			f()
		})
	}
}

func TestAnEmptyNameFailsTheCheck(t *testing.T) {
	l := new(log)
	srv := protected(t, l)
	isInternal(t, send(t.Context(), t, srv, "tools/call", `"name":"ask"`))
	has(t, l, "Options.AllowAnonymous")
	isInternal(t, send(as(t.Context(), "mallory"), t, srv, "tools/call", `"name":"ask"`))
	if strings.Contains(l.String(), "secret: not known") {
		t.Errorf("the log has the text of the principal's error: %s", l)
	}
}

func TestATokenIsUsedOnceAcrossReplicas(t *testing.T) {
	l := new(log)
	store := newStore(t)
	keys := tripseal.Ephemeral()
	replica := func() *server.MCPServer {
		srv := server.NewMCPServer("test", "1")
		mcpgo.Protect(srv, boundary(t, l, func(c *tripseal.Config) { c.Keys, c.Audience, c.Replay = keys, "test", store }), &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
		addHandlers(srv)
		return srv
	}
	one, two, alice := replica(), replica(), as(t.Context(), "alice")
	used := token(alice, t, one)
	if r := retry(alice, t, two, used); r.text() != accepted {
		t.Fatalf("got %s", r.raw)
	}
	isRejected(t, retry(alice, t, one, used))
	isRejected(t, retry(alice, t, two, used))
}

// TestOuterMiddlewareMayTryAPromptAgain uses a handler that changes its arguments before it fails.
// Outer middleware tries the call again. The second try must get the arguments as they arrived.
func TestOuterMiddlewareMayTryAPromptAgain(t *testing.T) {
	srv := protected(t, new(log), server.WithPromptHandlerMiddleware(func(next server.PromptHandlerFunc) server.PromptHandlerFunc {
		return func(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			if result, err := next(ctx, req); err == nil {
				return result, nil
			}
			return next(ctx, req)
		}
	}))
	runs := 0
	srv.AddPrompt(mcp.NewPrompt("busy"), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		delete(req.Params.Arguments, "dry")
		if runs++; runs == 1 {
			return nil, errors.New("busy")
		}
		if req.Params.RequestState == "" {
			return question().PromptResult(), nil
		}
		return mcp.NewGetPromptResult("done", nil), nil
	})
	alice := as(t.Context(), "alice")
	asked := send(alice, t, srv, "prompts/get", `"name":"busy","arguments":{"dry":"true"}`)
	again := `"name":"busy","requestState":` + quote(asked.Result.RequestState) + `,"arguments":`
	isRejected(t, send(alice, t, srv, "prompts/get", again+`{}`))
	if r := send(alice, t, srv, "prompts/get", again+`{"dry":"true"}`); r.text() != "done" {
		t.Errorf("got %s", r.raw)
	}
}
