package elicit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
)

type args struct {
	Dir string `json:"dir,omitempty"`
}

type result struct {
	Done string `json:"done"`
}

type confirm struct {
	OK bool `json:"ok" jsonschema:"really?"`
}

type value struct {
	Value string `json:"value"`
}

// reply returns a user who gives these answers. The keys of the map are the messages of the
// questions. The user accepts every question that is not in the map.
func reply(answers map[string]*mcp.ElicitResult) *user {
	return &user{answer: func(message string, _ *mcp.ElicitParams) *mcp.ElicitResult {
		if r, ok := answers[message]; ok {
			return r
		}
		return accept(map[string]any{"value": "to " + message, "ok": true})
	}}
}

func TestQuestionsBeforeTheFirstUnansweredValueTravelTogether(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		runs := 0
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "delete"}, func(_ context.Context, ask *elicit.Asker, in args) (result, error) {
			runs++
			c := elicit.Form[confirm](ask, "confirm", "Delete "+in.Dir+"?")
			why := elicit.Form[value](ask, "reason", "Why?")
			ok, err := c.Value()
			if err != nil {
				return result{}, err
			}
			reason, err := why.Value()
			if err != nil {
				return result{}, err
			}
			return result{fmt.Sprintf("%v because %s", ok.OK, reason.Value)}, nil
		})
		u := reply(nil)
		got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "delete", Arguments: args{"/tmp"}}))
		if got != `{"done":"true because to Why?"}` {
			t.Errorf("%s; the log: %s", got, s.book)
		}
		if runs != 2 || len(u.messages()) != 2 {
			t.Errorf("%d runs, asked %q", runs, u.messages())
		}
	})
}

func TestAChainOfFiveDependentQuestions(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "chain"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			path := "start"
			for i := range 5 {
				answer, err := elicit.Form[value](ask, fmt.Sprint("q", i), path).Value()
				if err != nil {
					return result{"not this"}, nil // the call asks, whatever the handler returns
				}
				path = fmt.Sprint(i, "<", answer.Value, ">")
			}
			return result{path}, nil
		})
		u := reply(nil)
		got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "chain"}))
		if !strings.Contains(got, "start") || len(u.messages()) != 5 {
			t.Errorf("%s after %q; the log: %s", got, u.messages(), s.book)
		}
	})
}

func TestDeclineAndCancelAreRemembered(t *testing.T) {
	for _, action := range []string{"decline", "cancel"} {
		both(t, func(t *testing.T, revision string) {
			s := newService(t, nil)
			elicit.AddTool(s.Protected, &mcp.Tool{Name: "branch"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
				did, _, err := elicit.Form[confirm](ask, "newsletter", "Newsletter?").Outcome()
				if err != nil {
					return result{}, err
				}
				name, err := elicit.Form[value](ask, "name", "Name?").Value()
				if err != nil {
					return result{}, err
				}
				place, err := elicit.Form[value](ask, "place", "Place?").Value()
				if err != nil {
					return result{}, err
				}
				return result{fmt.Sprint(did, " ", name.Value, " ", place.Value)}, nil
			})
			elicit.AddTool(s.Protected, &mcp.Tool{Name: "must"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
				_, err := elicit.Form[confirm](ask, "newsletter", "Newsletter?").Value()
				return result{"subscribed"}, err
			})
			u := reply(map[string]*mcp.ElicitResult{"Newsletter?": {Action: action}})
			session := connect(t, s.Server(), u.options(false), revision)
			if got := text(call(t, session, &mcp.CallToolParams{Name: "branch"})); got != fmt.Sprintf(`{"done":"%s to Name? to Place?"}`, action) {
				t.Errorf("%s; the log: %s", got, s.book)
			}
			if asked := u.messages(); len(asked) != 3 {
				t.Errorf("asked %q", asked)
			}
			want := "ERROR the question newsletter was " + map[string]string{"decline": "declined", "cancel": "cancelled"}[action]
			if got := text(call(t, session, &mcp.CallToolParams{Name: "must"})); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// asking is a tool that asks one question for each key in asking.order. Tests change the
// messages of the questions.
type asking struct {
	mu      sync.Mutex
	wording map[string]string // the message of each question, by its key
	order   []string
	got     []string
}

func (a *asking) handle(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var values []string
	for _, key := range a.order {
		did, v, err := elicit.Form[value](ask, key, a.wording[key]).Outcome()
		if err != nil {
			return result{}, err
		}
		values = append(values, fmt.Sprint(key, "=", did, ":", v.Value))
	}
	a.got = append(a.got, strings.Join(values, ","))
	return result{strings.Join(values, ",")}, nil
}

func answers(pairs ...string) mcp.InputResponseMap {
	m := mcp.InputResponseMap{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "decline" {
			m[pairs[i]] = &mcp.ElicitResult{Action: "decline"}
			continue
		}
		m[pairs[i]] = accept(map[string]any{"value": pairs[i+1]})
	}
	return m
}

// round sends one round of a call: the given answers, and the state of the previous result. In the
// first round, previous is nil.
func round(t *testing.T, session *mcp.ClientSession, name string, previous *mcp.CallToolResult, responses mcp.InputResponseMap) *mcp.CallToolResult {
	t.Helper()
	params := &mcp.CallToolParams{Name: name, InputResponses: responses}
	if previous != nil {
		params.RequestState = previous.RequestState
	}
	r, err := call(t, session, params)
	if err != nil {
		t.Fatal(text(r, err))
	}
	return r
}

func TestAnAnswerCountsOnlyForTheQuestionThatWasShown(t *testing.T) {
	s := newService(t, nil)
	tool := &asking{wording: map[string]string{"a": "A?", "b": "B?"}, order: []string{"a", "b"}}
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "ask"}, tool.handle)
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	check := func(r *mcp.CallToolResult, want string) {
		t.Helper()
		if got := text(r, nil); got != want {
			t.Fatalf("%s, want %s; the log: %s", got, want, s.book)
		}
	}

	// A question that is reworded while its answer is on the way is asked again.
	first := round(t, session, "ask", nil, nil)
	check(first, "ASKS [a]")
	tool.wording["a"] = "A, really?"
	second := round(t, session, "ask", first, answers("a", "old"))
	check(second, "ASKS [a]")
	if q := second.InputRequests["a"].(*mcp.ElicitParams); q.Message != "A, really?" {
		t.Errorf("asked %q", q.Message)
	}
	third := round(t, session, "ask", second, answers("a", "new"))
	check(third, "ASKS [b]")

	// A question that is reworded after its answer was recorded is asked again, and so are
	// the questions after it.
	tool.wording["a"] = "A, once more?"
	fourth := round(t, session, "ask", third, answers("b", "B1"))
	check(fourth, "ASKS [a]")
	fifth := round(t, session, "ask", fourth, answers("a", "final"))
	check(fifth, "ASKS [b]")
	last := round(t, session, "ask", fifth, answers("b", "B2"))
	check(last, `{"done":"a=accept:final,b=accept:B2"}`)

	// A decline counts only for the wording that was declined, so the reworded question is
	// asked again.
	declined := round(t, session, "ask", round(t, session, "ask", nil, nil), answers("a", "decline"))
	check(declined, "ASKS [b]")
	tool.wording["a"] = "A, please?"
	check(round(t, session, "ask", declined, answers("b", "B2")), "ASKS [a]")
}

func TestForgedGhostAndUnknownAnswersAreIgnored(t *testing.T) {
	s := newService(t, nil)
	tool := &asking{wording: map[string]string{"a": "A?", "b": "B?"}, order: []string{"a", "b"}}
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "ask"}, tool.handle)
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	// These answers come without a state, so they are ignored.
	first := round(t, session, "ask", nil, answers("a", "forged", "b", "forged"))
	if got := text(first, nil); got != "ASKS [a]" {
		t.Fatal(got)
	}
	// Only the question "a" was asked, so the other answers are ignored.
	second := round(t, session, "ask", first, answers("a", "A1", "b", "forged", "ghost", "x", "", "y"))
	if got := text(second, nil); got != "ASKS [b]" {
		t.Fatal(got)
	}
	// The answer to "b" is of another kind: it has roots, but "b" asks for a form.
	third := round(t, session, "ask", second, mcp.InputResponseMap{"b": &mcp.ListRootsResult{Roots: []*mcp.Root{{URI: "file:///"}}}})
	if got := text(third, nil); got != "ASKS [b]" {
		t.Fatal(got)
	}
	// The question "a" was answered in an earlier round, so the new answer to it is ignored.
	last := round(t, session, "ask", third, answers("a", "forged", "b", "B1"))
	if got := text(last, nil); got != `{"done":"a=accept:A1,b=accept:B1"}` {
		t.Fatal(got)
	}
	// A state that the client wrote itself is rejected.
	if got := text(call(t, session, &mcp.CallToolParams{Name: "ask", RequestState: `{"a":{"a":{"o":"accept"}}}`})); got != invalidState {
		t.Error(got)
	}
}

func TestAnAnswerThatDoesNotFit(t *testing.T) {
	s := newService(t, nil)
	type age struct {
		Years int `json:"years"`
	}
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "age"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		v, err := elicit.Form[age](ask, "age", "Age?").Value()
		if misfit := new(elicit.MisfitError); errors.As(err, &misfit) {
			return result{"swallowed"}, nil // the call fails, whatever the handler returns
		}
		return result{fmt.Sprint(v.Years)}, err
	})
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	for name, content := range map[string]map[string]any{"text": {"years": "hush"}, "fraction": {"years": 1.5}, "none": nil, "another": {"Years": 7}} {
		asked := round(t, session, "age", nil, nil)
		got := text(round(t, session, "age", asked, mcp.InputResponseMap{"age": accept(content)}), nil)
		if got != "ERROR the answer to the question age does not fit what was asked" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if strings.Contains(s.book.String(), "hush") {
		t.Errorf("the log: %s", s.book)
	}
}

func TestARecordedAnswerThatNoLongerFitsIsAskedAgain(t *testing.T) {
	s := newService(t, nil)
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		if _, err := elicit.Sample(ask, "s", &mcp.CreateMessageParams{MaxTokens: 10}).Value(); err != nil {
			return result{}, err
		}
		_, err := elicit.Form[value](ask, "b", "B?").Value()
		return result{"done"}, err
	})
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	first := round(t, session, "t", nil, nil)
	second := round(t, session, "t", first, mcp.InputResponseMap{"s": &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", Content: []mcp.Content{&mcp.TextContent{Text: "hi"}}}})
	if got := text(second, nil); got != "ASKS [b]" {
		t.Fatal(got)
	}
	// An earlier release may have recorded an answer that this release cannot read. The
	// function reseal puts such an answer into the state.
	broken := reseal(t, s, "t", second.RequestState, func(state map[string]any) {
		state["a"].(map[string]any)["s"].(map[string]any)["c"] = "not a sample"
	})
	if got := text(round(t, session, "t", &mcp.CallToolResult{RequestState: broken}, answers("b", "x")), nil); got != "ASKS [s]" {
		t.Errorf("%s; the log: %s", got, s.book)
	}
}

// reseal changes the state in a token, as somebody with the keys could.
func reseal(t testing.TB, s service, tool, token string, change func(map[string]any)) string {
	t.Helper()
	request := tripseal.Request{Method: "tools/call", Target: tool}
	r, err := s.Boundary().Open(t.Context(), request, token)
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := r.State()
	var state map[string]any
	if err := json.Unmarshal([]byte(plain), &state); err != nil {
		t.Fatal(err)
	}
	change(state)
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	questions, _ := r.Questions()
	again := string(text)
	sealed, err := s.Boundary().Seal(t.Context(), &r, &again, questions...)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestSamplesAndRoots(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			sample, err := elicit.Sample(ask, "poem", &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "a poem"}}}}).Value()
			if err != nil {
				return result{}, err
			}
			roots, err := elicit.Roots(ask, "roots").Value()
			if err != nil {
				return result{}, err
			}
			name, err := elicit.Form[value](ask, "name", "Name?").Value()
			if err != nil {
				return result{}, err
			}
			return result{sample.Content[0].(*mcp.TextContent).Text + " " + roots[0].URI + " " + name.Value}, nil
		})
		u := reply(nil)
		got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"}))
		if got != `{"done":"sample 1 file:///work to Name?"}` {
			t.Errorf("%s; asked %q; the log: %s", got, u.messages(), s.book)
		}
	})
}

func TestAURLIsConsentNotCompletion(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		tries, ids := 0, map[string]bool{}
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "connect"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			id, err := elicit.Once(ask, "connect", func() (string, error) { return fmt.Sprint("id", len(ids)), nil })
			if err != nil {
				return result{}, err
			}
			ids[id] = true
			consent := elicit.URL(ask, "sign-in", "Sign in", "https://example.com/connect/"+id)
			if _, err := consent.Value(); err != nil {
				return result{}, err
			}
			if tries++; tries < 3 {
				return result{}, consent.NotYet()
			}
			return result{"connected " + id}, nil
		})
		u := &user{answer: func(_ string, params *mcp.ElicitParams) *mcp.ElicitResult {
			if params.URL != "https://example.com/connect/id0" || params.ElicitationID == "" {
				t.Errorf("asked to open %q as %q", params.URL, params.ElicitationID)
			}
			return &mcp.ElicitResult{Action: "accept"}
		}}
		got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "connect"}))
		if got != `{"done":"connected id0"}` || len(u.messages()) != 3 || len(ids) != 1 {
			t.Errorf("%s after %d times, ids %v; the log: %s", got, len(u.messages()), ids, s.book)
		}
	})
}

func TestWhatTheClientDidNotDeclareIsRefused(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			_, err := elicit.Roots(ask, "roots").Value()
			return result{}, err
		})
		options := reply(nil).options(false)
		options.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}
		options.CreateMessageWithToolsHandler = nil
		got := text(call(t, connect(t, s.Server(), options, revision), &mcp.CallToolParams{Name: "t"}))
		if !strings.Contains(got, `-32021`) {
			t.Errorf("%s", got)
		}
	})
}

func TestMistakesOfTheAuthor(t *testing.T) {
	type nested struct {
		Where struct{ X int } `json:"where"`
	}
	type list struct {
		Names []string `json:"names"`
	}
	count := 0
	for name, c := range map[string]struct {
		handler elicit.ToolHandler[args, result]
		log     string
	}{
		"two questions, one key": {func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			a := elicit.Form[value](ask, "k", "One?")
			elicit.Form[value](ask, "k", "Two?")
			_, err := a.Value()
			return result{}, err
		}, "two different questions"},
		"nested": {func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			_, err := elicit.Form[nested](ask, "k", "?").Value()
			return result{}, err
		}, "the field where is an object"},
		"slice": {func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			_, err := elicit.Form[list](ask, "k", "?").Value()
			return result{}, err
		}, "the field names is a slice"},
		"nil sample": {func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			_, err := elicit.Sample(ask, "k", nil).Value()
			return result{}, err
		}, "is nil, has a nil message"},
		"a clock in the text": {func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			count++
			_, err := elicit.Form[value](ask, "k", fmt.Sprint("Now it is ", count)).Value()
			return result{}, err
		}, "reads differently every time"},
		"once of a function": {func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			_, err := elicit.Once(ask, "k", func() (func(), error) { return func() {}, nil })
			return result{}, err
		}, "cannot be written as JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, revision string) {
				s := newService(t, nil)
				elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, c.handler)
				u := reply(nil)
				got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"}))
				if got != internal || !strings.Contains(s.book.String(), c.log) {
					t.Errorf("%s; the log: %s", got, s.book)
				}
				if len(u.messages()) > 4 {
					t.Errorf("asked %d times", len(u.messages()))
				}
			})
		})
	}
	if elicit.CheckForm[nested]() == nil || elicit.CheckForm[list]() == nil || elicit.CheckForm[int]() == nil {
		t.Error("a form that cannot be is not noticed at start-up")
	}
	for name, err := range map[string]error{
		"enum for a number": elicit.CheckForm[struct{ N int }](elicit.Enum("N", "x")),
		"no such field":     elicit.CheckForm[value](elicit.Enum("valu", "x")),
		"no values":         elicit.CheckForm[value](elicit.Enum("value")),
		"unknown format":    elicit.CheckForm[value](elicit.TextFormat("value", "phone")),
	} {
		if err == nil {
			t.Errorf("%s is not noticed", name)
		}
	}
	if err := elicit.CheckForm[list](elicit.Enum("names", "a", "b")); err != nil {
		t.Errorf("a choice: %v", err)
	}
}

func TestFormsAreWhatElicitationAllows(t *testing.T) {
	type everything struct {
		Name    string   `json:"name" jsonschema:"your name"`
		Mail    *string  `json:"mail,omitempty"`
		Age     uint8    `json:"age"`
		Rate    float64  `json:"rate,omitempty"`
		OK      *bool    `json:"ok,omitempty"`
		Size    string   `json:"size"`
		Toppers []string `json:"toppers,omitempty"`
	}
	s := newService(t, nil)
	options := []elicit.FormOption{elicit.TextFormat("mail", "email"), elicit.Enum("size", "S", "M"), elicit.Enum("toppers", "olives", "ham")}
	var got everything
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (r result, err error) {
		got, err = elicit.Form[everything](ask, "order", "Order", options...).Value()
		return r, err
	})
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	asked := round(t, session, "t", nil, nil)
	schema, _ := json.Marshal(asked.InputRequests["order"].(*mcp.ElicitParams).RequestedSchema)
	if strings.Contains(string(schema), "null") || strings.Contains(string(schema), "additionalProperties") {
		t.Errorf("the schema is %s", schema)
	}
	for _, want := range []string{`"format":"email"`, `"enum":["S","M"]`, `"enum":["olives","ham"]`, `"your name"`, `"required":["name","age","size"]`} {
		if !strings.Contains(string(schema), want) {
			t.Errorf("%s is not in %s", want, schema)
		}
	}
	content := map[string]any{"name": "n", "mail": "a@b.c", "age": 7, "ok": true, "size": "M", "toppers": []any{"ham"}, "Extra": 1}
	if r := round(t, session, "t", asked, mcp.InputResponseMap{"order": accept(content)}); r.IsError {
		t.Fatal(text(r, nil))
	}
	if got.Name != "n" || *got.Mail != "a@b.c" || got.Age != 7 || !*got.OK || got.Size != "M" || len(got.Toppers) != 1 {
		t.Errorf("%+v", got)
	}
	for field, bad := range map[string]any{"size": "XL", "age": -1, "toppers": []any{"glass"}, "name": nil, "ok": "yes"} {
		wrong := maps.Clone(content)
		wrong[field] = bad
		r := round(t, session, "t", round(t, session, "t", nil, nil), mcp.InputResponseMap{"order": accept(wrong)})
		if again := bad == nil; r.IsError == again || r.NeedsInput() != again {
			t.Errorf("%s = %v: error %v, asks again %v", field, bad, r.IsError, r.NeedsInput())
		}
	}
}

func TestAPanicIsAnInternalError(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			if _, err := elicit.Form[value](ask, "k", "?").Value(); err != nil {
				return result{}, err
			}
			panic("hush")
		})
		session := connect(t, s.Server(), reply(nil).options(false), revision)
		if got := text(call(t, session, &mcp.CallToolParams{Name: "t"})); got != internal {
			t.Errorf("%s", got)
		}
		if log := s.book.String(); !strings.Contains(log, "panic of type string") || !strings.Contains(log, "elicit_test.go") || strings.Contains(log, "hush") {
			t.Errorf("the log: %s", log)
		}
	})
}

func TestAStateThatIsTooLargeSaysSo(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, func(c *tripseal.Config) { c.MaxState = 500 })
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			if _, err := elicit.Form[value](ask, "a", "A?").Value(); err != nil {
				return result{}, err
			}
			_, err := elicit.Form[value](ask, "b", "B?").Value()
			return result{}, err
		})
		u := reply(map[string]*mcp.ElicitResult{"A?": accept(map[string]any{"value": strings.Repeat("x", 600)})})
		got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"}))
		if got != internal || !strings.Contains(s.book.String(), "MaxState is 500") || strings.Contains(s.book.String(), "xxx") {
			t.Errorf("%s; the log: %s", got, s.book)
		}
	})
}

func TestConcurrentCallsDoNotMix(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, in args) (result, error) {
			a, err := elicit.Form[value](ask, "k", "For "+in.Dir+"?").Value()
			if err != nil {
				return result{}, err
			}
			b, err := elicit.Form[value](ask, "k2", "And "+in.Dir+"?").Value()
			return result{in.Dir + " " + a.Value + " " + b.Value}, err
		})
		session := connect(t, s.Server(), reply(nil).options(false), revision)
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				dir := fmt.Sprint("d", i)
				got := text(call(t, session, &mcp.CallToolParams{Name: "t", Arguments: args{dir}}))
				if want := fmt.Sprintf(`{"done":"%s to For %s? to And %s?"}`, dir, dir, dir); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			})
		}
		group.Wait()
	})
}

func TestPromptsAndResourcesCanAsk(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		name := func(ask *elicit.Asker) (string, error) {
			v, err := elicit.Form[value](ask, "name", "Name?").Value()
			return v.Value, err
		}
		elicit.AddPrompt(s.Protected, &mcp.Prompt{Name: "p"}, func(_ context.Context, ask *elicit.Asker, _ *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			n, err := name(ask)
			return &mcp.GetPromptResult{Description: n}, err
		})
		read := func(_ context.Context, ask *elicit.Asker, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			n, err := name(ask)
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: n}}}, err
		}
		elicit.AddResource(s.Protected, &mcp.Resource{URI: "file:///a", Name: "a"}, read)
		elicit.AddResourceTemplate(s.Protected, &mcp.ResourceTemplate{URITemplate: "db:///{id}", Name: "b"}, read)
		session := connect(t, s.Server(), reply(nil).options(false), revision)
		if p, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"}); err != nil || p.Description != "to Name?" {
			t.Errorf("%v, %v; the log: %s", p, err, s.book)
		}
		for _, uri := range []string{"file:///a", "db:///7"} {
			if r, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil || r.Contents[0].Text != "to Name?" {
				t.Errorf("%s: %v, %v; the log: %s", uri, r, err, s.book)
			}
		}
	})
}

// TestWithoutTheMiddlewareACallFails removes the mark of the middleware from the context of a
// call, or replaces it with the mark of another server's middleware.
func TestWithoutTheMiddlewareACallFails(t *testing.T) {
	other := newService(t, nil)
	var foreign context.Context
	elicit.AddTool(other.Protected, &mcp.Tool{Name: "t"}, func(ctx context.Context, _ *elicit.Asker, _ args) (result, error) {
		foreign = context.WithoutCancel(ctx)
		return result{}, nil
	})
	if got := text(call(t, connect(t, other.Server(), nil, revision2026), &mcp.CallToolParams{Name: "t"})); foreign == nil {
		t.Fatal(got)
	}
	for name, instead := range map[string]context.Context{"missing": context.Background(), "another boundary's": foreign} {
		server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "tools/call" {
					ctx = instead
				}
				return next(ctx, method, req)
			}
		})
		b := &book{}
		protected := gosdk.Protect(server, other.Boundary(), &gosdk.Options{Logger: slog.New(slog.NewTextHandler(b, nil))})
		ran := false
		elicit.AddTool(protected, &mcp.Tool{Name: "t"}, func(context.Context, *elicit.Asker, args) (result, error) {
			ran = true
			return result{}, nil
		})
		got := text(call(t, connect(t, server, nil, revision2026), &mcp.CallToolParams{Name: "t"}))
		if got != internal || ran || !strings.Contains(b.String(), "gosdk.Protect") {
			t.Errorf("%s: %s, ran %v; the log: %s", name, got, ran, b)
		}
	}
	for name, register := range map[string]func(){
		"nil": func() {
			elicit.AddTool(nil, &mcp.Tool{Name: "t"}, func(context.Context, *elicit.Asker, args) (result, error) { return result{}, nil })
		},
		"none": func() { elicit.AddPrompt(new(gosdk.Protected), &mcp.Prompt{Name: "p"}, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: registered without protection", name)
				}
			}()
			register()
		}()
	}
}

func TestTheSameQuestionTwiceSharesItsAnswer(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			a, err := elicit.Form[value](ask, "k", "?").Value()
			if err != nil {
				return result{}, err
			}
			b, err := elicit.Form[value](ask, "k", "?").Value()
			return result{fmt.Sprint(a == b)}, err
		})
		u := reply(nil)
		if got := text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"})); got != `{"done":"true"}` || len(u.messages()) != 1 {
			t.Errorf("%s after %d questions", got, len(u.messages()))
		}
	})
}

func TestAQuestionThatIsNotReadIsNotAsked(t *testing.T) {
	s := newService(t, nil)
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		elicit.Form[value](ask, "k", "?")
		return result{"done"}, nil
	})
	u := reply(nil)
	if got := text(call(t, connect(t, s.Server(), u.options(false), revision2026), &mcp.CallToolParams{Name: "t"})); got != `{"done":"done"}` || len(u.messages()) != 0 {
		t.Errorf("%s after %d questions", got, len(u.messages()))
	}
}

func TestAHandwrittenStateOfAnEarlierReleaseIsNoState(t *testing.T) {
	s := newService(t, nil)
	tool := &asking{wording: map[string]string{"a": "A?"}, order: []string{"a"}}
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "ask"}, tool.handle)
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	r, err := s.Boundary().Open(t.Context(), tripseal.Request{Method: "tools/call", Target: "ask"}, "")
	if err != nil {
		t.Fatal(err)
	}
	state := "step=1"
	token, err := s.Boundary().Seal(t.Context(), &r, &state, tripseal.Question{Key: "a", Kind: tripseal.KindForm})
	if err != nil {
		t.Fatal(err)
	}
	if got := text(round(t, session, "ask", &mcp.CallToolResult{RequestState: token}, answers("a", "x")), nil); got != "ASKS [a]" {
		t.Errorf("%s", got)
	}
}

// TestAnotherURLHasAnotherElicitationID checks that a question gets a new id when its URL changes.
// A client may ignore an id that it has seen before, and then would not open the URL.
func TestAnotherURLHasAnotherElicitationID(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		var urls, ids []string
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			page := []string{"one", "two", "two"}[min(len(urls), 2)]
			consent := elicit.URL(ask, "open", "Open?", "https://example.com/"+page)
			if _, err := consent.Value(); err != nil {
				return result{}, err
			}
			if len(urls) < 3 {
				return result{}, consent.NotYet()
			}
			_, err := elicit.URL(ask, "open too", "Open too?", "https://example.com/"+page).Value()
			return result{"done"}, err
		})
		u := &user{answer: func(_ string, params *mcp.ElicitParams) *mcp.ElicitResult {
			urls, ids = append(urls, params.URL), append(ids, params.ElicitationID)
			return &mcp.ElicitResult{Action: "accept"}
		}}
		session := connect(t, s.Server(), u.options(false), revision)
		got := text(call(t, session, &mcp.CallToolParams{Name: "t"}))
		if got != `{"done":"done"}` || len(ids) != 4 || urls[1] != urls[2] || ids[0] == ids[1] || ids[1] != ids[2] || ids[2] == ids[3] {
			t.Fatalf("%s; the ids %q of %q; the log: %s", got, ids, urls, s.book)
		}
		before := ids
		urls, ids = nil, nil
		call(t, session, &mcp.CallToolParams{Name: "t"})
		if slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(before, id) }) {
			t.Errorf("another call has the ids %q, after %q", ids, before)
		}
	})
}
