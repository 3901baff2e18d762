package elicit_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk/elicit"
)

// TestARefusalThatNobodyReadFailsTheCall checks that a call fails if the user declined or
// cancelled a question, and the handler went on without having read that answer.
func TestARefusalThatNobodyReadFailsTheCall(t *testing.T) {
	runs, threes := 0, 0
	const question = "Delete everything?"
	ask := func(ask *elicit.Asker) *elicit.Answer[confirm] { return elicit.Form[confirm](ask, "confirm", question) }
	why := func(ask *elicit.Asker, key string) error {
		_, err := elicit.Form[value](ask, key, "Why "+key+"?").Value()
		return err
	}
	const unread = "the question confirm was declined or cancelled, and nobody read its answer"
	for name, c := range map[string]struct {
		handler func(*elicit.Asker) error
		want    string // what the client gets if the user refuses; "" for an internal error, because the handler has a mistake
	}{
		"not read": {func(a *elicit.Asker) error {
			ask(a)
			return why(a, "a")
		}, ""},
		"not read, in an earlier round": {func(a *elicit.Asker) error {
			ask(a)
			return errors.Join(why(a, "a"), why(a, "b"))
		}, ""},
		"not read, a URL": {func(a *elicit.Asker) error {
			elicit.URL(a, "confirm", question, "https://example.com/")
			return why(a, "a")
		}, ""},
		"read": {func(a *elicit.Asker) error {
			answer := ask(a)
			err := why(a, "a")
			answer.Outcome()
			return err
		}, `{"done":"deleted"}`},
		"read elsewhere": {func(a *elicit.Asker) error {
			ask(a)
			if action, _, err := ask(a).Outcome(); err != nil || action == elicit.Accept {
				return err
			}
			ask(a)
			return why(a, "a")
		}, `{"done":"deleted"}`},
		"the handler fails": {func(a *elicit.Asker) error {
			ask(a)
			if err := why(a, "a"); err != nil {
				return err
			}
			return errors.New("nothing was deleted")
		}, "ERROR nothing was deleted"},
		"no longer asked": {func(a *elicit.Asker) error {
			answer := elicit.Form[value](a, "a", "Why a?")
			if runs++; runs%2 == 1 { // the first of two runs
				ask(a)
			}
			_, err := answer.Value()
			return err
		}, `{"done":"deleted"}`},
		"not read, reworded": {func(a *elicit.Asker) error {
			message := question
			if runs++; runs%2 == 0 { // the second of two runs
				message = "Delete 6 files?"
			}
			for range 4 { // the second run asks the new words four times, which counts as one change of the words
				elicit.Form[confirm](a, "confirm", message)
			}
			return why(a, "a")
		}, ""},
		"not read, reworded and not asked at once": {func(a *elicit.Asker) error {
			message := question
			if threes++; threes%3 != 1 {
				message = "Delete 6 files?"
			}
			if threes%3 == 1 { // the first of three runs
				elicit.Form[confirm](a, "confirm", message)
			}
			err := errors.Join(why(a, "a"), why(a, "b"))
			elicit.Form[confirm](a, "confirm", message)
			return err
		}, ""},
	} {
		for _, action := range []string{"decline", "cancel", "accept"} {
			t.Run(name+", "+action, func(t *testing.T) {
				both(t, func(t *testing.T, revision string) {
					s := newService(t, nil)
					elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, a *elicit.Asker, _ args) (result, error) {
						return result{"deleted"}, c.handler(a)
					})
					var answers map[string]*mcp.ElicitResult
					want := c.want
					if action != "accept" {
						answers = map[string]*mcp.ElicitResult{question: {Action: action}}
					} else if want == "" {
						want = `{"done":"deleted"}`
					}
					u := reply(answers)
					got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"}))
					isMistake := want == ""
					if isMistake {
						want = internal
					}
					if got != want || strings.Contains(s.book.String(), unread) != isMistake || !strings.Contains(strings.Join(u.messages(), " "), question) {
						t.Errorf("%s, want %s; asked %q; the log: %s", got, want, u.messages(), s.book)
					}
				})
			})
		}
	}
}

func TestARefusalThatNobodyReadFailsAPromptAndAResource(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		ask := func(ask *elicit.Asker) error {
			elicit.Form[confirm](ask, "confirm", "Delete everything?")
			_, err := elicit.Form[value](ask, "why", "Why?").Value()
			return err
		}
		elicit.AddPrompt(s.Protected, &mcp.Prompt{Name: "p"}, func(_ context.Context, a *elicit.Asker, _ *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, ask(a)
		})
		elicit.AddResource(s.Protected, &mcp.Resource{URI: "file:///a", Name: "a"}, func(_ context.Context, a *elicit.Asker, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI}}}, ask(a)
		})
		session := connect(t, s.Server(), reply(map[string]*mcp.ElicitResult{"Delete everything?": {Action: "decline"}}).options(false), revision)
		if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"}); text(&mcp.CallToolResult{}, err) != internal {
			t.Errorf("the prompt: %v", err)
		}
		if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///a"}); text(&mcp.CallToolResult{}, err) != internal {
			t.Errorf("the resource: %v", err)
		}
	})
}

// TestARefusalThatWasRewordedIsAskedAgain checks that a refused question is asked again if its
// words change and the handler reads its answer. The new answer counts.
func TestARefusalThatWasRewordedIsAskedAgain(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		runs := 0
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			message := "Delete 6 files?"
			if runs++; runs == 1 {
				message = "Delete 5 files?"
			}
			_, err := elicit.Form[confirm](ask, "confirm", message).Value()
			return result{"deleted"}, err
		})
		u := reply(map[string]*mcp.ElicitResult{"Delete 5 files?": {Action: "decline"}})
		got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"}))
		if want := `{"done":"deleted"}`; got != want || len(u.messages()) != 2 {
			t.Errorf("%s after %q, want %s; the log: %s", got, u.messages(), want, s.book)
		}
	})
}

// TestARefusedURLThatIsAskedAgainIsNotForgotten checks a handler that asks a refused question again
// with NotYet, and then never reads the answer. The call fails if the client sends no new answer.
// The call succeeds if the user now accepts.
func TestARefusedURLThatIsAskedAgainIsNotForgotten(t *testing.T) {
	s := newService(t, nil)
	runs := 0
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		consent := elicit.URL(ask, "connect", "Connect?", "https://example.com/")
		switch runs++; runs {
		case 1:
			_, err := consent.Value()
			return result{}, err
		case 2:
			return result{}, consent.NotYet()
		}
		return result{"connected"}, nil
	})
	session := connect(t, s.Server(), (&user{}).options(true), revision2026)
	params := &mcp.CallToolParams{Name: "t"}
	for _, answers := range []mcp.InputResponseMap{nil, {"connect": &mcp.ElicitResult{Action: "decline"}}} {
		params.InputResponses = answers
		asked, err := call(t, session, params)
		if got := text(asked, err); got != "ASKS [connect]" {
			t.Fatalf("%s; the log: %s", got, s.book)
		}
		params.RequestState = asked.RequestState
	}
	open := *params
	open.InputResponses = nil
	if got := text(call(t, session, &open)); got != internal || !strings.Contains(s.book.String(), "the question connect was declined or cancelled") {
		t.Errorf("%s; the log: %s", got, s.book)
	}
	params.InputResponses = mcp.InputResponseMap{"connect": &mcp.ElicitResult{Action: "accept"}}
	if got := text(call(t, session, params)); got != `{"done":"connected"}` {
		t.Errorf("%s; the log: %s", got, s.book)
	}
}

// TestAMisfitIsNotTakenForARefusalThatNobodyRead checks a call with two answers: one is a refusal,
// and the other does not fit its question. In such a call the handler can read no answer, so the
// unread refusal must not count as its mistake.
func TestAMisfitIsNotTakenForARefusalThatNobodyRead(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			refused := elicit.Form[confirm](ask, "confirm", "Delete everything?")
			misfit := elicit.Form[value](ask, "email", "Email?", elicit.TextFormat("value", "email"))
			misfit.Value()
			refused.Value()
			return result{"done"}, nil
		})
		session := connect(t, s.Server(), reply(map[string]*mcp.ElicitResult{"Delete everything?": {Action: "decline"}}).options(false), revision)
		if got, want := text(call(t, session, &mcp.CallToolParams{Name: "t"})), "ERROR the answer to the question email does not fit what was asked"; got != want {
			t.Errorf("%s, want %s; the log: %s", got, want, s.book)
		}
	})
}

// refusedAndFailed asks two questions, reads only the second answer, and fails. In the test
// below, the user declines the first question.
func refusedAndFailed(a *elicit.Asker) error {
	elicit.Form[confirm](a, "confirm", "Delete everything?")
	if _, err := elicit.Form[value](a, "why", "Why?").Value(); err != nil {
		return err
	}
	return errors.New("the disk is full")
}

// TestARefusalThatNobodyReadFailsAHandlerThatGoesOnAfterAnErrorOfWithin checks that a call fails if
// Within failed, a refusal was not read, and the handler still returns a result. The handler may
// have acted against the refusal.
func TestARefusalThatNobodyReadFailsAHandlerThatGoesOnAfterAnErrorOfWithin(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		addPlain := func(name string, stops bool, ask func(*elicit.Asker) error) {
			s.Server().AddTool(&mcp.Tool{Name: name, InputSchema: anyObject}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				pending, err := elicit.Within(ctx, req, ask)
				if pending != nil {
					return pending.ToolResult(), nil
				}
				if stops {
					return nil, err
				}
				return done("deleted"), nil
			})
		}
		addPlain("goes on", false, refusedAndFailed)
		addPlain("stops", true, refusedAndFailed)
		addPlain("reads", false, func(a *elicit.Asker) error {
			_, err := elicit.Form[confirm](a, "confirm", "Delete everything?").Value()
			return err
		})
		mcp.AddTool(s.Server(), &mcp.Tool{Name: "a typed tool stops"}, func(ctx context.Context, req *mcp.CallToolRequest, _ args) (*mcp.CallToolResult, result, error) {
			pending, err := elicit.Within(ctx, req, refusedAndFailed)
			return pending.ToolResult(), result{}, err
		})
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "elicit's reads later"}, func(ctx context.Context, a *elicit.Asker, _ args) (result, error) {
			var answer *elicit.Answer[confirm]
			elicit.Within(ctx, a.Request(), func(a *elicit.Asker) error {
				answer = elicit.Form[confirm](a, "confirm", "Delete everything?")
				return errors.Join(refusedAndFailed(a))
			})
			_, _, err := answer.Outcome()
			return result{"kept"}, err
		})
		s.Server().AddPrompt(&mcp.Prompt{Name: "p"}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			if pending, _ := elicit.Within(ctx, req, refusedAndFailed); pending != nil {
				return pending.PromptResult(), nil
			}
			return &mcp.GetPromptResult{}, nil
		})
		s.Server().AddResource(&mcp.Resource{URI: "file:///a", Name: "a"}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			if pending, _ := elicit.Within(ctx, req, refusedAndFailed); pending != nil {
				return pending.ResourceResult(), nil
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI}}}, nil
		})
		u := reply(map[string]*mcp.ElicitResult{"Delete everything?": {Action: "decline"}})
		session := connect(t, s.Server(), u.options(false), revision)
		check := func(name, got, want string, logged bool) {
			t.Helper()
			const unread = "the question confirm was declined or cancelled, and nobody read its answer"
			if !strings.Contains(got, want) || strings.Contains(s.book.String(), unread) != logged {
				t.Errorf("%s: %s, want %s; the log: %s", name, got, want, s.book)
			}
			s.book.clear()
		}
		for _, c := range []struct {
			tool, want string
			logged     bool
		}{
			{"goes on", internal, true},
			{"stops", "the disk is full", false},
			{"a typed tool stops", "ERROR the disk is full", false},
			{"reads", "deleted", false},
			{"elicit's reads later", `{"done":"kept"}`, false},
		} {
			check(c.tool, text(call(t, session, &mcp.CallToolParams{Name: c.tool})), c.want, c.logged)
		}
		_, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"})
		check("a prompt", text(&mcp.CallToolResult{}, err), internal, true)
		_, err = session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///a"})
		check("a resource", text(&mcp.CallToolResult{}, err), internal, true)
	})
}
