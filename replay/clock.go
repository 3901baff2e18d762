package replay

import "time"

// moment is a time by both clocks, in whole seconds since the store started. Tokens
// are dated by the wall clock, but it can be set. The monotonic clock, running, only
// goes forward, but it stops while the machine sleeps.
type moment struct{ wall, running int64 }

func (s *SingleProcess) now() moment {
	now := time.Now()
	return moment{
		wall:    floorSeconds(now.Round(0).Sub(s.start.Round(0))),
		running: floorSeconds(now.Sub(s.start)),
	}
}

// maxLeap is how far the wall clock may leap ahead between two calls, in seconds.
const maxLeap = 60

// watch notices when the wall clock leaps ahead. Either the clock was behind, perhaps
// since before the store started, or the machine slept. A token that was issued and used
// under an earlier process may then be dated after the start of the store. So all
// tokens issued before the leap are refused, like those issued before the start.
func (s *SingleProcess) watch(now moment) {
	offset := now.wall - now.running
	if offset-s.offset > maxLeap {
		end := s.start.Add(time.Duration(now.wall+1) * time.Second) // one second more, because now.wall is rounded down
		s.oldest = max(s.oldest, end.UnixMilli())
	}
	s.offset = offset
}

// lookAgain is how many seconds may pass before a use that has expired by the monotonic
// clock only is checked again: meanwhile, a wall clock that was set back may be set
// right.
const lookAgain = 60

func floorSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second < 0 {
		seconds--
	}
	return seconds
}
