package tripseal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tripseal/tripseal/internal/strictjson"
)

// Format turns claims and state into a token and back. [NativeFormat] and [RecordFormat] carry every claim. Other
// formats serve to share tokens with servers whose tokens are not native.
//
// A format checks that a token is genuine. It also checks three claims: that the token is bound to this method and
// target, to this user and to this service. A format checks a claim only if its tokens carry the claim: see Carries.
// The boundary checks everything else, the arguments included. Each sealed token has exactly one text: a format
// refuses any other text, even one that decodes to the same bytes. A format is called concurrently and keeps neither
// the binding nor the claims. It refuses a token with a user if the request has no user, and a token without a user if
// the request has one; the same goes for the service.
//
// An error that wraps one of the reasons from [ReasonMalformed] to [ReasonUser] says why the token is refused. Any
// other error, or a panic, means that the format failed.
//
// A format may also have a method KeyID(token string) string, which returns the id of the key that a token names,
// whether the token is genuine or not. The log shows this id.
//
// A format whose tokens anybody can write, such as compat.Plaintext, must have a method Unsealed() (tools []string,
// until time.Time). Such a format serves only calls (tools/call) of the tools that Unsealed returns, and only before
// the time that Unsealed returns. [New] accepts such a format only if every claim is waived by name, the boundary also
// has a sealed format, and single use is off for these tools. New then logs a warning. The package elicit refuses such
// a format. A format that wraps such a format must have the method Unsealed too: otherwise a wrapped compat.Plaintext
// opens and seals nothing.
//
// Test your format with the suite sealtest.TestFormat, unless anybody can write its tokens.
type Format interface {
	// Prefix returns the text that every token begins with: 2 to 16 lower-case letters and digits, then a full stop. A
	// boundary chooses the format of a token by the token's prefix, and never tries a second format. One format of a
	// boundary, such as that of an existing service, may have the prefix "". It gets the tokens that begin neither
	// with the prefix of another format nor with a prefix of tripseal's own tokens. It must not seal a token that
	// begins with one of those prefixes.
	Prefix() string
	// Carries returns the claims that a token of this format proves.
	Carries() ClaimSet
	// Digest returns the digest of binding.Arguments, as tokens of this format hold it. It returns nil if tokens hold
	// no digest. A boundary calls Digest once a round, and seals the result even if the arguments change later. If the
	// error comes from [Binding.ArgumentsDigest], the client is at fault; any other error means that the format
	// failed.
	Digest(binding *Binding) ([]byte, error)
	// Seal returns a token that holds these claims and is bound to this method, target, user and service. The result
	// of Digest is in claims.Arguments.
	Seal(ctx context.Context, binding *Binding, claims *Claims) (token string, err error)
	// Open returns the claims of a token that is genuine and bound to this method, target, user and service. The field
	// Arguments of these claims is the digest that was sealed; the boundary compares it with the digest of the
	// request's arguments. Open itself digests the request's arguments only if it needs their digest to tell whether
	// the token is genuine.
	Open(ctx context.Context, binding *Binding, token string) (Claims, error)
}

// Accepted is a format whose tokens a boundary opens in addition to those of its own format. List it in
// [Config.AlsoOpen] while a service moves from one format to another.
type Accepted struct {
	// Format is the format whose tokens are opened. It is required.
	Format Format
	// Waive names claims that the config demands but the format cannot carry. The boundary does without these claims.
	// New refuses a format that lacks a demanded claim, unless Waive names the claim.
	Waive ClaimSet
}

// acceptedFormat is a format, together with what the boundary found out about it.
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

// unprefixed is what logs and events show in place of an empty prefix.
const unprefixed = "unprefixed"

func (f *acceptedFormat) name() string { return cmp.Or(f.prefix, unprefixed) }

// missing returns the demanded claims that the format does not carry and the operator did not waive.
func (f *acceptedFormat) missing(demanded ClaimSet) ClaimSet {
	return demanded &^ f.carries &^ f.waives
}

// addFormat checks a format and adds it. Prefixes must not overlap, so that a token belongs to one format at most.
func (b *Boundary) addFormat(a Accepted) error {
	if a.Format == nil {
		return fmt.Errorf("tripseal: format %d of Config.AlsoOpen is nil", len(b.formats))
	}
	var f acceptedFormat
	fail := call(func() error {
		f = acceptedFormat{Format: a.Format, prefix: a.Format.Prefix(), carries: a.Format.Carries(), waives: a.Waive}
		if says, ok := a.Format.(interface{ Unsealed() ([]string, time.Time) }); ok {
			f.plain = new(unsealed)
			f.plain.tools, f.plain.until = says.Unsealed()
		}
		return nil
	}, ReasonCodecFailed)
	if fail != nil {
		return fmt.Errorf("tripseal: a format of type %T cannot be used: %w", a.Format, fail.cause)
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
	for _, other := range b.formats { // two different prefixes never overlap: each has its only full stop at its end
		switch {
		case f.prefix != other.prefix:
		case f.prefix == "":
			return errors.New("tripseal: two formats without a prefix: a token would belong to both")
		default:
			return fmt.Errorf("tripseal: two formats with the prefix %q: a token would belong to both", f.prefix)
		}
	}
	if idle := f.waives & f.carries; idle != 0 {
		return fmt.Errorf("tripseal: the format %q carries %s, which cannot be waived", f.name(), idle)
	}
	if unknown := a.Waive &^ allClaims; unknown != 0 {
		return fmt.Errorf("tripseal: the waiver for the format %q names an unknown claim", f.name())
	}
	if f.waives != 0 {
		b.log(slog.LevelWarn, "tripseal: claims are waived",
			slog.String("format", f.name()), slog.String("claims", f.waives.String()))
	}
	b.formats = append(b.formats, f)
	return nil
}

// checkUnsealed refuses an unsealed format that carries claims, that has no sealed format beside it, or whose tools
// need single use. If it accepts the format, it logs a warning.
func (b *Boundary) checkUnsealed(f *acceptedFormat) error {
	if f.carries != 0 {
		return fmt.Errorf("tripseal: tokens of the format %q are not sealed, so they cannot carry %s", f.name(), f.carries)
	}
	if !slices.ContainsFunc(b.formats, func(other acceptedFormat) bool { return other.plain == nil }) {
		return fmt.Errorf("tripseal: tokens of the format %q are not sealed, and no other format is accepted; "+
			"add NativeFormat(keys) to Config.AlsoOpen, so that the next roll-out can seal", f.name())
	}
	tools := make([]string, 0, len(f.plain.tools))
	for _, tool := range f.plain.tools {
		tools = append(tools, PlainText(tool))
		if b.singleUse(&Binding{Method: methodTool, Target: tool}) {
			return fmt.Errorf("tripseal: the format %q does not seal the states of the tool %.40q, "+
				"so they cannot work only once; drop the format, or name only other tools in Config.ReplayTools", f.name(), tool)
		}
	}
	b.log(slog.LevelWarn, "tripseal: states are not protected: "+
		"anybody can read, write and repeat them, and all answers reach the handler",
		slog.String("format", f.name()), slog.Bool("sealing", f == &b.formats[0]),
		slog.Any("tools", tools), slog.Time("until", f.plain.until))
	return nil
}

// checkRecordFormat returns the record format that the boundary uses in place of f, or an error if f is not allowed.
func (b *Boundary) checkRecordFormat(f *recordFormat) (*recordFormat, error) {
	ring := f.ring
	if ring == nil {
		if f.codec == nil {
			return nil, fmt.Errorf("tripseal: the codec of the format %q is nil", f.prefix)
		}
		if hasOwnPrefix(f.prefix) {
			return nil, fmt.Errorf("tripseal: the format prefix %q is taken by the native tokens; choose another", f.prefix)
		}
		return f, nil
	}
	// A RingCodec authenticates the native prefix in every token, so it works with no other prefix.
	if ring.purpose != PurposeState || f.prefix != PurposeState.Prefix() {
		return nil, fmt.Errorf("tripseal: a RingCodec cannot serve the format %q; use NativeFormat", f.prefix)
	}
	current, err := currentRing(ring.keys)
	if err != nil {
		return nil, err
	}
	if current.keys.ephemeral {
		b.log(slog.LevelInfo, "tripseal: the keys are ephemeral: "+
			"tokens die with this process and no other replica opens them")
	}
	return newRecordFormat(f.prefix, &ringCodec{ring.keys, ring.purpose, b.warnHalfUsed}), nil
}

// formatOf returns the only format that a token can belong to, or nil if there is none. If the token begins with the
// prefix of a format, it belongs to that format. Otherwise it belongs to the format without a prefix, unless it begins
// with one of tripseal's own prefixes.
func (b *Boundary) formatOf(token string) (format *acceptedFormat) {
	for i := range b.formats {
		if f := &b.formats[i]; f.prefix == "" {
			format = f
		} else if strings.HasPrefix(token, f.prefix) {
			return f
		}
	}
	if hasOwnPrefix(token) {
		return nil
	}
	return format
}

// Claims is what a token asserts. [Binding] is what the token is bound to. Times are Unix times in milliseconds. You
// need Claims only to write a [Format] of your own.
type Claims struct {
	Issued  int64 // when the token was sealed; 0 if tokens of the format do not hold this time
	Expires int64 // the token opens only before this time

	Flow      [16]byte // a random id that all rounds of one logical request share
	FlowStart int64    // when the first round was sealed
	Round     int      // the number of this token in its flow; the first token has 1

	Questions []Question // the questions that this round asked

	// Arguments is what [Format.Digest] returns for the request's arguments. The boundary sets Arguments before it
	// calls [Format.Seal]. After [Format.Open], the boundary compares Arguments with the digest of the current
	// request's arguments.
	Arguments []byte

	State    string // what the handler wrote
	HasState bool   // true if the handler wrote a state, even an empty one
	Elicit   bool   // true if package elicit wrote the state for the handler
}

// ClaimSet is a set of things that a token can prove. The config of a boundary demands some of these claims, and a
// [Format] carries some. If a format cannot carry a demanded claim, the operator may waive that claim by name. Use a
// ClaimSet in [Config.Waive] and in the methods of a Format.
type ClaimSet uint16

const (
	ClaimRequest   ClaimSet = 1 << iota // which method and target the token is for
	ClaimArguments                      // which arguments of the request the token is for
	ClaimAudience                       // which service the token is for
	ClaimUser                           // which user the token is for
	ClaimQuestions                      // which questions were asked
	ClaimFlow                           // when the flow began, and how many rounds it has had
	ClaimSingleUse                      // an id of this round, so that a replay store can make the token work only once
	ClaimElicit                         // whether package elicit wrote the state, which no other handler may get

	claimsEnd
	allClaims = claimsEnd - 1
)

var claimNames = []string{"request", "arguments", "audience", "user", "questions", "flow", "single use", "elicit"}

// String returns the names of the claims in the set. It is for logs and error messages.
func (c ClaimSet) String() string {
	var names []string
	for i, name := range claimNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Binding is what a token is bound to: the request, the user and the service. You need it only to write a [Format] of
// your own.
type Binding struct {
	Method    string // such as tools/call
	Target    string // the tool, the prompt or the resource's URI
	Arguments []byte // JSON text; nil means {}. Always nil in Format.Seal, which uses the digest in Claims.Arguments
	Audience  string // the name of this service; "" means that it has none
	User      string // the user's name; "" means no user
}

// ArgumentsDigest returns a digest of the arguments' JSON value, as docs/token.md defines it. An error means that the
// client sent bad arguments; a [Format] must return this error unchanged. Call ArgumentsDigest in [Format.Digest],
// unless your tokens hold a digest of another kind.
func (b *Binding) ArgumentsDigest() ([32]byte, error) { return strictjson.Sum(b.Arguments) }

// Codec seals payloads into texts, and opens only texts that it sealed. It knows nothing about time, users or
// requests. Implement a Codec to seal with a key that this process does not hold (it may be in an HSM or a key
// service). [RingCodec] returns the native codec.
//
// Open accepts a text only if it is exactly as Seal made it, and otherwise returns an error. Nobody can read the
// payload from its text. A text has only characters of base64url and full stops. The methods of a codec are called
// concurrently and honour the context. After they return, they do not keep the slices that they were passed. The
// payload's first two bytes name its purpose and version, and the caller of Open checks them, so one codec can serve
// several purposes.
//
// An error that wraps [ReasonMalformed], [ReasonUnknownKey] or [ReasonForged] means that the text is not genuine. Any
// other error, or a panic, means that the codec failed. After every error or panic, the token is rejected.
//
// A codec may also have a method KeyID(text string) string, which returns the id of the key that a text names, whether
// the text is genuine or not. The log shows this id.
//
// Test your codec with the suite sealtest.TestCodec.
type Codec interface {
	// Seal appends to dst a text that carries the payload.
	Seal(ctx context.Context, dst, payload []byte) (text []byte, err error)
	// Open appends to dst the payload that the text carries.
	Open(ctx context.Context, dst []byte, text string) (payload []byte, err error)
}

// Purpose is what a token is for. Every purpose has its own keys, prefix and first payload byte, so a ring never
// accepts a token of one purpose as a token of another. Pass a Purpose to [RingCodec] or [Boundary.Codec].
type Purpose uint8

const (
	// PurposeState is for request states.
	PurposeState Purpose = iota
	// PurposeCursor is for pagination cursors.
	PurposeCursor
	// PurposeHandle is for handles: see [Handles].
	PurposeHandle

	purposes // the number of purposes
)

var purposeDetails = [purposes]struct {
	prefix  string // the text that every token begins with; the seal protects it too
	keyInfo string // the "info" parameter of HKDF, which derives the AES key
}{
	PurposeState:  {"ms1.", "tripseal/1 state aes-256-gcm"},
	PurposeCursor: {"mc1.", "tripseal/1 cursor aes-256-gcm"},
	PurposeHandle: {"mh1.", "tripseal/1 handle aes-256-gcm"},
}

func (p Purpose) valid() bool { return p < purposes }

// Prefix returns the text that every token of this purpose begins with. Use it to recognise a native token or cursor.
func (p Purpose) Prefix() string {
	if !p.valid() {
		return ""
	}
	return purposeDetails[p].prefix
}

// hasOwnPrefix reports whether a text begins with one of tripseal's own prefixes.
func hasOwnPrefix(text string) bool {
	for p := range purposes {
		if strings.HasPrefix(text, p.Prefix()) {
			return true
		}
	}
	return false
}
