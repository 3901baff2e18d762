package elicit_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal/gosdk/elicit"
)

// TestARefusalThatNobodyReadFailsTheCall: the user said no, or said nothing, and the
// handler went on as if it had not asked.
func TestARefusalThatNobodyReadFailsTheCall(t *testing.T) {
	runs := 0
	const question = "Delete everything?"
	ask := func(ask *elicit.Asker) *elicit.Answer[confirm] { return elicit.Form[confirm](ask, "confirm", question) }
	why := func(ask *elicit.Asker, key string) error {
		_, err := elicit.Form[value](ask, key, "Why "+key+"?").Value()
		return err
	}
	const unread = "the question confirm was declined or cancelled, and nobody read its answer"
	for name, c := range map[string]struct {
		handler func(*elicit.Asker) error
		want    string // if the user refuses; "" for the author's mistake
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
			if runs++; runs%2 == 1 { // the first of two
				ask(a)
			}
			_, err := answer.Value()
			return err
		}, `{"done":"deleted"}`},
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

// TestARefusalThatNobodyReadFailsAPromptAndAResource: they complete without an error too.
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

// TestAMisfitIsNotTakenForARefusalThatNobodyRead: after a misfit nothing can be read.
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
