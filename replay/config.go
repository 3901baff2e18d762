package replay

import (
	"fmt"
	"log/slog"
)

// Config is how a store is set up. It is copied.
type Config struct {
	// Capacity is how many uses the store holds, at less than 100 bytes each; more are
	// refused. Take the most tokens that are used in one lifetime: with
	// the boundary's default of 10 minutes, in 12. 0 means 100,000.
	Capacity int
	// Logger gets a warning when the store is 80 % full, and again once it was
	// below 70 %. Nil means slog.Default().
	Logger *slog.Logger
	// Observer gets the level after every call that changed it, for metrics.
	// Several goroutines may call it at once, and a later level may arrive before
	// an earlier one: for a gauge, ask [SingleProcess.Level]. Nil means nobody does.
	Observer func(Level)
}

const (
	defaultCapacity = 100_000
	maxCapacity     = 100_000_000
)

func (c *Config) setDefaults() error {
	if c.Capacity == 0 {
		c.Capacity = defaultCapacity
	}
	if c.Capacity < 1 || c.Capacity > maxCapacity {
		return fmt.Errorf("replay: Config.Capacity is %d, not between 1 and %d", c.Capacity, maxCapacity)
	}
	return nil
}
