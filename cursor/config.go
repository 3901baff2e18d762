package cursor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/strictjson"
)

// Config says how cursors are sealed, bound and limited. Pass it to [New], which copies it. Set
// Keys and Audience; zero is a good choice for the other fields.
type Config struct {
	// Keys seals and opens cursors. Required, unless Codec is set. Use the ring of your
	// boundary: the ring derives separate keys for cursors.
	Keys tripseal.KeySource
	// Codec seals and opens cursors in place of Keys. Set it if the key is not in this
	// process, but for example in an HSM.
	Codec tripseal.Codec
	// Audience names this service, in at most 1024 bytes. Services with different names
	// refuse each other's cursors even if they share keys. Required.
	Audience string
	// Epoch names the version of the data that positions refer to, in at most 1024 bytes. A
	// change of the epoch makes all earlier cursors invalid: change it, for example, after a
	// change of the schema. The empty string is a valid epoch.
	Epoch string
	// RequireUser means that a call without a user can neither get nor use a cursor. Shared cursors
	// are an exception: see [NextPage.Shared]. Set RequireUser if every caller signs in.
	RequireUser bool
	// TTL is the lifetime of a cursor. 0 means 1 hour. A cursor keeps the TTL that it was
	// issued with.
	TTL time.Duration
	// MaxPosition is the greatest length of a position, in bytes. 0 means 256; with this
	// default, a cursor has at most 512 characters.
	MaxPosition int
	// MaxArguments is the greatest length of a request's arguments, in bytes of JSON. 0
	// means 4 MiB.
	MaxArguments int
	// Logger gets one log record for each rejection. Nil means slog.Default().
	Logger *slog.Logger
	// Observer gets an event, for metrics, after each attempt to issue or open a cursor. Nil
	// means no observer.
	Observer func(context.Context, tripseal.Event)
}

const (
	defaultTTL         = time.Hour
	defaultMaxPosition = 256

	defaultMaxArguments = 4 << 20

	maxName     = 1024
	maxTTL      = 365 * 24 * time.Hour
	maxPosition = 32 << 10
	clockSkew   = 60 * time.Second
)

// ConfigOf returns a Config for cursors that takes its keys, Audience, RequireUser, MaxArguments,
// Logger and Observer from a boundary. It returns false if the boundary has neither a ring nor a
// codec. If boundaries have no audience and share one [tripseal.Ephemeral] ring, they accept each
// other's cursors. Use ConfigOf on a server that has a boundary, change what must differ, and pass
// the Config to [New].
func ConfigOf(boundary *tripseal.Boundary) (config Config, ok bool) {
	codec := boundary.Codec(tripseal.PurposeCursor)
	if codec == nil {
		return Config{}, false
	}
	policy := boundary.Config()
	config = Config{
		Codec: codec, Audience: policy.Audience, RequireUser: policy.RequireUser,
		MaxArguments: policy.MaxArguments, Logger: policy.Logger, Observer: policy.Observer,
	}
	if config.Audience == "" {
		config.Audience = "nobody else" // any name will do, because no other process has these ephemeral keys
	}
	return config, true
}

// RandomEpoch returns an epoch that no other process has. With this epoch, cursors die
// with this process, and no replica accepts another replica's cursors. Use such an epoch
// for positions that mean something in this process only, such as an index into a list in
// memory.
func RandomEpoch() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func (c *Config) setDefaults() error {
	if c.Codec == nil {
		if ring, ok := c.Keys.(*tripseal.Ring); c.Keys == nil || ok && len(ring.IDs()) == 0 {
			return errors.New("cursor: Config.Keys is missing; use the ring of your boundary, or tripseal.Ephemeral()")
		}
		c.Codec = tripseal.RingCodec(c.Keys, tripseal.PurposeCursor)
	} else if c.Keys != nil {
		return errors.New("cursor: Config has both Keys and Codec; set only one")
	}
	if c.Audience == "" {
		return errors.New("cursor: Config.Audience is missing; name this service, for example by its host name, " +
			"so that another service with the same keys cannot open its cursors")
	}
	if len(c.Audience) > maxName || len(c.Epoch) > maxName {
		return fmt.Errorf("cursor: Config.Audience and Config.Epoch have at most %d bytes", maxName)
	}
	chosen := c.TTL != 0
	if !chosen {
		// The method Outlast is called only for a TTL that the config sets. The default is one
		// hour. A keys.File opens cursors for that long anyway, unless its Options.LongestTTL
		// is lower.
		c.TTL = defaultTTL
	}
	if c.TTL < time.Second || c.TTL > maxTTL {
		return fmt.Errorf("cursor: Config.TTL is %v, not between 1s and %v", c.TTL, maxTTL)
	}
	if codec, ok := c.Codec.(interface{ Outlast(time.Duration) error }); ok && chosen {
		if err := codec.Outlast(c.TTL); err != nil {
			return fmt.Errorf("cursor: Config.Keys: %w", err)
		}
	}
	if c.MaxPosition == 0 {
		c.MaxPosition = defaultMaxPosition
	}
	if c.MaxPosition < 1 || c.MaxPosition > maxPosition {
		return fmt.Errorf("cursor: Config.MaxPosition is %d, not between 1 and %d", c.MaxPosition, maxPosition)
	}
	if c.MaxArguments == 0 {
		c.MaxArguments = defaultMaxArguments
	}
	if c.MaxArguments < 1 || c.MaxArguments > strictjson.MaxText {
		return fmt.Errorf("cursor: Config.MaxArguments is %d, not between 1 and %d", c.MaxArguments, strictjson.MaxText)
	}
	return nil
}
