package elicit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
	"github.com/tripseal/tripseal/internal/whose"
)

func TestQuestionsBeforeTheFirstUnansweredValueTravelTogether(t *testing.T) {
	s, runs := newService(t), 0
	h := func(ask *elicit.Asker) (string, error) {
		runs++
		sure := elicit.Form[confirm](ask, "confirm", "Delete?")
		why := elicit.Form[value](ask, "reason", "Why?")
		ok, err := sure.Value()
		if err != nil {
			return "", err
		}
		elicit.Form[value](ask, "later", "Later?") // depends on an answer that is there only in the second run
		reason, err := why.Value()
		return fmt.Sprintf("%v because %s", ok.OK, reason.Value), err
	}
	got, messages := s.finish(h, func(q elicit.Question) string { return form("to " + q.Message) })
	s.expect(got, "true because to Why?", "")
	if runs != 2 || !slices.Equal(messages, []string{"Delete?", "Why?"}) {
		t.Errorf("%d runs, asked %q", runs, messages)
	}
}

func TestAChainOfFiveDependentQuestions(t *testing.T) {
	s := newService(t)
	got, messages := s.finish(func(ask *elicit.Asker) (string, error) {
		path := "start"
		for i := range 5 {
			answer, err := elicit.Form[value](ask, fmt.Sprint("q", i), path).Value()
			if err != nil {
				return "not this", nil // the call asks, whatever the handler returns
			}
			path = fmt.Sprint(i, "<", answer.Value, ">")
		}
		return path, nil
	}, func(q elicit.Question) string { return form("to " + q.Message) })
	if !strings.Contains(got.text, "start") || len(messages) != 5 {
		t.Errorf("%s after %q; the log: %s", got.text, messages, s.book)
	}
}

func TestTheCallAsksWhateverTheHandlerReturns(t *testing.T) {
	for name, result := range map[string]error{"a result": nil, "another error": errors.New("no"), "the error": elicit.ErrPending} {
		s := newService(t)
		got := s.round(func(ask *elicit.Asker) (string, error) {
			elicit.Form[confirm](ask, "k", "Sure?").Value()
			return "done", result
		}, "", nil)
		if got.text != "ASKS [k]" {
			t.Errorf("%s: %s", name, got.text)
		}
	}
}

func TestAQuestionThatIsNotReadIsNotAsked(t *testing.T) {
	s := newService(t)
	s.expect(s.round(func(ask *elicit.Asker) (string, error) {
		elicit.Form[confirm](ask, "k", "Sure?")
		return "done", nil
	}, "", nil), "done", "")
}

func TestAnErrorThatQuotesAClientIsNotTakenForAPendingAnswer(t *testing.T) {
	s := newService(t)
	s.expect(s.round(func(*elicit.Asker) (string, error) { return "", errors.New(elicit.ErrPending.Error()) }, "", nil),
		"ERROR "+elicit.ErrPending.Error(), "")
}

func TestDeclineAndCancelAreRemembered(t *testing.T) {
	for action, word := range map[string]string{"decline": "declined", "cancel": "cancelled"} {
		s := newService(t)
		answer := func(q elicit.Question) string {
			if q.Key == "a" {
				return `{"action":"` + action + `"}`
			}
			return form(q.Message)
		}
		got, messages := s.finish(asks("a", "A?", "b", "B?", "c", "C?"), answer)
		s.expect(got, "a="+action+":,b=accept:B?,c=accept:C?", "")
		if len(messages) != 3 {
			t.Errorf("asked %q", messages)
		}
		got, _ = s.finish(func(ask *elicit.Asker) (string, error) {
			_, err := elicit.Form[value](ask, "a", "A?").Value()
			return "done", err
		}, answer)
		s.expect(got, "ERROR the question a was "+word, "")
	}
}

func TestAnAnswerCountsOnlyForTheQuestionThatWasShown(t *testing.T) {
	s := newService(t)
	// A question that is reworded while its answer is on the way is asked again.
	first := s.round(asks("a", "A?", "b", "B?"), "", nil)
	second := s.round(asks("a", "A, really?", "b", "B?"), first.token, answers{"a": form("old")})
	s.expect(second, "ASKS [a]", "")
	if second.questions["a"].Message != "A, really?" {
		t.Errorf("asked %q", second.questions["a"].Message)
	}
	third := s.round(asks("a", "A, really?", "b", "B?"), second.token, answers{"a": form("new")})
	s.expect(third, "ASKS [b]", "")
	// One that is reworded after its answer was recorded is asked again, and so are those after it.
	again := asks("a", "A, once more?", "b", "B?")
	fourth := s.round(again, third.token, answers{"b": form("B1")})
	s.expect(fourth, "ASKS [a]", "")
	fifth := s.round(again, fourth.token, answers{"a": form("final")})
	s.expect(fifth, "ASKS [b]", "")
	s.expect(s.round(again, fifth.token, answers{"b": form("B2")}), "a=accept:final,b=accept:B2", "")
	// A refusal counts only for the wording that was refused.
	refused := s.round(asks("a", "A?", "b", "B?"), first.token, answers{"a": declined})
	s.expect(refused, "ASKS [b]", "")
	s.expect(s.round(again, refused.token, answers{"b": form("B2")}), "ASKS [a]", "")
}

// TestAnotherSchemaIsAnotherQuestion keeps the words, and changes what else the client is shown.
func TestAnotherSchemaIsAnotherQuestion(t *testing.T) {
	s := newService(t)
	ways := []handler{
		func(ask *elicit.Asker) (string, error) {
			_, err := elicit.Form[value](ask, "k", "?").Value()
			return "1", err
		},
		func(ask *elicit.Asker) (string, error) {
			_, err := elicit.Form[value](ask, "k", "?", elicit.Enum("value", "a", "x")).Value()
			return "2", err
		},
		func(ask *elicit.Asker) (string, error) {
			_, err := elicit.Form[value](ask, "k", "?", elicit.Enum("value", "x", "a")).Value()
			return "3", err
		},
		func(ask *elicit.Asker) (string, error) {
			_, err := elicit.Form[struct {
				Value string `json:"value" jsonschema:"another"`
			}](ask, "k", "?").Value()
			return "4", err
		},
		func(ask *elicit.Asker) (string, error) {
			_, err := elicit.FormSchema(ask, "k", "?", json.RawMessage(`{"type":"object","properties":{"value":{"type":"string"}},"required":["value"] }`)).Value()
			return "5", err
		},
		func(ask *elicit.Asker) (string, error) {
			_, err := elicit.URL(ask, "k", "?", "https://a.example").Value()
			return "6", err
		},
		func(ask *elicit.Asker) (string, error) {
			_, err := elicit.URL(ask, "k", "?", "https://b.example").Value()
			return "7", err
		},
		func(ask *elicit.Asker) (string, error) {
			_, err := elicit.Sample[any](ask, "k", map[string]any{"maxTokens": 7, "systemPrompt": "a"}).Value()
			return "8", err
		},
		func(ask *elicit.Asker) (string, error) {
			_, err := elicit.Sample[any](ask, "k", map[string]any{"maxTokens": 7, "systemPrompt": "b"}).Value()
			return "9", err
		},
	}
	for i, asked := range ways {
		for j, answered := range ways {
			want := "ASKS [k]"
			if i == j {
				want = fmt.Sprint(i + 1)
			}
			answer := form("x")
			if i > 6 {
				answer = `{"role":"assistant","model":"m","content":{"type":"text","text":"x"}}`
			}
			if got := s.round(answered, s.round(asked, "", nil).token, answers{"k": answer}); got.text != want {
				t.Errorf("question %d with the answer to question %d: %s", j+1, i+1, got.text)
			}
		}
	}
}

func TestForgedGhostAndUnknownAnswersAreIgnored(t *testing.T) {
	s := newService(t)
	h := asks("a", "A?", "b", "B?")
	first := s.round(h, "", answers{"a": form("forged"), "b": form("forged")}) // nothing was asked yet
	s.expect(first, "ASKS [a]", "")
	second := s.round(h, first.token, answers{"a": form("A1"), "b": form("forged"), "ghost": form("x"), "": form("y")})
	s.expect(second, "ASKS [b]", "")
	third := s.round(h, second.token, answers{"b": `{"roots":[{"uri":"file:///"}]}`})
	s.expect(third, "ASKS [b]", "")
	s.expect(s.round(h, third.token, answers{"a": form("forged"), "b": form("B1")}), "a=accept:A1,b=accept:B1", "")
	s.expect(s.round(h, "1:11:0", answers{"b": form("B1")}), "REJECTED", "")
}

// TestAnAnswerOfAnotherKindIsNone sends each kind of answer, and texts that are none, to each kind of question.
func TestAnAnswerOfAnotherKindIsNone(t *testing.T) {
	s := newService(t)
	elicited, sampled, roots := `{"action":"accept","content":{"value":"x"}}`, `{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}`, `{"roots":[]}`
	for kind, c := range map[string]struct {
		handler
		good []string
	}{
		"form": {asks("k", "?"), []string{elicited, declined, cancelled, `{"action":"accept","content":{"value":"x","more":null}}`}},
		"url": {func(ask *elicit.Asker) (string, error) {
			_, _, err := elicit.URL(ask, "k", "?", "https://a.example").Outcome()
			return "", err
		}, []string{elicited, agreed, declined, cancelled}},
		"sampling": {func(ask *elicit.Asker) (string, error) {
			_, err := elicit.Sample[any](ask, "k", struct{}{}).Value()
			return "", err
		}, []string{sampled}},
		"roots": {func(ask *elicit.Asker) (string, error) { _, err := elicit.Roots(ask, "k").Value(); return "", err }, []string{roots}},
	} {
		asked := s.round(c.handler, "", nil)
		for _, answer := range append([]string{
			elicited, agreed, declined, cancelled, sampled, roots, ``, `null`, `{}`, `[]`, `"accept"`, `1`, `{`, `{"action":null}`, `{"action":"Accept"}`,
			`{"Action":"accept"}`, `{"action":["accept"]}`, `{"action":"accept","roots":[]}`, `{"action":"accept","role":"user"}`, `{"roots":[],"role":"user"}`,
			`{"roots":[null]}`, `{"roots":[{"uri":null}]}`, `{"role":"user","content":null}`, `{"role":"user","content":[null]}`, "{\"action\":\"accept\xff\"}",
			`{"roots":[],"_meta":{"\"":null}}`, `{"action":"accept"}}`,
		}, c.good...) {
			got := s.round(c.handler, asked.token, answers{"k": answer})
			fits := slices.Contains(c.good, answer)
			if misfit := strings.HasPrefix(got.text, "ERROR"); (got.questions == nil) != fits && !(misfit && kind == "form" && answer == agreed) {
				t.Errorf("%s: the answer %s: %s", kind, answer, got.text)
			}
		}
	}
}

func TestAnAnswerThatDoesNotFitFailsTheCall(t *testing.T) {
	s := newService(t)
	type age struct {
		Years int64 `json:"years"`
	}
	h := func(ask *elicit.Asker) (string, error) {
		v, err := elicit.Form[age](ask, "age", "Age?").Value()
		if misfit := new(elicit.AnswerError); errors.As(err, &misfit) && misfit.Action == elicit.Accept {
			return "swallowed", nil // the call fails, whatever the handler returns
		}
		return fmt.Sprint(v.Years), err
	}
	asked := s.round(h, "", nil)
	for _, content := range []string{
		`{"years":"hush"}`, `{"years":1.5}`, `{}`, `{"Years":7}`, `{"years":null}`, `null`, `["hush"]`, `"hush"`, `{"years":1e400}`, `{"years":9223372036854775808}`,
		`{"years":[7]}`, `{"years":true}`,
	} {
		got := s.round(h, asked.token, answers{"age": `{"action":"accept","content":` + content + `}`})
		s.expect(got, "ERROR the answer to the question age does not fit what was asked", "")
	}
	for content, want := range map[string]string{`{"years":7}`: "7", `{"years":7.0,"more":1}`: "7", `{"years":7e0}`: "7", `{"years":-0}`: "0", `{"years":9007199254740993}`: "9007199254740993"} {
		s.expect(s.round(h, asked.token, answers{"age": `{"action":"accept","content":` + content + `}`}), want, "")
	}
	if strings.Contains(s.book.String(), "hush") {
		t.Errorf("the log: %s", s.book)
	}
}

func TestAMisfitIsNotTakenForARefusalThatNobodyRead(t *testing.T) {
	s := newService(t)
	h := func(ask *elicit.Asker) (string, error) {
		a, b := elicit.Form[value](ask, "a", "A?"), elicit.Form[value](ask, "b", "B?")
		if _, err := b.Value(); err != nil {
			return "", err
		}
		_, err := a.Value()
		return "done", err
	}
	got := s.round(h, s.round(h, "", nil).token, answers{"a": declined, "b": `{"action":"accept","content":{"value":1}}`})
	s.expect(got, "ERROR the answer to the question b does not fit what was asked", "")
}

// TestARecordedAnswerThatNoLongerFitsIsAskedAgain puts an answer into the state that this release cannot read.
func TestARecordedAnswerThatNoLongerFitsIsAskedAgain(t *testing.T) {
	s := newService(t)
	h := asks("a", "A?", "b", "B?")
	second := s.round(h, s.round(h, "", nil).token, answers{"a": form("x")})
	for _, other := range []string{`4:true14:["not a form"]`, `5:false14:["not a form"]`, `5:false15:{"value":false}`} {
		token := s.reseal(second.token, `4:true13:{"value":"x"}`, other)
		s.expect(s.round(h, token, answers{"b": form("y")}), "ASKS [a]", "")
	}
	token := s.reseal(second.token, `4:true13:{"value":"x"}`, `5:false24:{"Value":1,"value":"ok"}`)
	s.expect(s.round(h, token, answers{"b": form("y")}), "a=accept:ok,b=accept:y", "")
}

// TestAnAnswerIsCheckedWhenItIsAskedForAgain leaves the question out in the round in which its answer comes.
func TestAnAnswerIsCheckedWhenItIsAskedForAgain(t *testing.T) {
	for answer, want := range map[string]string{form("x"): "a=accept:x,b=accept:y", `{"action":"accept","content":{"value":1}}`: "ASKS [a]"} {
		s := newService(t)
		asked := s.round(asks("a", "A?"), "", nil)
		without := s.round(asks("b", "B?"), asked.token, answers{"a": answer})
		s.expect(s.round(asks("a", "A?", "b", "B?"), without.token, answers{"b": form("y")}), want, "")
	}
}

func TestSamplesAndRoots(t *testing.T) {
	s := newService(t)
	h := func(ask *elicit.Asker) (string, error) {
		poem, err := elicit.Sample[struct{ Content struct{ Text string } }](ask, "poem", map[string]any{"maxTokens": 100}).Value()
		if err != nil {
			return "", err
		}
		roots, err := elicit.Roots(ask, "roots").Value()
		if err != nil {
			return "", err
		}
		return poem.Content.Text + " " + roots[0].URI, nil
	}
	got, _ := s.finish(h, func(q elicit.Question) string {
		text, err := json.Marshal(q)
		want := map[string]string{"poem": `{"method":"sampling/createMessage","params":{"maxTokens":100}}`, "roots": `{"method":"roots/list","params":{}}`}
		if err != nil || string(text) != want[q.Key] {
			t.Errorf("asked %s", text)
		}
		return map[string]string{
			"poem": `{"role":"assistant","content":{"type":"text","text":"Roses"},"model":"m"}`, "roots": `{"roots":[{"uri":"file:///work"}]}`,
		}[q.Key]
	})
	s.expect(got, "Roses file:///work", "")
	asked := s.round(h, "", nil)
	s.expect(s.round(h, asked.token, answers{"poem": `{"role":"assistant","content":"not an object"}`}), "ERROR the answer to the question poem does not fit what was asked", "")
}

func TestAURLIsConsentNotCompletion(t *testing.T) {
	s, tries, ids := newService(t), 0, map[string]bool{}
	h := func(ask *elicit.Asker) (string, error) {
		id, err := elicit.Once(ask, "connect", func() (string, error) { return fmt.Sprint("id", len(ids)), nil })
		if err != nil {
			return "", err
		}
		ids[id] = true
		consent := elicit.URL(ask, "sign-in", "Sign in", "https://example.com/connect/"+id)
		if _, err := consent.Value(); err != nil {
			return "", err
		}
		if tries++; tries < 8 {
			return "", consent.NotYet()
		}
		return "connected " + id, nil
	}
	seen := map[string]bool{}
	got, messages := s.finish(h, func(q elicit.Question) string {
		if seen[q.ElicitationID] = true; q.URL != "https://example.com/connect/id0" || q.ElicitationID == "" {
			t.Errorf("asked to open %q as %q", q.URL, q.ElicitationID)
		}
		return agreed
	})
	s.expect(got, "connected id0", "")
	if len(messages) != 8 || len(ids) != 1 || len(seen) != 1 {
		t.Errorf("asked %d times, ids %v, %v", len(messages), ids, seen)
	}
}

// TestAnotherURLHasAnotherElicitationID: a client may ignore an id that it has seen before.
func TestAnotherURLHasAnotherElicitationID(t *testing.T) {
	s, token, seen := newService(t), "", map[string]bool{}
	for _, url := range []string{"https://a.example", "https://b.example", "https://c.example"} {
		asked := s.round(func(ask *elicit.Asker) (string, error) {
			_, err := elicit.URL(ask, "k", "?", url).Value()
			return "", err
		}, token, nil)
		token = asked.token
		seen[asked.questions["k"].ElicitationID] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d ids", len(seen))
	}
}

func TestTheSameQuestionTwiceSharesItsAnswer(t *testing.T) {
	s := newService(t)
	got, messages := s.finish(func(ask *elicit.Asker) (string, error) {
		a, b := elicit.Form[value](ask, "k", "?"), elicit.Form[value](ask, "k", "?")
		x, err := a.Value()
		y, _ := b.Value()
		return x.Value + y.Value, err
	}, func(elicit.Question) string { return form("x") })
	if s.expect(got, "xx", ""); len(messages) != 1 {
		t.Errorf("asked %q", messages)
	}
}

// TestAClientCannotKeepACallAskingForEver sends no answers, or answers to questions that read differently every time.
func TestAClientCannotKeepACallAskingForEver(t *testing.T) {
	n := 0
	for name, h := range map[string]handler{
		"no answers":         asks("a", "A?"),
		"reworded questions": func(ask *elicit.Asker) (string, error) { n++; return asks("a", fmt.Sprint("A", n, "?"))(ask) },
	} {
		s := newService(t)
		asked := s.round(h, "", nil)
		for range 3 {
			given := answers{"ghost": form("x")}
			if name != "no answers" {
				given = answers{"a": form("x")}
			}
			asked = s.round(h, asked.token, given)
			s.expect(asked, "ASKS [a]", "")
		}
		if name == "no answers" {
			s.expect(s.round(h, asked.token, answers{"a": declined}), "a=decline:", "")
		}
		s.expect(s.round(h, asked.token, nil), internal, "more than 3 rounds in a row brought no answer")
	}
	s := newService(t)
	asked := s.round(asks("a", "A?"), "", nil)
	for range 3 {
		asked = s.round(asks("a", "A?"), asked.token, nil)
	}
	s.expect(s.round(asks("a", "A?"), asked.token, nil), internal, "more than 3 rounds in a row brought no answer")
}

func TestALoopThatWaitsForAnotherAnswerEnds(t *testing.T) {
	s := newService(t)
	h := func(ask *elicit.Asker) (string, error) {
		for {
			v, err := elicit.Form[value](ask, "k", "?").Value()
			if err != nil || v.Value == "right" {
				return "done", err
			}
		}
	}
	asked := s.round(h, "", nil)
	s.expect(s.round(h, asked.token, answers{"k": form("right")}), "done", "")
	s.expect(s.round(h, asked.token, answers{"k": form("wrong")}), internal, "more than 1000 questions")
}

func TestConcurrentCallsDoNotMix(t *testing.T) {
	s := newService(t)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			me := fmt.Sprint("me", i)
			got, err := s.try(asks("a", me, "b", "B?"), "", nil)
			for n := 0; err == nil && got.questions != nil && n < 5; n++ {
				given := answers{}
				for key := range got.questions {
					given[key] = form(me)
				}
				got, err = s.try(asks("a", me, "b", "B?"), got.token, given)
			}
			if got.text != "a=accept:"+me+",b=accept:"+me || err != nil {
				t.Errorf("%s: %s, %v", me, got.text, err)
			}
		})
	}
	all.Wait()
}

// TestAStateThatElicitDidNotWriteIsNoState has a handler of the same name keep what a client sent: the state of another
// call of elicit, signed or not.
func TestAStateThatElicitDidNotWriteIsNoState(t *testing.T) {
	s := newService(t)
	h := asks("a", "A?", "b", "B?")
	second := s.round(h, s.round(h, "", nil).token, answers{"a": form("x")})
	round, err := s.Open(t.Context(), tripseal.Request{Method: "tools/call", Target: "t"}, second.token)
	if err != nil {
		t.Fatal(err)
	}
	written, _ := round.Elicit()
	signed := whose.Sign(written)
	for _, text := range []string{written, whose.Mark + written, strings.Replace(signed, "=accept", "=decline", 1) + " ", signed[:len(signed)-1]} {
		first, _ := s.Open(t.Context(), tripseal.Request{Method: "tools/call", Target: "t"}, "")
		token, err := s.Seal(t.Context(), &first, &text, tripseal.Question{Key: "b", Kind: tripseal.KindForm})
		if err != nil {
			t.Fatal(err)
		}
		s.expect(s.round(h, token, answers{"b": form("y")}), "ASKS [a]", "")
	}
}

// TestAHandlerWithoutElicitSeesNothingOfIt opens a token of elicit in a handler that does without it.
func TestAHandlerWithoutElicitSeesNothingOfIt(t *testing.T) {
	s := newService(t)
	asked := s.round(asks("a", "A?"), "", nil)
	round, err := s.Open(t.Context(), tripseal.Request{Method: "tools/call", Target: "t"}, asked.token)
	state, has := round.State()
	if err != nil || has || state != "" || round.Accepts("a", tripseal.KindForm) {
		t.Errorf("%q, %v, %v", state, has, err)
	}
}

// TestAStateOfAnotherVersionIsNone damages a state, as another release may write it.
func TestAStateOfAnotherVersionIsNone(t *testing.T) {
	s := newService(t)
	h := asks("a", "A?", "b", "B?")
	second := s.round(h, s.round(h, "", nil).token, answers{"a": form("x")})
	for from, to := range map[string]string{"1:1": "1:2", "6:accept": "6:Accept", "8:question": "8:Question", `{"value":"x"}`: `{"value":"x"`} {
		s.expect(s.round(h, s.reseal(second.token, from, to), answers{"b": form("y")}), "ASKS [a]", "")
	}
}

// TestTwoServersOfOneBoundaryAreOneService begins a call on one server and goes on with it on another, which another
// release runs.
func TestTwoServersOfOneBoundaryAreOneService(t *testing.T) {
	keys := tripseal.Ephemeral()
	one := newService(t, func(c *tripseal.Config) { c.Keys = keys })
	other := newService(t, func(c *tripseal.Config) { c.Keys = keys })
	asked := one.round(asks("a", "A?", "b", "B?"), "", nil)
	asked = other.round(asks("a", "A?", "b", "B?"), asked.token, answers{"a": form("x")})
	one.expect(one.round(asks("a", "A?", "b", "B?"), asked.token, answers{"b": form("y")}), "a=accept:x,b=accept:y", "")
	other.tool = "another"
	other.expect(other.round(asks("b", "B?"), asked.token, answers{"b": form("y")}), "REJECTED", "")
}

func TestWithoutAnArrivalNothingIsAsked(t *testing.T) {
	arrival := &elicit.Arrival{Method: "tools/call", Target: "t"}
	for name, ctx := range map[string]context.Context{
		"no arrival":     t.Context(),
		"none":           elicit.Arrive(t.Context(), nil),
		"another tool":   elicit.Arrive(t.Context(), &elicit.Arrival{Method: "tools/call", Target: "other"}),
		"another method": elicit.Arrive(t.Context(), &elicit.Arrival{Method: "prompts/get", Target: "t"}),
	} {
		call := elicit.Call{Method: "tools/call", Target: "t", State: "x", Meta: map[string]any{whose.MarkName: "guessed"}}
		pending, err := elicit.Run(ctx, call, func(_ context.Context, ask *elicit.Asker) error {
			_, err := elicit.Form[value](ask, "k", "?").Value()
			return err
		})
		if failed := (tripseal.WireError{}); pending != nil || !errors.As(err, &failed) || failed.Code != -32603 {
			t.Errorf("%s: %v, %v", name, pending, err)
		}
		if _, err := elicit.Run(ctx, call, func(context.Context, *elicit.Asker) error { return nil }); err != nil {
			t.Errorf("%s: a call that asks nothing: %v", name, err)
		}
	}
	pending, err := elicit.Run(elicit.Arrive(t.Context(), arrival), elicit.Call{Method: "tools/call", Target: "t"}, func(_ context.Context, ask *elicit.Asker) error {
		_, err := elicit.Form[value](ask, "k", "?").Value()
		return err
	})
	if pending == nil || err != nil {
		t.Errorf("with an arrival: %v", err)
	}
}

// TestAnSDKThatAsksAnOlderClientItselfHandsTheStateOn runs the handler again with what it returned, as mcp-go does.
func TestAnSDKThatAsksAnOlderClientItselfHandsTheStateOn(t *testing.T) {
	h := asks("a", "A?", "b", "B?")
	ctx := elicit.Arrive(t.Context(), &elicit.Arrival{Method: "tools/call", Target: "t"})
	var state, done string
	given := map[string]json.RawMessage{"b": json.RawMessage(form("forged"))}
	for _, want := range []string{"a", "b", ""} {
		call := elicit.Call{Method: "tools/call", Target: "t", State: state, Answers: func() map[string]json.RawMessage { return given }}
		pending, err := elicit.Run(ctx, call, func(_ context.Context, ask *elicit.Asker) (err error) { done, err = h(ask); return err })
		if err != nil || (pending == nil) != (want == "") || pending != nil && pending.Questions[want].Key != want {
			t.Fatalf("%v, %v, want %q", pending, err, want)
		}
		if pending != nil {
			state, given = pending.State, map[string]json.RawMessage{want: json.RawMessage(form("x"))}
		}
	}
	if done != "a=accept:x,b=accept:x" {
		t.Error(done)
	}
}

func TestAHandlerCanDoWithoutAQuestionThatTheClientCannotAnswer(t *testing.T) {
	s := newService(t)
	s.expect(s.round(func(ask *elicit.Asker) (string, error) {
		if ask.Request() != any(s) {
			t.Error("another request")
		}
		return fmt.Sprint(ask.Can(tripseal.KindForm), ask.Can(tripseal.KindURL), ask.Can(tripseal.KindSampling), ask.Can(tripseal.KindRoots)), nil
	}, "", nil), "true false false true", "")
}

func TestAFunctionDeepInsideFindsTheAsker(t *testing.T) {
	s := newService(t)
	var kept *elicit.Asker
	ctx := elicit.Arrive(t.Context(), &elicit.Arrival{Method: "tools/call", Target: "t"})
	pending, err := elicit.Run(ctx, s.call(), func(ctx context.Context, ask *elicit.Asker) error {
		if kept = elicit.From(ctx); kept != ask {
			t.Error("another asker")
		}
		_, err := elicit.Form[value](elicit.From(ctx), "k", "?").Value()
		return err
	})
	if err != nil || len(pending.Questions) != 1 {
		t.Fatal(err)
	}
	for name, ask := range map[string]*elicit.Asker{"after the call": kept, "no call": elicit.From(t.Context())} {
		_, formErr := elicit.Form[value](ask, "k", "?").Value()
		_, onceErr := elicit.Once(ask, "k", func() (int, error) { t.Errorf("%s: Once computes", name); return 1, nil })
		urlErr := elicit.URL(ask, "k", "?", "https://a.example").NotYet()
		allErr := elicit.All(ask, func() error { t.Errorf("%s: a part runs", name); return nil })
		for _, err := range []error{formErr, onceErr, urlErr, allErr} {
			if err == nil || errors.Is(err, elicit.ErrPending) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if ask.Can(tripseal.KindForm) && name == "no call" {
			t.Error("a client that is not there can answer")
		}
	}
}
