package replay

import (
	"fmt"
	"log/slog"
)

// Config has the settings of a [SingleProcess]. [NewSingleProcess] copies it. The zero
// value suits most servers.
type Config struct {
	// Capacity is how many used tokens the store can remember. A used token takes less than
	// 100 bytes of memory while the number of used tokens grows, and less than 120 while it
	// shrinks. When the store is full, it refuses new tokens. The store remembers a token for
	// its lifetime plus two minutes: 12 minutes with the boundary's default TTL. Set Capacity
	// to the largest number of tokens that are used in that time. 0 means 100,000.
	Capacity int
	// Logger gets a warning when the store is 80 % full. It gets another warning only
	// after the store was below 70 %. Nil means slog.Default().
	Logger *slog.Logger
	// Observer gets the store's level after every call that changed it, for metrics. Several
	// goroutines may call it at once. A later level may arrive before an earlier one, and a
	// level may count a few uses that have expired. So for a gauge, call
	// [SingleProcess.Level] instead. An observer may block. So with an observer, a
	// boundary calls Spend on another goroutine, and each use takes longer: see
	// [SingleProcess.NonBlocking]. Nil means no observer.
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
