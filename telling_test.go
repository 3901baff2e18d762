package tripseal_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
)

// TestTheLevelFollowsWhoMustAct checks the log level of every cause of a rejection. The level is
// ERROR if a part of the service failed, because then the operator must act. Otherwise it is WARN.
func TestTheLevelFollowsWhoMustAct(t *testing.T) {
	errors := map[tripseal.Reason]bool{tripseal.ReasonCodecFailed: true, tripseal.ReasonPrincipalFailed: true, tripseal.ReasonStoreFailed: true}
	for _, c := range causes {
		want := "WARN"
		if errors[c.want] {
			want = "ERROR"
		}
		t.Run(c.name, func(t *testing.T) {
			s, request, token := c.setup(t)
			if _, err := s.Open(context.Background(), request, token); err == nil {
				t.Fatal("accepted")
			}
			if logged := s.book.last(t); logged["level"] != want {
				t.Errorf("%v is logged at %v, want %s", logged["reason"], logged["level"], want)
			}
		})
	}
}

func TestDeclaredEphemeralKeysAreNoWarning(t *testing.T) {
	book := &logbook{}
	if _, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Logger: jsonLogger(book)}); err != nil {
		t.Fatal(err)
	}
	if logged := book.last(t); logged["level"] != "INFO" {
		t.Errorf("logged at %v", logged["level"])
	}
}

// TestTheDefaultLoggerIsTheOneOfToday makes a boundary without a logger, and then sets the default
// logger. The boundary uses the new default logger, not the one from before.
func TestTheDefaultLoggerIsTheOneOfToday(t *testing.T) {
	boundary, err := tripseal.New(tripseal.Config{Keys: newRing(t, newKey(t)), Audience: "a"})
	if err != nil {
		t.Fatal(err)
	}
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	boundary.Open(t.Context(), deploy(), "ms1.x")
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "reason=malformed") {
		t.Errorf("the log says %q", log.String())
	}
}

func TestARoundWithAURLLivesForURLTTL(t *testing.T) {
	form, url := tripseal.Question{Key: "a", Kind: tripseal.KindForm}, tripseal.Question{Key: "b", Kind: tripseal.KindURL}
	for name, c := range map[string]struct {
		urlTTL    time.Duration
		questions []tripseal.Question
		want      time.Duration
	}{
		"a form":                      {time.Minute, []tripseal.Question{form}, 10 * time.Minute},
		"nothing":                     {time.Minute, nil, 10 * time.Minute},
		"a URL, shorter":              {time.Minute, []tripseal.Question{url}, time.Minute},
		"a URL, longer":               {time.Hour, []tripseal.Question{url}, time.Hour},
		"a form and a URL, shorter":   {time.Minute, []tripseal.Question{form, url}, time.Minute},
		"a URL and a form, longer":    {30 * time.Minute, []tripseal.Question{url, form}, 30 * time.Minute},
		"a URL, without a TTL of its": {0, []tripseal.Question{url}, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t, tripseal.Config{URLTTL: c.urlTTL})
				round, _ := s.Open(t.Context(), deploy(), "")
				if !round.Expires().IsZero() {
					t.Error("a round that sealed nothing has an expiry")
				}
				token, err := s.Seal(t.Context(), &round, nil, c.questions...)
				if err != nil {
					t.Fatal(err)
				}
				if left := time.Until(round.Expires()); left != c.want {
					t.Errorf("the round says %v", left)
				}
				time.Sleep(c.want - time.Millisecond)
				s.accept(t, deploy(), token)
				time.Sleep(time.Millisecond)
				s.reject(t, deploy(), token, tripseal.ReasonExpired)
			})
		})
	}
}

func TestDroppedAnswersAreSaid(t *testing.T) {
	s := newService(t, tripseal.Config{})
	round := s.accept(t, deploy(), s.first(t, deploy(), step, confirm))
	records := len(s.book.records)
	round.Dropped(t.Context(), 0)
	if len(s.book.records) != records {
		t.Error("nothing was dropped, and it is said")
	}
	round.Dropped(t.Context(), 3)
	logged, event := s.book.last(t), s.book.lastEvent(t)
	if len(s.book.records) != records+1 || logged["answers"] != 3.0 || logged["level"] != "WARN" || logged["flow"] == nil || logged["target"] != "deploy" {
		t.Errorf("the log says %v", logged)
	}
	if event.Op != tripseal.OpDrop || event.Dropped != 3 || event.Flow == "" || event.Round != 1 || event.Reason != "" {
		t.Errorf("the observer got %+v", event)
	}
	new(tripseal.Round).Dropped(t.Context(), 1) // must not panic: this round has no boundary that could log it
}

func TestWhatIsWaivedCanBeAsked(t *testing.T) {
	native := newService(t, tripseal.Config{AlsoOpen: []tripseal.Accepted{{Format: readable{}, Waive: allClaims}}})
	if missing := native.Missing(allClaims); missing != 0 {
		t.Errorf("native tokens lack %v", missing)
	}
	if round := native.accept(t, deploy(), native.first(t, deploy(), step)); round.Waived() != 0 {
		t.Errorf("waived for a native token: %v", round.Waived())
	}
	if round := native.accept(t, deploy(), "plain.hush"); round.Waived() != allClaims {
		t.Errorf("waived for the other: %v", round.Waived())
	}
	foreign := newService(t, tripseal.Config{Format: readable{}, Waive: allClaims &^ tripseal.ClaimWording})
	if missing := foreign.Missing(allClaims); missing != tripseal.ClaimWording || missing.String() != "wording" {
		t.Errorf("the other's lack %v", missing)
	}
}
