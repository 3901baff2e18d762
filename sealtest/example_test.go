package sealtest_test

import (
	"crypto/fips140"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/sealtest"
)

func TestAStateIsForItsUserAndTenMinutes(t *testing.T) {
	if fips140.Enabled() {
		t.Skip("the random source of FIPS 140-3 measures time, which stands still in a bubble")
	}
	synctest.Test(t, func(t *testing.T) {
		var events sealtest.Events
		boundary := sealtest.BoundaryWith(t, tripseal.Config{TTL: 10 * time.Minute, Observer: events.Observe})
		alice := tripseal.Request{Method: "tools/call", Target: "release", Principal: tripseal.User("alice")}
		bob := alice
		bob.Principal = tripseal.User("bob")

		round, _ := boundary.Open(t.Context(), alice, "")
		state := "asked"
		token, err := boundary.Seal(t.Context(), &round, &state)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := boundary.Open(t.Context(), alice, token); err != nil {
			t.Error(err)
		}
		boundary.Open(t.Context(), bob, token)
		time.Sleep(11 * time.Minute) // passes at once in a bubble
		boundary.Open(t.Context(), alice, token)
		if got := events.Reasons(); !slices.Equal(got, []tripseal.Reason{tripseal.ReasonUser, tripseal.ReasonExpired}) {
			t.Error(got)
		}
	})
}
