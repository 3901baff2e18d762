package replay

import "time"

// moment is a time by two clocks, in whole seconds since the store started.
type moment struct {
	wall    int64 // by the wall clock; tokens are dated by this clock, but somebody can set it
	running int64 // by the monotonic clock, which never goes back, but stops while the machine sleeps
}

func (s *SingleProcess) now() moment {
	now := time.Now()
	return moment{
		wall:    floorSeconds(now.Round(0).Sub(s.start.Round(0))),
		running: floorSeconds(now.Sub(s.start)),
	}
}

// maxLeap is how many seconds the wall clock may gain on the monotonic clock between two calls.
// If it gains more, the store refuses all older tokens.
const maxLeap = 60

// watch notices when the wall clock leaps ahead, and makes the store refuse all tokens that
// were issued before the leap. The reason is that the clock may have been behind when the
// store started. Then a token of an earlier process may have a date after the start of the
// store. The store cannot know whether that token was used.
func (s *SingleProcess) watch(now moment) {
	offset := now.wall - now.running
	if offset == s.offset.Load() {
		return // nearly all calls return here, and need no lock
	}
	s.leaps.Lock()
	defer s.leaps.Unlock()
	if offset-s.offset.Load() > maxLeap {
		end := s.start.Add(time.Duration(now.wall+1) * time.Second) // one second more, because now.wall is rounded down
		s.oldest.Store(max(s.oldest.Load(), end.UnixMilli()))
	}
	s.offset.Store(offset)
}

// lookAgain is for a used token that has expired by the monotonic clock, but not yet by the
// wall clock. The store keeps the token, and checks it again after at most lookAgain seconds.
const lookAgain = 60

func floorSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second < 0 {
		seconds--
	}
	return seconds
}
