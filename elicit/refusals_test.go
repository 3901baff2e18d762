package elicit_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tripseal/tripseal/elicit"
)

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
		}, "deleted"},
		"read elsewhere": {func(a *elicit.Asker) error {
			ask(a)
			if action, _, err := ask(a).Outcome(); err != nil || action == elicit.Accept {
				return err
			}
			ask(a)
			return why(a, "a")
		}, "deleted"},
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
		}, "deleted"},
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
				s, want := newService(t), c.want
				if action == "accept" && want == "" {
					want = "deleted"
				}
				got, messages := s.finish(func(a *elicit.Asker) (string, error) { return "deleted", c.handler(a) }, func(q elicit.Question) string {
					if q.Message == question && action != "accept" {
						return `{"action":"` + action + `"}`
					}
					return form("x")
				})
				isMistake := want == ""
				if isMistake {
					want = internal
				}
				if got.text != want || strings.Contains(s.book.String(), unread) != isMistake || !strings.Contains(strings.Join(messages, " "), question) {
					t.Errorf("%s, want %s; asked %q; the log: %s", got.text, want, messages, s.book)
				}
			})
		}
	}
}

func TestARefusalThatWasRewordedIsAskedAgain(t *testing.T) {
	s, runs := newService(t), 0
	got, messages := s.finish(func(ask *elicit.Asker) (string, error) {
		message := "Delete 6 files?"
		if runs++; runs == 1 {
			message = "Delete 5 files?"
		}
		_, err := elicit.Form[confirm](ask, "confirm", message).Value()
		return "deleted", err
	}, func(q elicit.Question) string {
		if q.Message == "Delete 5 files?" {
			return declined
		}
		return form("x")
	})
	if s.expect(got, "deleted", ""); len(messages) != 2 {
		t.Errorf("asked %q", messages)
	}
}

// TestARefusedURLThatIsAskedAgainIsNotForgotten asks a refused question again with NotYet, and then never reads the answer.
func TestARefusedURLThatIsAskedAgainIsNotForgotten(t *testing.T) {
	s, runs := newService(t), 0
	h := func(ask *elicit.Asker) (string, error) {
		consent := elicit.URL(ask, "connect", "Connect?", "https://example.com/")
		switch runs++; runs {
		case 1:
			_, err := consent.Value()
			return "", err
		case 2:
			return "", consent.NotYet()
		}
		return "connected", nil
	}
	again := s.round(h, s.round(h, "", nil).token, answers{"connect": declined})
	s.expect(again, "ASKS [connect]", "")
	s.expect(s.round(h, again.token, nil), internal, "the question connect was declined or cancelled")
	if got := s.round(h, again.token, answers{"connect": agreed}); got.text != "connected" {
		t.Error(got.text)
	}
}
