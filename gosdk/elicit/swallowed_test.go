package elicit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
)

type sure struct {
	OK bool `json:"ok"`
}

type dirs struct {
	Dirs []string `json:"dirs"`
	Text string   `json:"text,omitempty"`
}

const internalText = `{"code":-32603,"message":"Internal error"}`

// If an answer does not fit, Within returns an error. The call fails even if the handler ignores
// this error, because the handler may have acted without the answer.
func TestAnAnswerThatDoesNotFitFailsAHandlerThatGoesOn(t *testing.T) {
	s := newService(t, nil)
	ask := func(a *elicit.Asker) error { _, err := elicit.Form[sure](a, "c", "Sure?").Value(); return err }
	mcp.AddTool(s.Server(), &mcp.Tool{Name: "goes on"}, func(ctx context.Context, req *mcp.CallToolRequest, in dirs) (*mcp.CallToolResult, any, error) {
		if p, _ := elicit.Within(ctx, req, ask); p != nil {
			return p.ToolResult(), nil, nil
		}
		return nil, "acted", nil
	})
	mcp.AddTool(s.Server(), &mcp.Tool{Name: "stops"}, func(ctx context.Context, req *mcp.CallToolRequest, in dirs) (*mcp.CallToolResult, any, error) {
		p, err := elicit.Within(ctx, req, ask)
		if p != nil {
			return p.ToolResult(), nil, nil
		}
		return nil, "acted", err
	})
	c := connect(t, s.Server(), (&user{}).options(true), revision2026)
	for tool, want := range map[string]string{"goes on": internalText, "stops": "does not fit"} {
		asked, err := call(t, c, &mcp.CallToolParams{Name: tool, Arguments: dirs{Dirs: []string{}}})
		if err != nil {
			t.Fatal(err)
		}
		got := text(call(t, c, &mcp.CallToolParams{Name: tool, Arguments: dirs{Dirs: []string{}}, RequestState: asked.RequestState,
			InputResponses: mcp.InputResponseMap{"c": accept(map[string]any{"ok": "x"})}}))
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s", tool, got)
		}
	}
}

func TestAMistakeFailsTheCallOfAHandlerThatGoesOn(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		mcp.AddTool(s.Server(), &mcp.Tool{Name: "x"}, func(ctx context.Context, req *mcp.CallToolRequest, in dirs) (*mcp.CallToolResult, any, error) {
			var done []string
			for _, dir := range in.Dirs {
				p, err := elicit.Within(ctx, req, func(a *elicit.Asker) error {
					_, err := elicit.Form[sure](a, "c", "Delete?").Value()
					return err
				})
				if p != nil {
					return p.ToolResult(), nil, nil
				}
				done = append(done, fmt.Sprint(dir, err))
			}
			return nil, strings.Join(done, ", "), nil
		})
		u := &user{answer: func(string, *mcp.ElicitParams) *mcp.ElicitResult { return accept(map[string]any{"ok": true}) }}
		c := connect(t, s.Server(), u.options(false), revision)
		if got := text(call(t, c, &mcp.CallToolParams{Name: "x", Arguments: dirs{Dirs: []string{"a", "b"}}})); got != internalText {
			t.Errorf("got %s", got)
		}
	})
}

func TestAPanicInWithinFailsTheCallOfAHandlerThatRecovers(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		mcp.AddTool(s.Server(), &mcp.Tool{Name: "x"}, func(ctx context.Context, req *mcp.CallToolRequest, in dirs) (*mcp.CallToolResult, any, error) {
			func() {
				defer func() { recover() }()
				elicit.Within(ctx, req, func(a *elicit.Asker) error {
					if _, err := elicit.Form[sure](a, "c", "Sure?").Value(); err != nil {
						panic(err)
					}
					return nil
				})
			}()
			return nil, "acted", nil
		})
		c := connect(t, s.Server(), (&user{}).options(false), revision)
		if got := text(call(t, c, &mcp.CallToolParams{Name: "x", Arguments: dirs{Dirs: []string{}}})); got != internalText {
			t.Errorf("got %s", got)
		}
	})
}

// A client can put any text into its arguments, and so into the error of a tool that quotes
// them. Such a text must not pass for the error of a pending answer.
func TestAnErrorThatQuotesAClientIsNotTakenForAPendingAnswer(t *testing.T) {
	s := newService(t, nil)
	mcp.AddTool(s.Server(), &mcp.Tool{Name: "open"}, func(_ context.Context, _ *mcp.CallToolRequest, in dirs) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("no such file: " + in.Text)
	})
	c := connect(t, s.Server(), (&user{}).options(false), revision2026)
	got := text(call(t, c, &mcp.CallToolParams{Name: "open", Arguments: map[string]any{"dirs": []string{}, "text": "elicit: not answered yet"}}))
	if !strings.Contains(got, "no such file") || strings.Contains(s.book.String(), "ERROR") {
		t.Errorf("got %s, the log: %s", got, s.book)
	}
}

func TestAnUnsolicitedDeclineHasNoContent(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		gosdk.Protect(server, newService(t, nil).Boundary(), &gosdk.Options{Unsolicited: []string{"x"}})
		mcp.AddTool(server, &mcp.Tool{Name: "x"}, func(_ context.Context, req *mcp.CallToolRequest, in dirs) (*mcp.CallToolResult, any, error) {
			answer, _ := req.Params.InputResponses["c"].(*mcp.ElicitResult)
			return nil, fmt.Sprint(answer.Action, len(answer.Content)), nil
		})
		c := connect(t, server, (&user{}).options(true), revision)
		got := text(call(t, c, &mcp.CallToolParams{Name: "x", Arguments: dirs{Dirs: []string{}},
			InputResponses: mcp.InputResponseMap{"c": &mcp.ElicitResult{Action: "decline", Content: map[string]any{"ok": true}}}}))
		if got != `"decline0"` && got != "decline0" {
			t.Errorf("got %s", got)
		}
	})
}

func TestAnErrorThatQuotesAClientAfterWithinIsNotTakenForAPendingAnswer(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		runs := 0
		mcp.AddTool(s.Server(), &mcp.Tool{Name: "open"}, func(ctx context.Context, req *mcp.CallToolRequest, in dirs) (*mcp.CallToolResult, any, error) {
			if runs++; runs == 4 { // the second run of the second call
				return nil, nil, errors.New("no such file any more: " + in.Text)
			}
			p, err := elicit.Within(ctx, req, func(a *elicit.Asker) error { _, err := elicit.Form[sure](a, "c", "Sure?").Value(); return err })
			if p != nil || err != nil {
				return p.ToolResult(), nil, err
			}
			return nil, nil, errors.New("no such file: " + in.Text)
		})
		u := &user{answer: func(string, *mcp.ElicitParams) *mcp.ElicitResult { return accept(map[string]any{"ok": true}) }}
		c := connect(t, s.Server(), u.options(false), revision)
		for _, want := range []string{"no such file:", "no such file any more:"} {
			got := text(call(t, c, &mcp.CallToolParams{Name: "open", Arguments: map[string]any{"dirs": []string{}, "text": "elicit: not answered yet"}}))
			if !strings.Contains(got, want) || strings.Contains(s.book.String(), "ERROR") {
				t.Errorf("got %s, the log: %s", got, s.book)
			}
		}
	})
}

// If the questions cannot be sent, Within returns an error. The call fails even if the handler
// ignores this error, because the user was not asked.
func TestQuestionsThatCannotBeSentFailAHandlerThatGoesOn(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		for name, c := range map[string]struct {
			change  func(*tripseal.Config)
			options *mcp.ClientOptions
		}{
			"a client that cannot answer": {nil, nil},
			"a state that is too long":    {func(c *tripseal.Config) { c.MaxState = 8 }, (&user{}).options(false)},
		} {
			s := newService(t, c.change)
			leaked := errors.New("")
			add := func(name string, after func(error) error) {
				s.Server().AddTool(&mcp.Tool{Name: name, InputSchema: anyObject}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					p, err := elicit.Within(ctx, req, func(a *elicit.Asker) error { leaked = askConfirm(a); return leaked })
					if p != nil {
						return p.ToolResult(), nil
					}
					return done("acted"), after(err)
				})
			}
			add("goes on", func(error) error { return nil })
			add("quotes", func(error) error { return errors.New(leaked.Error()) })
			session := connect(t, s.Server(), c.options, revision)
			for _, tool := range []string{"goes on", "quotes"} {
				got := text(call(t, session, &mcp.CallToolParams{Name: tool}))
				if !strings.HasPrefix(got, `{"code":-32`) || strings.Contains(got, "not answered yet") {
					t.Errorf("%s, %s: got %s, the log: %s", name, tool, got, s.book)
				}
			}
		}
	})
}
