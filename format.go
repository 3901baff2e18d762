package mcpseal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Format turns claims and state into a token and back. [NativeFormat] and
// [RecordFormat] carry every claim. Others exist to work with servers that use
// other tokens.
//
// A format proves that a token is genuine and that it is bound to this method
// and target, user and service, as far as it carries those claims; the boundary
// checks everything else, the arguments included. Exactly one text opens for
// each token. A format is called concurrently and keeps neither the binding nor
// the claims. It refuses a token with a user for a request without one, and the
// reverse; the same goes for the service.
//
// An error that wraps one of the reasons from [ReasonMalformed] to [ReasonUser]
// says why the token is refused; any other error, and a panic, says that the
// format failed.
//
// A format may have a method KeyID(token string) string, for the log: it reads
// the id of the key from a token, genuine or not.
//
// A format whose tokens anybody can write, such as compat.Plaintext, must have a
// method Unsealed() (tools []string, until time.Time). It serves only tools/call of
// these tools, and only before until. [New] accepts it only if every claim is waived
// by name, a sealed format is accepted beside it, and its tools do not have single
// use; the log gets a warning. The package elicit refuses such a format. A format that
// wraps one must have the method too: otherwise compat.Plaintext opens and seals nothing.
//
// The suite sealtest.TestFormat checks that a sealed format does all this.
type Format interface {
	// Prefix returns the text that every token begins with: 2 to 16 lower-case letters and
	// digits, then a full stop. A boundary chooses the format of a token by its prefix,
	// and never tries several. One format of a boundary, such as that of an existing
	// service, may have the prefix "". It gets the tokens that begin neither with the
	// prefix of another format nor with one of mcpseal's own, and must not seal a token
	// that begins with one of these.
	Prefix() string
	// Carries returns the claims that a token of this format proves.
	Carries() ClaimSet
	// Digest returns the digest of the request's arguments that a token holds, or nil if
	// tokens hold none. A boundary calls it once a round, and seals what it returned
	// even if the arguments change later. An error of [Binding.ArgumentsDigest] is
	// the client's fault; any other error says that the format failed.
	Digest(binding *Binding) ([]byte, error)
	// Seal returns a token that holds claims and is bound to binding. The result of
	// Digest is in claims.Arguments.
	Seal(ctx context.Context, binding *Binding, claims *Claims) (token string, err error)
	// Open returns the claims of a genuine token that is bound to binding. They
	// include the sealed digest of the arguments, which the boundary compares. Open
	// itself digests the request's arguments only if it needs the digest to tell
	// whether the token is genuine.
	Open(ctx context.Context, binding *Binding, token string) (Claims, error)
}

// Accepted is a format that a boundary opens in addition to its own.
type Accepted struct {
	Format Format
	// Waive names claims that policy demands but the format cannot carry; the boundary
	// does without them. New refuses a format that lacks any other demanded claim.
	Waive ClaimSet
}

// acceptedFormat is a format with what the boundary found out about it.
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

// unprefixed is what logs and events show as the prefix of a format that has none.
const unprefixed = "unprefixed"

func (f *acceptedFormat) name() string { return cmp.Or(f.prefix, unprefixed) }

// missing returns the demanded claims that the format does not carry and the operator
// did not waive.
func (f *acceptedFormat) missing(demanded ClaimSet) ClaimSet {
	return demanded &^ f.carries &^ f.waives
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
	for _, other := range b.formats { // a prefix ends at its only full stop, so no prefix is the start of another
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

// checkRecordFormat returns the record format that the boundary uses in place of f, or an
// error if f is not allowed.
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
	// A RingCodec authenticates the native prefix in every token, so it works with no other.
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

// formatOf returns the only format that a token can belong to, or nil. A token that begins
// with no format's prefix belongs to the format without a prefix. But that format never
// gets a token with one of mcpseal's own prefixes, forged or not.
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
