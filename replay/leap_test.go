package replay

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

// refuse presents a token that was issued in the given second. The store must refuse the token
// with the given error.
func (c *clocks) refuse(t *testing.T, token uint64, issued int64, want error) {
	t.Helper()
	u := c.useAt(token)
	u.Issued = c.start.Add(time.Duration(issued) * time.Second)
	if first, err := c.spend(context.Background(), c.moment, u); first || !errors.Is(err, want) {
		t.Fatalf("Spend = %v, %v, want %v", first, err, want)
	}
}

// TestAfterALeapOfTheClockOlderTokensAreRefused starts a store while the wall clock is an hour
// behind, and then sets the clock right. A token of an earlier process, whose clock was right, may
// be dated later than the start of the store. The store cannot know whether this token was used, so
// it must refuse the token.
func TestAfterALeapOfTheClockOlderTokensAreRefused(t *testing.T) {
	for name, first := range map[string]bool{"before the first use": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			c := newClocks(t, 1000)
			if !first {
				c.pass(100)
				c.mustSpend(t, c.useAt(1), true)
			}
			c.wall += 3600
			c.pass(5)
			c.refuse(t, 2, c.wall-300, errTooOld) // may have been used in an earlier process
			c.refuse(t, 3, c.wall, errTooOld)     // issued in the second in which the store notices the leap
			c.pass(1)
			c.refuse(t, 2, c.wall-300, errTooOld)
			c.mustSpend(t, c.useAt(4), true)
			c.mustSpend(t, c.useAt(4), false)
		})
	}
}

func TestWhatWasUsedIsStillRecognisedAfterALeap(t *testing.T) {
	c := newClocks(t, 1000)
	u := c.useAt(1)
	c.mustSpend(t, u, true)
	c.wall += 300
	c.mustSpend(t, u, false)
	c.refuse(t, 2, 0, errTooOld)
}

// TestALeapIsMoreThanAMinute issues a token, sets the wall clock ahead, and then presents the
// token. The store refuses the token only if the clock is set ahead by more than a minute, as
// docs/operations.md says.
func TestALeapIsMoreThanAMinute(t *testing.T) {
	for _, c := range []struct {
		ahead int64
		leap  bool
	}{{59, false}, {60, false}, {61, true}, {120, true}} {
		clocks := newClocks(t, 1000)
		clocks.pass(100)
		before := clocks.useAt(1)
		clocks.wall += c.ahead
		first, err := clocks.spend(context.Background(), clocks.moment, before)
		if c.leap != errors.Is(err, errTooOld) || c.leap == first {
			t.Errorf("%d seconds ahead: Spend = %v, %v", c.ahead, first, err)
		}
	}
}

// TestADriftingClockRefusesNobody lets the wall clock gain an hour, but never
// more than a minute between two uses.
func TestADriftingClockRefusesNobody(t *testing.T) {
	for _, step := range []int64{1, maxLeap} {
		c := newClocks(t, 10_000)
		for i := range uint64(3600 / step) {
			u := c.useAt(i)
			c.wall += step
			c.pass(10)
			c.mustSpend(t, u, true)
		}
	}
}

// TestALeapIsSeenFromTheLastUseOn sets the wall clock back by 50 seconds, and later ahead by
// 50 seconds: the store refuses no token. Then the test sets the clock ahead by more than a
// minute: the store refuses older tokens.
func TestALeapIsSeenFromTheLastUseOn(t *testing.T) {
	c := newClocks(t, 1000)
	c.wall -= 50
	c.pass(100)
	c.mustSpend(t, c.useAt(1), true)
	u := c.useAt(2)
	c.wall += 50 // right again
	c.mustSpend(t, u, true)
	c.wall += maxLeap + 1
	c.refuse(t, 3, c.wall-maxLeap-1, errTooOld)
	c.pass(1)
	c.mustSpend(t, c.useAt(4), true)
}

// TestNobodyWinsAnOldTokenWhileALeapIsNoticed presents old tokens from several goroutines just
// after a leap of the clock. Any of these goroutines can be the first to notice the leap.
func TestNobodyWinsAnOldTokenWhileALeapIsNoticed(t *testing.T) {
	for range 3000 {
		c := &clocks{SingleProcess: newSingleProcess(Config{Capacity: 100, Logger: slog.New(slog.DiscardHandler)}, time.Now())}
		c.pass(100)
		var old [8]tripseal.Use
		for i := range old {
			old[i] = c.useAt(uint64(i))
		}
		c.wall += 300
		var group sync.WaitGroup
		for _, u := range old {
			group.Go(func() {
				if first, err := c.spend(context.Background(), c.moment, u); first || !errors.Is(err, errTooOld) {
					t.Errorf("Spend = %v, %v", first, err)
				}
			})
		}
		group.Wait()
	}
}
