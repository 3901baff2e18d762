package elicit_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal/elicit"
)

// event writes a member into its JSON, and ignores that member when it reads the JSON back.
type event struct{ ID string }

func (e event) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"type": "event", "ID": e.ID})
}

// forgetful loses its value when its JSON is read back.
type forgetful struct{ ID string }

func (*forgetful) UnmarshalJSON([]byte) error { return nil }

// keepForThreeRounds keeps a value for three rounds. It returns what the client gets, and how often the value was
// computed.
func keepForThreeRounds[T any](t *testing.T, s *service, value T) (got reply, computed int) {
	t.Helper()
	got, _ = s.finish(func(ask *elicit.Asker) (string, error) {
		var texts []string
		for i := range 3 {
			kept, err := elicit.Once(ask, "k", func() (T, error) { computed++; return value, nil })
			if err != nil {
				return "", err
			}
			text, _ := json.Marshal(kept)
			if texts = append(texts, string(text)); texts[0] != texts[i] {
				t.Errorf("kept %q", texts)
			}
			if _, err := elicit.Form[confirm](ask, fmt.Sprint("q", i), fmt.Sprint(texts)).Value(); err != nil {
				return "", err
			}
		}
		return "done", nil
	}, func(elicit.Question) string { return form("x") })
	return got, computed
}

func onceIsOnce[T any](t *testing.T, value T) {
	t.Helper()
	s := newService(t)
	got, computed := keepForThreeRounds(t, s, value)
	refused := got.text == internal && strings.Contains(s.book.String(), "the value that Once computes under the key k")
	if got.text != "done" && !refused || computed != 1 {
		t.Errorf("%T: %s, computed %d times; the log: %s", value, got.text, computed, s.book)
	}
}

func TestWhatOnceComputesIsNeverComputedTwice(t *testing.T) {
	onceIsOnce(t, event{"1"})
	onceIsOnce(t, &event{"1"})
	onceIsOnce(t, time.Now())
	onceIsOnce(t, []byte{0xff})
	onceIsOnce(t, "<a&b>\u2028")
	onceIsOnce(t, (*confirm)(nil))
	onceIsOnce(t, any(map[string]any{"n": 1.5}))
	onceIsOnce(t, json.RawMessage(`{ "b" : 1, "a" : "<" }`))
}

func TestWhatDoesNotComeBackFromJSONIsRefusedByOnce(t *testing.T) {
	for name, once := range map[string]func(s *service) (reply, int){
		"a value that is not read": func(s *service) (reply, int) { return keepForThreeRounds(t, s, forgetful{"1"}) },
		"a number that is rounded": func(s *service) (reply, int) { return keepForThreeRounds(t, s, any(int64(math.MaxInt64))) },
		"infinity":                 func(s *service) (reply, int) { return keepForThreeRounds(t, s, math.Inf(1)) },
		"a function":               func(s *service) (reply, int) { return keepForThreeRounds(t, s, func() {}) },
	} {
		s := newService(t)
		if got, _ := once(s); got.text != internal || !strings.Contains(s.book.String(), "the value that Once computes under the key k") {
			t.Errorf("%s: %s; the log: %s", name, got.text, s.book)
		}
	}
}

func TestOnceIsOnce(t *testing.T) {
	s, computed, texts := newService(t), 0, map[string]bool{}
	got, messages := s.finish(func(ask *elicit.Asker) (string, error) {
		now, err := elicit.Once(ask, "go", func() (time.Time, error) { computed++; return time.Now(), nil })
		if err != nil {
			return "", err
		}
		texts[fmt.Sprint(now)] = true
		for i := range 3 {
			if _, err := elicit.Form[value](ask, fmt.Sprint("q", i), fmt.Sprint("At ", now, "?")).Value(); err != nil {
				return "", err
			}
		}
		if _, err := elicit.URL(ask, "go", "Go", "https://x.example").Value(); err != nil { // a question may have the key of a value
			return "", err
		}
		_, err = elicit.Once(ask, "fails", func() (int, error) { return 0, errors.New("away") })
		return "done", err
	}, func(elicit.Question) string { return form("x") })
	s.expect(got, "ERROR away", "")
	if computed != 1 || len(texts) != 1 || len(messages) != 4 {
		t.Errorf("computed %d times, %d texts, asked %d times", computed, len(texts), len(messages))
	}
}

type price struct {
	Cents int `json:"cents"`
}

// TestWhatAnotherReleaseKeptIsNotComputedAgain: either a value is read as it was, or the call fails. So an order, for
// example, is never placed twice, and never taken for another order.
func TestWhatAnotherReleaseKeptIsNotComputedAgain(t *testing.T) {
	afterARelease(t, "the same type", keeper(price{5}), keeper(price{7}), "{Cents:5}")
	afterARelease(t, "a renamed field", keeper(price{5}), keeper(struct {
		Amount int `json:"amount"`
	}{7}), internal)
	afterARelease(t, "a field in another case", keeper(price{5}), keeper(struct{ Cents int }{7}), internal)
	afterARelease(t, "a field less", keeper(price{5}), keeper(struct{}{}), internal)
	afterARelease(t, "a field more that may be empty", keeper(price{5}), keeper(struct {
		Cents    int    `json:"cents"`
		Currency string `json:"currency,omitzero"`
	}{7, "EUR"}), "{Cents:5 Currency:}")
	afterARelease(t, "another type", keeper(5), keeper("7"), internal)
	afterARelease(t, "another number", keeper(1.5), keeper(7), internal)
	afterARelease(t, "nothing", keeper((*price)(nil)), keeper(price{7}), internal)
}

// keeper returns the handler of one release, which keeps a value with Once.
func keeper[T any](value T) func(*elicit.Asker, *int) (string, error) {
	return func(ask *elicit.Asker, computed *int) (string, error) {
		kept, err := elicit.Once(ask, "k", func() (T, error) { *computed++; return value, nil })
		return fmt.Sprintf("%+v", kept), err
	}
}

func afterARelease(t *testing.T, name string, before, after func(*elicit.Asker, *int) (string, error), want string) {
	t.Helper()
	s, computed, release := newService(t), 0, before
	h := func(ask *elicit.Asker) (string, error) {
		kept, err := release(ask, &computed)
		if err != nil {
			return "", err
		}
		_, err = elicit.Form[confirm](ask, "c", "Pay?").Value()
		return kept, err
	}
	asked := s.round(h, "", nil)
	release = after
	got := s.round(h, asked.token, answers{"c": form("x")})
	if told := strings.Contains(s.book.String(), "comes from another release"); got.text != want || computed != 1 || told != (want == internal) {
		t.Errorf("%s: %s, computed %d times; the log: %s", name, got.text, computed, s.book)
	}
}

// TestNothingIsComputedFromAnAnswerThatIsPending: otherwise a handler that checks its errors later would keep a value
// made from an empty answer.
func TestNothingIsComputedFromAnAnswerThatIsPending(t *testing.T) {
	for name, h := range map[string]func(*shop, *elicit.Asker) (string, error){
		"errors at the end": func(s *shop, a *elicit.Asker) (string, error) {
			which, err := s.which(a).Value()
			total, errTotal := elicit.Once(a, "total", func() (string, error) { s.computed++; return which.Value, nil })
			return total, cmp.Or(err, errTotal)
		},
		"no error at all": func(s *shop, a *elicit.Asker) (string, error) {
			which, _ := s.which(a).Value()
			return elicit.Once(a, "total", func() (string, error) { s.computed++; return which.Value, nil })
		},
		"inside": func(s *shop, a *elicit.Asker) (string, error) {
			return elicit.Once(a, "total", func() (string, error) {
				which, err := s.which(a).Value()
				if err == nil {
					s.computed++
				}
				return which.Value, nil
			})
		},
		"two questions": func(s *shop, a *elicit.Asker) (string, error) {
			beside := ask(a, "Beside?")
			which, err := s.which(a).Value()
			_, errBeside := beside.Value()
			total, errTotal := elicit.Once(a, "total", func() (string, error) { s.computed++; return which.Value, nil })
			return total, cmp.Or(err, errBeside, errTotal)
		},
		"not yet": func(s *shop, a *elicit.Asker) (string, error) {
			id, err := elicit.Once(a, "id", func() (string, error) { return "id", nil })
			if err != nil {
				return "", err
			}
			consent := elicit.URL(a, "open", "Open?", "https://example.com/"+id)
			if _, err := consent.Value(); err != nil {
				return "", err
			}
			which, err := s.which(a).Value()
			if s.actions == nil && err == nil {
				s.actions = map[string]string{}
				err = consent.NotYet()
			}
			if kept, errID := elicit.Once(a, "id", func() (string, error) { return "another", nil }); errID != nil || kept != id {
				t.Errorf("a value that is kept: %q, %v", kept, errID)
			}
			total, errTotal := elicit.Once(a, "total", func() (string, error) { s.computed++; return which.Value, nil })
			return total, cmp.Or(err, errTotal)
		},
	} {
		s := &shop{}
		s.handler = func(a *elicit.Asker) (string, error) { return h(s, a) }
		if got := s.run(t); got != "to Which?" || s.computed != 1 {
			t.Errorf("%s: %s, computed %d times; asked %q; the log: %s", name, got, s.computed, s.messages, s.book)
		}
	}
}

func TestNothingIsComputedInACallThatFails(t *testing.T) {
	s := &shop{}
	s.handler = func(a *elicit.Asker) (string, error) {
		s.which(a)
		elicit.Form[value](a, "which", "Which else?")
		return "ordered", s.once(a)
	}
	if got := s.run(t); got != internal || s.computed != 0 || !strings.Contains(s.log(), "two different questions") {
		t.Errorf("%s, computed %d times; the log: %s", got, s.computed, s.book)
	}
	s = &shop{}
	s.handler = func(a *elicit.Asker) (string, error) {
		_, err := elicit.Form[value](a, "mail", "Mail?", elicit.Enum("value", "a@b.example")).Value()
		if errors.Is(err, elicit.ErrPending) {
			return "", err
		}
		return "ordered", s.once(a)
	}
	if got := s.run(t); got != "ERROR the answer to the question mail does not fit what was asked" || s.computed != 0 {
		t.Errorf("%s, computed %d times; the log: %s", got, s.computed, s.book)
	}
}

func TestIndependentPartsAskInOneRound(t *testing.T) {
	s := newService(t)
	both := func(ask *elicit.Asker) (string, error) {
		var name, place, street value
		err := elicit.All(ask,
			func() (err error) { name, err = elicit.Form[value](ask, "name", "Name?").Value(); return err },
			func() (err error) {
				if place, err = elicit.Form[value](ask, "place", "Place?").Value(); err == nil {
					street, err = elicit.Form[value](ask, "street", "Street in "+place.Value+"?").Value()
				}
				return err
			})
		if err != nil {
			return "", err
		}
		return name.Value + place.Value + street.Value, nil
	}
	first := s.round(both, "", nil)
	s.expect(first, "ASKS [name place]", "")
	second := s.round(both, first.token, answers{"place": form("P")}) // the parts go on by themselves
	s.expect(second, "ASKS [name street]", "")
	s.expect(s.round(both, second.token, answers{"name": form("N"), "street": form("S")}), "NPS", "")
	s.expect(s.round(both, second.token, answers{"name": declined, "street": form("S")}), "ERROR the question name was declined", "")

	// What comes after All depends on all parts, and nothing of it is asked too early.
	after := func(ask *elicit.Asker) (string, error) {
		_, err := elicit.Form[value](ask, "a", "A?").Value()
		errAll := elicit.All(ask, func() error { _, err := elicit.Form[value](ask, "b", "B?").Value(); return err })
		return "done", errors.Join(err, errAll)
	}
	s.expect(s.round(after, "", nil), "ASKS [a]", "")
	s.expect(s.round(both, "", nil), "ASKS [name place]", "")
}
