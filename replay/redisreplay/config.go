package redisreplay

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
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
	// Durable says that a restart of this Redis loses nothing, so that users need not start over
	// after it. New then demands appendonly yes, appendfsync always, no-appendfsync-on-rewrite no,
	// and no replicas. Never promote a replica of such a server.
	Durable bool
	// MaxResult is the largest sealed result that the store keeps, in bytes. Sealing makes a result
	// a third larger. 0 means 96 KiB, enough for a result of 64 KiB.
	MaxResult int
	// Logger gets a warning whenever the server may have forgotten used tokens. Nil means
	// slog.Default().
	Logger *slog.Logger
}

func (c *Config) setDefaults() error {
	c.Prefix, c.Skew, c.MaxResult = cmp.Or(c.Prefix, "tripseal:used:"), cmp.Or(c.Skew, time.Minute), cmp.Or(c.MaxResult, 96<<10)
	switch {
	case len(c.Prefix) > 128:
		return fmt.Errorf("redisreplay: Config.Prefix has %d bytes, more than 128", len(c.Prefix))
	case strings.ContainsFunc(c.Prefix, func(r rune) bool { return r <= ' ' || r > '~' || r == '{' || r == '}' }):
		return fmt.Errorf("redisreplay: Config.Prefix %q has white space, a brace, or a character that is not printable ASCII: remove it", c.Prefix)
	case c.Skew < time.Millisecond || c.Skew > time.Hour:
		return fmt.Errorf("redisreplay: Config.Skew is %v, not between 1ms and 1h", c.Skew)
	case c.MaxResult < 1 || c.MaxResult > 16<<20:
		return fmt.Errorf("redisreplay: Config.MaxResult is %d, not between 1 and 16 MiB", c.MaxResult)
	}
	return nil
}

// checkClient returns an error if a token could be spent twice with this client, or if
// Spend could take longer than its context allows.
func checkClient(client redis.UniversalClient) error {
	endsWithContext := false
	switch c := client.(type) {
	case *redis.Client: // a client of one server, or of a master found by Sentinel
		endsWithContext = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		endsWithContext = c.Options().ContextTimeoutEnabled
	default: // a *redis.Ring moves keys to another server when one is away, so that a token could be spent on both
		return fmt.Errorf("redisreplay: the client is a %T: pass a *redis.Client, also for Sentinel, or a *redis.ClusterClient", client)
	}
	if !endsWithContext {
		return errors.New("redisreplay: the client ignores the deadlines of contexts, so that a slow Redis would hold up requests: " +
			"set ContextTimeoutEnabled: true in its options")
	}
	return nil
}
