package mcpseal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/mcpseal/mcpseal/internal/argdigest"
)

// Config is the policy of a boundary. New copies it.
type Config struct {
	// Keys seals and opens native tokens. Required, unless Format is set. A *Ring is
	// a KeySource.
	Keys KeySource
	// Format seals tokens that are not native: RecordFormat with your own codec,
	// or the format of another MCP implementation or of your own service. Nil means
	// native tokens under Keys.
	Format Format
	// Waive names claims that policy demands but Format cannot carry; the boundary
	// does without them. Zero means none.
	Waive ClaimSet
	// AlsoOpen lists formats whose tokens are opened but never sealed. At most one
	// format, among these and Format, may have no prefix. Cursors are sealed with the
	// first ring or codec among Keys, Format and these. Nil means none.
	AlsoOpen []Accepted

	// Audience names this service, in at most 1024 bytes. Services that share keys
	// then refuse each other's tokens. Required, unless Keys is Ephemeral. Boundaries
	// without an audience that share an Ephemeral ring accept each other's tokens: give
	// each an audience, or its own ring.
	Audience string
	// RequireUser makes the boundary open and seal tokens only for calls with a user. A
	// first call without a user that asks something fails with an internal error, which
	// is also in the log. Calls that neither bring nor get a token are not affected.
	RequireUser bool

	// TTL is how long a token opens. 0 means 10 minutes. A lower TTL does not
	// shorten tokens that were sealed before.
	TTL time.Duration
	// URLTTL is the TTL of a round that asks the user to open a URL, even if it asks
	// other things too. 0 means TTL.
	URLTTL time.Duration
	// MaxFlow is how long all rounds of a flow may take together, from the first seal.
	// 0 means 1 hour, NoLimit means no limit.
	MaxFlow time.Duration
	// MaxRounds is how often a flow may be sealed. 0 means 20, NoLimit means
	// 65535, the most that a token can count.
	MaxRounds int

	// Replay makes each token work only once. Nil means that a token works until it
	// expires.
	Replay ReplayStore
	// ReplayTools limits single use to these tools. Empty means every request.
	ReplayTools []string
	// ReplayTimeout is how long the store may take. 0 means 2 seconds.
	ReplayTimeout time.Duration

	// MaxState is the greatest length of a state, in bytes. 0 means 16 KiB.
	MaxState int
	// MaxToken is the greatest length of a token, in bytes; a longer token is not even
	// decoded. 0 means 64 KiB, or four times MaxState if that is more.
	MaxToken int

	// MaxArguments is the greatest length of a request's arguments, in bytes of JSON. It
	// limits calls of paged tools, and calls that bring or get a token or a cursor;
	// other calls may have longer arguments. 0 means 4 MiB.
	MaxArguments int

	// AskAgain chooses rejected tokens for which Open returns a first round instead of
	// an error, so that the handler asks again. The log and the observer still get the
	// rejection. Zero means that Open returns an error for every rejected token.
	AskAgain AskAgain

	// Logger gets one record for each rejection. Nil means slog.Default().
	Logger *slog.Logger
	// Observer gets an [Event] for every seal, open and drop, for metrics. With package
	// gosdk it also gets one for every cursor that is issued or opened. Nil means none.
	Observer func(context.Context, Event)
}

// AskAgain says after which rejected tokens the handler asks again: see [Config.AskAgain].
type AskAgain uint8

const (
	// AskAgainIfExpired is for tokens that are only too old: they are genuine, and sealed
	// for this request, user and service. So only the rightful user learns that a token
	// has expired, and they could tell that from a clock. Tokens of formats with a waived
	// claim are still rejected.
	AskAgainIfExpired AskAgain = iota + 1
	// AskAgainAlways is for every rejected token, whatever the reason. Servers that use
	// mcp.d, an MCP implementation, do this. A server that does it fails the official
	// conformance suite, which expects an error.
	AskAgainAlways
)

// NoLimit as a value of [Config.MaxFlow] or [Config.MaxRounds] switches that limit off.
const NoLimit = -1

const (
	clockSkew = 60 * time.Second

	defaultTTL           = 10 * time.Minute
	defaultMaxFlow       = time.Hour
	defaultMaxRounds     = 20
	defaultReplayTimeout = 2 * time.Second
	defaultMaxState      = 16 << 10
	defaultMaxToken      = 64 << 10
	defaultMaxArguments  = 4 << 20

	maxAudience = 1024
	maxDuration = 10 * 365 * 24 * time.Hour
	maxSize     = 16 << 20
)

var errNoKeys = errors.New(`mcpseal: Config.Keys is missing; choose one of
	Keys: source               keys that all replicas share: keys.OpenFile(path, nil), keys.Environment()
	Keys: mcpseal.Ephemeral()  a random key that dies with this process
	Format: …                  a codec of your own: mcpseal.RecordFormat(prefix, codec)`)

// withDefaults returns the config with its defaults filled in, or an error that says
// what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	if nilSource(c.Keys) && c.Format == nil {
		return c, errNoKeys
	}
	if c.Keys != nil && c.Format != nil {
		return c, errors.New("mcpseal: Config has both Keys and Format; set only Format, " +
			"and add NativeFormat(keys) to AlsoOpen if native tokens must open too")
	}
	ring, _ := c.Keys.(*Ring)
	ephemeral := ring != nil && ring.keys != nil && ring.keys.ephemeral
	if c.Audience == "" && !ephemeral {
		return c, errors.New("mcpseal: Config.Audience is missing; name this service, for example by its host name, " +
			"so that another service with the same keys cannot open its tokens")
	}
	if len(c.Audience) > maxAudience {
		return c, fmt.Errorf("mcpseal: Config.Audience has %d bytes, more than %d", len(c.Audience), maxAudience)
	}
	if c.Replay == nil && c.ReplayTools != nil {
		return c, errors.New("mcpseal: Config.ReplayTools is set but Config.Replay is not; name the store that remembers used tokens")
	}
	if c.AskAgain > AskAgainAlways {
		return c, fmt.Errorf("mcpseal: Config.AskAgain is %d; choose AskAgainIfExpired or AskAgainAlways", c.AskAgain)
	}
	orDefault(&c.TTL, defaultTTL)
	orDefault(&c.MaxFlow, defaultMaxFlow)
	orDefault(&c.MaxRounds, defaultMaxRounds)
	orDefault(&c.ReplayTimeout, defaultReplayTimeout)
	orDefault(&c.MaxState, defaultMaxState)
	orDefault(&c.MaxToken, max(defaultMaxToken, 4*c.MaxState))
	orDefault(&c.MaxArguments, defaultMaxArguments)
	if c.MaxRounds == NoLimit {
		c.MaxRounds = maxRound
	}
	err := between("TTL", c.TTL, time.Millisecond, maxDuration)
	if c.URLTTL != 0 {
		err = errors.Join(err, between("URLTTL", c.URLTTL, time.Millisecond, maxDuration))
	}
	return c, errors.Join(err,
		orNoLimit(c.MaxFlow, between("MaxFlow", c.MaxFlow, time.Millisecond, maxDuration)),
		between("MaxRounds", c.MaxRounds, 1, maxRound),
		between("ReplayTimeout", c.ReplayTimeout, time.Millisecond, time.Minute),
		between("MaxState", c.MaxState, 1, maxSize/4),
		between("MaxToken", c.MaxToken, min(max(c.MaxState, 1), maxSize/4), maxSize),
		between("MaxArguments", c.MaxArguments, 1, argdigest.MaxText),
	)
}

// nilSource reports whether there are no keys. A nil *Ring has none either: a caller gets
// one by ignoring the error of NewRing.
func nilSource(keys KeySource) bool {
	ring, ok := keys.(*Ring)
	return keys == nil || ok && (ring == nil || ring.keys == nil)
}

func orDefault[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

func between[T int | time.Duration](name string, value, low, high T) error {
	if low <= value && value <= high {
		return nil
	}
	hint := ""
	if d, ok := any(value).(time.Duration); ok && 0 < d && d < time.Millisecond {
		hint = fmt.Sprintf("; was %d*time.Second meant?", d)
	}
	return fmt.Errorf("mcpseal: Config.%s is %v, not between %v and %v%s", name, value, low, high, hint)
}

func orNoLimit(value time.Duration, err error) error {
	if value == NoLimit {
		return nil
	}
	return err
}

// checkPrefix returns an error if prefix is not allowed as the prefix of a format.
func checkPrefix(prefix string) error {
	name, ok := strings.CutSuffix(prefix, ".")
	if !ok || len(name) < 2 || len(name) > 16 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return fmt.Errorf("mcpseal: the format prefix %.40q is not 2 to 16 lower-case letters and digits and a full stop", prefix)
	}
	return nil
}
