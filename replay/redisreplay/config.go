package redisreplay

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Config has the settings of a [Store]. [New] copies it. The zero value suits most
// services.
type Config struct {
	// Prefix is the text that every key in Redis begins with. It has at most 128
	// characters of printable ASCII, without white space and without braces: with braces,
	// a cluster would keep all keys in one slot. "" means "tripseal:used:".
	Prefix string
	// Skew is the largest allowed difference between the clocks of any two processes that seal or
	// open tokens. If Redis may have forgotten used tokens at some time, all tokens issued before
	// that time plus Skew are refused. 0 means 1 minute; a shorter time is only for tests on one
	// machine.
	Skew time.Duration
	// Logger gets a record that says whether the server would still have all used tokens after a
	// restart. It also gets a warning whenever the server may have forgotten used tokens. Nil
	// means slog.Default().
	Logger *slog.Logger
}

const (
	defaultPrefix = "tripseal:used:"
	maxPrefix     = 128
	defaultSkew   = time.Minute
)

func (c *Config) setDefaults() error {
	if c.Prefix == "" {
		c.Prefix = defaultPrefix
	}
	if len(c.Prefix) > maxPrefix {
		return fmt.Errorf("redisreplay: Config.Prefix has %d bytes, more than %d", len(c.Prefix), maxPrefix)
	}
	if strings.ContainsFunc(c.Prefix, func(r rune) bool { return r <= ' ' || r > '~' || r == '{' || r == '}' }) {
		return fmt.Errorf("redisreplay: Config.Prefix %q has white space, a brace, or a character that is not printable ASCII: remove it", c.Prefix)
	}
	if c.Skew == 0 {
		c.Skew = defaultSkew
	}
	if c.Skew < time.Millisecond || c.Skew > time.Hour {
		return fmt.Errorf("redisreplay: Config.Skew is %v, not between 1ms and 1h", c.Skew)
	}
	return nil
}
