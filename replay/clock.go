package replay

import "time"

// moment is a time by two clocks, in whole seconds since the store started. wall is by the
// wall clock: it dates tokens, but it can be set. running is by the monotonic clock: it
// only goes forward, but it stops while the machine sleeps.
type moment struct{ wall, running int64 }

func (s *SingleProcess) now() moment {
	now := time.Now()
	return moment{
		wall:    floorSeconds(now.Round(0).Sub(s.start.Round(0))),
		running: floorSeconds(now.Sub(s.start)),
	}
}

// maxLeap is how many seconds the wall clock may gain on the monotonic clock between two
// calls. If it gains more, watch refuses older tokens.
const maxLeap = 60

// watch notices when the wall clock leaps ahead, and makes the store refuse all tokens that
// were issued before the leap. The clock may have been behind since before the store
// started. A token that was issued and used in an earlier process may then have a date
// after the start of the store, so the store cannot know that it was used.
func (s *SingleProcess) watch(now moment) {
	offset := now.wall - now.running
	if offset-s.offset > maxLeap {
		end := s.start.Add(time.Duration(now.wall+1) * time.Second) // one second more, because now.wall is rounded down
		s.oldest = max(s.oldest, end.UnixMilli())
	}
	s.offset = offset
}

// lookAgain is after how many seconds, at most, a use that has expired by the monotonic
// clock but not by the wall clock is checked again.
const lookAgain = 60

func floorSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second < 0 {
		seconds--
	}
	return seconds
}
