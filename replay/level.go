package replay

import (
	"context"
	"log/slog"

	"github.com/tripseal/tripseal"
)

// Level is how full a store is. Show it on a dashboard: a full store refuses tokens.
type Level struct {
	Held     int // how many used tokens the store remembers now
	Capacity int // how many used tokens the store can remember
}

// Level removes all expired uses and returns how full the store is. It may be called
// at any time, for metrics.
func (s *SingleProcess) Level() Level { return s.sweep(s.now()) }

func (s *SingleProcess) sweep(now moment) Level {
	for {
		s.mu.Lock() // only for a few at a time, so that other calls can run in between
		s.watch(now)
		more, level := s.expire(now), Level{len(s.uses), s.config.Capacity}
		s.mu.Unlock()
		if !more {
			return level
		}
	}
}

// notice starts a warning if the store is nearly full. The caller holds the lock.
func (s *SingleProcess) notice() {
	switch held := len(s.uses) * 10; {
	case held >= s.config.Capacity*8 && !s.warned && !s.warning:
		s.warned, s.warning = true, true
		go s.warn() // on a goroutine, because a log may block, and Spend may not
	case held < s.config.Capacity*7:
		s.warned = false
	}
}

func (s *SingleProcess) warn() {
	level := s.Level()
	high := level.Held*10 >= level.Capacity*8 // false if the store was only full of uses that have expired
	if high {
		tripseal.Logger(s.config.Logger).LogAttrs(context.Background(), slog.LevelWarn,
			"replay: the store of used tokens is filling up and will refuse tokens when it is full: "+
				"raise replay.Config.Capacity, or lower the boundary's TTL",
			slog.Int("held", level.Held), slog.Int("capacity", level.Capacity))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warned, s.warning = s.warned && high, false
}
