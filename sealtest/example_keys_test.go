package sealtest_test

import (
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/sealtest"
)

// Two replicas have the same keys, so each opens the tokens of the other. In the middle of a
// rotation, one of them already seals with the next key.
func ExampleKeys() {
	var t *testing.T // the parameter of your test

	first := sealtest.BoundaryWith(t, tripseal.Config{Keys: sealtest.Keys(t, "old key", "new key")})
	second := sealtest.BoundaryWith(t, tripseal.Config{Keys: sealtest.Keys(t, "new key", "old key")})

	request := tripseal.Request{Method: "tools/call", Target: "release", Principal: tripseal.User("alice")}
	round, _ := first.Open(t.Context(), request, "")
	token, err := first.Seal(t.Context(), &round, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Open(t.Context(), request, token); err != nil {
		t.Error(err)
	}
}
