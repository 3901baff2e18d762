package elicit_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
	"github.com/tripseal/tripseal/replay"
)

// serviceBehind returns a service with inner middleware. This middleware runs after the middleware
// of gosdk.Protect.
func serviceBehind(t *testing.T, middleware mcp.Middleware) service {
	t.Helper()
	s := newService(t, nil)
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	server.AddReceivingMiddleware(middleware)
	return service{gosdk.Protect(server, s.Boundary(), &gosdk.Options{Logger: s.book.logger()}), s.book, s.keys}
}

// TestAMiddlewareMayAskAnOlderClientToo checks that inner middleware may ask an older client a
// question of its own, which is not part of a round of elicit.
func TestAMiddlewareMayAskAnOlderClientToo(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := serviceBehind(t, func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if session, ok := req.GetSession().(*mcp.ServerSession); ok && revision == revision2025 && strings.Contains(" tools/call prompts/get resources/read ", method) {
					if _, err := session.ListRoots(ctx, nil); err != nil {
						return nil, err
					}
				}
				return next(ctx, method, req)
			}
		})
		two := func(ask *elicit.Asker) error {
			if _, err := elicit.Form[value](ask, "a", "A?").Value(); err != nil {
				return err
			}
			_, err := elicit.Form[value](ask, "b", "B?").Value()
			return err
		}
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) { return result{"done"}, two(ask) })
		elicit.AddPrompt(s.Protected, &mcp.Prompt{Name: "p"}, func(_ context.Context, ask *elicit.Asker, _ *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, two(ask)
		})
		elicit.AddResource(s.Protected, &mcp.Resource{Name: "r", URI: "file:///r"}, func(_ context.Context, ask *elicit.Asker, _ *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{}}, two(ask)
		})
		u := reply(nil)
		session := connect(t, s.Server(), u.options(false), revision)
		if got := text(call(t, session, &mcp.CallToolParams{Name: "t"})); got != `{"done":"done"}` {
			t.Errorf("%s; the log: %s", got, s.book)
		}
		if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"}); err != nil {
			t.Error(err)
		}
		if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///r"}); err != nil {
			t.Error(err)
		}
		if asked := u.messages(); len(asked) != 6 {
			t.Errorf("asked %q", asked)
		}
	})
}

// TestElicitsQuestionsChangedByAMiddlewareAreTheAuthorsBug checks that a call fails if inner
// middleware changes the questions of elicit. elicit assumes that the user saw each question as
// elicit worded it, so the client must not get other words.
func TestElicitsQuestionsChangedByAMiddlewareAreTheAuthorsBug(t *testing.T) {
	each := func(change func(*mcp.ElicitParams)) func(mcp.InputRequestMap) {
		return func(m mcp.InputRequestMap) {
			for key, question := range m {
				changed := *question.(*mcp.ElicitParams)
				change(&changed)
				m[key] = &changed
			}
		}
	}
	for name, change := range map[string]func(mcp.InputRequestMap){
		"added": func(m mcp.InputRequestMap) {
			m["extra"] = &mcp.ElicitParams{Message: "rate us", RequestedSchema: map[string]any{"type": "object"}}
		},
		"removed": func(m mcp.InputRequestMap) { clear(m) },
		"renamed": func(m mcp.InputRequestMap) {
			for key, question := range m {
				delete(m, key)
				m["other "+key] = question
			}
		},
		"reworded": each(func(q *mcp.ElicitParams) { q.Message = "Like kittens?" }),
		"another schema": each(func(q *mcp.ElicitParams) {
			q.RequestedSchema = map[string]any{"type": "object", "properties": map[string]any{"value": map[string]any{"type": "string", "description": "hush"}}}
		}),
		"another kind": func(m mcp.InputRequestMap) {
			for key := range m {
				m[key] = &mcp.ListRootsParams{}
			}
		},
		"in place": func(m mcp.InputRequestMap) {
			for _, question := range m {
				question.(*mcp.ElicitParams).Message = "Like kittens?"
			}
		},
	} {
		both(t, func(t *testing.T, revision string) {
			s := serviceBehind(t, func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					result, err := next(ctx, method, req)
					if r, ok := result.(*mcp.CallToolResult); ok && r.InputRequests != nil {
						change(r.InputRequests)
					}
					return result, err
				}
			})
			tool := &asking{wording: map[string]string{"a": "A?", "b": "B?"}, order: []string{"a", "b"}}
			elicit.AddTool(s.Protected, &mcp.Tool{Name: "ask"}, tool.handle)
			u := reply(nil)
			got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "ask"}))
			if got != internal || !strings.Contains(s.book.String(), "what elicit asks was changed") {
				t.Errorf("%s: %s; the log: %s", name, got, s.book)
			}
			// The SDK asks an older client the first question before middleware can change it.
			if asked := strings.Join(u.messages(), " "); asked != "" && (asked != "A?" || revision == revision2026) {
				t.Errorf("%s: asked %s", name, asked)
			}
		})
	}
}

// TestAHandlerMayRunTwiceForOneCall checks that inner middleware may run a handler of elicit twice,
// and return the result of either run. All answers, and the values of Once, are still remembered.
func TestAHandlerMayRunTwiceForOneCall(t *testing.T) {
	type run = func() (mcp.Result, error)
	for name, repeat := range map[string]func(run) (mcp.Result, error){
		"takes the first": func(next run) (mcp.Result, error) {
			result, err := next()
			next()
			return result, err
		},
		"takes the second": func(next run) (mcp.Result, error) { next(); return next() },
		"at once": func(next run) (result mcp.Result, err error) {
			var group sync.WaitGroup
			group.Go(func() { next() })
			group.Go(func() { result, err = next() })
			group.Wait()
			return result, err
		},
		"tries again": func(next run) (mcp.Result, error) {
			result, err := next()
			if err != nil {
				return next()
			}
			return result, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, revision string) {
				s := serviceBehind(t, func(next mcp.MethodHandler) mcp.MethodHandler {
					return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
						if method != "tools/call" {
							return next(ctx, method, req)
						}
						return repeat(func() (mcp.Result, error) { return next(ctx, method, req) })
					}
				})
				elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
					id, err := elicit.Once(ask, "id", func() (string, error) { return rand.Text(), nil }) // so that no two runs write the same state
					if err != nil {
						return result{}, err
					}
					var ids []string
					for i := range 6 {
						v, err := elicit.Form[value](ask, strconv.Itoa(i), strconv.Itoa(i)).Value()
						if err != nil {
							return result{}, err
						}
						ids = append(ids, v.Value)
					}
					if id == "" {
						return result{}, errors.New("no id")
					}
					return result{strings.Join(ids, ",")}, nil
				})
				u := reply(nil)
				options := u.options(false)
				if name == "tries again" && revision == revision2025 {
					answer, failed := options.ElicitationHandler, false
					options.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						if req.Params.Message == "2" && !failed {
							failed = true
							return nil, errors.New("flaky")
						}
						return answer(ctx, req)
					}
				}
				got := text(call(t, connect(t, s.Server(), options, revision), &mcp.CallToolParams{Name: "t"}))
				if got != `{"done":"to 0,to 1,to 2,to 3,to 4,to 5"}` {
					t.Errorf("%s; asked %q; the log: %s", got, u.messages(), s.book)
				}
				// The SDK asks an older client in each of the two runs; nothing is asked a third time.
				asked := map[string]int{}
				for _, message := range u.messages() {
					if asked[message]++; asked[message] > 2 || asked[message] > 1 && (revision == revision2026 || name == "tries again") {
						t.Fatalf("asked %q", u.messages())
					}
				}
			})
		})
	}
}

// TestAResultOfARunThatIsForgottenIsRefused checks that a result is refused if the call no longer
// knows the state in it. A call keeps only its last few states. Without the refusal, the same
// question would be asked again and again.
func TestAResultOfARunThatIsForgottenIsRefused(t *testing.T) {
	s := serviceBehind(t, func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			for range 8 {
				if method == "tools/call" {
					next(ctx, method, req)
				}
			}
			return result, err
		}
	})
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		elicit.Once(ask, "id", func() (string, error) { return rand.Text(), nil })
		_, err := elicit.Form[value](ask, "a", "A?").Value()
		return result{"done"}, err
	})
	u := reply(nil)
	got := text(call(t, connect(t, s.Server(), u.options(false), revision2026), &mcp.CallToolParams{Name: "t"}))
	if got != internal || len(u.messages()) != 0 || !strings.Contains(s.book.String(), "what elicit asks was changed") {
		t.Errorf("%s; asked %q; the log: %s", got, u.messages(), s.book)
	}
}

// TestAMisfitStopsTheHandler checks that the handler can read no answer at all if one answer does
// not fit. It must not act on a good answer that came with a bad one.
func TestAMisfitStopsTheHandler(t *testing.T) {
	s := newService(t, nil)
	ran := 0
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		sure := elicit.Form[confirm](ask, "sure", "Delete?")
		elicit.Form[value](ask, "why", "Why?")
		if _, err := sure.Value(); err != nil {
			return result{}, err
		}
		ran++
		return result{"deleted"}, nil
	})
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	asked := round(t, session, "t", nil, nil)
	got := text(round(t, session, "t", asked, mcp.InputResponseMap{"sure": accept(map[string]any{"ok": true}), "why": accept(map[string]any{"value": 5})}), nil)
	if !strings.HasPrefix(got, "ERROR the answer to the question why") || ran != 0 {
		t.Errorf("%s, ran %d times", got, ran)
	}
}

// TestANilInAQuestionIsTheAuthorsBug checks that a call fails if a question has a nil in it, and
// that nobody is asked. Otherwise the SDK would end the process when it asks an older client, or
// the client would get a null where it expects none.
func TestANilInAQuestionIsTheAuthorsBug(t *testing.T) {
	sample := func(messages ...*mcp.SamplingMessage) func(*elicit.Asker) error {
		return func(ask *elicit.Asker) error {
			_, err := elicit.Sample(ask, "k", &mcp.CreateMessageParams{MaxTokens: 1, Messages: messages}).Value()
			return err
		}
	}
	tools := func(params mcp.CreateMessageWithToolsParams) func(*elicit.Asker) error {
		return func(ask *elicit.Asker) error {
			_, err := elicit.SampleWithTools(ask, "k", &params).Value()
			return err
		}
	}
	contents := func(contents ...mcp.Content) func(*elicit.Asker) error {
		return tools(mcp.CreateMessageWithToolsParams{Messages: []*mcp.SamplingMessageV2{{Role: "user", Content: contents}}})
	}
	preferences := &mcp.ModelPreferences{Hints: []*mcp.ModelHint{nil}}
	for name, ask := range map[string]func(*elicit.Asker) error{
		"no params":                  func(ask *elicit.Asker) error { _, err := elicit.Sample(ask, "k", nil).Value(); return err },
		"no params, tools":           func(ask *elicit.Asker) error { _, err := elicit.SampleWithTools(ask, "k", nil).Value(); return err },
		"message":                    sample(nil),
		"content":                    sample(&mcp.SamplingMessage{Role: "user"}),
		"text":                       sample(&mcp.SamplingMessage{Role: "user", Content: (*mcp.TextContent)(nil)}),
		"embedded resource":          sample(&mcp.SamplingMessage{Role: "user", Content: &mcp.EmbeddedResource{}}),
		"message, tools":             tools(mcp.CreateMessageWithToolsParams{Messages: []*mcp.SamplingMessageV2{nil}}),
		"contents":                   contents(),
		"content, tools":             contents(nil),
		"image, tools":               contents((*mcp.ImageContent)(nil)),
		"content of a tool's result": contents(&mcp.ToolResultContent{ToolUseID: "x", Content: []mcp.Content{nil}}),
		"tool":                       tools(mcp.CreateMessageWithToolsParams{Tools: []*mcp.Tool{nil}}),
		"hint, tools":                tools(mcp.CreateMessageWithToolsParams{ModelPreferences: preferences}),
		"hint": func(ask *elicit.Asker) error {
			_, err := elicit.Sample(ask, "k", &mcp.CreateMessageParams{ModelPreferences: preferences}).Value()
			return err
		},
	} {
		both(t, func(t *testing.T, revision string) {
			s := newService(t, nil)
			elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, a *elicit.Asker, _ args) (result, error) {
				also := elicit.Form[value](a, "also", "Also?") // would be sent in the same round
				if err := ask(a); err != nil {
					return result{}, err
				}
				_, err := also.Value()
				return result{}, err
			})
			u := reply(nil)
			got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"}))
			if got != internal || !strings.Contains(s.book.String(), "elicit: the question k is nil, has a nil message") {
				t.Errorf("a nil %s: %s; the log: %s", name, got, s.book)
			}
			if asked := u.messages(); len(asked) != 0 {
				t.Errorf("a nil %s: asked %q", name, asked)
			}
		})
	}
}

// flexibleDay reads a date, with or without a time.
type flexibleDay string

func (d *flexibleDay) UnmarshalText(text []byte) error {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if _, err := time.Parse(layout, string(text)); err == nil {
			*d = flexibleDay(text)
			return nil
		}
	}
	return &time.ParseError{}
}

func TestAFormIsTheSameEveryTime(t *testing.T) {
	s := newService(t, nil)
	type day struct {
		Day  flexibleDay `json:"day"`
		Mode string      `json:"mode"`
	}
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		d, err := elicit.Form[day](ask, "day", "Which day?", elicit.Enum("mode", "a", "b")).Value()
		return result{string(d.Day)}, err
	})
	u := &user{answer: func(string, *mcp.ElicitParams) *mcp.ElicitResult {
		return accept(map[string]any{"day": "2026-01-02T03:04:05Z", "mode": "a"})
	}}
	session := connect(t, s.Server(), u.options(false), revision2026)
	for range 20 {
		if got := text(call(t, session, &mcp.CallToolParams{Name: "t"})); got != `{"done":"2026-01-02T03:04:05Z"}` {
			t.Fatal(got)
		}
	}
}

// TestOneTokenCountsOnceOverBothRevisions sends one token forty times at once, from a newer and
// an older client. The tool must act only once.
func TestOneTokenCountsOnceOverBothRevisions(t *testing.T) {
	store, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := newService(t, func(c *tripseal.Config) { c.Replay = store })
	var mu sync.Mutex
	ran := 0
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "pay"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		if _, err := elicit.Form[confirm](ask, "confirm", "Pay?").Value(); err != nil {
			return result{}, err
		}
		mu.Lock()
		defer mu.Unlock()
		ran++
		return result{"paid"}, nil
	})
	newer := connect(t, s.Server(), reply(nil).options(true), revision2026)
	older := connect(t, s.Server(), reply(map[string]*mcp.ElicitResult{"Pay?": {Action: "decline"}}).options(true), revision2025)
	asked := round(t, newer, "pay", nil, nil)
	var group sync.WaitGroup
	for i := range 40 {
		session := []*mcp.ClientSession{newer, older}[i%2]
		group.Go(func() {
			call(t, session, &mcp.CallToolParams{Name: "pay", RequestState: asked.RequestState,
				InputResponses: mcp.InputResponseMap{"confirm": accept(map[string]any{"ok": true})}})
		})
	}
	group.Wait()
	if ran != 1 {
		t.Errorf("paid %d times", ran)
	}
}

// TestWhatWasNotAskedForIsNotKept checks that the state has only what was asked for. Otherwise a
// client could fill the state with members for which the form has no field, or with content in an
// answer about a URL.
func TestWhatWasNotAskedForIsNotKept(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			a, err := elicit.Form[value](ask, "a", "A?").Value()
			if err != nil {
				return result{}, err
			}
			if _, err := elicit.URL(ask, "u", "U?", "https://example.com/").Value(); err != nil {
				return result{}, err
			}
			b, err := elicit.Form[value](ask, "b", "B?").Value()
			return result{a.Value + b.Value}, err
		})
		u := &user{answer: func(message string, _ *mcp.ElicitParams) *mcp.ElicitResult {
			return accept(map[string]any{"value": message, "more": strings.Repeat("x", 17<<10)})
		}}
		if got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"})); got != `{"done":"A?B?"}` {
			t.Errorf("%.200s; the log: %s", got, s.book)
		}
	})
}

// TestAQuestionIsNobodyElses checks that a question does not share its schema with the form that
// checks the answer. Here middleware changes the question's schema, so that the field is not
// required any more. An answer without the field must still be refused.
func TestAQuestionIsNobodyElses(t *testing.T) {
	s := newService(t, nil)
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		v, err := elicit.Form[value](ask, "a", "A?").Value()
		return result{v.Value}, err
	})
	s.Server().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { // added after Protect, so it runs first
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if r, ok := result.(*mcp.CallToolResult); ok {
				for _, question := range r.InputRequests {
					schema := question.(*mcp.ElicitParams).RequestedSchema.(*jsonschema.Schema)
					schema.Required, schema.Properties["value"].Description = nil, "hush"
				}
			}
			return result, err
		}
	})
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	asked := round(t, session, "t", nil, nil)
	if got := text(round(t, session, "t", asked, mcp.InputResponseMap{"a": accept(map[string]any{})}), nil); !strings.HasPrefix(got, "ERROR the answer") {
		t.Errorf("a required field was left out: %s", got)
	}
}

// TestOnceIsNotReadAsSomethingElse checks that a call fails if two values of Once with different
// types have the same key. It also fails if a key is not UTF-8, because such a key would not come
// back from JSON.
func TestOnceIsNotReadAsSomethingElse(t *testing.T) {
	s := newService(t, nil)
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "two"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		elicit.Once(ask, "id", func() (string, error) { return "a", nil })
		elicit.Once(ask, "id", func() (int, error) { return 7, nil })
		_, err := elicit.Form[confirm](ask, "c", "Pay?").Value()
		return result{}, err
	})
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "bytes"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		elicit.Once(ask, "k\xff", func() (int, error) { return 7, nil })
		_, err := elicit.Form[confirm](ask, "c", "Pay?").Value()
		return result{}, err
	})
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "key"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		_, err := elicit.Form[confirm](ask, "k\xff", "Pay?").Value()
		return result{}, err
	})
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	u := reply(nil)
	for _, session := range []*mcp.ClientSession{session, connect(t, s.Server(), u.options(false), revision2025)} {
		for _, tool := range []string{"two", "bytes", "key"} {
			if got := text(call(t, session, &mcp.CallToolParams{Name: tool})); got != internal {
				t.Errorf("%s: %s", tool, got)
			}
		}
	}
	if asked := u.messages(); len(asked) != 0 {
		t.Errorf("asked %q", asked)
	}
}

func TestAChoiceThatHasNotItsFormatIsTheAuthorsBug(t *testing.T) {
	type day struct {
		Day string `json:"day"`
	}
	if err := elicit.CheckForm[day](elicit.Enum("day", "low", "high"), elicit.TextFormat("day", "date")); err == nil {
		t.Error("a form that no answer fits")
	}
	if err := elicit.CheckForm[day](elicit.Enum("day", "2026-01-02"), elicit.TextFormat("day", "date")); err != nil {
		t.Error(err)
	}
}

// TestAnAttemptThatWasGivenUpMayGoOn checks that a handler may still run for a round that is over.
// Inner middleware runs the handler twice for each round, and returns the result of the first run.
// The second run starts in a goroutine, and only after that round is over.
func TestAnAttemptThatWasGivenUpMayGoOn(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		var late sync.WaitGroup
		defer late.Wait()
		again := make(chan struct{})
		defer func() { close(again) }()
		s := serviceBehind(t, func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "tools/call" {
					close(again) // lets the goroutine of the previous round start its run
					again = make(chan struct{})
					goOn := again
					late.Go(func() { <-goOn; next(ctx, method, req) })
				}
				return next(ctx, method, req)
			}
		})
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			for i := range 6 {
				if _, err := elicit.Form[value](ask, fmt.Sprint("q", i), fmt.Sprint("q", i)).Value(); err != nil {
					return result{}, err
				}
			}
			return result{"done"}, nil
		})
		session := connect(t, s.Server(), reply(nil).options(false), revision)
		for range 3 {
			if got := text(call(t, session, &mcp.CallToolParams{Name: "t"})); !strings.Contains(got, "done") {
				t.Errorf("%s", got)
			}
		}
	})
}

// TestACancelIsNoAnswerThatDoesNotFit checks that a cancelled call leaves no warning and no error
// in the log: nobody did anything wrong.
func TestACancelIsNoAnswerThatDoesNotFit(t *testing.T) {
	s := newService(t, nil)
	ended := make(chan struct{})
	s.Server().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/call" {
				defer close(ended)
			}
			return next(ctx, method, req)
		}
	})
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		_, err := elicit.Form[value](ask, "q", "q").Value()
		return result{}, err
	})
	ctx, cancel := context.WithCancel(t.Context())
	options := reply(nil).options(false)
	options.ElicitationHandler = func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	connect(t, s.Server(), options, revision2025).CallTool(ctx, &mcp.CallToolParams{Name: "t"})
	<-ended
	if log := s.book.String(); strings.Contains(log, "level=WARN") || strings.Contains(log, "level=ERROR") {
		t.Errorf("the log: %s", log)
	}
}
