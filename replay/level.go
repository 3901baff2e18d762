package replay

import (
	"context"
	"log/slog"

	"github.com/mcpseal/mcpseal/internal/callback"
)

// report tells log and observer how full the store is.
func (s *SingleProcess) report() {
	level := Level{Held: int(s.held.Load()), Capacity: s.config.Capacity}
	switch {
	case level.Held*10 >= level.Capacity*8:
		if s.warned.CompareAndSwap(false, true) {
			callback.Quietly(func() {
				s.config.Logger.LogAttrs(context.Background(), slog.LevelWarn,
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
