package redisreplay_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mcpseal/mcpseal"
)

const epochKey = "mcpseal:used:epoch"

func mustClaim(t *testing.T, store mcpseal.ReplayStore, use mcpseal.Use, want bool) {
	t.Helper()
	if first, err := store.Claim(context.Background(), use); err != nil || first != want {
		t.Fatalf("Claim = %v, %v, want %v", first, err, want)
	}
}

// forgotten claims a token that the store must refuse because Redis may not know
// it. A connection that is gone may fail the first tries.
func forgotten(t *testing.T, store mcpseal.ReplayStore, use mcpseal.Use) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		first, err := store.Claim(context.Background(), use)
		switch {
		case first:
			t.Fatal("a token that Redis may have forgotten was accepted")
		case err == nil:
			t.Fatal("the token was used: the test shows nothing")
		case strings.Contains(err.Error(), "Redis may have forgotten whether this token was used"):
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("Claim = %v", err)
		}
	}
}
