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

// maxLeap is how far the wall clock may get ahead between two calls, in seconds.
const maxLeap = 60

// watch looks for a wall clock that leaps ahead: it was behind, perhaps already
// when the store started, or the machine slept. Tokens that an earlier process
// issued, and saw used, may then be dated after the start of the store. So all
// that was issued before is as old as what was issued before the start.
func (s *SingleProcess) watch(now moment) {
	offset := now.wall - now.running
	if offset-s.offset > maxLeap {
		end := s.start.Add(time.Duration(now.wall+1) * time.Second) // now is rounded down
		s.oldest = max(s.oldest, end.UnixMilli())
	}
	s.offset = offset
}

// lookAgain is the longest that a use which has expired by one clock waits
// for the other: the clock that was set back may be set right again.
const lookAgain = 60

func floorSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second < 0 {
		seconds--
	}
	return seconds
}
