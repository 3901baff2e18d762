package elicit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk/elicit"
)

func done(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func (b *book) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Reset()
}

// callPlain registers a handler with the SDK itself, as a tool, and calls the tool.
func callPlain(t *testing.T, s service, u *user, revision string, handler mcp.ToolHandler) string {
	t.Helper()
	s.Server().AddTool(&mcp.Tool{Name: "t", InputSchema: anyObject}, handler)
	return text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"}))
}

func askConfirm(ask *elicit.Asker) error {
	_, err := elicit.Form[yes](ask, "confirm", "Delete?").Value()
	return err
}

const notReturned = "elicit asked a question, but the result of the handler does not ask it"

// TestAPendingResultThatIsTakenButNotReturnedFailsTheCall checks that a call fails if its handler
// calls ToolResult, PromptResult or ResourceResult of a Pending, but returns another result. In
// that case the user was not asked.
func TestAPendingResultThatIsTakenButNotReturnedFailsTheCall(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		take := func(ctx context.Context, req mcp.Request) *elicit.Pending {
			pending, err := elicit.Within(ctx, req, askConfirm)
			if err != nil {
				t.Error(err)
			}
			return pending
		}
		s.Server().AddTool(&mcp.Tool{Name: "t", InputSchema: anyObject}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			take(ctx, req).ToolResult()
			return done("SECRET"), nil
		})
		s.Server().AddTool(&mcp.Tool{Name: "an error of its own", InputSchema: anyObject}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			take(ctx, req).ToolResult()
			result := done("SECRET")
			result.IsError = true
			return result, nil
		})
		mcp.AddTool(s.Server(), &mcp.Tool{Name: "typed"}, func(ctx context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
			take(ctx, req).ToolResult()
			return done("SECRET"), nil, nil
		})
		s.Server().AddTool(&mcp.Tool{Name: "asks again", InputSchema: anyObject}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			take(ctx, req).ToolResult()
			elicit.Within(ctx, req, func(*elicit.Asker) error { return nil })
			return done("SECRET"), nil
		})
		s.Server().AddPrompt(&mcp.Prompt{Name: "p"}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			take(ctx, req).PromptResult()
			return &mcp.GetPromptResult{Description: "SECRET"}, nil
		})
		s.Server().AddResource(&mcp.Resource{URI: "x://r", Name: "r"}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			take(ctx, req).ResourceResult()
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "x://r", Text: "SECRET"}}}, nil
		})
		u := reply(nil)
		session := connect(t, s.Server(), u.options(false), revision)
		check := func(name, got string) {
			t.Helper()
			told := strings.Count(s.book.String(), notReturned) + strings.Count(s.book.String(), "Within was called after it returned a Pending")
			if got != internal || told != 1 || len(u.messages()) != 0 {
				t.Errorf("%s: %s; asked %q; the log: %s", name, got, u.messages(), s.book)
			}
			s.book.clear()
		}
		for _, name := range []string{"t", "an error of its own", "typed", "asks again"} {
			check(name, text(call(t, session, &mcp.CallToolParams{Name: name})))
		}
		_, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"})
		check("the prompt", text(&mcp.CallToolResult{}, err))
		_, err = session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "x://r"})
		check("the resource", text(&mcp.CallToolResult{}, err))
	})
}

// TestAskingByHandInPlaceOfAPendingResultFailsTheCall checks that a call fails if its handler calls
// ToolResult of a Pending, but then asks another question by hand, without elicit. An older client
// still gets the other question: the SDK itself sends it, and the mistake shows only at the end of
// the call.
func TestAskingByHandInPlaceOfAPendingResultFailsTheCall(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		byHand := &mcp.ElicitParams{Mode: "form", Message: "By hand?", RequestedSchema: anyObject}
		for name, handler := range map[string]mcp.ToolHandler{
			"a result": func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if req.Params.InputResponses != nil {
					return done("SECRET"), nil
				}
				pending, _ := elicit.Within(ctx, req, askConfirm)
				pending.ToolResult()
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"hand": byHand}, RequestState: "hand"}, nil
			},
			"a result, and within again": func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if req.Params.InputResponses != nil {
					_, err := elicit.Within(ctx, req, func(*elicit.Asker) error { return nil })
					return done("SECRET"), err
				}
				pending, _ := elicit.Within(ctx, req, askConfirm)
				pending.ToolResult()
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"hand": byHand}, RequestState: "hand"}, nil
			},
			"a result, and another question within": func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if req.Params.InputResponses != nil {
					pending, err := elicit.Within(ctx, req, func(ask *elicit.Asker) error {
						_, err := elicit.Form[yes](ask, "other", "Delete? Really?").Value()
						return err
					})
					return pending.ToolResult(), err
				}
				pending, _ := elicit.Within(ctx, req, askConfirm)
				pending.ToolResult()
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"hand": byHand}, RequestState: "hand"}, nil
			},
			"the session": func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				pending, _ := elicit.Within(ctx, req, askConfirm)
				pending.ToolResult()
				req.Session.Elicit(ctx, byHand)
				return done("SECRET"), nil
			},
		} {
			s := newService(t, nil)
			u := reply(nil)
			got := callPlain(t, s, u, revision, handler)
			if got != internal || strings.Contains(strings.Join(u.messages(), " "), "Delete?") || !strings.Contains(s.book.String(), "Pending") && !strings.Contains(s.book.String(), "must not ask by hand") {
				t.Errorf("%s: %s; asked %q; the log: %s", name, got, u.messages(), s.book)
			}
		}
	})
}

// TestAHandlerThatAsksAndFailsKeepsItsError checks that the client gets the error of a handler,
// even if the handler has asked with Within before.
func TestAHandlerThatAsksAndFailsKeepsItsError(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		broken := func(ctx context.Context, req *mcp.CallToolRequest) error {
			pending, err := elicit.Within(ctx, req, askConfirm)
			pending.ToolResult()
			return errors.Join(err, errors.New("no connection"))
		}
		if got := callPlain(t, s, reply(nil), revision, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, broken(ctx, req)
		}); got != `{"code":0,"message":"no connection"}` {
			t.Errorf("%s; the log: %s", got, s.book)
		}
		mcp.AddTool(s.Server(), &mcp.Tool{Name: "typed"}, func(ctx context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
			return nil, nil, broken(ctx, req)
		})
		if got := text(call(t, connect(t, s.Server(), reply(nil).options(false), revision), &mcp.CallToolParams{Name: "typed"})); got != "ERROR no connection" {
			t.Errorf("%s; the log: %s", got, s.book)
		}
	})
}

// TestWhatALaterRoundGetsWrongIsNotTakenForAnAnswerThatDoesNotFit checks that an error in the
// second round is not reported as an answer that does not fit: the client's answer was good.
func TestWhatALaterRoundGetsWrongIsNotTakenForAnAnswerThatDoesNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		second func(pending *elicit.Pending, answer *elicit.Answer[yes], unanswered error) (*mcp.CallToolResult, error)
		want   string
	}{
		"an error of its own": {func(*elicit.Pending, *elicit.Answer[yes], error) (*mcp.CallToolResult, error) {
			return nil, errors.New("no connection")
		}, `{"code":0,"message":"no connection"}`},
		"the error of the answer": {func(_ *elicit.Pending, _ *elicit.Answer[yes], err error) (*mcp.CallToolResult, error) {
			return nil, err
		}, internal},
		"the answer, too late": {func(pending *elicit.Pending, answer *elicit.Answer[yes], _ error) (*mcp.CallToolResult, error) {
			answer.Outcome()
			return done("SECRET"), nil
		}, internal},
		"nothing": {func(*elicit.Pending, *elicit.Answer[yes], error) (*mcp.CallToolResult, error) {
			return done("SECRET"), nil
		}, internal},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, revision string) {
				s, u := newService(t, nil), reply(nil)
				got := callPlain(t, s, u, revision, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					if result, err := requireYes(ctx, req, "first", "First?"); result != nil || err != nil {
						return result, err
					}
					var (
						answer     *elicit.Answer[yes]
						unanswered error
					)
					pending, err := elicit.Within(ctx, req, func(ask *elicit.Asker) error {
						answer = elicit.Form[yes](ask, "second", "Second?")
						_, unanswered = answer.Value()
						return unanswered
					})
					if err != nil || pending == nil {
						t.Errorf("%v, %v", pending, err)
					}
					return c.second(pending, answer, unanswered)
				})
				if got != c.want || strings.Join(u.messages(), " ") != "First?" || strings.Contains(s.book.String(), "does not fit") {
					t.Errorf("%s, want %s; asked %q; the log: %s", got, c.want, u.messages(), s.book)
				}
			})
		})
	}
}

// TestAHandlerMayCompleteWithoutAskingAgain checks that a handler may return a result without
// asking its question again, for example because there is nothing left to ask about.
func TestAHandlerMayCompleteWithoutAskingAgain(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		for name, ask := range map[string]func(ask *elicit.Asker) error{
			"a form": askConfirm,
			"a URL": func(ask *elicit.Asker) error {
				_, err := elicit.URL(ask, "connect", "Connect", "https://x.example/1").Value()
				return err
			},
			"a sample": func(ask *elicit.Asker) error {
				_, err := elicit.Sample(ask, "model", &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "x"}}}}).Value()
				return err
			},
			"roots": func(ask *elicit.Asker) error {
				_, err := elicit.Roots(ask, "roots").Value()
				return err
			},
		} {
			s := newService(t, nil)
			runs := 0
			got := callPlain(t, s, reply(nil), revision, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if runs++; runs > 1 {
					return done("nothing to delete"), nil
				}
				pending, err := elicit.Within(ctx, req, ask)
				return pending.ToolResult(), err
			})
			if got != "nothing to delete" || runs != 2 {
				t.Errorf("%s: %s after %d runs; the log: %s", name, got, runs, s.book)
			}
		}
	})
}

// TestAQuestionThatSendingMiddlewareAnswersIsAsked uses sending middleware that answers the
// questions for an older client. A question then counts as asked, although the client never sees
// it.
func TestAQuestionThatSendingMiddlewareAnswersIsAsked(t *testing.T) {
	s := newService(t, nil)
	s.Server().AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "elicitation/create" {
				return accept(map[string]any{"ok": true}), nil
			}
			return next(ctx, method, req)
		}
	})
	u := reply(nil)
	if got := callPlain(t, s, u, revision2025, withinHandler(askConfirm)); got != "deleted" || len(u.messages()) != 0 {
		t.Errorf("%s; asked %q; the log: %s", got, u.messages(), s.book)
	}
}

// TestAResultIsNotRefusedForWhatAnotherRunAsked uses inner middleware that runs a handler of elicit
// twice and drops the second result. Only the second run asks. The first result, which has no
// questions, must be sent.
func TestAResultIsNotRefusedForWhatAnotherRunAsked(t *testing.T) {
	s := serviceBehind(t, func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if method == "tools/call" {
				next(ctx, method, req)
			}
			return result, err
		}
	})
	runs := 0
	elicit.AddResultTool(s.Protected, &mcp.Tool{Name: "t"}, func(ctx context.Context, ask *elicit.Asker, _ args) (*mcp.CallToolResult, any, error) {
		if runs++; runs == 1 {
			return done("nothing to delete"), nil, nil
		}
		_, err := elicit.Within(ctx, ask.Request(), askConfirm)
		return done("deleted"), nil, err
	})
	got := text(call(t, connect(t, s.Server(), reply(nil).options(false), revision2026), &mcp.CallToolParams{Name: "t"}))
	if got != "nothing to delete" || runs != 2 {
		t.Errorf("%s after %d runs; the log: %s", got, runs, s.book)
	}
}

// TestWhatIsDoneAfterWithinReturnedFailsTheCall checks what a handler must not do after Within has
// returned: read a pending answer, ask a question, or call Once or NotYet. The call then fails,
// whatever the handler does with the error.
func TestWhatIsDoneAfterWithinReturnedFailsTheCall(t *testing.T) {
	const (
		lateRead = "an answer was read, or NotYet called, after Within returned: do it inside the function that is passed to Within"
		lateAsk  = "a question was asked, or Once called, after Within returned: do it inside the function that is passed to Within"
	)
	type outside func() error
	for name, c := range map[string]struct {
		ask func(ask *elicit.Asker) (outside, error)
		log string
	}{
		"Outcome": {func(ask *elicit.Asker) (outside, error) {
			answer := elicit.Form[yes](ask, "confirm", "Delete?")
			return func() error { _, _, err := answer.Outcome(); return err }, nil
		}, lateRead},
		"Value": {func(ask *elicit.Asker) (outside, error) {
			answer := elicit.Form[yes](ask, "confirm", "Delete?")
			return func() error { _, err := answer.Value(); return err }, nil
		}, lateRead},
		"NotYet": {func(ask *elicit.Asker) (outside, error) {
			consent := elicit.URL(ask, "connect", "Connect", "https://x.example/1")
			_, err := consent.Value()
			return consent.NotYet, err
		}, lateRead},
		"a question": {func(ask *elicit.Asker) (outside, error) {
			return func() error { return askConfirm(ask) }, nil
		}, lateAsk},
		"Once": {func(ask *elicit.Asker) (outside, error) {
			return func() error {
				_, err := elicit.Once(ask, "id", func() (int, error) { return 1, nil })
				return err
			}, nil
		}, lateAsk},
		"a mistake": {func(ask *elicit.Asker) (outside, error) {
			return func() error {
				elicit.Form[int](ask, "confirm", "Delete?")
				return nil
			}, nil
		}, "not a struct"},
	} {
		for how, handle := range map[string]func(error) (*mcp.CallToolResult, error){
			"is dropped":  func(error) (*mcp.CallToolResult, error) { return done("SECRET"), nil },
			"is returned": func(err error) (*mcp.CallToolResult, error) { return done("SECRET"), err },
			"is wrapped":  func(err error) (*mcp.CallToolResult, error) { return done("SECRET"), fmt.Errorf("sorry: %v", err) },
		} {
			t.Run(name+", the error "+how, func(t *testing.T) {
				both(t, func(t *testing.T, revision string) {
					s := newService(t, nil)
					handler := func(ctx context.Context, req mcp.Request) (*elicit.Pending, *mcp.CallToolResult, error) {
						var late outside
						pending, err := elicit.Within(ctx, req, func(ask *elicit.Asker) (err error) { late, err = c.ask(ask); return err })
						if pending != nil || err != nil {
							return pending, nil, err
						}
						result, err := handle(late())
						if pending, second := elicit.Within(ctx, req, func(*elicit.Asker) error { t.Error("Within goes on"); return nil }); pending != nil || second == nil {
							t.Errorf("Within returned %v, %v", pending, second)
						}
						return nil, result, err
					}
					s.Server().AddTool(&mcp.Tool{Name: "t", InputSchema: anyObject}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						pending, result, err := handler(ctx, req)
						if pending != nil {
							return pending.ToolResult(), err
						}
						return result, err
					})
					mcp.AddTool(s.Server(), &mcp.Tool{Name: "typed"}, func(ctx context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
						pending, result, err := handler(ctx, req)
						if pending != nil {
							return pending.ToolResult(), nil, err
						}
						return result, nil, err
					})
					s.Server().AddPrompt(&mcp.Prompt{Name: "p"}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
						pending, _, err := handler(ctx, req)
						if pending != nil {
							return pending.PromptResult(), err
						}
						return &mcp.GetPromptResult{Description: "SECRET"}, err
					})
					s.Server().AddResource(&mcp.Resource{URI: "x://r", Name: "r"}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
						pending, _, err := handler(ctx, req)
						if pending != nil {
							return pending.ResourceResult(), err
						}
						return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "x://r", Text: "SECRET"}}}, err
					})
					session := connect(t, s.Server(), reply(nil).options(false), revision)
					check := func(what, got string) {
						t.Helper()
						if got != internal || strings.Count(s.book.String(), c.log) != 1 {
							t.Errorf("%s: %s; the log: %s", what, got, s.book)
						}
						s.book.clear()
					}
					check("the tool", text(call(t, session, &mcp.CallToolParams{Name: "t"})))
					check("the typed tool", text(call(t, session, &mcp.CallToolParams{Name: "typed"})))
					_, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"})
					check("the prompt", text(&mcp.CallToolResult{}, err))
					_, err = session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "x://r"})
					check("the resource", text(&mcp.CallToolResult{}, err))
				})
			})
		}
	}
}

// TestAskingWithinAfterTheHandlerReturnedAsksNobody calls Within in a goroutine that goes on after
// the handler has returned. The user is never asked.
func TestAskingWithinAfterTheHandlerReturnedAsksNobody(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s, u := newService(t, nil), reply(nil)
		var late sync.WaitGroup
		defer late.Wait()
		s.Server().AddTool(&mcp.Tool{Name: "t", InputSchema: anyObject}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			late.Go(func() {
				for range 50 {
					if pending, _ := elicit.Within(ctx, req, askConfirm); pending != nil {
						pending.ToolResult()
					}
				}
			})
			return done("ok"), nil
		})
		session := connect(t, s.Server(), u.options(false), revision)
		for range 5 {
			// The call fails if the goroutine asks before the handler's result arrives.
			if got := text(call(t, session, &mcp.CallToolParams{Name: "t"})); got != "ok" && got != internal {
				t.Error(got)
			}
		}
		late.Wait()
		if len(u.messages()) != 0 {
			t.Errorf("asked %q", u.messages())
		}
	})
}

func TestAnAnswerThatIsThereMayBeReadAfterWithinReturned(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		u := reply(map[string]*mcp.ElicitResult{"Notify?": {Action: "decline"}})
		got := callPlain(t, s, u, revision, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var confirm, notify *elicit.Answer[yes]
			pending, err := elicit.Within(ctx, req, func(ask *elicit.Asker) error {
				confirm, notify = elicit.Form[yes](ask, "confirm", "Delete?"), elicit.Form[yes](ask, "notify", "Notify?")
				_, _, err := notify.Outcome()
				return err
			})
			if pending != nil || err != nil {
				return pending.ToolResult(), err
			}
			action, _, err := notify.Outcome()
			_, second := confirm.Value()
			return done(string(action)), errors.Join(err, second)
		})
		if got != "decline" || strings.Contains(s.book.String(), "level=ERROR") {
			t.Errorf("%s; the log: %s", got, s.book)
		}
	})
}

// TestAnAnswerThatIsNotThereIsNoErrorForTheClient checks that the client never gets the error which
// means that an answer has not arrived yet. In this test, the function that is passed to Within
// stores the error in a variable. The handler returns the error in place of the questions.
func TestAnAnswerThatIsNotThereIsNoErrorForTheClient(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		unanswered := func(ctx context.Context, req mcp.Request) (err error) {
			elicit.Within(ctx, req, func(ask *elicit.Asker) error {
				err = askConfirm(ask)
				return nil
			})
			return fmt.Errorf("sorry: %w", err)
		}
		s.Server().AddTool(&mcp.Tool{Name: "t", InputSchema: anyObject}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, unanswered(ctx, req)
		})
		mcp.AddTool(s.Server(), &mcp.Tool{Name: "typed"}, func(ctx context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
			return nil, nil, unanswered(ctx, req)
		})
		s.Server().AddPrompt(&mcp.Prompt{Name: "p"}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return nil, unanswered(ctx, req)
		})
		session := connect(t, s.Server(), reply(nil).options(false), revision)
		check := func(name, got string) {
			t.Helper()
			if got != internal || !strings.Contains(s.book.String(), "the error of an answer that is not there yet") {
				t.Errorf("%s: %s; the log: %s", name, got, s.book)
			}
			s.book.clear()
		}
		check("the tool", text(call(t, session, &mcp.CallToolParams{Name: "t"})))
		check("the typed tool", text(call(t, session, &mcp.CallToolParams{Name: "typed"})))
		_, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"})
		check("the prompt", text(&mcp.CallToolResult{}, err))
	})
}

// TestAValueOfOnceOfAnEarlierCallOfWithinIsRefused checks that two calls of Within cannot use the
// same key for Once. A call of Within and the handler itself cannot share a key either. Otherwise
// the handler in this test would use the price of one item for another item.
func TestAValueOfOnceOfAnEarlierCallOfWithinIsRefused(t *testing.T) {
	var paid []string
	pay := func(ctx context.Context, req mcp.Request, item string) (*elicit.Pending, error) {
		return elicit.Within(ctx, req, func(ask *elicit.Asker) error {
			price, err := elicit.Once(ask, "price", func() (int, error) { return len(item), nil })
			if err != nil {
				return err
			}
			if _, err = elicit.Form[yes](ask, "pay "+item, fmt.Sprintf("Pay %d for %s?", price, item)).Value(); err == nil {
				paid = append(paid, item)
			}
			return err
		})
	}
	for name, add := range map[string]func(s service){
		"two calls of Within": func(s service) {
			s.Server().AddTool(&mcp.Tool{Name: "t", InputSchema: anyObject}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				for _, item := range []string{"carriage", "pen"} {
					if pending, err := pay(ctx, req, item); pending != nil || err != nil {
						return pending.ToolResult(), err
					}
				}
				return done("SECRET"), nil
			})
		},
		"the handler and its helper": func(s service) {
			elicit.AddResultTool(s.Protected, &mcp.Tool{Name: "t"}, func(ctx context.Context, ask *elicit.Asker, _ args) (*mcp.CallToolResult, any, error) {
				if _, err := pay(ctx, ask.Request(), "carriage"); err != nil {
					return nil, nil, err
				}
				if _, err := elicit.Form[yes](ask, "more", "More?").Value(); err != nil {
					return nil, nil, err
				}
				_, err := elicit.Once(ask, "price", func() (int, error) { return 0, nil })
				return done("SECRET"), nil, err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, revision string) {
				s := newService(t, nil)
				add(s)
				paid = nil
				got := text(call(t, connect(t, s.Server(), reply(nil).options(false), revision), &mcp.CallToolParams{Name: "t"}))
				const twice = "call Once with the key price, or inner middleware ran the handler twice"
				if got != internal || strings.Contains(fmt.Sprint(paid), "pen") || !strings.Contains(s.book.String(), twice) {
					t.Errorf("%s, paid %q; the log: %s", got, paid, s.book)
				}
			})
		})
	}
}

// TestAQuestionAndAValueOfOnceMayHaveOneKey checks that a question and a value of Once may have
// the same key, even in two calls of Within.
func TestAQuestionAndAValueOfOnceMayHaveOneKey(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		got := callPlain(t, s, reply(nil), revision, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for _, ask := range []func(*elicit.Asker) error{askConfirm, func(ask *elicit.Asker) error {
				_, err := elicit.Once(ask, "confirm", func() (int, error) { return 1, nil })
				return err
			}} {
				if pending, err := elicit.Within(ctx, req, ask); pending != nil || err != nil {
					return pending.ToolResult(), err
				}
			}
			return done("deleted"), nil
		})
		if got != "deleted" {
			t.Errorf("%s; the log: %s", got, s.book)
		}
	})
}

// TestARefusalMayBeReadAfterAHelperAsked checks that a handler of elicit may read a refusal after a
// helper has called Within. That call checks only the helper's questions. The handler's questions
// are checked when the handler has returned.
func TestARefusalMayBeReadAfterAHelperAsked(t *testing.T) {
	for name, c := range map[string]struct {
		declined string
		read     bool
		want     string
	}{
		"read by the handler":     {"Notify?", true, "notify: decline"},
		"read by nobody":          {"Notify?", false, internal},
		"the helper's, not read":  {"Why?", true, internal},
		"the helper's, read":      {"Delete?", true, "ERROR the question confirm was declined"},
		"nothing, and none read":  {"", false, "notify: "},
		"nothing, and all read":   {"", true, "notify: accept"},
		"no such question either": {"Other?", true, "notify: accept"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, revision string) {
				s := newService(t, nil)
				acted := false
				elicit.AddResultTool(s.Protected, &mcp.Tool{Name: "t"}, func(ctx context.Context, ask *elicit.Asker, _ args) (*mcp.CallToolResult, any, error) {
					notify := elicit.Form[yes](ask, "notify", "Notify?")
					pending, err := elicit.Within(ctx, ask.Request(), func(ask *elicit.Asker) error {
						elicit.Form[yes](ask, "why", "Why?")
						return askConfirm(ask)
					})
					if pending != nil || err != nil {
						return nil, nil, err
					}
					acted = true
					var action elicit.Action
					if c.read {
						action, _, err = notify.Outcome()
					}
					return done("notify: " + string(action)), nil, err
				})
				u := reply(map[string]*mcp.ElicitResult{c.declined: {Action: "decline"}})
				got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"}))
				if got != c.want || strings.Contains(s.book.String(), "nobody read its answer") != (c.want == internal) || acted && c.declined == "Why?" {
					t.Errorf("%s, want %s; the log: %s", got, c.want, s.book)
				}
			})
		})
	}
}

// TestARefusalThatAFailedCallOfWithinLeftUnreadFailsTheNext checks that Within fails if an earlier
// call of Within failed and left a refusal unread. The handler went on after that error, and may
// act against the refusal.
func TestARefusalThatAFailedCallOfWithinLeftUnreadFailsTheNext(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		u := reply(map[string]*mcp.ElicitResult{"Delete?": {Action: "decline"}})
		got := callPlain(t, s, u, revision, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			pending, _ := elicit.Within(ctx, req, func(ask *elicit.Asker) error {
				elicit.Form[yes](ask, "confirm", "Delete?")
				if _, err := elicit.Form[yes](ask, "why", "Why?").Value(); err != nil {
					return err
				}
				return errors.New("no reason")
			})
			if pending == nil {
				var err error
				if pending, err = elicit.Within(ctx, req, func(*elicit.Asker) error { return nil }); err != nil {
					return nil, err
				}
			}
			if pending != nil {
				return pending.ToolResult(), nil
			}
			return done("SECRET"), nil
		})
		if got != internal || !strings.Contains(s.book.String(), "nobody read its answer") {
			t.Errorf("%s; asked %q; the log: %s", got, u.messages(), s.book)
		}
	})
}

// TestAskingWithinAfterAPendingResultIsRefusedInAHelper checks that a helper in a handler of
// elicit cannot call Within again after it got a Pending.
func TestAskingWithinAfterAPendingResultIsRefusedInAHelper(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		elicit.AddResultTool(s.Protected, &mcp.Tool{Name: "t"}, func(ctx context.Context, ask *elicit.Asker, _ args) (*mcp.CallToolResult, any, error) {
			elicit.Within(ctx, ask.Request(), askConfirm)
			elicit.Within(ctx, ask.Request(), func(*elicit.Asker) error { t.Error("Within goes on"); return nil })
			return done("SECRET"), nil, nil
		})
		got := text(call(t, connect(t, s.Server(), reply(nil).options(false), revision), &mcp.CallToolParams{Name: "t"}))
		if got != internal || !strings.Contains(s.book.String(), "returned a Pending") {
			t.Errorf("%s; the log: %s", got, s.book)
		}
	})
}

// copies has functions that copy a request. A handler may pass such a copy to Within.
var copies = map[string]func(*mcp.CallToolRequest) *mcp.CallToolRequest{
	"a copy": func(req *mcp.CallToolRequest) *mcp.CallToolRequest { copied := *req; return &copied },
	"a copy with its own answers": func(req *mcp.CallToolRequest) *mcp.CallToolRequest {
		params := *req.Params
		params.InputResponses = maps.Clone(params.InputResponses)
		return &mcp.CallToolRequest{Session: req.Session, Params: &params, Extra: req.Extra}
	},
	"a copy with all answers copied": func(req *mcp.CallToolRequest) *mcp.CallToolRequest {
		params := *req.Params
		params.InputResponses = mcp.InputResponseMap{}
		for key, answer := range req.Params.InputResponses {
			copied := *answer.(*mcp.ElicitResult)
			params.InputResponses[key] = &copied
		}
		params.Arguments = append(json.RawMessage(" "), params.Arguments...)
		return &mcp.CallToolRequest{Session: req.Session, Params: &params, Extra: req.Extra}
	},
}

// TestACopyOfTheRequestIsOfTheSameRun checks that Within treats a copy of the request like the
// request itself. One yes counts for one action, and the function Once computes its value only one
// time.
func TestACopyOfTheRequestIsOfTheSameRun(t *testing.T) {
	for name, with := range copies {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, revision string) {
				s := newService(t, nil)
				acted := 0
				got := callPlain(t, s, reply(nil), revision, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					for range 2 {
						if pending, err := elicit.Within(ctx, with(req), askConfirm); pending != nil || err != nil {
							return pending.ToolResult(), err
						}
						acted++
					}
					return done("deleted"), nil
				})
				if got != internal || acted != 1 || !strings.Contains(s.book.String(), askedTwice) {
					t.Errorf("%s, acted %d times; the log: %s", got, acted, s.book)
				}
				s, computed := newService(t, nil), 0
				got = callPlain(t, s, reply(nil), revision, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					for _, ask := range []func(*elicit.Asker) error{func(ask *elicit.Asker) error {
						_, err := elicit.Once(ask, "id", func() (int, error) { computed++; return computed, nil })
						return err
					}, askConfirm} {
						if pending, err := elicit.Within(ctx, with(req), ask); pending != nil || err != nil {
							return pending.ToolResult(), err
						}
					}
					return done("deleted"), nil
				})
				if got != "deleted" || computed != 1 {
					t.Errorf("%s, computed %d times; the log: %s", got, computed, s.book)
				}
			})
		})
	}
}

// TestACopyOfTheRequestIsOfTheSameRunInAHelper calls a function from a handler of elicit. This
// function passes a copy of the request to Within. Once must still compute each value only one
// time.
func TestACopyOfTheRequestIsOfTheSameRunInAHelper(t *testing.T) {
	for name, with := range copies {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, revision string) {
				s, computed := newService(t, nil), 0
				elicit.AddResultTool(s.Protected, &mcp.Tool{Name: "t"}, func(ctx context.Context, ask *elicit.Asker, _ args) (*mcp.CallToolResult, any, error) {
					_, err := elicit.Once(ask, "id", func() (int, error) { computed++; return computed, nil })
					if err != nil {
						return nil, nil, err
					}
					_, err = elicit.Within(ctx, with(ask.Request().(*mcp.CallToolRequest)), askConfirm)
					return done("deleted"), nil, err
				})
				got := text(call(t, connect(t, s.Server(), reply(nil).options(false), revision), &mcp.CallToolParams{Name: "t"}))
				if got != "deleted" || computed != 1 {
					t.Errorf("%s, computed %d times; the log: %s", got, computed, s.book)
				}
			})
		})
	}
}

// TestAnotherRequestInOneRunIsRefused checks that Within fails if it gets another request than
// before in the same run. Otherwise what the run has kept would be lost.
func TestAnotherRequestInOneRunIsRefused(t *testing.T) {
	for name, other := range map[string]*mcp.CallToolParamsRaw{
		"other arguments": {Name: "t", Arguments: json.RawMessage(`{"dir":"/home"}`)},
		"another tool":    {Name: "u"},
	} {
		both(t, func(t *testing.T, revision string) {
			s := newService(t, nil)
			got := callPlain(t, s, reply(nil), revision, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				for _, req := range []*mcp.CallToolRequest{req, {Session: req.Session, Params: other, Extra: req.Extra}} {
					if _, err := elicit.Within(ctx, req, func(ask *elicit.Asker) error {
						_, err := elicit.Once(ask, "id "+req.Params.Name+string(req.Params.Arguments), func() (int, error) { return 1, nil })
						return err
					}); err != nil {
						return nil, err
					}
				}
				return done("SECRET"), nil
			})
			if got != internal || !strings.Contains(s.book.String(), "pass the request that the handler got") {
				t.Errorf("%s: %s; the log: %s", name, got, s.book)
			}
		})
	}
}

// TestAValueOfOnceIsForOneRun checks that each run of a handler may use the same key for the
// function Once. The handler of this test runs twice, because it asks a question by hand.
func TestAValueOfOnceIsForOneRun(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		got := callPlain(t, s, reply(nil), revision, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if _, err := elicit.Within(ctx, req, func(ask *elicit.Asker) error {
				_, err := elicit.Once(ask, "id", func() (int, error) { return 1, nil })
				return err
			}); err != nil {
				return nil, err
			}
			if req.Params.InputResponses["hand"] == nil {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"hand": &mcp.ElicitParams{Mode: "form", Message: "By hand?", RequestedSchema: anyObject}}}, nil
			}
			return done("done"), nil
		})
		if got != "done" {
			t.Errorf("%s; the log: %s", got, s.book)
		}
	})
}

// TestALoopThatAsksForAnotherAnswerEnds checks that a call fails if it asks the same question too
// often in one run. One bad answer must not keep a server busy for ever.
func TestALoopThatAsksForAnotherAnswerEnds(t *testing.T) {
	everyWay(t, func(t *testing.T, run func(*shop) string) {
		asked := 0
		s := &shop{}
		s.handler = func(a *elicit.Asker) (string, error) {
			for asked = 0; asked < 5000; asked++ {
				which, err := s.which(a).Value()
				if err != nil || which.Value == "right" {
					return which.Value, err
				}
			}
			return "went on", nil
		}
		s.check(t, run(s), internal, "Which?")
		if asked != 1000 || !strings.Contains(s.book.String(), "the question which is asked more than 1000 times in one run") {
			t.Errorf("asked %d times; the log: %s", asked, s.book)
		}
		s = &shop{}
		s.handler = func(a *elicit.Asker) (string, error) {
			for range 1000 {
				if _, err := s.which(a).Value(); err != nil {
					return "", err
				}
			}
			return "done", nil
		}
		s.check(t, run(s), `{"done":"done"}`, "Which?")
	})
}

// TestAQuestionThatWasMadeFromAPendingAnswerIsNotSentByNotYet checks that NotYet does not send a
// question that the handler made after it had tried to read an answer that was not there yet.
func TestAQuestionThatWasMadeFromAPendingAnswerIsNotSentByNotYet(t *testing.T) {
	everyWay(t, func(t *testing.T, run func(*shop) string) {
		s := &shop{}
		s.handler = func(a *elicit.Asker) (string, error) {
			which, err := s.which(a).Value()
			consent := elicit.URL(a, "open", "Open "+which.Value+"?", "https://example.com/")
			if err != nil {
				return "", consent.NotYet()
			}
			_, err = consent.Value()
			return "done", err
		}
		s.check(t, run(s), `{"done":"done"}`, "Which?", "Open to Which??")
	})
}
