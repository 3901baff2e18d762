package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

// FuzzSingleProcess issues tokens, presents them to a store and sets the clocks. Four bytes of the
// input decide what each step does. The store must not accept a token twice, and must not refuse a
// token for lack of room while there is room.
func FuzzSingleProcess(f *testing.F) {
	f.Fuzz(func(t *testing.T, steps []byte) {
		const capacity, limit = 20, 2
		s := newSingleProcess(Config{Capacity: capacity, Logger: slog.New(slog.DiscardHandler)}, time.Now())
		type issued struct {
			tripseal.Use
			won       bool
			due, wall int64 // for a token that was won: its expiry by the monotonic clock, and by the wall clock
		}
		var tokens []*issued
		var now moment
		setBack := false
		var offset, oldest int64 // what the store should have noted about leaps of the clock
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
				u := tripseal.Use{Round: int(b>>8) % 3, Issued: s.start.Add(time.Duration(now.wall) * time.Second)}
				u.Until = u.Issued.Add(time.Duration(1+b%512) * time.Second)
				binary.BigEndian.PutUint32(u.Flow[12:], uint32(len(tokens)))
				u.Owner[0] = a % 16
				tokens = append(tokens, &issued{Use: u})
			default: // present a token
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
					if now.wall < other.wall { // not expired by the wall clock: if the store checks this use now, the next check may be lookAgain seconds later
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

// check compares the deadlines and the users' counts with the uses. They must agree whenever no
// call is running.
func check(t *testing.T, s *SingleProcess) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	scheduled, uses := make(map[token]bool), make(map[*owner]int)
	for at, list := range s.due {
		for _, d := range list {
			if at < s.next {
				t.Fatalf("a use is never looked at: it was due in second %d, and the next is %d", at, s.next)
			}
			if !d.result && scheduled[d.token] {
				t.Fatal("a use is due twice")
			}
			scheduled[d.token] = scheduled[d.token] || !d.result
		}
	}
	for id, e := range s.uses {
		if !scheduled[id] {
			t.Fatal("a use never expires")
		}
		if e.owner != nil {
			uses[e.owner]++
		}
	}
	if len(s.uses) > s.config.Capacity || len(uses) != len(s.owners) {
		t.Fatalf("%d uses of %d users are held, and %d users are counted", len(s.uses), len(uses), len(s.owners))
	}
	for _, o := range s.owners {
		if o.uses != uses[o] {
			t.Fatalf("a user has %d uses, and %d are counted", uses[o], o.uses)
		}
	}
}
