package sealtest

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
)

// TestUnwrapper tests an unwrapper against the contract of [keys.Unwrapper]. The function
// wrap encrypts a secret, as the operator does before writing it to the file of keys.
// Call TestUnwrapper in a test of your own unwrapper.
func TestUnwrapper(t *testing.T, unwrapper keys.Unwrapper, wrap func(secret []byte) ([]byte, error)) {
	ctx := context.Background()
	wrapped := func(t *testing.T, secret []byte) []byte {
		t.Helper()
		bytes, err := wrap(slices.Clone(secret))
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	secret := []byte(tripseal.GenerateKey().Reveal())

	t.Run("HasAScheme", func(t *testing.T) {
		scheme := unwrapper.Scheme()
		if scheme == "" || len(scheme) > 32 || strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("%q is not a scheme: up to 32 lower-case letters, digits and hyphens", scheme)
		}
	})
	t.Run("ReturnsWhatWasWrapped", func(t *testing.T) {
		sealed := wrapped(t, secret)
		if bytes.Contains(sealed, secret) {
			t.Error("the secret can be read from what was wrapped")
		}
		for range 2 {
			if got, err := unwrapper.Unwrap(ctx, slices.Clone(sealed)); err != nil || !bytes.Equal(got, secret) {
				t.Errorf("the secret did not come back: %v", err)
			}
		}
	})
	t.Run("RefusesWhatWasChanged", func(t *testing.T) {
		sealed := wrapped(t, secret)
		for i := range sealed {
			for _, bit := range []byte{0x01, 0x80} {
				changed := slices.Clone(sealed)
				changed[i] ^= bit
				if _, err := unwrapper.Unwrap(ctx, changed); err == nil {
					t.Fatalf("byte %d of %d was changed, and it was unwrapped all the same", i, len(sealed))
				}
			}
		}
		for _, changed := range [][]byte{nil, {}, sealed[:len(sealed)-1], sealed[:len(sealed)/2], append(slices.Clone(sealed), 0), secret} {
			if _, err := unwrapper.Unwrap(ctx, slices.Clone(changed)); err == nil {
				t.Errorf("%d bytes that were never wrapped were unwrapped; %d were wrapped", len(changed), len(sealed))
			}
		}
	})
	t.Run("HonoursTheContext", func(t *testing.T) {
		over, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := unwrapper.Unwrap(over, wrapped(t, secret)); err == nil {
			t.Error("it was unwrapped although the context had ended")
		}
	})
	t.Run("IsSafeForConcurrentUse", func(t *testing.T) {
		var group sync.WaitGroup
		for range 8 {
			secret := []byte(tripseal.GenerateKey().Reveal())
			sealed := wrapped(t, secret)
			group.Go(func() {
				for range 5 {
					if got, err := unwrapper.Unwrap(ctx, slices.Clone(sealed)); err != nil || !bytes.Equal(got, secret) {
						t.Errorf("the secret did not come back: %v", err)
					}
				}
			})
		}
		group.Wait()
	})
}
