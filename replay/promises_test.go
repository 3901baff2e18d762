package replay_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay"
)

// This function returns a [tripseal.Use] for the token and the user with these numbers. If the
// user's number is 0, there is no user.
func use(token, owner uint64, lasts time.Duration) tripseal.Use {
	u := tripseal.Use{Round: 1, Issued: time.Now().Truncate(time.Millisecond), Until: time.Now().Add(lasts)}
	binary.BigEndian.PutUint64(u.Flow[8:], token)
	binary.BigEndian.PutUint64(u.Owner[:], owner)
	return u
}

func spend(t *testing.T, store *replay.SingleProcess, u tripseal.Use, want bool) {
	t.Helper()
	if first, err := store.Spend(context.Background(), u); err != nil || first != want {
		t.Fatalf("Spend = %v, %v, want %v", first, err, want)
	}
}

func refuse(t *testing.T, store *replay.SingleProcess, u tripseal.Use, want error) {
	t.Helper()
	first, err := store.Spend(context.Background(), u)
	if first || err == nil || want != nil && !errors.Is(err, want) {
		t.Fatalf("Spend = %v, %v, want %v", first, err, want)
	}
}

func TestAFullStoreRefusesAndForgetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, replay.Config{Capacity: 100})
		for i := range uint64(100) {
			spend(t, store, use(i, 0, time.Minute), true)
		}
		for i := range uint64(1000) {
			refuse(t, store, use(1000+i, 0, time.Minute), replay.ErrFull)
		}
		for i := range uint64(100) {
			spend(t, store, use(i, 0, time.Minute), false)
		}
	})
}

func TestAUseIsKeptUntilItsTimeAndFreedSoonAfter(t *testing.T) {
	for _, lasts := range []time.Duration{time.Millisecond, 999 * time.Millisecond, time.Second, 1500 * time.Millisecond, 12 * time.Minute, 10 * 365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(123456 * time.Microsecond)
			store := newStore(t, replay.Config{Capacity: 1})
			time.Sleep(654321 * time.Microsecond)
			u := use(1, 0, lasts)
			spend(t, store, u, true)
			time.Sleep(lasts - time.Nanosecond)
			spend(t, store, u, false)
			refuse(t, store, use(2, 0, time.Hour), replay.ErrFull)
			time.Sleep(2*time.Second + time.Nanosecond)
			spend(t, store, use(2, 0, time.Hour), true)
		})
	}
}

func TestOneUserHoldsATenthOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, replay.Config{Capacity: 100})
		for i := range uint64(10) {
			spend(t, store, use(i, 7, time.Minute), true)
		}
		for i := range uint64(50) {
			refuse(t, store, use(100+i, 7, time.Minute), replay.ErrOwnerFull)
		}
		spend(t, store, use(3, 7, time.Minute), false)
		spend(t, store, use(200, 8, time.Minute), true)
		spend(t, store, use(100, 0, time.Minute), true) // token 100 was refused above, and so was not spent

		time.Sleep(62 * time.Second)
		for i := range uint64(10) {
			spend(t, store, use(300+i, 7, time.Minute), true)
		}
		refuse(t, store, use(400, 7, time.Minute), replay.ErrOwnerFull)
	})
}

func TestTheSmallestStoreHasRoomForAUser(t *testing.T) {
	store := newStore(t, replay.Config{Capacity: 1})
	spend(t, store, use(1, 7, time.Minute), true)
	refuse(t, store, use(2, 7, time.Minute), replay.ErrOwnerFull)
	refuse(t, store, use(2, 8, time.Minute), replay.ErrFull)
}

func TestNobodyHasNoQuota(t *testing.T) {
	store := newStore(t, replay.Config{Capacity: 100})
	for i := range uint64(100) {
		spend(t, store, use(i, 0, time.Minute), true)
	}
	refuse(t, store, use(100, 0, time.Minute), replay.ErrFull)
}

func TestAUserWhoseShortNameIsZeroIsNotNobody(t *testing.T) {
	store := newStore(t, replay.Config{Capacity: 10})
	u := use(1, 0, time.Minute)
	u.Owner[15] = 1
	spend(t, store, u, true)
	u.Flow[0] = 1
	refuse(t, store, u, replay.ErrOwnerFull)
}

// TestARefusedUseLeavesNothingBehind would fail if a user's count went up for
// a token that did not fit.
func TestARefusedUseLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, replay.Config{Capacity: 20})
		for i := range uint64(20) {
			spend(t, store, use(i, 0, time.Minute), true)
		}
		for i := range uint64(50) {
			refuse(t, store, use(100+i, 7, time.Hour), replay.ErrFull)
		}
		time.Sleep(62 * time.Second)
		spend(t, store, use(1000, 7, time.Minute), true)
		spend(t, store, use(1001, 7, time.Minute), true)
		refuse(t, store, use(1002, 7, time.Minute), replay.ErrOwnerFull)
	})
}

func TestATokenOlderThanTheStoreIsRefused(t *testing.T) {
	for range 200 {
		before := use(1, 0, time.Minute)
		store := newStore(t, replay.Config{})
		after := use(2, 0, time.Minute)
		refuse(t, store, before, nil)
		spend(t, store, after, true)
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	store := newStore(t, replay.Config{})
	for name, spoil := range map[string]func(*tripseal.Use){
		"a negative round":       func(u *tripseal.Use) { u.Round = -1 },
		"the lowest round":       func(u *tripseal.Use) { u.Round = math.MinInt },
		"a round past 16 bits":   func(u *tripseal.Use) { u.Round = 1 << 16 },
		"the highest round":      func(u *tripseal.Use) { u.Round = math.MaxInt },
		"no issue":               func(u *tripseal.Use) { u.Issued = time.Time{} },
		"issued in 1970":         func(u *tripseal.Use) { u.Issued = time.UnixMilli(0) },
		"no end":                 func(u *tripseal.Use) { u.Until = time.Time{} },
		"over":                   func(u *tripseal.Use) { u.Until = time.Now().Add(-2 * time.Second) },
		"in 200 years":           func(u *tripseal.Use) { u.Until = time.Now().AddDate(200, 0, 0) },
		"in 136 years and a bit": func(u *tripseal.Use) { u.Until = time.Now().Add(math.MaxUint32 * time.Second) },
		"in 5000 years":          func(u *tripseal.Use) { u.Until = time.Now().AddDate(5000, 0, 0) },
		"the last millisecond":   func(u *tripseal.Use) { u.Until = time.UnixMilli(math.MaxInt64) },
		"the first millisecond":  func(u *tripseal.Use) { u.Until = time.UnixMilli(math.MinInt64) },
	} {
		u := use(1, 0, time.Minute)
		spoil(&u)
		for range 2 {
			if first, err := store.Spend(context.Background(), u); first || err == nil {
				t.Errorf("%s: Spend = %v, %v", name, first, err)
			}
		}
	}
	spend(t, store, use(1, 0, time.Minute), true)
	last := use(2, 0, 135*365*24*time.Hour)
	last.Round = 1<<16 - 1
	spend(t, store, last, true)
}

// TestTheBoundIsExactUnderRaces fills a store exactly to its capacity, from many
// goroutines.
func TestTheBoundIsExactUnderRaces(t *testing.T) {
	const tokens, goroutines = 10_000, 64
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, replay.Config{Capacity: tokens})
		for round := range uint64(3) {
			var winners [tokens]atomic.Int32
			var group sync.WaitGroup
			for g := range goroutines {
				group.Go(func() {
					for i := range tokens {
						i = (i + g*37) % tokens
						first, err := store.Spend(context.Background(), use(round<<32|uint64(i), uint64(i)+1, time.Minute))
						if err != nil {
							t.Error(err)
						}
						if first {
							winners[i].Add(1)
						}
					}
				})
			}
			group.Wait()
			for i := range winners {
				if n := winners[i].Load(); n != 1 {
					t.Fatalf("token %d was won %d times", i, n)
				}
			}
			// The store is full now, and refuses one more token from each goroutine.
			for g := range uint64(goroutines) {
				group.Go(func() { refuse(t, store, use(round<<32|1<<20|g, 0, time.Minute), replay.ErrFull) })
			}
			group.Wait()
			time.Sleep(62 * time.Second)
		}
	})
}

// TestRacesForTheLastPlaces uses more tokens at once than the store has room for.
func TestRacesForTheLastPlaces(t *testing.T) {
	const capacity = 50
	for range 50 {
		store := newStore(t, replay.Config{Capacity: capacity})
		var won, full atomic.Int32
		var group sync.WaitGroup
		for g := range uint64(8) {
			group.Go(func() {
				for i := range uint64(20) {
					first, err := store.Spend(context.Background(), use(g<<8|i, g<<8|i|1<<20, time.Minute))
					switch {
					case first:
						won.Add(1)
					case errors.Is(err, replay.ErrFull):
						full.Add(1)
					default:
						t.Errorf("Spend = %v, %v", first, err)
					}
				}
			})
		}
		group.Wait()
		if won.Load() != capacity || full.Load() != 8*20-capacity {
			t.Fatalf("%d won and %d refused of %d places", won.Load(), full.Load(), capacity)
		}
	}
}

// TestExpiredUsesMakeRoomWhereverTheyAre fills a store, and lets one use expire every minute.
// Each time there is room for one more token.
func TestExpiredUsesMakeRoomWhereverTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, replay.Config{Capacity: 100})
		for i := range uint64(100) {
			spend(t, store, use(i, 0, time.Duration(i+1)*time.Minute), true)
		}
		time.Sleep(2 * time.Second)
		for i := range uint64(100) {
			refuse(t, store, use(1000+i, 0, 1000*time.Minute), replay.ErrFull)
			time.Sleep(time.Minute)
			spend(t, store, use(1000+i, 0, 1000*time.Minute), true)
		}
	})
}
