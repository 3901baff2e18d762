package elicit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk/elicit"
)

func TestAnotherSchemaIsAnotherQuestion(t *testing.T) {
	s := newService(t, nil)
	sizes := []string{"S", "M"}
	prompt := "a poem"
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		v, err := elicit.Form[value](ask, "size", "Size?", elicit.Enum("value", sizes...)).Value()
		if err != nil {
			return result{}, err
		}
		params := &mcp.CreateMessageParams{MaxTokens: 1, SystemPrompt: prompt}
		if _, err := elicit.Sample(ask, "poem", params).Value(); err != nil {
			return result{}, err
		}
		return result{v.Value}, nil
	})
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	first := round(t, session, "t", nil, nil)
	sizes = []string{"S", "M", "L"}
	second := round(t, session, "t", first, answers("size", "M"))
	if got := text(second, nil); got != "ASKS [size]" {
		t.Fatalf("another choice: %s", got)
	}
	third := round(t, session, "t", second, answers("size", "M"))
	prompt = "a limerick"
	sample := mcp.InputResponseMap{"poem": &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", Content: []mcp.Content{&mcp.TextContent{Text: "x"}}}}
	fourth := round(t, session, "t", third, sample)
	if got := text(third, nil) + ", " + text(fourth, nil); got != "ASKS [poem], ASKS [poem]" {
		t.Fatalf("another prompt: %s", got)
	}
	if got := text(round(t, session, "t", fourth, sample), nil); got != `{"done":"M"}` {
		t.Error(got)
	}
}

func TestUndeclaredKindsAreRefusedWhicheverRevision(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		for kind, ask := range map[string]func(*elicit.Asker) error{
			"form": func(a *elicit.Asker) error { _, err := elicit.Form[value](a, "k", "?").Value(); return err },
			"url": func(a *elicit.Asker) error {
				_, err := elicit.URL(a, "k", "?", "https://x.example").Value()
				return err
			},
			"sample": func(a *elicit.Asker) error {
				_, err := elicit.Sample(a, "k", &mcp.CreateMessageParams{}).Value()
				return err
			},
			"tools": func(a *elicit.Asker) error {
				_, err := elicit.SampleWithTools(a, "k", &mcp.CreateMessageWithToolsParams{Tools: []*mcp.Tool{{Name: "x", InputSchema: map[string]any{"type": "object"}}}}).Value()
				return err
			},
			"roots": func(a *elicit.Asker) error { _, err := elicit.Roots(a, "k").Value(); return err },
		} {
			s := newService(t, nil)
			elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, a *elicit.Asker, _ args) (result, error) { return result{}, ask(a) })
			none := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
			if got := text(call(t, connect(t, s.Server(), none, revision), &mcp.CallToolParams{Name: "t"})); !strings.Contains(got, "-32021") {
				t.Errorf("%s: %s", kind, got)
			}
		}
	})
}

// TestNothingOfAnOlderClientsAnswerIsRepeated checks that neither the error nor the log repeats
// an answer that does not fit. The SDK checks the answers of older clients before elicit does, and
// the SDK's own error repeats them. (A newer client checks its answers itself.)
func TestNothingOfAnOlderClientsAnswerIsRepeated(t *testing.T) {
	for _, revision := range []string{revision2025} {
		s := newService(t, nil)
		type age struct {
			Years int `json:"years"`
		}
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			if _, err := elicit.Form[value](ask, "first", "First?").Value(); err != nil {
				return result{}, err
			}
			_, err := elicit.Form[age](ask, "age", "Age?").Value()
			return result{}, err
		})
		for _, where := range []string{"First?", "Age?"} { // the SDK asks the first question, and gosdk the second
			u := reply(map[string]*mcp.ElicitResult{where: accept(map[string]any{"years": "hush-hush", "value": []any{"hush"}})})
			got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"}))
			if strings.Contains(got, "hush") || !strings.Contains(got, "does not fit what was asked") {
				t.Errorf("%s: %s", where, got)
			}
		}
		if strings.Contains(s.book.String(), "hush") {
			t.Errorf("the log: %s", s.book)
		}
	}
}

func TestWhatGoesOutIsWhatWasAsked(t *testing.T) {
	s := newService(t, nil)
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		params := &mcp.CreateMessageParams{MaxTokens: 1, SystemPrompt: "one"}
		a := elicit.Sample(ask, "a", params)
		params.SystemPrompt = "two"
		elicit.Sample(ask, "b", params)
		_, err := a.Value()
		return result{}, err
	})
	got := text(call(t, connect(t, s.Server(), reply(nil).options(true), revision2026), &mcp.CallToolParams{Name: "t"}))
	if got != internal || !strings.Contains(s.book.String(), "was changed after it was asked") {
		t.Errorf("%s; the log: %s", got, s.book)
	}
}

func TestOnceIsOnce(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		computed, texts := 0, map[string]bool{}
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			now, err := elicit.Once(ask, "elicitation go", func() (time.Time, error) { computed++; return time.Now(), nil })
			if err != nil {
				return result{}, err
			}
			texts[fmt.Sprint(now)] = true
			for i := range 3 {
				if _, err := elicit.Form[value](ask, fmt.Sprint("q", i), fmt.Sprint("At ", now, "?")).Value(); err != nil {
					return result{}, err
				}
			}
			if _, err := elicit.URL(ask, "go", "Go", "https://x.example").Value(); err != nil {
				return result{}, err
			}
			_, err = elicit.Once(ask, "fails", func() (int, error) { return 0, errors.New("away") })
			return result{}, err
		})
		u := reply(nil)
		got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"}))
		if got != "ERROR away" || computed != 1 || len(texts) != 1 || len(u.messages()) != 4 {
			t.Errorf("%s; computed %d times, %d texts, asked %d times; the log: %s", got, computed, len(texts), len(u.messages()), s.book)
		}
	})
}

type embedded struct {
	X bool `json:"x"`
}

type shouting string

func (s *shouting) UnmarshalJSON([]byte) error { return errors.New("no") }

func TestFormsThatCannotTakeAnAnswerAreRefused(t *testing.T) {
	for name, err := range map[string]error{
		"embedded under a name": elicit.CheckForm[struct {
			embedded `json:"inner"`
		}](),
		"nothing":         elicit.CheckForm[struct{}](),
		"only unexported": elicit.CheckForm[struct{ x int }](),
		"as a string": elicit.CheckForm[struct {
			N int `json:"n,string"`
		}](),
		"its own way": elicit.CheckForm[struct{ S shouting }](),
	} {
		if err == nil {
			t.Errorf("%s is not noticed", name)
		}
	}
	for name, err := range map[string]error{
		"embedded": elicit.CheckForm[struct{ embedded }](),
		"time":     elicit.CheckForm[struct{ At time.Time }](),
		"pointer":  elicit.CheckForm[struct{ N *int8 }](),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFormatsAreChecked(t *testing.T) {
	for format, texts := range map[string][]string{
		"email": {"a@b.example", "not an email"}, "date": {"2026-01-31", "2026-02-31"},
		"uri":       {"https://x.example/a", "/a", "mailto:a b", "http://a/\u202e", "http://a/\n"},
		"date-time": {"2026-01-02T03:04:05Z", "2026-01-02", "2026-01-02T3:04:05Z", "2026-01-02T03:04:05,5Z"},
	} {
		s := newService(t, nil)
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			v, err := elicit.Form[value](ask, "k", "?", elicit.TextFormat("value", format)).Value()
			return result{v.Value}, err
		})
		session := connect(t, s.Server(), reply(nil).options(true), revision2026)
		asked := round(t, session, "t", nil, nil)
		if got := text(round(t, session, "t", asked, answers("k", texts[0])), nil); strings.HasPrefix(got, "ERROR") {
			t.Errorf("%s %q: %s", format, texts[0], got)
		}
		for _, bad := range texts[1:] {
			if got := text(round(t, session, "t", asked, answers("k", bad)), nil); !strings.HasPrefix(got, "ERROR the answer") {
				t.Errorf("%s %q: %s", format, bad, got)
			}
		}
	}
}

func TestTheCallAsksWhateverTheHandlerReturns(t *testing.T) {
	s := newService(t, nil)
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		a, b := elicit.Form[value](ask, "a", "A?"), elicit.Form[value](ask, "b", "B?")
		a.Value()
		c := elicit.Form[value](ask, "c", "C?") // the handler has already tried to read the answer to question "a", so question "c" may depend on this answer
		b.Value()
		c.Value()
		return result{}, errors.New("an error of its own")
	})
	first := round(t, connect(t, s.Server(), reply(nil).options(true), revision2026), "t", nil, nil)
	if got := text(first, nil); got != "ASKS [a b]" {
		t.Error(got)
	}
}

func TestRootsThatAreNullAreAskedForAgain(t *testing.T) {
	s := newService(t, nil)
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		roots, err := elicit.Roots(ask, "r").Value()
		if err != nil {
			return result{}, err
		}
		return result{roots[0].URI}, nil
	})
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	asked := round(t, session, "t", nil, nil)
	if got := text(round(t, session, "t", asked, mcp.InputResponseMap{"r": &mcp.ListRootsResult{Roots: []*mcp.Root{nil}}}), nil); got != "ASKS [r]" {
		t.Error(got)
	}
}

// TestHowManyRoundsOneCallMayHave checks the limits on the rounds of one call. The official client
// asks its user nine times and then gives up. An older client is asked up to the boundary's limit.
func TestHowManyRoundsOneCallMayHave(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		most := map[string]int{revision2026: 9, revision2025: 20}[revision]
		for _, rounds := range []int{most, most + 1} {
			s := newService(t, nil)
			elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
				for i := range rounds {
					if _, err := elicit.Form[value](ask, fmt.Sprint(i), "?").Value(); err != nil {
						return result{}, err
					}
				}
				return result{"done"}, nil
			})
			u := reply(nil)
			got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"}))
			if done := got == `{"done":"done"}`; done != (rounds == most) || len(u.messages()) != most {
				t.Errorf("%d rounds: %s, asked %d times", rounds, got, len(u.messages()))
			}
		}
	})
}

// TestAnAnswerThatFailsAPromptOrAResourceHasACode checks that the error has a code if an answer
// makes a prompt or a resource fail. Prompts and resources have no tool errors, and without a
// code the SDK would send code 0.
func TestAnAnswerThatFailsAPromptOrAResourceHasACode(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		failing := func(ask *elicit.Asker) error {
			_, err := elicit.Form[value](ask, "name", "Name?").Value()
			var refused *elicit.RefusedError
			if errors.As(err, &refused) && refused.Action == elicit.Cancel {
				return fmt.Errorf("no name: %w", err)
			}
			if err == nil {
				return &jsonrpc.Error{Code: -32001, Message: "away"}
			}
			return err
		}
		elicit.AddPrompt(s.Protected, &mcp.Prompt{Name: "p"}, func(_ context.Context, ask *elicit.Asker, _ *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return nil, failing(ask)
		})
		read := func(_ context.Context, ask *elicit.Asker, _ *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, failing(ask)
		}
		elicit.AddResource(s.Protected, &mcp.Resource{Name: "r", URI: "file:///r"}, read)
		elicit.AddResourceTemplate(s.Protected, &mcp.ResourceTemplate{Name: "t", URITemplate: "file:///t/{x}"}, read)
		raw := revision == revision2026 // the official client of this revision checks answers itself, so they are sent by hand
		for _, c := range []struct {
			answer *mcp.ElicitResult
			want   string
		}{
			{&mcp.ElicitResult{Action: "decline"}, `{"code":-32602,"message":"the question name was declined"}`},
			{&mcp.ElicitResult{Action: "cancel"}, `{"code":-32602,"message":"no name: the question name was cancelled"}`},
			{accept(nil), `{"code":-32602,"message":"the answer to the question name does not fit what was asked"}`},
			{accept(map[string]any{"value": "x"}), `{"code":-32001,"message":"away"}`},
		} {
			session := connect(t, s.Server(), reply(map[string]*mcp.ElicitResult{"Name?": c.answer}).options(raw), revision)
			prompt := &mcp.GetPromptParams{Name: "p"}
			asked, err := session.GetPrompt(t.Context(), prompt)
			if raw && err == nil {
				prompt.RequestState, prompt.InputResponses = asked.RequestState, mcp.InputResponseMap{"name": c.answer}
				_, err = session.GetPrompt(t.Context(), prompt)
			}
			if got := text(nil, err); got != c.want {
				t.Errorf("a prompt: %s, want %s", got, c.want)
			}
			for _, uri := range []string{"file:///r", "file:///t/x"} {
				resource := &mcp.ReadResourceParams{URI: uri}
				asked, err := session.ReadResource(t.Context(), resource)
				if raw && err == nil {
					resource.RequestState, resource.InputResponses = asked.RequestState, mcp.InputResponseMap{"name": c.answer}
					_, err = session.ReadResource(t.Context(), resource)
				}
				if got := text(nil, err); got != c.want {
					t.Errorf("%s: %s, want %s", uri, got, c.want)
				}
			}
		}
	})
}
