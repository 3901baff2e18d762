package replay

import "time"

// moment is a time, in whole seconds since the store started, by both clocks.
// The wall clock is what tokens are dated by, but it can be set. The other only
// goes forward, but stands still while a machine sleeps.
type moment struct{ wall, running int64 }

func (s *SingleProcess) now() moment {
	now := time.Now()
	return moment{
		wall:    floorSeconds(now.Round(0).Sub(s.start.Round(0))),
		running: floorSeconds(now.Sub(s.start)),
	}
}

// lookAgain is the longest that a claim whose time is over by one clock waits
// for the other: the clock that was set back may be set right again.
const lookAgain = 60

func floorSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second < 0 {
		seconds--
	}
	return seconds
}

// nextMillisecond waits for the clock to reach it. Tokens that were issued before
// the call are then dated earlier.
func nextMillisecond() time.Time {
	for before := time.Now(); ; {
		time.Sleep(before.Truncate(time.Millisecond).Add(time.Millisecond).Sub(before.Round(0)))
		now := time.Now()
		if now.UnixMilli() > before.UnixMilli() {
			return now
		}
		before = now // the clock was set back, or the sleep was short
	}
}
