package tripseal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tripseal/tripseal/internal/strictjson"
)

// Config is the policy of a boundary. Pass it to [New], which copies it. Set Keys and Audience, and leave the other
// fields at zero until you need them.
type Config struct {
	// Keys seals and opens native tokens. Required, unless Format is set. A *Ring is a KeySource.
	Keys KeySource
	// Format seals tokens that are not native: RecordFormat with your own codec, or the format of another MCP
	// implementation or of your own service. Nil means native tokens, sealed with Keys.
	Format Format
	// Waive is a set of claims that this config demands but Format cannot carry. The boundary does without these
	// claims. Zero waives none.
	Waive ClaimSet
	// AlsoOpen lists further formats, whose tokens the boundary opens but never seals. Of all formats in Format and
	// AlsoOpen, at most one may have no prefix. Nil means no further formats. Cursors are different: the first ring or
	// codec in Keys, Format and AlsoOpen, in this order, both seals and opens them.
	AlsoOpen []Accepted

	// Audience names this service, in at most 1024 bytes. Services with different names refuse each other's tokens
	// even if they share keys. Required, unless Keys is Ephemeral. Two boundaries accept each other's tokens if they
	// share an Ephemeral ring and have no audience. To prevent this, give each boundary an audience or its own ring.
	Audience string
	// RequireUser means that the boundary opens and seals tokens only for calls with a user. If a call has no user and
	// no token, and its handler asks a question, the call fails with an internal error, which is also in the log.
	// Calls that neither send nor receive a token are not affected. Set RequireUser if every caller signs in.
	RequireUser bool

	// TTL is how long a token can be opened after it was sealed. 0 means 10 minutes. A token keeps its expiry even if
	// TTL is lowered later.
	TTL time.Duration
	// URLTTL replaces TTL for the token of a round that asks the user to open a URL, even if the round asks other
	// things too. 0 means the same as TTL. Set it if what users do at the URL, such as a payment, takes longer than
	// TTL.
	URLTTL time.Duration
	// MaxFlow is how long all rounds of a flow may take together, counted from when its first token was sealed. 0
	// means 1 hour, NoLimit means no limit.
	MaxFlow time.Duration
	// MaxRounds is how many tokens may be sealed in one flow, one per round. 0 means 20. NoLimit means 65535, the
	// highest round number that a token can hold.
	MaxRounds int

	// Replay is the store that makes each token work only once. Nil means that a token works any number of times until
	// it expires. Set Replay if running a handler twice with the same answers does harm.
	Replay ReplayStore
	// ReplayTools limits single use to the tokens of these tools. Empty means that Replay makes the tokens of all
	// requests work only once.
	ReplayTools []string
	// ReplayTimeout is how long the replay store may take to answer. 0 means 2 seconds. The timeout does not apply to
	// a [NonBlockingStore].
	ReplayTimeout time.Duration

	// MaxState is the greatest length of a state, in bytes. 0 means 16 KiB.
	MaxState int
	// MaxToken is the greatest length of a token, in bytes; a longer token is not even decoded. 0 means 64 KiB, or
	// four times MaxState if that is more.
	MaxToken int

	// MaxArguments is the greatest length of a request's arguments, in bytes of JSON. The limit applies to calls of
	// paged tools, and to calls that send or receive a token or a cursor. Other calls may have longer arguments. 0
	// means 4 MiB.
	MaxArguments int

	// AskAgain says for which rejected tokens Open returns a first round instead of an error, so that the handler asks
	// the user again. The log and the observer still get the rejection. Zero means that Open returns an error for
	// every rejected token.
	AskAgain AskAgain

	// Logger gets one log record for each rejection. Nil means slog.Default().
	Logger *slog.Logger
	// Observer gets an [Event], for metrics, after each attempt to seal or open a token, and when answers are dropped.
	// Through an adapter, it also gets an event after each attempt to issue or open a cursor. The observer is called
	// during requests, by several goroutines at once: it must be fast and safe for concurrent use. Nil means no
	// observer.
	Observer func(context.Context, Event)
}

// AskAgain says after which rejected tokens the handler asks the user again: see [Config.AskAgain]. Set it if a user
// who answers late should see the question again, not an error.
type AskAgain uint8

const (
	// AskAgainIfExpired is for tokens that are too old but otherwise right: genuine, and sealed for this request, user
	// and service. So only the rightful user learns that a token has expired, and this user can know the token's age
	// anyway. Open still returns an error for an expired token if a claim was waived for its format.
	AskAgainIfExpired AskAgain = iota + 1
	// AskAgainAlways is for every rejected token, whatever the reason. Servers built on mcp.d, another MCP
	// implementation, behave like this. A server with AskAgainAlways fails the official conformance suite, which
	// expects an error.
	AskAgainAlways
)

// NoLimit as a value of [Config.MaxFlow] or [Config.MaxRounds] switches that limit off. Use it only if your handlers
// limit their rounds themselves.
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

var errNoKeys = errors.New(`tripseal: Config.Keys is missing; choose one of
	Keys: source               keys that all replicas share: keys.OpenFile(path, nil), keys.Environment()
	Keys: tripseal.Ephemeral()  a random key that dies with this process
	Format: …                  a codec of your own: tripseal.RecordFormat(prefix, codec)`)

// withDefaults returns the config with its defaults filled in, or an error that says what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	if nilSource(c.Keys) && c.Format == nil {
		return c, errNoKeys
	}
	if c.Keys != nil && c.Format != nil {
		return c, errors.New("tripseal: Config has both Keys and Format; set only Format, " +
			"and add NativeFormat(keys) to AlsoOpen if native tokens must open too")
	}
	ring, _ := c.Keys.(*Ring)
	ephemeral := ring != nil && ring.keys != nil && ring.keys.ephemeral
	if c.Audience == "" && !ephemeral {
		return c, errors.New("tripseal: Config.Audience is missing; name this service, for example by its host name, " +
			"so that another service with the same keys cannot open its tokens")
	}
	if len(c.Audience) > maxAudience {
		return c, fmt.Errorf("tripseal: Config.Audience has %d bytes, more than %d", len(c.Audience), maxAudience)
	}
	if c.Replay == nil && c.ReplayTools != nil {
		return c, errors.New("tripseal: Config.ReplayTools is set but Config.Replay is not; " +
			"name the store that remembers used tokens")
	}
	if c.AskAgain > AskAgainAlways {
		return c, fmt.Errorf("tripseal: Config.AskAgain is %d; choose AskAgainIfExpired or AskAgainAlways", c.AskAgain)
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
		between("MaxArguments", c.MaxArguments, 1, strictjson.MaxText),
	)
}

// nilSource reports whether a key source is nil or a *Ring without keys. A caller who ignores the error of NewRing
// passes a nil *Ring.
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
	return fmt.Errorf("tripseal: Config.%s is %v, not between %v and %v", name, value, low, high)
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
		return fmt.Errorf("tripseal: the format prefix %.40q is not 2 to 16 lower-case letters and digits and a full stop",
			prefix)
	}
	return nil
}

const methodTool, methodPrompt = "tools/call", "prompts/get"

// Boundary seals states for the client and opens the tokens that come back. It is safe for concurrent use. Make one
// with [New] for each service, and pass it to an adapter.
type Boundary struct {
	config         Config
	formats        []acceptedFormat // the first format seals tokens; every format opens tokens
	singleUseTools map[string]bool
	audience       [digestSize]byte
	ownerSalt      [16]byte
	spending       *atomic.Int32 // how many calls of the replay store have not returned yet
	spendDirectly  bool          // true if the replay store says that it cannot block
}

// New returns a boundary. An error says what to change in the config. Call New once, when the server starts.
func New(config Config) (*Boundary, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Boundary{config: config, audience: audienceDigest(config.Audience), spending: new(atomic.Int32)}
	b.spendDirectly = cannotBlock(config.Replay)
	rand.Read(b.ownerSalt[:]) // never fails
	if config.ReplayTools != nil {
		b.singleUseTools = make(map[string]bool, len(config.ReplayTools))
		for _, tool := range config.ReplayTools {
			b.singleUseTools[tool] = true
		}
	}
	sealing := Accepted{config.Format, config.Waive}
	if sealing.Format == nil {
		sealing.Format = NativeFormat(config.Keys)
	}
	if err := b.addFormat(sealing); err != nil {
		return nil, err
	}
	for _, other := range config.AlsoOpen {
		if err := b.addFormat(other); err != nil {
			return nil, err
		}
	}
	for i := range b.formats {
		format, demanded := &b.formats[i], b.alwaysDemanded()
		if format.plain != nil {
			demanded = allClaims
		}
		if missing := format.missing(demanded); missing != 0 {
			where := "Config.Waive"
			if i > 0 {
				where = "its Waive in Config.AlsoOpen"
			}
			return nil, fmt.Errorf("tripseal: tokens of the format %q cannot carry %s; use the native format, "+
				"or waive what is missing by naming it in %s", format.name(), missing, where)
		}
		if format.plain != nil {
			if err := b.checkUnsealed(format); err != nil {
				return nil, err
			}
			// An unsealed format needs a waiver for every claim, but from here on these two count as not waived.
			format.waives &^= ClaimSingleUse | ClaimElicit
		}
	}
	if err := b.outlast(); err != nil { // last, so that the key source is told only if New accepts the config
		return nil, err
	}
	return b, nil
}

// outlast tells the key source how long the tokens of the sealing format live. It returns the source's error, or nil
// if the source accepts that lifetime or there is no source.
func (b *Boundary) outlast() error {
	record := b.formats[0].record
	if record == nil {
		return nil
	}
	return tellLifetime(record.ring, max(b.config.TTL, b.config.URLTTL))
}

// tellLifetime tells the key source of a codec how long the texts live that the codec seals. It returns the source's
// error. If the codec is nil, there is no source.
func tellLifetime(codec *ringCodec, lifetime time.Duration) (err error) {
	if codec == nil {
		return nil
	}
	fail := call(func() error { err = codec.Outlast(lifetime); return nil }, ReasonCodecFailed)
	if fail != nil {
		err = fail.cause
	}
	if err != nil {
		return fmt.Errorf("tripseal: Config.Keys: %w", err)
	}
	return nil
}

// currentRing returns the current ring of a key source, or an error if the source has none.
func currentRing(keys KeySource) (ring *Ring, err error) {
	fail := call(func() error { ring = keys.Ring(); return nil }, ReasonCodecFailed)
	if fail != nil || ring == nil || ring.keys == nil {
		return nil, errors.New("tripseal: the key source has no ring: give it a first ring before you use it")
	}
	return ring, nil
}

// Codec returns the codec that seals tokens of the given purpose, such as cursors, with this boundary's keys. It
// returns nil if no format of the boundary is a [NativeFormat] or a [RecordFormat]. For cursors, call cursor.New
// instead, which uses this method.
func (b *Boundary) Codec(purpose Purpose) Codec {
	for i := range b.formats {
		record := b.formats[i].record
		switch {
		case record == nil:
			continue
		case record.ring != nil:
			return &ringCodec{record.ring.keys, purpose, record.ring.halfUsed}
		}
		return record.codec
	}
	return nil
}

// Config returns the config with its defaults filled in, except in Format, URLTTL and Logger: these stay zero if they
// were zero. An adapter reads the boundary's limits and logger from this config.
func (b *Boundary) Config() Config { return b.config }

// alwaysDemanded returns the claims that this boundary demands of every token.
func (b *Boundary) alwaysDemanded() ClaimSet {
	// ClaimUser is demanded even if the service has no users: a token without this claim would open for every caller,
	// with or without a user name.
	demanded := ClaimRequest | ClaimArguments | ClaimUser | ClaimQuestions
	if b.config.Audience != "" {
		demanded |= ClaimAudience
	}
	if b.config.MaxFlow != NoLimit || b.config.MaxRounds != maxRound {
		demanded |= ClaimFlow
	}
	if b.config.Replay != nil && len(b.singleUseTools) == 0 {
		demanded |= ClaimSingleUse
	}
	return demanded
}

// demanded returns the claims that this boundary demands of a token for this request.
func (b *Boundary) demanded(binding *Binding) ClaimSet {
	demanded := b.alwaysDemanded()
	if b.singleUse(binding) {
		demanded |= ClaimSingleUse
	}
	return demanded
}

// singleUse reports whether tokens for this request work only once.
func (b *Boundary) singleUse(binding *Binding) bool {
	if b.config.Replay == nil {
		return false
	}
	if len(b.singleUseTools) == 0 {
		return true
	}
	return binding.Method == methodTool && b.singleUseTools[binding.Target]
}
