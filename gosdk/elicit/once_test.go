package elicit_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk/elicit"
)

// event writes a member into its JSON, and ignores that member when it reads the JSON back.
type event struct{ ID string }

func (e event) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"type": "event", "ID": e.ID})
}

// forgetful loses its value when its JSON is read back.
type forgetful struct{ ID string }

func (*forgetful) UnmarshalJSON([]byte) error { return nil }

// keepForThreeRounds runs a tool that keeps a value for three rounds. It returns the text of the
// call, and how often the value was computed.
func keepForThreeRounds[T any](t *testing.T, revision string, s service, value T) (got string, computed int) {
	t.Helper()
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		var texts []string
		for i := range 3 {
			kept, err := elicit.Once(ask, "k", func() (T, error) { computed++; return value, nil })
			if err != nil {
				return result{}, err
			}
			text, _ := json.Marshal(kept)
			if texts = append(texts, string(text)); texts[0] != texts[i] {
				t.Errorf("kept %q", texts)
			}
			if _, err := elicit.Form[confirm](ask, fmt.Sprint("q", i), fmt.Sprint(texts)).Value(); err != nil {
				return result{}, err
			}
		}
		return result{"done"}, nil
	})
	return text(call(t, connect(t, s.Server(), reply(nil).options(false), revision), &mcp.CallToolParams{Name: "t"})), computed
}

// onceIsOnce checks that the function Once computes the value only one time. The call may also
// fail: Once refuses a value that does not come back from JSON as it was.
func onceIsOnce[T any](t *testing.T, value T) {
	t.Helper()
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		got, computed := keepForThreeRounds(t, revision, s, value)
		refused := got == internal && strings.Contains(s.book.String(), "what Once computes under the key k")
		if got != `{"done":"done"}` && !refused || computed != 1 {
			t.Errorf("%T: %s, computed %d times; the log: %s", value, got, computed, s.book)
		}
	})
}

func TestWhatOnceComputesIsNeverComputedTwice(t *testing.T) {
	onceIsOnce(t, event{"1"})
	onceIsOnce(t, &event{"1"})
	onceIsOnce(t, &mcp.TextContent{Text: "x"})
	onceIsOnce(t, []*mcp.TextContent{{Text: "x"}})
	onceIsOnce(t, &mcp.ResourceLink{URI: "order:1", Name: "order"})
	onceIsOnce(t, &mcp.Tool{Name: "x"})
	onceIsOnce(t, &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "x"}}})
	onceIsOnce(t, time.Now())
	onceIsOnce(t, []byte{0xff})
	onceIsOnce(t, "<a&b>\u2028")
	onceIsOnce(t, (*args)(nil))
	onceIsOnce(t, any(map[string]any{"n": 1.5}))
	onceIsOnce(t, json.RawMessage(`{ "b" : 1, "a" : "<" }`))
}

func TestWhatDoesNotComeBackFromJSONIsRefusedByOnce(t *testing.T) {
	refused := func(name string, once func(s service) (string, int)) {
		t.Helper()
		s := newService(t, nil)
		if got, _ := once(s); got != internal || !strings.Contains(s.book.String(), "what Once computes under the key k") {
			t.Errorf("%s: %s; the log: %s", name, got, s.book)
		}
	}
	refused("a value that is not read", func(s service) (string, int) { return keepForThreeRounds(t, revision2026, s, forgetful{"1"}) })
	refused("a number that is rounded", func(s service) (string, int) {
		return keepForThreeRounds(t, revision2026, s, any(int64(math.MaxInt64)))
	})
	refused("an interface", func(s service) (string, int) {
		return keepForThreeRounds[mcp.Content](t, revision2026, s, &mcp.TextContent{Text: "x"})
	})
	refused("text that is not UTF-8", func(s service) (string, int) { return keepForThreeRounds(t, revision2026, s, "\xff") })
	refused("infinity", func(s service) (string, int) { return keepForThreeRounds(t, revision2026, s, math.Inf(1)) })
}

type price struct {
	Cents int `json:"cents"`
}

// TestWhatAnotherReleaseKeptIsNotComputedAgain checks what happens to a value that another release
// kept: either it is read as it was, or the call fails. So an order, for example, is never placed
// twice, and never taken for another order.
func TestWhatAnotherReleaseKeptIsNotComputedAgain(t *testing.T) {
	afterARelease(t, "the same type", keeper(price{5}), keeper(price{7}), `{"done":"{Cents:5}"}`)
	afterARelease(t, "a renamed field", keeper(price{5}), keeper(struct {
		Amount int `json:"amount"`
	}{7}), internal)
	afterARelease(t, "a field in another case", keeper(price{5}), keeper(struct{ Cents int }{7}), internal)
	afterARelease(t, "a field less", keeper(price{5}), keeper(struct{}{}), internal)
	afterARelease(t, "a field more", keeper(price{5}), keeper(struct {
		price
		Currency string `json:"currency"`
	}{price{7}, "EUR"}), internal)
	afterARelease(t, "a field more that may be empty", keeper(price{5}), keeper(struct {
		Cents    int                     `json:"cents"`
		Currency string                  `json:"currency,omitzero"`
		Place    struct{ Street string } `json:"place,omitzero"`
	}{7, "EUR", struct{ Street string }{"Long Acre"}}), `{"done":"{Cents:5 Currency: Place:{Street:}}"}`)
	afterARelease(t, "another type", keeper(5), keeper("7"), internal)
	afterARelease(t, "another number", keeper(1.5), keeper(7), internal)
	afterARelease(t, "nothing", keeper((*price)(nil)), keeper(price{7}), internal)
}

// keeper returns the handler of one release. The handler keeps a value with Once.
func keeper[T any](value T) func(*elicit.Asker, *int) (string, error) {
	return func(ask *elicit.Asker, computed *int) (string, error) {
		kept, err := elicit.Once(ask, "k", func() (T, error) { *computed++; return value, nil })
		return fmt.Sprintf("%+v", kept), err
	}
}

func afterARelease(t *testing.T, name string, before, after func(*elicit.Asker, *int) (string, error), want string) {
	t.Helper()
	s := newService(t, nil)
	computed, release := 0, before
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "pay"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		kept, err := release(ask, &computed)
		if err != nil {
			return result{}, err
		}
		_, err = elicit.Form[confirm](ask, "c", "Pay?").Value()
		return result{kept}, err
	})
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	asked := round(t, session, "pay", nil, nil)
	release = after
	got := text(call(t, session, &mcp.CallToolParams{Name: "pay", RequestState: asked.RequestState, InputResponses: mcp.InputResponseMap{"c": accept(map[string]any{"ok": true})}}))
	if got != want || computed != 1 {
		t.Errorf("%s: %s, computed %d times", name, got, computed)
	}
	if told := strings.Contains(s.book.String(), "comes from another release"); told != (want == internal) {
		t.Errorf("%s: the log: %s", name, s.book)
	}
}

// TestNothingIsComputedFromAnAnswerThatIsPending checks that Once computes nothing after the
// handler has tried to read an answer that has not arrived yet. Otherwise a handler that checks its
// errors later would keep a value made from an empty answer.
func TestNothingIsComputedFromAnAnswerThatIsPending(t *testing.T) {
	everyWay(t, func(t *testing.T, run func(*shop) string) {
		for name, handler := range map[string]func(*shop, *elicit.Asker) (string, error){
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
			t.Run(name, func(t *testing.T) {
				s := &shop{}
				s.handler = func(a *elicit.Asker) (string, error) { return handler(s, a) }
				if got := run(s); got != `{"done":"to Which?"}` || s.computed != 1 {
					t.Errorf("%s, computed %d times; asked %q; the log: %s", got, s.computed, s.messages(), s.book)
				}
			})
		}
	})
}

// TestNothingIsComputedAfterAMistake checks that Once computes nothing after a mistake of the
// handler's author, because the call fails anyway.
func TestNothingIsComputedAfterAMistake(t *testing.T) {
	everyWay(t, func(t *testing.T, run func(*shop) string) {
		s := &shop{}
		s.handler = func(a *elicit.Asker) (string, error) {
			s.which(a)
			elicit.Form[value](a, "which", "Which else?")
			return "ordered", s.once(a)
		}
		if got := run(s); got != internal || s.computed != 0 {
			t.Errorf("%s, computed %d times; the log: %s", got, s.computed, s.book)
		}
	})
}

// TestNothingIsComputedFromAnAnswerThatDoesNotFit checks that Once computes nothing after an answer
// that does not fit, even if the handler goes on. The call fails, so the function that is passed to
// Once must not run: it may place an order, for example.
func TestNothingIsComputedFromAnAnswerThatDoesNotFit(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		s := newService(t, nil)
		computed := 0
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, a *elicit.Asker, _ args) (result, error) {
			_, err := elicit.Form[value](a, "mail", "Mail?", elicit.TextFormat("value", "email")).Value()
			if misfit := new(elicit.MisfitError); err != nil && !errors.As(err, &misfit) {
				return result{}, err
			}
			_, err = elicit.Once(a, "order", func() (int, error) { computed++; return computed, nil })
			return result{"ordered"}, err
		})
		got := text(call(t, connect(t, s.Server(), reply(nil).options(false), revision), &mcp.CallToolParams{Name: "t"}))
		if want := "ERROR the answer to the question mail does not fit what was asked"; got != want || computed != 0 {
			t.Errorf("%s, computed %d times; the log: %s", got, computed, s.book)
		}
	})
}
