package replay

import (
	"context"
	"log/slog"
	"time"

	"github.com/tripseal/tripseal"
)

// Level is how full a store is. Show it on a dashboard: a full store refuses tokens.
type Level struct {
	Held     int // how many used tokens the store remembers now
	Capacity int // how many used tokens the store can remember
}

// Level removes all expired uses and returns how full the store is. It may be called
// at any time, for metrics.
func (s *SingleProcess) Level() Level {
	s.removeExpired(s.now())
	return s.level()
}

func (s *SingleProcess) removeExpired(now moment) {
	s.watch(now)
	for more := true; more; {
		_, more = s.sweepAll(now) // a few at a time, so that other calls can run in between
	}
}

func (s *SingleProcess) level() Level { return Level{int(s.held.Load()), s.config.Capacity} }

// report passes the level to the log and to the observer. Call it without holding a lock,
// because it calls code that this package does not control.
func (s *SingleProcess) report(now moment) {
	level := s.level()
	if level.isHigh() && !s.warned.Load() {
		s.sweepAll(now) // a warning must not count uses that have expired
		level = s.level()
	}
	switch {
	case level.isHigh():
		if s.warned.CompareAndSwap(false, true) && s.warning.TryLock() {
			s.warn(level)
		}
	case level.Held*10 < level.Capacity*7 && s.warned.Load():
		s.warned.Store(false)
	}
	if s.config.Observer != nil {
		tripseal.Guard(func() error { s.config.Observer(level); return nil })
	}
}

func (l Level) isHigh() bool { return l.Held*10 >= l.Capacity*8 }

// logTimeout is the longest time that Spend waits for the log to write a warning.
const logTimeout = time.Second

// warn writes a warning to the log. It returns after logTimeout even if the log hangs,
// because Spend must not block. The caller holds the lock s.warning, and warn releases it when
// the warning is written. So at most one goroutine waits for the log.
func (s *SingleProcess) warn(level Level) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer s.warning.Unlock()
		tripseal.Logger(s.config.Logger).LogAttrs(context.Background(), slog.LevelWarn,
			"replay: the store of used tokens is filling up and will refuse tokens when it is full: "+
				"raise replay.Config.Capacity, or lower the boundary's TTL",
			slog.Int("held", level.Held), slog.Int("capacity", level.Capacity))
	}()
	select {
	case <-written:
	case <-time.After(logTimeout):
	}
}
