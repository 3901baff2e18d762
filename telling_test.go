package tripseal_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
)

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
				if !round.FlowEnds().IsZero() {
					t.Error("the flow of a round that sealed nothing has an end")
				}
				token, err := s.Seal(t.Context(), &round, nil, c.questions...)
				if err != nil {
					t.Fatal(err)
				}
				if left := time.Until(round.FlowEnds()); left != time.Hour {
					t.Errorf("the flow ends in %v", left)
				}
				time.Sleep(c.want - time.Millisecond)
				s.accept(t, deploy(), token)
				time.Sleep(time.Millisecond)
				s.reject(t, deploy(), token, tripseal.ReasonExpired)
			})
		})
	}
}

// A boundary without a logger uses the default logger of each moment, not the one from when it was made.
func TestTheDefaultLoggerIsTheOneOfToday(t *testing.T) {
	boundary, err := tripseal.New(tripseal.Config{Keys: newRing(t, newKey(t)), Audience: "a"})
	if err != nil {
		t.Fatal(err)
	}
	book := &logbook{}
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(jsonLogger(book))
	boundary.Open(t.Context(), deploy(), "ms1.x")
	if logged := book.last(t); logged["reason"] != string(tripseal.ReasonMalformed) {
		t.Errorf("the log says %v", logged)
	}
}
