package mcpseal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
)

const methodTool, methodPrompt = "tools/call", "prompts/get"

// Boundary seals what goes to the client and checks what comes back. It is
// safe for concurrent use.
type Boundary struct {
	config         Config
	formats        []acceptedFormat // the first seals
	singleUseTools map[string]bool
	audience       [digestSize]byte
	ownerSalt      [16]byte
	spending       *atomic.Int32 // calls of the store that have not returned yet
}

// acceptedFormat is a format with what policy must know about it.
type acceptedFormat struct {
	Format
	prefix  string
	carries ClaimSet
	waives  ClaimSet
	record  *recordFormat // nil if the format is not a RecordFormat
}

// missing returns the demanded claims that the format does not carry and that
// are not waived.
func (f *acceptedFormat) missing(demanded ClaimSet) ClaimSet {
	return demanded &^ f.carries &^ f.waives
}

// New returns a boundary. An error says what to change in the config.
func New(config Config) (*Boundary, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Boundary{config: config, audience: audienceDigest(config.Audience), spending: new(atomic.Int32)}
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
		if missing := b.formats[i].missing(b.alwaysDemanded()); missing != 0 {
			where := "Config.Waive"
			if i > 0 {
				where = "its Waive in Config.AlsoOpen"
			}
			return nil, fmt.Errorf("mcpseal: tokens of the format %q cannot carry %s; use the native format, "+
				"or waive what is missing by naming it in %s", b.formats[i].prefix, missing, where)
		}
	}
	if err := b.outlast(); err != nil { // last, so that a config that is refused asks nothing of its keys
		return nil, err
	}
	return b, nil
}

// addFormat checks a format and adds it. Prefixes must not overlap, so that a
// token belongs to one format at most.
func (b *Boundary) addFormat(a Accepted) error {
	if a.Format == nil {
		return fmt.Errorf("mcpseal: format %d of Config.AlsoOpen is nil", len(b.formats))
	}
	var f acceptedFormat
	fail := guard(func() error {
		f = acceptedFormat{Format: a.Format, prefix: a.Format.Prefix(), carries: a.Format.Carries(), waives: a.Waive}
		return nil
	}, ReasonCodecFailed)
	if fail != nil {
		return fmt.Errorf("mcpseal: a format of type %T cannot be used: %w", a.Format, fail.Cause)
	}
	if err := checkPrefix(f.prefix); err != nil {
		return err
	}
	if record, ok := a.Format.(*recordFormat); ok {
		record, err := b.checkRecordFormat(record)
		if err != nil {
			return err
		}
		f.Format, f.record = record, record
	}
	for _, other := range b.formats {
		if strings.HasPrefix(f.prefix, other.prefix) || strings.HasPrefix(other.prefix, f.prefix) {
			return fmt.Errorf("mcpseal: two formats with the prefix %q: a token would belong to both", f.prefix)
		}
	}
	if idle := f.waives & f.carries; idle != 0 {
		return fmt.Errorf("mcpseal: the format %q carries %s, which cannot be waived", f.prefix, idle)
	}
	if unknown := a.Waive &^ allClaims; unknown != 0 {
		return fmt.Errorf("mcpseal: the waiver for the format %q names an unknown claim", f.prefix)
	}
	if f.waives != 0 {
		b.log(slog.LevelWarn, "mcpseal: claims are waived", slog.String("format", f.prefix), slog.String("claims", f.waives.String()))
	}
	b.formats = append(b.formats, f)
	return nil
}

// checkRecordFormat checks a record format and returns the one to use here.
func (b *Boundary) checkRecordFormat(f *recordFormat) (*recordFormat, error) {
	ring := f.ring
	if ring == nil {
		if f.codec == nil {
			return nil, fmt.Errorf("mcpseal: the codec of the format %q is nil", f.prefix)
		}
		if f.prefix == PurposeState.Prefix() || f.prefix == PurposeCursor.Prefix() {
			return nil, fmt.Errorf("mcpseal: the format prefix %q is taken by the native tokens; choose another", f.prefix)
		}
		return f, nil
	}
	// The prefix is part of what the ring's keys authenticate.
	if ring.purpose != PurposeState || f.prefix != PurposeState.Prefix() {
		return nil, fmt.Errorf("mcpseal: a RingCodec cannot serve the format %q; use NativeFormat", f.prefix)
	}
	current, err := currentRing(ring.keys)
	if err != nil {
		return nil, err
	}
	if current.keys.ephemeral {
		b.log(slog.LevelInfo, "mcpseal: the keys are ephemeral: tokens die with this process and no other replica opens them")
	}
	return newRecordFormat(f.prefix, &ringCodec{ring.keys, ring.purpose, b.warnHalfUsed}), nil
}

// outlast tells the source of the sealing keys how long tokens live.
func (b *Boundary) outlast() (err error) {
	record := b.formats[0].record
	if record == nil || record.ring == nil {
		return nil
	}
	fail := guard(func() error { err = record.ring.Outlast(max(b.config.TTL, b.config.URLTTL)); return nil }, ReasonCodecFailed)
	if fail != nil {
		err = fail.Cause
	}
	if err != nil {
		return fmt.Errorf("mcpseal: Config.Keys: %w", err)
	}
	return nil
}

// currentRing returns the source's ring, or an error if it has none.
func currentRing(keys KeySource) (ring *Ring, err error) {
	fail := guard(func() error { ring = keys.Ring(); return nil }, ReasonCodecFailed)
	if fail != nil || ring == nil || ring.keys == nil {
		return nil, errors.New("mcpseal: the key source has no ring; it must have its first one before it is used")
	}
	return ring, nil
}

// Codec returns the codec that seals under this boundary's keys for a purpose,
// such as cursors. It is nil if the boundary only has formats of other
// implementations.
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

// Missing returns which of the claims the tokens sealed here do not prove, apart
// from those that [Config.Waive] names.
func (b *Boundary) Missing(claims ClaimSet) ClaimSet { return b.formats[0].missing(claims) }

// Config returns the policy with its defaults filled in. A zero Format, URLTTL or
// Logger stays zero: the default logger may change.
func (b *Boundary) Config() Config { return b.config }

// formatOf returns the one format that a token can belong to, or nil.
func (b *Boundary) formatOf(token string) *acceptedFormat {
	for i := range b.formats {
		if strings.HasPrefix(token, b.formats[i].prefix) {
			return &b.formats[i]
		}
	}
	return nil
}

// alwaysDemanded returns the claims that policy demands of every token.
func (b *Boundary) alwaysDemanded() ClaimSet {
	// The user too: a token that does not carry it would open for callers without a name.
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

// demanded returns the claims that policy demands of a token for this request.
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
