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

// clocks is a store whose wall clock and monotonic clock are set by a test.
type clocks struct {
	*SingleProcess
	moment
}

func newClocks(t *testing.T, capacity int) *clocks {
	t.Helper()
	store, err := NewSingleProcess(Config{Capacity: capacity, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return &clocks{SingleProcess: store}
}

func (c *clocks) pass(seconds int64) { c.wall += seconds; c.running += seconds }

// settle lets the store notice a leap of the clock, and then sets both clocks one second ahead.
// The store accepts the tokens that are issued after that.
func (c *clocks) settle() {
	c.drain(c.moment)
	c.pass(1)
}

func (s *SingleProcess) drain(now moment) { s.sweep(now) }

// spend uses a token at the given time.
func (s *SingleProcess) spend(ctx context.Context, now moment, use tripseal.Use) (bool, error) {
	begun, err := s.begin(ctx, now, use, nil)
	return begun.State == tripseal.CallFirst, err
}

// useAt returns a use of the token with this number. The token is issued now, and the store
// must remember its use for 12 minutes.
func (c *clocks) useAt(token uint64) tripseal.Use {
	now := c.start.Add(time.Duration(c.wall) * time.Second)
	u := tripseal.Use{Round: 1, Issued: now, Until: now.Add(12 * time.Minute)}
	binary.BigEndian.PutUint64(u.Flow[:], token)
	return u
}

// opens reports whether a boundary would accept the dates of the token, and so ask the store
// about it.
func (c *clocks) opens(u tripseal.Use) bool {
	now := c.start.Add(time.Duration(c.wall) * time.Second)
	return now.Before(u.Until.Add(-2*time.Minute)) && !u.Issued.After(now.Add(time.Minute))
}

func (c *clocks) mustSpend(t *testing.T, u tripseal.Use, want bool) {
	t.Helper()
	if first, err := c.spend(context.Background(), c.moment, u); err != nil || first != want {
		t.Fatalf("with the wall clock at %d and the other at %d, Spend = %v, %v, want %v", c.wall, c.running, first, err, want)
	}
}

func TestAClockThatJumpsDoesNotMakeATokenWorkTwice(t *testing.T) {
	for name, jump := range map[string]func(*clocks, func()){
		"ahead and back":           func(c *clocks, look func()) { c.wall += 3600; look(); c.wall -= 3600 },
		"ahead a decade, and back": func(c *clocks, look func()) { c.wall += 315e6; look(); c.wall -= 315e6 },
		"back":                     func(c *clocks, look func()) { c.wall -= 30; look(); c.pass(610); look() },
		"back and ahead":           func(c *clocks, look func()) { c.wall -= 3600; look(); c.wall += 3600; look() },
		"back, ahead and back":     func(c *clocks, look func()) { c.wall -= 3600; look(); c.wall += 7200; look(); c.wall -= 3600 },
		"back for half an hour":    func(c *clocks, look func()) { c.wall -= 1800; c.pass(1799); look() },
		"asleep":                   func(c *clocks, look func()) { c.wall += 500; look(); c.pass(90) },
		"asleep, then set back":    func(c *clocks, look func()) { c.wall += 8 * 3600; look(); c.wall -= 8 * 3600; look(); c.pass(100) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, behind := range []int64{0, -30, 5000} { // the error of the wall clock, in seconds, when the token was issued
				c := newClocks(t, 1000)
				c.pass(10_000)
				c.wall += behind
				c.settle()
				u := c.useAt(1)
				c.mustSpend(t, u, true)
				jump(c, func() {
					for i := range uint64(50) { // so many tokens that most shards of the store get one
						fresh := c.useAt(1000 + i + uint64(c.wall)<<10)
						fresh.Issued = fresh.Issued.Add(time.Second) // so that the store accepts the token even just after a leap
						c.spend(context.Background(), c.moment, fresh)
					}
				})
				if !c.opens(u) {
					t.Fatal("the token does not open any more: the test shows nothing")
				}
				c.mustSpend(t, u, false)
			}
		})
	}
}

// TestAClockThatIsSetBackDoesNotBringBackWhatWasForgotten lets a use expire by both clocks, so
// that the store forgets it. Then it sets the wall clock back to a time at which the token opens
// again. The store must refuse the token.
func TestAClockThatIsSetBackDoesNotBringBackWhatWasForgotten(t *testing.T) {
	c := newClocks(t, 1000)
	u := c.useAt(1)
	c.mustSpend(t, u, true)
	c.pass(13 * 60)
	c.mustSpend(t, c.useAt(2), true)
	if len(c.uses) != 1 {
		t.Fatal("the use is not forgotten: the test shows nothing")
	}
	c.wall -= 10 * 60
	if !c.opens(u) {
		t.Fatal("the token does not open any more: the test shows nothing")
	}
	if first, err := c.spend(context.Background(), c.moment, u); first || !errors.Is(err, errSetBack) {
		t.Fatalf("Spend = %v, %v", first, err)
	}
	c.mustSpend(t, c.useAt(3), true) // it expires later than the use that was forgotten
	c.wall -= 60 * 60
	fresh := c.useAt(4)
	fresh.Issued = c.start
	if first, err := c.spend(context.Background(), c.moment, fresh); first || err == nil {
		t.Fatalf("Spend = %v, %v", first, err)
	}
}

func TestAUseIsFreedWhenBothClocksSaySo(t *testing.T) {
	full := func(t *testing.T) *clocks {
		c := newClocks(t, 1)
		c.mustSpend(t, c.useAt(1), true)
		return c
	}
	refuse := func(t *testing.T, c *clocks) {
		t.Helper()
		if first, err := c.spend(context.Background(), c.moment, c.useAt(2)); first || err != ErrFull {
			t.Fatalf("Spend = %v, %v", first, err)
		}
	}
	const lasts = 12*60 + 2
	t.Run("both", func(t *testing.T) {
		c := full(t)
		c.pass(lasts)
		c.mustSpend(t, c.useAt(2), true)
	})
	t.Run("the wall clock ahead", func(t *testing.T) {
		c := full(t)
		c.wall += lasts
		c.settle()
		refuse(t, c)
		c.pass(lasts)
		c.mustSpend(t, c.useAt(2), true)
	})
	t.Run("the wall clock behind, then right again", func(t *testing.T) {
		c := full(t)
		c.pass(100)
		c.wall -= 90
		c.pass(lasts - 100)
		refuse(t, c)
		c.wall += 90
		c.settle()
		c.pass(lookAgain)
		c.mustSpend(t, c.useAt(2), true)
	})
	t.Run("the machine asleep for a year, then a new use", func(t *testing.T) {
		c := newClocks(t, 1)
		c.wall += 365 * 86400
		c.settle()
		c.mustSpend(t, c.useAt(1), true)
		c.pass(lasts)
		c.mustSpend(t, c.useAt(2), true)
	})
}

func TestUsesThatWaitForAClockDoNotHoldUpOthers(t *testing.T) {
	c := newClocks(t, 100)
	c.wall += 3600 // wrong by an hour
	c.settle()
	for i := range uint64(50) {
		c.mustSpend(t, c.useAt(i), true)
	}
	c.wall -= 3600 // and right again
	c.oldest = 0   // otherwise the store refuses new tokens for the next hour
	for i := range uint64(50) {
		c.mustSpend(t, c.useAt(100+i), true)
	}
	c.pass(722)
	for i := range uint64(50) {
		c.mustSpend(t, c.useAt(200+i), true)
	}
	if len(c.uses) != 100 {
		t.Errorf("%d uses are held, want the 50 of the wrong hour and the 50 new ones", len(c.uses))
	}
	c.pass(3600)
	c.drain(c.moment)
	c.mustSpend(t, c.useAt(300), true)
	if len(c.uses) != 1 {
		t.Errorf("%d uses are held, want 1", len(c.uses))
	}
}
