package redisreplay

import (
	"fmt"
	"log/slog"
	"strings"
)

// Config is how a store is set up. It is copied.
type Config struct {
	// Prefix begins every key, at most 128 characters of printable ASCII without
	// white space or braces, which would keep a cluster from spreading the keys. ""
	// means "mcpseal:used:".
	Prefix string
	// Logger gets a warning if nobody can say whether the server evicts keys. Nil
	// means slog.Default().
	Logger *slog.Logger
}

const (
	defaultPrefix = "mcpseal:used:"
	maxPrefix     = 128
)

func (c *Config) setDefaults() error {
	if c.Prefix == "" {
		c.Prefix = defaultPrefix
	}
	if len(c.Prefix) > maxPrefix {
		return fmt.Errorf("redisreplay: Config.Prefix has %d bytes, more than %d", len(c.Prefix), maxPrefix)
	}
	if strings.ContainsFunc(c.Prefix, func(r rune) bool { return r <= ' ' || r > '~' || r == '{' || r == '}' }) {
		return fmt.Errorf("redisreplay: Config.Prefix %q has a character other than printable ASCII, white space or a brace", c.Prefix)
	}
	return nil
}
