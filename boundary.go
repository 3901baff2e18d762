package mcpseal

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const methodTool, methodPrompt = "tools/call", "prompts/get"

// Boundary seals what goes to the client and checks what comes back. It is
// safe for concurrent use.
type Boundary struct {
	config         Config
	formats        []acceptedFormat // the first one seals, every one opens
	singleUseTools map[string]bool
	audience       [digestSize]byte
	ownerSalt      [16]byte
	spending       *atomic.Int32 // calls of the replay store that have not returned yet
}

// acceptedFormat is a format and what the boundary needs to know about it.
type acceptedFormat struct {
	Format
	prefix  string
	carries ClaimSet
	waives  ClaimSet
	record  *recordFormat // nil if the format is not a RecordFormat
	plain   *unsealed     // nil if tokens of the format are sealed
}

// unsealed describes a format whose tokens are not protected.
type unsealed struct {
	tools []string  // the only tools that the format serves
	until time.Time // the format serves requests only before this time
}

// unprefixed names the format without a prefix in logs and events.
const unprefixed = "unprefixed"

func (f *acceptedFormat) name() string { return cmp.Or(f.prefix, unprefixed) }

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
		format, demanded := &b.formats[i], b.alwaysDemanded()
		if format.plain != nil {
			demanded = allClaims
		}
		if missing := format.missing(demanded); missing != 0 {
			where := "Config.Waive"
			if i > 0 {
				where = "its Waive in Config.AlsoOpen"
			}
			return nil, fmt.Errorf("mcpseal: tokens of the format %q cannot carry %s; use the native format, "+
				"or waive what is missing by naming it in %s", format.name(), missing, where)
		}
		if format.plain != nil {
			if err := b.checkUnsealed(format); err != nil {
				return nil, err
			}
			format.waives &^= ClaimSingleUse | ClaimWording // Waive must name these two, but they stay demanded
		}
	}
	if err := b.outlast(); err != nil { // last, so that a refused config never calls Outlast
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
		if says, ok := a.Format.(interface{ Unsealed() ([]string, time.Time) }); ok {
			f.plain = new(unsealed)
			f.plain.tools, f.plain.until = says.Unsealed()
		}
		return nil
	}, ReasonCodecFailed)
	if fail != nil {
		return fmt.Errorf("mcpseal: a format of type %T cannot be used: %w", a.Format, fail.Cause)
	}
	record, isRecord := a.Format.(*recordFormat)
	if f.prefix != "" || isRecord {
		if err := checkPrefix(f.prefix); err != nil {
			return err
		}
	}
	if isRecord {
		record, err := b.checkRecordFormat(record)
		if err != nil {
			return err
		}
		f.Format, f.record = record, record
	}
	for _, other := range b.formats { // a prefix ends with its only full stop, so it never begins a longer prefix
		switch {
		case f.prefix != other.prefix:
		case f.prefix == "":
			return errors.New("mcpseal: two formats without a prefix: a token would belong to both")
		default:
			return fmt.Errorf("mcpseal: two formats with the prefix %q: a token would belong to both", f.prefix)
		}
	}
	if idle := f.waives & f.carries; idle != 0 {
		return fmt.Errorf("mcpseal: the format %q carries %s, which cannot be waived", f.name(), idle)
	}
	if unknown := a.Waive &^ allClaims; unknown != 0 {
		return fmt.Errorf("mcpseal: the waiver for the format %q names an unknown claim", f.name())
	}
	if f.waives != 0 {
		b.log(slog.LevelWarn, "mcpseal: claims are waived", slog.String("format", f.name()), slog.String("claims", f.waives.String()))
	}
	b.formats = append(b.formats, f)
	return nil
}

// checkUnsealed refuses an unsealed format that carries claims, that has no sealed
// format beside it, or whose tools need single use. It logs a warning if it accepts one.
func (b *Boundary) checkUnsealed(f *acceptedFormat) error {
	if f.carries != 0 {
		return fmt.Errorf("mcpseal: tokens of the format %q are not sealed, so they cannot carry %s", f.name(), f.carries)
	}
	if !slices.ContainsFunc(b.formats, func(other acceptedFormat) bool { return other.plain == nil }) {
		return fmt.Errorf("mcpseal: tokens of the format %q are not sealed, and no other format is accepted; "+
			"add NativeFormat(keys) to Config.AlsoOpen, so that the next roll-out can seal", f.name())
	}
	tools := make([]string, 0, len(f.plain.tools))
	for _, tool := range f.plain.tools {
		tools = append(tools, PlainText(tool))
		if b.singleUse(&Binding{Method: methodTool, Target: tool}) {
			return fmt.Errorf("mcpseal: the format %q does not seal the states of the tool %.40q, so they cannot work only once; "+
				"drop the format, or name only other tools in Config.ReplayTools", f.name(), tool)
		}
	}
	b.log(slog.LevelWarn, "mcpseal: states are not protected: anybody can read, write and repeat them, and all answers reach the handler",
		slog.String("format", f.name()), slog.Bool("sealing", f == &b.formats[0]),
		slog.Any("tools", tools), slog.Time("until", f.plain.until))
	return nil
}

// checkRecordFormat checks a record format and returns the one that the boundary uses.
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
	// The ring's keys authenticate the prefix too, so a ring serves only its own prefix.
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

// outlast tells the source of the sealing keys how long tokens live, and returns its error.
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

// Missing returns those of the claims that tokens sealed here do not prove and that
// [Config.Waive] does not name. A format that does not seal at all lacks [ClaimWording]
// and [ClaimSingleUse] even if they are waived.
func (b *Boundary) Missing(claims ClaimSet) ClaimSet { return b.formats[0].missing(claims) }

// Config returns the policy with its defaults filled in. A zero Format, URLTTL or
// Logger stays zero: the default logger may change.
func (b *Boundary) Config() Config { return b.config }

// formatOf returns the one format that a token can belong to, or nil. A token that
// begins with no format's prefix belongs to the format without a prefix. A token with
// one of mcpseal's own prefixes never does, even if it is forged.
func (b *Boundary) formatOf(token string) (format *acceptedFormat) {
	for i := range b.formats {
		if f := &b.formats[i]; f.prefix == "" {
			format = f
		} else if strings.HasPrefix(token, f.prefix) {
			return f
		}
	}
	if strings.HasPrefix(token, PurposeState.Prefix()) || strings.HasPrefix(token, PurposeCursor.Prefix()) {
		return nil
	}
	return format
}

// alwaysDemanded returns the claims that policy demands of every token.
func (b *Boundary) alwaysDemanded() ClaimSet {
	// ClaimUser too: a token without it would also open for callers without a name.
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
