package sealtest

import (
	"crypto/sha256"
	"testing"

	"github.com/tripseal/tripseal"
)

// Keys returns a ring for tests, with one key for each text. The same texts always give the same
// ring, so replicas or two runs of a test can share it. The first key seals, and all keys open. Use
// Keys in a test where production reads a ring with package keys, which refuses such texts: whoever
// knows a text has its key.
func Keys(t testing.TB, texts ...string) *tripseal.Ring {
	t.Helper()
	keys := make([]tripseal.Key, len(texts))
	for i, text := range texts {
		secret := sha256.Sum256([]byte("tripseal/1 key for tests only\x00" + text))
		key, err := tripseal.NewKey(secret[:])
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = key
	}
	ring, err := tripseal.NewRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}
