package elicit_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk/elicit"
)

// everyWay runs a test with clients of both revisions, and with two ways to register a handler:
// with elicit.AddTool, or with the SDK and Within. The test gets a function that calls the handler
// of a shop, and returns the text of the result. Each call of this function needs a new shop.
func everyWay(t *testing.T, test func(t *testing.T, run func(*shop) string)) {
	t.Helper()
	both(t, func(t *testing.T, revision string) {
		for _, way := range []string{"AddTool", "Within"} {
			t.Run(way, func(t *testing.T) {
				test(t, func(shop *shop) string {
					shop.service = newService(t, nil)
					if way == "AddTool" {
						elicit.AddTool(shop.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
							text, err := shop.handler(ask)
							return result{text}, err
						})
					} else {
						mcp.AddTool(shop.Server(), &mcp.Tool{Name: "t"}, func(ctx context.Context, req *mcp.CallToolRequest, _ args) (*mcp.CallToolResult, result, error) {
							var text string
							pending, err := elicit.Within(ctx, req, func(ask *elicit.Asker) (err error) { text, err = shop.handler(ask); return err })
							return pending.ToolResult(), result{text}, err
						})
					}
					shop.user = &user{answer: func(message string, _ *mcp.ElicitParams) *mcp.ElicitResult {
						if message == shop.changesAt {
							shop.words, shop.changesAt = "Which, of three?", ""
						}
						if action := shop.actions[message]; action != "" {
							return &mcp.ElicitResult{Action: action}
						}
						return accept(map[string]any{"value": "to " + message, "ok": true})
					}}
					shop.words = cmp.Or(shop.words, "Which?")
					return text(call(t, connect(t, shop.Server(), shop.user.options(false), revision), &mcp.CallToolParams{Name: "t"}))
				})
			})
		}
	})
}

// shop is a tool and its user. One question of the tool has the key "which". The words of this
// question may change while the user answers another question.
type shop struct {
	service
	*user
	handler   func(*elicit.Asker) (string, error)
	words     string // the words of the question "which"
	changesAt string // the question whose answer changes the words; "" if they never change
	actions   map[string]string
	computed  int
}

func (s *shop) which(ask *elicit.Asker) *elicit.Answer[value] {
	return elicit.Form[value](ask, "which", s.words)
}

func ask(ask *elicit.Asker, message string) *elicit.Answer[value] {
	return elicit.Form[value](ask, message, message)
}

func (s *shop) once(ask *elicit.Asker) error {
	_, err := elicit.Once(ask, "total", func() (int, error) { s.computed++; return s.computed, nil })
	return err
}

// readAll reads answers in order, and stops at the first error.
func readAll(answers ...func() *elicit.Answer[value]) (string, error) {
	var values []string
	for _, answer := range answers {
		action, v, err := answer().Outcome()
		if err != nil {
			return "", err
		}
		values = append(values, cmp.Or(v.Value, string(action)))
	}
	return strings.Join(values, "; "), nil
}

func (s *shop) check(t *testing.T, got, want string, messages ...string) {
	t.Helper()
	if got != want || !slices.Equal(s.messages(), messages) {
		t.Errorf("%s, want %s; asked %q, want %q; the log: %s", got, want, s.messages(), messages, s.book)
	}
}

const onceCameAfter = "Once computed the value total after its answer was read"

// TestAnAnswerThatCameAfterOneThatIsAskedAgainIsAskedAgain rewords a question after
// its answer was read. All questions that were asked after that answer must be asked again too,
// because the new answer may be different.
func TestAnAnswerThatCameAfterOneThatIsAskedAgainIsAskedAgain(t *testing.T) {
	everyWay(t, func(t *testing.T, run func(*shop) string) {
		s := &shop{changesAt: "Sure?"}
		s.handler = func(a *elicit.Asker) (string, error) {
			return readAll(func() *elicit.Answer[value] { return s.which(a) }, func() *elicit.Answer[value] { return ask(a, "Sure?") })
		}
		s.check(t, run(s), `{"done":"to Which, of three?; to Sure?"}`, "Which?", "Sure?", "Which, of three?", "Sure?")

		// With three questions, all three are asked again.
		s = &shop{changesAt: "Really?"}
		s.handler = func(a *elicit.Asker) (string, error) {
			return readAll(func() *elicit.Answer[value] { return s.which(a) }, func() *elicit.Answer[value] { return ask(a, "Sure?") },
				func() *elicit.Answer[value] { return ask(a, "Really?") })
		}
		s.check(t, run(s), `{"done":"to Which, of three?; to Sure?; to Really?"}`, "Which?", "Sure?", "Really?", "Which, of three?", "Sure?", "Really?")

		// The third run leaves out the first question. When this question comes back with other
		// words, all three questions are still asked again.
		s = &shop{changesAt: "Really?"}
		runs := 0
		s.handler = func(a *elicit.Asker) (string, error) {
			questions := []func() *elicit.Answer[value]{func() *elicit.Answer[value] { return ask(a, "Sure?") }, func() *elicit.Answer[value] { return ask(a, "Really?") }}
			if runs++; runs != 3 {
				questions = slices.Insert(questions, 0, func() *elicit.Answer[value] { return s.which(a) })
			}
			return readAll(questions...)
		}
		s.check(t, run(s), `{"done":"to Which, of three?; to Sure?; to Really?"}`, "Which?", "Sure?", "Really?", "Which, of three?", "Sure?", "Really?")

		// With two questions, both are asked again even if one of the two answers is a refusal.
		for _, refused := range []string{"Which?", "Sure?"} {
			s = &shop{changesAt: "Sure?", actions: map[string]string{refused: "decline"}}
			s.handler = func(a *elicit.Asker) (string, error) {
				return readAll(func() *elicit.Answer[value] { return s.which(a) }, func() *elicit.Answer[value] { return ask(a, "Sure?") })
			}
			want := map[string]string{"Which?": `{"done":"to Which, of three?; to Sure?"}`, "Sure?": `{"done":"to Which, of three?; decline"}`}[refused]
			s.check(t, run(s), want, "Which?", "Sure?", "Which, of three?", "Sure?")
		}
	})
}

// TestAnAnswerThatWasAskedForBeforeAnotherWasReadSurvivesIt checks what a call keeps when it drops
// an answer and asks for it again. It keeps the answers to questions that were asked before the
// handler read the dropped answer. It also keeps the values that Once computed before the handler
// read the dropped answer.
func TestAnAnswerThatWasAskedForBeforeAnotherWasReadSurvivesIt(t *testing.T) {
	everyWay(t, func(t *testing.T, run func(*shop) string) {
		s := &shop{changesAt: "Sure?"}
		s.handler = func(a *elicit.Asker) (string, error) {
			before := ask(a, "Before?")
			if _, err := before.Value(); err != nil {
				return "", err
			}
			if err := s.once(a); err != nil {
				return "", err
			}
			beside := ask(a, "Beside?")
			which := s.which(a)
			return readAll(func() *elicit.Answer[value] { return which }, func() *elicit.Answer[value] { return beside }, func() *elicit.Answer[value] { return ask(a, "Sure?") })
		}
		got := run(s)
		counts := map[string]int{}
		for _, message := range s.messages() {
			counts[message]++
		}
		want := map[string]int{"Before?": 1, "Beside?": 1, "Which?": 1, "Which, of three?": 1, "Sure?": 2}
		if got != `{"done":"to Which, of three?; to Beside?; to Sure?"}` || fmt.Sprint(counts) != fmt.Sprint(want) || s.computed != 1 {
			t.Errorf("%s; asked %v, computed %d times; the log: %s", got, counts, s.computed, s.book)
		}
	})
}

// TestAValueOfOnceThatCameAfterAnAnswerThatIsAskedAgainFailsTheCall checks a call that must ask for
// an answer again, although the handler has read the answer and Once has then computed a value. The
// call fails: the value may depend on the old answer, and Once computes no value twice.
func TestAValueOfOnceThatCameAfterAnAnswerThatIsAskedAgainFailsTheCall(t *testing.T) {
	everyWay(t, func(t *testing.T, run func(*shop) string) {
		for name, once := range map[string]func(*shop, *elicit.Asker, *elicit.Answer[value]) error{
			"read before": func(s *shop, a *elicit.Asker, which *elicit.Answer[value]) error {
				if _, err := which.Value(); err != nil {
					return err
				}
				return s.once(a)
			},
			"read while it is computed": func(s *shop, a *elicit.Asker, which *elicit.Answer[value]) error {
				_, err := elicit.Once(a, "total", func() (string, error) {
					s.computed++
					v, err := which.Value()
					return v.Value, err
				})
				return err
			},
		} {
			t.Run(name, func(t *testing.T) {
				s := &shop{changesAt: "Sure?"}
				s.handler = func(a *elicit.Asker) (string, error) {
					if err := once(s, a, s.which(a)); err != nil {
						return "", err
					}
					return readAll(func() *elicit.Answer[value] { return ask(a, "Sure?") })
				}
				s.check(t, run(s), internal, "Which?", "Sure?")
				if !strings.Contains(s.book.String(), onceCameAfter) {
					t.Errorf("the log: %s", s.book)
				}
			})
		}
	})
}

// TestAQuestionThatWasMadeFromAValueOfOnceDependsOnItsAnswers checks a handler in which Once
// computes a value from an answer, and a question is made from this value. The question depends on
// the answer too, even if the round that asks the question does not read the answer.
func TestAQuestionThatWasMadeFromAValueOfOnceDependsOnItsAnswers(t *testing.T) {
	s := newService(t, nil)
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, a *elicit.Asker, _ args) (result, error) {
		which := ask(a, "Which?")
		total, err := elicit.Once(a, "total", func() (string, error) {
			v, err := which.Value()
			return v.Value, err
		})
		if err != nil {
			return result{}, err
		}
		if _, err := ask(a, "First?").Value(); err != nil {
			return result{}, err
		}
		_, err = elicit.Form[value](a, "pay", "Pay "+total+"?").Value()
		return result{"paid"}, err
	})
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	asked := round(t, session, "t", nil, nil)
	for _, key := range []string{"Which?", "First?"} {
		asked = round(t, session, "t", asked, answers(key, "x"))
	}
	if state := stateOf(t, s, asked); !strings.Contains(state, `"p":2`) { // answer 1 is to "Which?", and answer 2 is to "First?"
		t.Errorf("the state: %s", state)
	}
	asked = round(t, session, "t", round(t, session, "t", nil, nil), answers("Which?", "x"))
	if state := stateOf(t, s, asked); strings.Count(state, `"p":1`) != 2 { // once in the value, and once in the question "First?"
		t.Errorf("the state: %s", state)
	}
	again := round(t, session, "t", asked, nil) // this round does not read the answer to "Which?"
	if state := stateOf(t, s, again); strings.Count(state, `"p":1`) != 2 {
		t.Errorf("the state of the round after: %s", state)
	}
}

// TestWhatCameAfterAConsentThatIsAskedAgainDoesNotSurvive checks a call in which NotYet asks for a
// consent again. The call drops the answers that came after the first consent, because the user may
// now refuse. If Once computed a value after the first consent, the call fails, because this value
// must be neither used nor computed again.
func TestWhatCameAfterAConsentThatIsAskedAgainDoesNotSurvive(t *testing.T) {
	everyWay(t, func(t *testing.T, run func(*shop) string) {
		connect := func(s *shop, afterwards func(*elicit.Asker) error) func(*elicit.Asker) (string, error) {
			tries := 0
			return func(a *elicit.Asker) (string, error) {
				consent := elicit.URL(a, "open", "Open?", "https://example.com/")
				if _, err := consent.Value(); err != nil {
					return "", err
				}
				if err := afterwards(a); err != nil {
					return "", err
				}
				if tries++; tries == 1 {
					return "", consent.NotYet()
				}
				return "connected", nil
			}
		}
		s := &shop{}
		s.handler = connect(s, func(a *elicit.Asker) error { _, err := ask(a, "Name?").Value(); return err })
		s.check(t, run(s), `{"done":"connected"}`, "Open?", "Name?", "Open?", "Name?")

		// The handler asks "Name?" after it has read the consent. When NotYet asks for the consent
		// again, "Name?" is not sent with it.
		s = &shop{}
		s.handler = connect(s, func(a *elicit.Asker) error { ask(a, "Name?"); return nil })
		s.check(t, run(s), `{"done":"connected"}`, "Open?", "Open?")

		s = &shop{}
		s.handler = connect(s, s.once)
		s.check(t, run(s), internal, "Open?")
		if !strings.Contains(s.book.String(), onceCameAfter) {
			t.Errorf("the log: %s", s.book)
		}
	})
}

// TestWhatCameAfterAnAnswerThatCanNoLongerBeReadDoesNotSurvive checks that if this release cannot
// read an answer, the call asks for it again and drops the answers after it. The call fails if Once
// computed a value after that answer.
func TestWhatCameAfterAnAnswerThatCanNoLongerBeReadDoesNotSurvive(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		s := newService(t, nil)
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, a *elicit.Asker, _ args) (result, error) {
			if _, err := elicit.Form[value](a, "which", "Which?").Value(); err != nil {
				return result{}, err
			}
			if keeps {
				if _, err := elicit.Once(a, "total", func() (int, error) { return 1, nil }); err != nil {
					return result{}, err
				}
			}
			_, err := elicit.Form[value](a, "sure", "Sure?").Value()
			return result{"done"}, err
		})
		session := connect(t, s.Server(), reply(nil).options(true), revision2026)
		asked := round(t, session, "t", round(t, session, "t", nil, nil), answers("which", "x"))
		// An earlier release may have recorded an answer that this release cannot read. The
		// function reseal puts such an answer into the state.
		params := &mcp.CallToolParams{Name: "t", InputResponses: answers("sure", "x"), RequestState: reseal(t, s, "t", asked.RequestState, func(state map[string]any) {
			state["a"].(map[string]any)["which"].(map[string]any)["c"] = "not a form"
		})}
		got, err := call(t, session, params)
		if keeps {
			if text(got, err) != internal || !strings.Contains(s.book.String(), onceCameAfter) {
				t.Errorf("%s; the log: %s", text(got, err), s.book)
			}
			continue
		}
		if text(got, err) != "ASKS [which]" {
			t.Fatalf("%s; the log: %s", text(got, err), s.book)
		}
		if got := text(round(t, session, "t", got, answers("which", "y")), nil); got != "ASKS [sure]" {
			t.Errorf("%s; the log: %s", got, s.book)
		}
	}
}

// TestARefusalThatCameAfterAnAnswerThatIsAskedAgainIsNotForgotten checks a call that asks for an
// answer again. This drops the later answers, and one of them is a refusal. The call must still
// fail, because the handler does not read the refusal.
func TestARefusalThatCameAfterAnAnswerThatIsAskedAgainIsNotForgotten(t *testing.T) {
	everyWay(t, func(t *testing.T, run func(*shop) string) {
		s := &shop{changesAt: "Why?", actions: map[string]string{"Sure?": "decline"}}
		s.handler = func(a *elicit.Asker) (string, error) {
			if _, err := s.which(a).Value(); err != nil {
				return "", err
			}
			sure := ask(a, "Sure?")
			if s.words == "Which?" { // false after the words have changed: then nothing reads the answer to "Sure?"
				return readAll(func() *elicit.Answer[value] { return ask(a, "Why?") }, func() *elicit.Answer[value] { return sure })
			}
			return "deleted", nil
		}
		if got := run(s); got != internal || !strings.Contains(s.book.String(), "the question Sure? was declined or cancelled") {
			t.Errorf("%s; asked %q; the log: %s", got, s.messages(), s.book)
		}
	})
}

// TestNothingIsMadeFromAnAnswerThatIsDroppedLater checks that a call fails if its handler reads an
// answer that is dropped later in the same round. At first the handler asks "which", reads the
// answer, and asks "amount". In the last round it asks "amount" before "which", and "which" has new
// words. The new words drop the answer to "which". They also drop the answer to "amount": when the
// user was asked "amount", the handler had already read the old answer to "which". A client may
// cause such a change of the order, for example by its locale.
func TestNothingIsMadeFromAnAnswerThatIsDroppedLater(t *testing.T) {
	everyWay(t, func(t *testing.T, run func(*shop) string) {
		for _, once := range []bool{false, true} {
			s := &shop{changesAt: "amount"}
			s.handler = func(a *elicit.Asker) (string, error) {
				which, amount := func() *elicit.Answer[value] { return s.which(a) }, func() *elicit.Answer[value] { return ask(a, "amount") }
				if s.words == "Which?" {
					return readAll(which, amount)
				}
				v, err := amount().Value()
				if err != nil {
					return "", err
				}
				other := s.which(a) // this question is reworded, so the answer to "amount" is dropped after it was read
				if once {
					if _, err := elicit.Once(a, "price", func() (string, error) { return "price of " + v.Value, nil }); err != nil {
						return "", err
					}
				}
				_, err = other.Value()
				return "done", err
			}
			s.check(t, run(s), internal, "Which?", "amount")
			if !strings.Contains(s.book.String(), "ask the questions in the same order in every round") {
				t.Errorf("the log: %s", s.book)
			}
		}
	})
}

// TestAnAnswerThatWasDroppedIsNotRead checks that the handler cannot read an answer after it was
// dropped. At first the handler asks "which", reads the answer, and asks "Sure?". Later it asks
// "Sure?" before "which", and "which" has new words. The new words drop the answer to "which". They
// also drop the answer to "Sure?": when the user was asked "Sure?", the handler had already read
// the old answer to "which".
func TestAnAnswerThatWasDroppedIsNotRead(t *testing.T) {
	everyWay(t, func(t *testing.T, run func(*shop) string) {
		s := &shop{changesAt: "Sure?"}
		s.handler = func(a *elicit.Asker) (string, error) {
			if s.words == "Which?" {
				return readAll(func() *elicit.Answer[value] { return s.which(a) }, func() *elicit.Answer[value] { return ask(a, "Sure?") })
			}
			sure := ask(a, "Sure?")
			which := s.which(a)
			return readAll(func() *elicit.Answer[value] { return sure }, func() *elicit.Answer[value] { return which })
		}
		got := run(s)
		messages := s.messages()
		if slices.Sort(messages[2:]); got != `{"done":"to Sure?; to Which, of three?"}` || fmt.Sprint(messages) != "[Which? Sure? Sure? Which, of three?]" {
			t.Errorf("%s; asked %q; the log: %s", got, messages, s.book)
		}

		// The question "Sure?" is asked again even if nobody reads the answer to the reworded question.
		s = &shop{changesAt: "Sure?"}
		s.handler = func(a *elicit.Asker) (string, error) {
			if s.words == "Which?" {
				return readAll(func() *elicit.Answer[value] { return s.which(a) }, func() *elicit.Answer[value] { return ask(a, "Sure?") })
			}
			sure := ask(a, "Sure?")
			s.which(a)
			return readAll(func() *elicit.Answer[value] { return sure })
		}
		s.check(t, run(s), `{"done":"to Sure?"}`, "Which?", "Sure?", "Which, of three?", "Sure?")

		// The call fails if the handler reads the answer to "Sure?" before this answer is dropped. The
		// question "Really?" depends on this answer, and is not sent.
		s = &shop{changesAt: "Sure?"}
		s.handler = func(a *elicit.Asker) (string, error) {
			if s.words == "Which?" {
				return readAll(func() *elicit.Answer[value] { return s.which(a) }, func() *elicit.Answer[value] { return ask(a, "Sure?") })
			}
			_, err := readAll(func() *elicit.Answer[value] { return ask(a, "Sure?") }, func() *elicit.Answer[value] { return ask(a, "Really?") })
			_, whichErr := s.which(a).Value()
			return "", errors.Join(err, whichErr)
		}
		s.check(t, run(s), internal, "Which?", "Sure?")
		if !strings.Contains(s.book.String(), "ask the questions in the same order in every round") {
			t.Errorf("the log: %s", s.book)
		}
	})
}

// TestAnAnswerThatIsDroppedAgainAndAgainIsNoQuestionThatChanges checks that an answer may be
// dropped in every round, each time because another question has changed. The question of the
// dropped answer does not count as reworded.
func TestAnAnswerThatIsDroppedAgainAndAgainIsNoQuestionThatChanges(t *testing.T) {
	everyWay(t, func(t *testing.T, run func(*shop) string) {
		s := &shop{actions: map[string]string{"Sure?": "decline"}}
		s.handler = func(a *elicit.Asker) (string, error) {
			changes := min(strings.Count(strings.Join(s.messages(), ""), "Sure?"), 3)
			_, whichErr := elicit.Form[value](a, "which", fmt.Sprint("Which of ", changes, "?")).Value()
			sure := ask(a, "Sure?")
			action, _, err := sure.Outcome()
			return string(action), cmp.Or(whichErr, err)
		}
		s.check(t, run(s), `{"done":"decline"}`, "Which of 0?", "Sure?", "Which of 1?", "Sure?", "Which of 2?", "Sure?", "Which of 3?", "Sure?")
	})
}

// program is a handler made of random steps. When it makes a question or computes a value, it notes
// what it knew, that is, which answers it had read.
type program struct {
	steps  []step
	words  map[string]int    // how often the words of each question changed
	knew   map[string]string // for each question of this run: what was known when the question was made
	sent   map[string]string // for each answer: what was known when the answered question was made
	faults []string          // one text for each answer or value that this run used wrongly
}

type step struct{ do, key string }

func randomProgram(random *rand.Rand) *program {
	p := &program{words: map[string]int{}, sent: map[string]string{}}
	var unread []string
	for i := range 2 + random.IntN(4) {
		key := fmt.Sprint("q", i)
		p.steps = append(p.steps, step{"make", key})
		unread = append(unread, key)
		for len(unread) > 0 && random.IntN(3) > 0 {
			n := random.IntN(len(unread))
			p.steps = append(p.steps, step{"read", unread[n]})
			unread = slices.Delete(unread, n, n+1)
		}
		if random.IntN(8) == 0 {
			p.steps = append(p.steps, step{"once", key})
		}
	}
	for _, key := range unread {
		p.steps = append(p.steps, step{"read", key})
	}
	return p
}

func (p *program) handle(_ context.Context, a *elicit.Asker, _ args) (result, error) {
	p.knew, p.faults = map[string]string{}, nil
	made := map[string]*elicit.Answer[value]{}
	known := ""
	for _, s := range p.steps {
		switch s.do {
		case "make":
			words := fmt.Sprint(s.key, ", version ", p.words[s.key])
			made[s.key], p.knew[s.key] = elicit.Form[value](a, s.key, words), words+known
		case "read":
			action, v, err := made[s.key].Outcome()
			if err != nil {
				return result{}, err
			}
			if p.sent[s.key] != p.knew[s.key] {
				p.faults = append(p.faults, fmt.Sprintf("%s was answered knowing %q, not %q", s.key, p.sent[s.key], p.knew[s.key]))
			}
			known += fmt.Sprint(" ", s.key, "=", action, v.Value)
		case "once":
			kept, err := elicit.Once(a, s.key, func() (string, error) { return known, nil })
			if err != nil {
				return result{}, err
			}
			if kept != known {
				p.faults = append(p.faults, fmt.Sprintf("the value %s was computed knowing %q, not %q", s.key, kept, known))
			}
		}
	}
	return result{"done"}, nil
}

// TestWhatARunUsesGoesTogether runs random handlers, whose questions change and whose answers may
// come late. A run may use an answer to a question that an earlier run sent, but only if both runs
// had read the same answers before they made the question. A run may also use a value that Once
// computed in an earlier run, but only if both runs had read the same answers before they called
// Once.
func TestWhatARunUsesGoesTogether(t *testing.T) {
	outcomes := map[string]int{}
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 0))
		s, p := newService(t, nil), randomProgram(random)
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, p.handle)
		session := connect(t, s.Server(), (&user{}).options(true), revision2026)
		params := &mcp.CallToolParams{Name: "t"}
		outcome := "too many rounds"
		for n := range 18 {
			got, err := call(t, session, params)
			if len(p.faults) > 0 {
				t.Fatalf("seed %d, %v: %s", seed, p.steps, p.faults)
			}
			if err != nil || got.RequestState == "" {
				if outcome = text(got, err); outcome == internal && strings.Contains(s.book.String(), " after its answer was read, and computes no value twice") {
					outcome = "a value came after"
				}
				break
			}
			params.RequestState, params.InputResponses = got.RequestState, mcp.InputResponseMap{}
			for _, key := range slices.Sorted(maps.Keys(got.InputRequests)) {
				switch random.IntN(8) {
				case 0: // the question stays open
				case 1:
					params.InputResponses[key], p.sent[key] = &mcp.ElicitResult{Action: "decline"}, p.knew[key]
				default:
					params.InputResponses[key], p.sent[key] = accept(map[string]any{"value": fmt.Sprint(n)}), p.knew[key]
				}
			}
			if n < 8 && random.IntN(4) == 0 {
				p.words[fmt.Sprint("q", random.IntN(6))]++
			}
		}
		outcomes[outcome]++
	}
	if outcomes[`{"done":"done"}`] < 200 || outcomes["a value came after"] < 10 || outcomes[internal] > 0 {
		t.Errorf("the calls ended with %v", outcomes)
	}
}
