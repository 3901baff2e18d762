package replay

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/mcpseal/mcpseal/internal/callback"
)

// Level returns how full the store is, once all that is over is gone: claims
// remove only some of it. Metrics may ask for it at any time.
func (s *SingleProcess) Level() Level {
	now := s.now()
	s.watch(now)
	for more := true; more; { // a few at a time, so that claims come in between
		_, more = s.sweep(now)
	}
	return s.level()
}

func (s *SingleProcess) level() Level {
	return Level{Held: int(s.held.Load()), Capacity: s.config.Capacity}
}

// report tells log and observer how full the store is.
func (s *SingleProcess) report() {
	level := s.level()
	switch {
	case level.Held*10 >= level.Capacity*8:
		if s.warned.CompareAndSwap(false, true) {
			callback.Quietly(func() {
				cmp.Or(s.config.Logger, slog.Default()).LogAttrs(context.Background(), slog.LevelWarn,
					"replay: the store of used tokens is filling up and will refuse tokens when it is full: "+
						"raise replay.Config.Capacity, or lower the boundary's TTL",
					slog.Int("held", level.Held), slog.Int("capacity", level.Capacity))
			})
		}
	case level.Held*10 < level.Capacity*7:
		s.warned.Store(false)
	}
	if s.config.Observer != nil {
		callback.Quietly(func() { s.config.Observer(level) })
	}
}
