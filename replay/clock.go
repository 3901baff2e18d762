package replay

import "time"

// moment is a time by two clocks, since the store started.
type moment struct {
	wall    int64         // seconds by the wall clock; tokens are dated by this clock, but somebody can set it
	running int64         // seconds by the monotonic clock, which never goes back, but stops while the machine sleeps
	exact   time.Duration // the same as running, but not rounded down; leases end by this clock
}

func (s *SingleProcess) now() moment {
	now := time.Now()
	exact := now.Sub(s.start)
	return moment{floorSeconds(now.Round(0).Sub(s.start.Round(0))), floorSeconds(exact), exact}
}

// maxLeap is how many seconds the wall clock may gain on the monotonic clock between two calls.
// If it gains more, the store refuses all older tokens.
const maxLeap = 60

// watch notices when the wall clock leaps ahead, and makes the store refuse all tokens that were
// issued before the leap: the clock may have been behind when the store started. Then a token of
// an earlier process, which may have been used, may have a date after the start of the store.
func (s *SingleProcess) watch(now moment) {
	offset := now.wall - now.running
	if offset-s.offset > maxLeap {
		end := s.start.Add(time.Duration(now.wall+1) * time.Second) // one second more, because now.wall is rounded down
		s.oldest = max(s.oldest, end.UnixMilli())
	}
	s.offset = offset
}

func floorSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second < 0 {
		seconds--
	}
	return seconds
}
