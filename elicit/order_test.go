package elicit_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
)

// shop is a tool and its user. One question of the tool has the key "which". Its words may change while the user answers
// another question.
type shop struct {
	*service
	handler   func(*elicit.Asker) (string, error)
	words     string // the words of the question "which"
	changesAt string // the question whose answer changes the words; "" if they never change
	actions   map[string]string
	computed  int
	messages  []string
}

// run calls the tool, and returns what the client gets in the end.
func (s *shop) run(t *testing.T) string {
	t.Helper()
	s.service = newService(t)
	s.words = cmp.Or(s.words, "Which?")
	last, _ := s.finish(s.handler, func(q elicit.Question) string {
		s.messages = append(s.messages, q.Message)
		if q.Message == s.changesAt {
			s.words, s.changesAt = "Which, of three?", ""
		}
		if action := s.actions[q.Message]; action != "" {
			return `{"action":"` + action + `"}`
		}
		if q.Kind == tripseal.KindURL {
			return agreed
		}
		return form("to " + q.Message)
	})
	return last.text
}

func (s *shop) log() string { return s.book.String() }

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
	if got != want || !slices.Equal(s.messages, messages) {
		t.Errorf("%s, want %s; asked %q, want %q; the log: %s", got, want, s.messages, messages, s.book)
	}
}

const onceCameAfter = "Once computed the value total after its answer was read"

// TestAnAnswerThatCameAfterOneThatIsAskedAgainIsAskedAgain rewords a question after
// its answer was read. All questions that were asked after that answer must be asked again too,
// because the new answer may be different.
func TestAnAnswerThatCameAfterOneThatIsAskedAgainIsAskedAgain(t *testing.T) {
	s := &shop{changesAt: "Sure?"}
	s.handler = func(a *elicit.Asker) (string, error) {
		return readAll(func() *elicit.Answer[value] { return s.which(a) }, func() *elicit.Answer[value] { return ask(a, "Sure?") })
	}
	s.check(t, s.run(t), "to Which, of three?; to Sure?", "Which?", "Sure?", "Which, of three?", "Sure?")

	// With three questions, all three are asked again.
	s = &shop{changesAt: "Really?"}
	s.handler = func(a *elicit.Asker) (string, error) {
		return readAll(func() *elicit.Answer[value] { return s.which(a) }, func() *elicit.Answer[value] { return ask(a, "Sure?") },
			func() *elicit.Answer[value] { return ask(a, "Really?") })
	}
	s.check(t, s.run(t), "to Which, of three?; to Sure?; to Really?", "Which?", "Sure?", "Really?", "Which, of three?", "Sure?", "Really?")

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
	s.check(t, s.run(t), "to Which, of three?; to Sure?; to Really?", "Which?", "Sure?", "Really?", "Which, of three?", "Sure?", "Really?")

	// With two questions, both are asked again even if one of the two answers is a refusal.
	for _, refused := range []string{"Which?", "Sure?"} {
		s = &shop{changesAt: "Sure?", actions: map[string]string{refused: "decline"}}
		s.handler = func(a *elicit.Asker) (string, error) {
			return readAll(func() *elicit.Answer[value] { return s.which(a) }, func() *elicit.Answer[value] { return ask(a, "Sure?") })
		}
		want := map[string]string{"Which?": "to Which, of three?; to Sure?", "Sure?": "to Which, of three?; decline"}[refused]
		s.check(t, s.run(t), want, "Which?", "Sure?", "Which, of three?", "Sure?")
	}
}

// TestAnAnswerThatWasAskedForBeforeAnotherWasReadSurvivesIt checks what a call keeps when it drops
// an answer and asks for it again. It keeps the answers to questions that were asked before the
// handler read the dropped answer. It also keeps the values that Once computed before the handler
// read the dropped answer.
func TestAnAnswerThatWasAskedForBeforeAnotherWasReadSurvivesIt(t *testing.T) {
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
	got := s.run(t)
	counts := map[string]int{}
	for _, message := range s.messages {
		counts[message]++
	}
	want := map[string]int{"Before?": 1, "Beside?": 1, "Which?": 1, "Which, of three?": 1, "Sure?": 2}
	if got != "to Which, of three?; to Beside?; to Sure?" || fmt.Sprint(counts) != fmt.Sprint(want) || s.computed != 1 {
		t.Errorf("%s; asked %v, computed %d times; the log: %s", got, counts, s.computed, s.log())
	}
}

// TestAValueOfOnceThatCameAfterAnAnswerThatIsAskedAgainFailsTheCall checks a call that must ask for
// an answer again, although the handler has read the answer and Once has then computed a value. The
// call fails: the value may depend on the old answer, and Once computes no value twice.
func TestAValueOfOnceThatCameAfterAnAnswerThatIsAskedAgainFailsTheCall(t *testing.T) {
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
			s.check(t, s.run(t), internal, "Which?", "Sure?")
			if !strings.Contains(s.log(), onceCameAfter) {
				t.Errorf("the log: %s", s.log())
			}
		})
	}
}

// TestWhatCameAfterAConsentThatIsAskedAgainDoesNotSurvive checks a call in which NotYet asks for a
// consent again. The call drops the answers that came after the first consent, because the user may
// now refuse. If Once computed a value after the first consent, the call fails, because this value
// must be neither used nor computed again.
func TestWhatCameAfterAConsentThatIsAskedAgainDoesNotSurvive(t *testing.T) {
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
	s.check(t, s.run(t), "connected", "Open?", "Name?", "Open?", "Name?")

	// The handler asks "Name?" after it has read the consent. When NotYet asks for the consent
	// again, "Name?" is not sent with it.
	s = &shop{}
	s.handler = connect(s, func(a *elicit.Asker) error { ask(a, "Name?"); return nil })
	s.check(t, s.run(t), "connected", "Open?", "Open?")

	s = &shop{}
	s.handler = connect(s, s.once)
	s.check(t, s.run(t), internal, "Open?")
	if !strings.Contains(s.log(), onceCameAfter) {
		t.Errorf("the log: %s", s.log())
	}
}

// TestARefusalThatCameAfterAnAnswerThatIsAskedAgainIsNotForgotten checks a call that asks for an
// answer again. This drops the later answers, and one of them is a refusal. The call must still
// fail, because the handler does not read the refusal.
func TestARefusalThatCameAfterAnAnswerThatIsAskedAgainIsNotForgotten(t *testing.T) {
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
	if got := s.run(t); got != internal || !strings.Contains(s.log(), "the question Sure? was declined or cancelled") {
		t.Errorf("%s; asked %q; the log: %s", got, s.messages, s.log())
	}
}

// TestNothingIsMadeFromAnAnswerThatIsDroppedLater checks that a call fails if its handler reads an
// answer that is dropped later in the same round. At first the handler asks "which", reads the
// answer, and asks "amount". In the last round it asks "amount" before "which", and "which" has new
// words. The new words drop the answer to "which". They also drop the answer to "amount": when the
// user was asked "amount", the handler had already read the old answer to "which". A client may
// cause such a change of the order, for example by its locale.
func TestNothingIsMadeFromAnAnswerThatIsDroppedLater(t *testing.T) {
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
		s.check(t, s.run(t), internal, "Which?", "amount")
		if !strings.Contains(s.log(), "ask in the same order in every round") {
			t.Errorf("the log: %s", s.log())
		}
	}
}

// TestAnAnswerThatWasDroppedIsNotRead checks that the handler cannot read an answer after it was
// dropped. At first the handler asks "which", reads the answer, and asks "Sure?". Later it asks
// "Sure?" before "which", and "which" has new words. The new words drop the answer to "which". They
// also drop the answer to "Sure?": when the user was asked "Sure?", the handler had already read
// the old answer to "which".
func TestAnAnswerThatWasDroppedIsNotRead(t *testing.T) {
	s := &shop{changesAt: "Sure?"}
	s.handler = func(a *elicit.Asker) (string, error) {
		if s.words == "Which?" {
			return readAll(func() *elicit.Answer[value] { return s.which(a) }, func() *elicit.Answer[value] { return ask(a, "Sure?") })
		}
		sure := ask(a, "Sure?")
		which := s.which(a)
		return readAll(func() *elicit.Answer[value] { return sure }, func() *elicit.Answer[value] { return which })
	}
	got := s.run(t)
	messages := s.messages
	if slices.Sort(messages[2:]); got != "to Sure?; to Which, of three?" || fmt.Sprint(messages) != "[Which? Sure? Sure? Which, of three?]" {
		t.Errorf("%s; asked %q; the log: %s", got, messages, s.log())
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
	s.check(t, s.run(t), "to Sure?", "Which?", "Sure?", "Which, of three?", "Sure?")

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
	s.check(t, s.run(t), internal, "Which?", "Sure?")
	if !strings.Contains(s.log(), "ask in the same order in every round") {
		t.Errorf("the log: %s", s.log())
	}
}

// TestAnAnswerThatIsDroppedAgainAndAgainIsNoQuestionThatChanges checks that an answer may be
// dropped in every round, each time because another question has changed. The question of the
// dropped answer does not count as reworded.
func TestAnAnswerThatIsDroppedAgainAndAgainIsNoQuestionThatChanges(t *testing.T) {
	s := &shop{actions: map[string]string{"Sure?": "decline"}}
	s.handler = func(a *elicit.Asker) (string, error) {
		changes := min(strings.Count(strings.Join(s.messages, ""), "Sure?"), 3)
		_, whichErr := elicit.Form[value](a, "which", fmt.Sprint("Which of ", changes, "?")).Value()
		sure := ask(a, "Sure?")
		action, _, err := sure.Outcome()
		return string(action), cmp.Or(whichErr, err)
	}
	s.check(t, s.run(t), "decline", "Which of 0?", "Sure?", "Which of 1?", "Sure?", "Which of 2?", "Sure?", "Which of 3?", "Sure?")
}

// TestNothingIsMadeFromAConsentThatIsAskedAgain calls NotYet in one part of All. The other part neither asks nor
// computes anything that may depend on the consent.
func TestNothingIsMadeFromAConsentThatIsAskedAgain(t *testing.T) {
	s, opened := newService(t), false
	h := func(a *elicit.Asker) (string, error) {
		consent := elicit.URL(a, "open", "Open?", "https://example.com/")
		if _, err := consent.Value(); err != nil {
			return "", err
		}
		err := elicit.All(a,
			func() error {
				if !opened {
					return consent.NotYet()
				}
				return nil
			},
			func() error { _, err := ask(a, "Name?").Value(); return err },
			func() error {
				_, err := elicit.Once(a, "price", func() (int, error) {
					if !opened {
						t.Error("a price was computed")
					}
					return 1, nil
				})
				return err
			})
		return "done", err
	}
	again := s.round(h, s.round(h, "", nil).token, answers{"open": agreed})
	s.expect(again, "ASKS [open]", "")
	opened = true
	last := s.round(h, again.token, answers{"open": agreed})
	s.expect(last, "ASKS [Name?]", "")
	s.expect(s.round(h, last.token, answers{"Name?": form("x")}), "done", "")
}

// TestAnAnswerThatWasReadBeforeAConsentIsNotDroppedInSilence reads, in another order than before, an answer that was given
// after a consent, and then calls NotYet. What the handler asks next would depend on an answer that counts no more.
func TestAnAnswerThatWasReadBeforeAConsentIsNotDroppedInSilence(t *testing.T) {
	s, runs := newService(t), 0
	h := func(a *elicit.Asker) (string, error) {
		consent := func() (*elicit.Answer[struct{}], error) {
			c := elicit.URL(a, "open", "Open?", "https://example.com/")
			_, err := c.Value()
			return c, err
		}
		name := func() error { _, err := ask(a, "Name?").Value(); return err }
		if runs++; runs < 3 {
			_, err := consent()
			return "done", cmp.Or(err, name())
		}
		if err := name(); err != nil {
			return "", err
		}
		c, err := consent()
		if err != nil {
			return "", err
		}
		return "", elicit.All(a, c.NotYet, func() error { _, err := ask(a, "Street?").Value(); return err })
	}
	second := s.round(h, s.round(h, "", nil).token, answers{"open": agreed})
	s.expect(second, "ASKS [Name?]", "")
	s.expect(s.round(h, second.token, answers{"Name?": form("x")}), internal, "ask in the same order in every round")
}
