package redisreplay_test

import (
	"context"
	"testing"
)

// TestWhatAKilledServerForgetsOpensAgain is the table in docs/operations.md, but
// for appendfsync everysec, which loses claims only if the disk is slow. That some
// settings lose all claims also shows that the test of a crash can fail.
func TestWhatAKilledServerForgetsOpensAgain(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string
		forgets bool
	}{
		"appendfsync always": {[]string{"--appendonly", "yes", "--appendfsync", "always"}, false},
		"snapshots":          {[]string{"--save", "60 1"}, true},
		"nothing":            {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, c.args...)
			r := newRush(t, s, 100)
			for i := range r.tokens {
				r.present(t, r.boundaries[0], i)
			}
			if n := r.total(); n != len(r.tokens) {
				t.Fatalf("%d tokens opened", n)
			}
			s.kill()
			s.start(t)
			// The first connections are still those of the server that is gone.
			for range 50 {
				r.boundaries[1].Open(context.Background(), request, r.tokens[0])
			}
			for i := range r.tokens[1:] {
				r.present(t, r.boundaries[1], i+1)
			}
			again := r.total() - len(r.tokens)
			if want := len(r.tokens) - 1; c.forgets && again != want || !c.forgets && again != 0 {
				t.Errorf("%d of %d tokens opened again, forgets is %v", again, want, c.forgets)
			}
		})
	}
}
