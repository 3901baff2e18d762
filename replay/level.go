package replay

import (
	"context"
	"log/slog"
	"time"

	"github.com/mcpseal/mcpseal"
)

// Level is how full a store is. Show it on a dashboard: a full store refuses tokens.
type Level struct {
	Held     int // how many used tokens the store remembers now
	Capacity int // how many used tokens the store can remember
}

// Level removes all expired uses and returns how full the store is. It may be called
// at any time, for metrics.
func (s *SingleProcess) Level() Level {
	for now := s.now(); ; {
		if level, more := s.sweepOnce(now); !more {
			return level
		}
	}
}

// sweepOnce removes a few expired uses, and then releases the lock so that other calls
// can run. It reports whether any expired uses are left.
func (s *SingleProcess) sweepOnce(now moment) (level Level, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch(now)
	more = s.sweep(now)
	return s.level(), more
}

func (s *SingleProcess) level() Level { return Level{s.used.len(), s.config.Capacity} }

// report passes the level to the log and to the observer. Call it without holding the lock,
// because it calls code that this package does not control.
func (s *SingleProcess) report(level Level) {
	switch {
	case level.Held*10 >= level.Capacity*8:
		if s.warned.CompareAndSwap(false, true) && s.warning.TryLock() {
			s.warn(level)
		}
	case level.Held*10 < level.Capacity*7:
		s.warned.Store(false)
	}
	if s.config.Observer != nil {
		mcpseal.Guard(func() error { s.config.Observer(level); return nil })
	}
}

// logTimeout is how long Spend waits until the log has written a warning.
const logTimeout = time.Second

// warn writes a warning to the log. It returns after logTimeout even if the log hangs,
// because Spend must not block. Call it only while holding s.warning, so that at most one
// goroutine waits for the log.
func (s *SingleProcess) warn(level Level) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer s.warning.Unlock()
		mcpseal.Logger(s.config.Logger).LogAttrs(context.Background(), slog.LevelWarn,
			"replay: the store of used tokens is filling up and will refuse tokens when it is full: "+
				"raise replay.Config.Capacity, or lower the boundary's TTL",
			slog.Int("held", level.Held), slog.Int("capacity", level.Capacity))
	}()
	select {
	case <-written:
	case <-time.After(logTimeout):
	}
}
