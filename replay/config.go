package replay

import (
	"cmp"
	"fmt"
	"log/slog"
)

// Config has the settings of a [SingleProcess]. [NewSingleProcess] copies it. The zero
// value suits most servers.
type Config struct {
	// Capacity is how many used tokens the store can remember. A used token takes about 100 bytes,
	// and about 100 more if it has a user or a result. The store remembers a token for its lifetime
	// plus two minutes: 12 minutes with the boundary's default TTL. Set Capacity to the largest
	// number of tokens that are used in that time. 0 means 100,000.
	Capacity int
	// MaxResult is the largest sealed result that the store keeps, in bytes. Sealing makes a result
	// a third larger. 0 means 96 KiB, enough for a result of 64 KiB.
	MaxResult int
	// Bytes is how many bytes all results may take; those of one user take at most a tenth, or one
	// MaxResult. A result that has no room is not kept, and its token stays used. 0 means 64 MiB.
	Bytes int
	// Logger gets a warning when the store is 80 % full. It gets another warning only
	// after the store was below 70 %. Nil means slog.Default().
	Logger *slog.Logger
}

func (c *Config) setDefaults() error {
	c.Capacity, c.MaxResult, c.Bytes = cmp.Or(c.Capacity, 100_000), cmp.Or(c.MaxResult, 96<<10), cmp.Or(c.Bytes, 64<<20)
	switch {
	case c.Capacity < 1 || c.Capacity > 100_000_000:
		return fmt.Errorf("replay: Config.Capacity is %d, not between 1 and 100000000", c.Capacity)
	case c.MaxResult < 1 || c.MaxResult > c.Bytes || c.Bytes > 1<<30:
		return fmt.Errorf("replay: Config.MaxResult %d and Config.Bytes %d are not in this order between 1 and 2^30", c.MaxResult, c.Bytes)
	}
	return nil
}
