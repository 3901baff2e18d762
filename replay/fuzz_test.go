package replay

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/mcpseal/mcpseal"
)

// FuzzSingleProcess issues tokens, presents them and sets the clocks, as the
// bytes say, four for each step. However that goes, no token is won twice, and
// no token is refused for want of room that is there.
func FuzzSingleProcess(f *testing.F) {
	f.Fuzz(func(t *testing.T, steps []byte) {
		const capacity, limit = 20, 2
		s := newSingleProcess(Config{Capacity: capacity, Logger: slog.New(slog.DiscardHandler)}, time.Now(), shards)
		type issued struct {
			mcpseal.Use
			won       bool
			due, wall int64 // when it is over by each clock, if it was won
		}
		var tokens []*issued
		var now moment
		setBack := false
		var offset, oldest int64 // what the store should have seen of leaps
		for ; len(steps) >= 4; steps = steps[4:] {
			op, a, b := steps[0], steps[1], int64(binary.BigEndian.Uint16(steps[2:]))
			switch op % 8 {
			case 0, 1: // time passes
				now.wall, now.running = now.wall+b%256, now.running+b%256
			case 2: // the machine sleeps, or the clock is set ahead
				now.wall += b
			case 3:
				now.wall -= b
				setBack = true
			case 4, 5: // issue a token
				u := mcpseal.Use{Round: int(b>>8) % 3, Issued: s.start.Add(time.Duration(now.wall) * time.Second)}
				u.Until = u.Issued.Add(time.Duration(1+b%512) * time.Second)
				binary.BigEndian.PutUint32(u.Flow[12:], uint32(len(tokens)))
				u.Owner[0] = a % 16
				tokens = append(tokens, &issued{Use: u})
			default: // present one
				if len(tokens) == 0 {
					continue
				}
				token := tokens[(int(a)<<8|int(b&255))%len(tokens)]
				if now.wall-now.running > offset+maxLeap {
					oldest = max(oldest, now.wall+1)
				}
				offset = now.wall - now.running
				tooOld := token.Issued.Before(s.start.Add(time.Duration(oldest) * time.Second))
				first, err := s.spend(context.Background(), now, token.Use)
				held, owned := 0, 0
				for _, other := range tokens {
					if now.wall < other.wall { // the store may look at it now, and again later
						other.due = max(other.due, now.running)
					}
					if other.won && now.running < other.due+lookAgain {
						held++
						if other.Owner == token.Owner {
							owned++
						}
					}
				}
				left := int64(token.Until.Sub(s.start)/time.Second) - now.wall
				switch {
				case first && (token.won || err != nil):
					t.Fatalf("a token was won twice, or beside an error: %v", err)
				case first && tooOld:
					t.Fatal("a token was won that is older than the clock's last leap")
				case first:
					token.won, token.wall, token.due = true, now.wall+left, now.running+left+2
				case err == nil && !token.won:
					t.Fatal("a token counts as used that was not")
				case errors.Is(err, ErrFull) && held < capacity:
					t.Fatalf("full, with %d uses", held)
				case errors.Is(err, ErrOwnerFull) && (owned < limit || token.Owner == [16]byte{}):
					t.Fatalf("a user with %d uses is refused", owned)
				case errors.Is(err, errSetBack) && !setBack:
					t.Fatalf("the clock was not set back: %v", err)
				case errors.Is(err, errTooOld) && !tooOld:
					t.Fatal("a token counts as too old that is not")
				case errors.Is(err, errExpired) && left > 0:
					t.Fatal("a token is over too early")
				}
			}
			check(t, s)
		}
	})
}

// in returns the entries of a bucket.
func (u *uses) in(bucket int) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for at := u.buckets[bucket].first; at != 0 && yield(&u.entries[at-1]); at = u.entries[at-1].next {
		}
	}
}

// check looks at what must hold between any two uses.
func check(t *testing.T, s *SingleProcess) {
	t.Helper()
	owned, queued := map[owner]int32{}, 0
	for i := range s.shards {
		used := &s.shards[i].used
		held := 0
		for b := range used.buckets {
			for c := range used.in(b) {
				if !used.has(c.token) {
					t.Fatal("a token is queued that is not held")
				}
				owned[c.owner]++
				held++
			}
		}
		if held != len(used.tokens.entries) || !slices.IsSortedFunc(used.buckets, func(a, b bucket) int { return cmp.Compare(a.due, b.due) }) {
			t.Fatalf("a shard holds %d tokens, and %d are queued", len(used.tokens.entries), held)
		}
		queued += held
	}
	if held := int(s.held.Load()); queued != held || held > s.config.Capacity {
		t.Fatalf("%d tokens are counted, and %d queued", held, queued)
	}
	delete(owned, 0)
	counted := 0
	for i := range s.owners {
		for owner, n := range s.owners[i].held.entries {
			counted++
			if n != owned[owner] || int(n) > max(1, s.config.Capacity/10) {
				t.Fatalf("a user holds %d, and %d are counted", owned[owner], n)
			}
		}
	}
	if counted != len(owned) {
		t.Fatalf("%d users are counted, and %d hold something", counted, len(owned))
	}
}
