package elicit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
)

// TestAStateOfElicitReachesNoOtherHandler checks that a handler without elicit does not get a
// state that elicit wrote. During a roll-out, a replica may still have such a handler for the
// same tool. That handler would treat the state as its own.
func TestAStateOfElicitReachesNoOtherHandler(t *testing.T) {
	b := &book{}
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "test", Logger: b.logger()})
	if err != nil {
		t.Fatal(err)
	}
	protection := gosdk.Prepare(boundary, &gosdk.Options{Logger: b.logger()})
	after := mcp.NewServer(&mcp.Implementation{Name: "new", Version: "2"}, nil)
	elicit.AddTool(protection.Install(after), &mcp.Tool{Name: "delete"}, withElicit)
	before := mcp.NewServer(&mcp.Implementation{Name: "old", Version: "1"}, nil)
	protection.Install(before)
	var states []string
	before.AddTool(&mcp.Tool{Name: "delete", InputSchema: anyObject}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		states = append(states, fmt.Sprintf("%q %d", req.Params.RequestState, len(req.Params.InputResponses)))
		return &mcp.CallToolResult{}, nil
	})
	arguments := map[string]any{"dir": "/home"}
	options := (&user{}).options(true)
	asked, err := call(t, connect(t, after, options, revision2026), &mcp.CallToolParams{Name: "delete", Arguments: arguments})
	if err != nil || asked.RequestState == "" {
		t.Fatalf("%+v, %v", asked, err)
	}
	for _, answers := range []mcp.InputResponseMap{nil, {"confirm": &mcp.ElicitResult{Action: "decline"}}} {
		_, err := call(t, connect(t, before, options, revision2026), &mcp.CallToolParams{Name: "delete", Arguments: arguments, RequestState: asked.RequestState, InputResponses: answers})
		if got := states[len(states)-1]; err != nil || got != `"" 0` {
			t.Errorf("the handler got %s, %v", got, err)
		}
	}
}

// TestAPendingResultThatIsDroppedFailsTheCall checks that the client does not get the result of a
// handler that drops a Pending. The handlers are those of two tools and a prompt.
func TestAPendingResultThatIsDroppedFailsTheCall(t *testing.T) {
	both(t, func(t *testing.T, version string) {
		s := newService(t, nil)
		dropped := func(ctx context.Context, req mcp.Request) error {
			_, err := elicit.Within(ctx, req, func(ask *elicit.Asker) error {
				_, err := elicit.Form[yes](ask, "confirm", "Delete?").Value()
				return err
			})
			return err
		}
		s.Server().AddTool(&mcp.Tool{Name: "t", InputSchema: anyObject}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "SECRET"}}}, dropped(ctx, req)
		})
		elicit.AddResultTool(s.Protected, &mcp.Tool{Name: "e"}, func(ctx context.Context, ask *elicit.Asker, _ args) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "SECRET"}}}, nil, dropped(ctx, ask.Request())
		})
		s.Server().AddPrompt(&mcp.Prompt{Name: "p"}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: "SECRET"}, dropped(ctx, req)
		})
		session := connect(t, s.Server(), &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		}}, version)
		for _, name := range []string{"t", "e"} {
			if result, err := call(t, session, &mcp.CallToolParams{Name: name, Arguments: map[string]any{"dir": ""}}); err == nil && strings.Contains(text(result, err), "SECRET") {
				t.Errorf("%s: %s", name, text(result, err))
			}
		}
		if prompt, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"}); err == nil && prompt.Description == "SECRET" {
			t.Error("the prompt was delivered")
		}
	})
}

// TestAHandlerOfElicitSharesWhatItKeepsWithItsHelpers checks a handler that was registered with
// elicit. It keeps the value that it computed with the function Once, even if its helpers ask
// questions with the function Within.
func TestAHandlerOfElicitSharesWhatItKeepsWithItsHelpers(t *testing.T) {
	both(t, func(t *testing.T, version string) {
		s := newService(t, nil)
		computed := 0
		elicit.AddResultTool(s.Protected, &mcp.Tool{Name: "pay"}, func(ctx context.Context, ask *elicit.Asker, _ args) (*mcp.CallToolResult, any, error) {
			key, err := elicit.Once(ask, "key", func() (int, error) { computed++; return computed, nil })
			if err != nil {
				return nil, nil, err
			}
			for _, k := range []string{"a", "b"} {
				if result, err := requireYes(ctx, ask.Request().(*mcp.CallToolRequest), k, "Pay "+k+"?"); result != nil || err != nil {
					return result, nil, err
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("paid with ", key)}}}, nil, nil
		})
		session := connect(t, s.Server(), &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
		}}, version)
		result, err := call(t, session, &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"dir": ""}})
		if err != nil || result.Content[0].(*mcp.TextContent).Text != "paid with 1" || computed != 1 {
			t.Errorf("%+v, %v, computed %d times", result, err, computed)
		}
	})
}

// TestAskingWithinFromSeveralGoroutinesFailsAndHarmsNothing checks that Within fails if it is
// already running in another goroutine of the same call.
func TestAskingWithinFromSeveralGoroutinesFailsAndHarmsNothing(t *testing.T) {
	s := newService(t, nil)
	s.Server().AddTool(&mcp.Tool{Name: "t", InputSchema: anyObject}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var group sync.WaitGroup
		entered, failed := make(chan struct{}), make(chan error, 1)
		group.Go(func() {
			elicit.Within(ctx, req, func(ask *elicit.Asker) error {
				close(entered)
				return <-failed // waits until the other call of Within has failed
			})
		})
		<-entered
		_, err := elicit.Within(ctx, req, func(*elicit.Asker) error { t.Error("ran"); return nil })
		failed <- nil
		group.Wait()
		return nil, err
	})
	if _, err := call(t, connect(t, s.Server(), nil, revision2026), &mcp.CallToolParams{Name: "t"}); err == nil || !strings.Contains(s.book.String(), "two goroutines") {
		t.Errorf("%v\n%s", err, s.book)
	}
}

// TestAToolThatCallsOthersLendsThemNoAnswers checks that a tool cannot lend its answers and its
// values of Once to the tools that it calls. Answers and values count only for the request with
// which they arrived. With an older client, each called tool asks its own question.
func TestAToolThatCallsOthersLendsThemNoAnswers(t *testing.T) {
	both(t, func(t *testing.T, version string) {
		b := &book{}
		boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "test", Logger: b.logger()})
		if err != nil {
			t.Fatal(err)
		}
		server := mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, nil)
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				r, ok := req.(*mcp.CallToolRequest)
				if !ok || r.Params.Name != "batch" {
					return next(ctx, method, req)
				}
				for _, item := range []string{"pen", "car"} {
					one := &mcp.CallToolRequest{Session: r.Session, Extra: r.Extra, Params: &mcp.CallToolParamsRaw{
						Meta: r.Params.Meta, Name: "buy", Arguments: fmt.Appendf(nil, `{"dir":%q}`, item),
					}}
					if result, err := next(ctx, method, one); err != nil || result.(*mcp.CallToolResult).NeedsInput() || result.(*mcp.CallToolResult).IsError {
						return result, err
					}
				}
				return &mcp.CallToolResult{}, nil
			}
		})
		protected := gosdk.Protect(server, boundary, &gosdk.Options{Logger: b.logger()})
		var bought []string
		prices := map[string]int{"pen": 1, "car": 30000}
		elicit.AddTool(protected, &mcp.Tool{Name: "buy"}, func(_ context.Context, ask *elicit.Asker, in args) (any, error) {
			price, err := elicit.Once(ask, "price", func() (int, error) { return prices[in.Dir], nil })
			if err != nil {
				return nil, err
			}
			if _, err := elicit.Form[yes](ask, "confirm", "Pay?").Value(); err != nil {
				return nil, err
			}
			bought = append(bought, fmt.Sprintf("%s for %d", in.Dir, price))
			return nil, nil
		})
		session := connect(t, server, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
		}}, version)
		call(t, session, &mcp.CallToolParams{Name: "batch"})
		if got := strings.Join(bought, ", "); strings.Contains(got, "car for 1") || version == revision2026 && (got != "" || !strings.Contains(b.String(), "is not the one that arrived with the answers")) {
			t.Errorf("bought %s\n%s", got, b)
		}
		bought = nil // now the client calls "buy" itself, and the middleware lets the call through
		if result, err := call(t, session, &mcp.CallToolParams{Name: "buy", Arguments: map[string]any{"dir": "pen"}}); err != nil || result.IsError || strings.Join(bought, ", ") != "pen for 1" {
			t.Errorf("%+v, %v, bought %q", result, err, bought)
		}
	})
}

// TestArgumentsOnACopyOfTheRequestAreComparedByValue checks that inner middleware may pass on a
// copy of the request if the arguments on the copy have the same value. Their bytes may differ.
func TestArgumentsOnACopyOfTheRequestAreComparedByValue(t *testing.T) {
	const sent = `{"dir":"/tmp", "all":true}`
	for name, c := range map[string]struct{ arguments, want string }{
		"other bytes":               {`{ "all": true, "dir": "\u002ftmp" }`, "deleted"},
		"another value":             {`{"all":true,"dir":"/home"}`, internal},
		"a member more":             {`{"all":true,"dir":"/tmp","x":1}`, internal},
		"nothing":                   {`{}`, internal},
		"not a text of one meaning": {`{"all":true,"dir":"/tmp","all":true}`, internal},
	} {
		s := serviceBehind(t, func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if r, ok := req.(*mcp.CallToolRequest); ok {
					params := *r.Params
					params.Arguments = []byte(c.arguments)
					req = &mcp.CallToolRequest{Session: r.Session, Params: &params, Extra: r.Extra}
				}
				return next(ctx, method, req)
			}
		})
		body := func(ask *elicit.Asker) error {
			_, err := elicit.Form[yes](ask, "confirm", "Delete?").Value()
			return err
		}
		s.Server().AddTool(&mcp.Tool{Name: "within", InputSchema: anyObject}, withinHandler(body))
		elicit.AddResultTool(s.Protected, &mcp.Tool{Name: "own", InputSchema: anyObject}, func(_ context.Context, ask *elicit.Asker, _ any) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "deleted"}}}, nil, body(ask)
		})
		session := connect(t, s.Server(), reply(nil).options(false), revision2026)
		for _, tool := range []string{"within", "own"} {
			got := text(call(t, session, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(sent)}))
			if got != c.want || strings.Contains(s.book.String(), "change them in place") != (c.want == internal) {
				t.Errorf("%s, %s: %s, want %s; the log: %s", name, tool, got, c.want, s.book)
			}
		}
	}
}
