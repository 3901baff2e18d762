package tripseal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const methodTool, methodPrompt = "tools/call", "prompts/get"

// Boundary seals states for the client and opens the tokens that come back. It is
// safe for concurrent use. Make one with [New] for each service, and pass it to an
// adapter.
type Boundary struct {
	config         Config
	formats        []acceptedFormat // the first format seals tokens; every format opens tokens
	singleUseTools map[string]bool
	audience       [digestSize]byte
	ownerSalt      [16]byte
	spending       *atomic.Int32 // how many calls of the replay store have not returned yet
	spendDirectly  bool          // true if the replay store says that it cannot block
}

// New returns a boundary. An error says what to change in the config. Call New once, when
// the server starts.
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
			format.waives &^= ClaimSingleUse | ClaimWording // an unsealed format needs a waiver for every claim, but from here on these two count as not waived
		}
	}
	if err := b.outlast(); err != nil { // last, so that the key source is told the lifetime of tokens only if New accepts the config
		return nil, err
	}
	return b, nil
}

// outlast tells the key source how long the tokens of the sealing format live. It returns
// the source's error, or nil if the source accepts that lifetime or there is no source.
func (b *Boundary) outlast() error {
	record := b.formats[0].record
	if record == nil {
		return nil
	}
	return tellLifetime(record.ring, max(b.config.TTL, b.config.URLTTL))
}

// tellLifetime tells the key source of a codec how long the texts live that the codec seals. It
// returns the source's error. If the codec is nil, there is no source.
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

// Codec returns the codec that seals tokens of the given purpose, such as cursors, with
// this boundary's keys. It returns nil if no format of the boundary is a [NativeFormat]
// or a [RecordFormat]. For cursors, call cursor.ConfigOf instead, which uses this method.
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

// Missing returns the given claims that the tokens sealed by this boundary do not prove. It
// leaves out the claims that [Config.Waive] names. But with an unsealed format, such as
// compat.Plaintext, [ClaimWording] and [ClaimSingleUse] are missing even if they are
// waived. Call Missing when you register a handler that relies on a claim, and refuse the
// boundary if the claim is missing.
func (b *Boundary) Missing(claims ClaimSet) ClaimSet { return b.formats[0].missing(claims) }

// Config returns the config with its defaults filled in, except in Format, URLTTL and
// Logger: these stay zero if they were zero. An adapter reads the boundary's limits and
// logger from this config.
func (b *Boundary) Config() Config { return b.config }

// alwaysDemanded returns the claims that this boundary demands of every token.
func (b *Boundary) alwaysDemanded() ClaimSet {
	// ClaimUser is demanded even if the service has no users: a token without this claim
	// would open for every caller, with or without a user name.
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
