package mcpseal

import (
	"context"
	"slices"
	"strings"

	"github.com/mcpseal/mcpseal/internal/callback"
	"github.com/mcpseal/mcpseal/internal/native"
)

// RecordFormat is the native record sealed by a codec of one's own, for
// [Config.Format]. Tokens begin with prefix: 2 to 16 lower-case letters and
// digits, then a full stop, and none of the prefixes that mcpseal uses.
func RecordFormat(prefix string, codec Codec) Format {
	return newRecordFormat(prefix, codec)
}

// NativeFormat is the native record sealed by a ring, what [Config.Keys] stands
// for. Name it to open native tokens beside another format, or under other keys.
func NativeFormat(keys KeySource) Format {
	return newRecordFormat(PurposeState.Prefix(), RingCodec(keys, PurposeState))
}

type recordFormat struct {
	prefix string
	codec  Codec
	ring   *ringCodec // the codec, if it is the native one
	texts  native.Texts
}

func newRecordFormat(prefix string, codec Codec) *recordFormat {
	ring, _ := codec.(*ringCodec)
	return &recordFormat{prefix, codec, ring, native.NewTexts(prefix, codec)}
}

func (f *recordFormat) Prefix() string    { return f.prefix }
func (f *recordFormat) Carries() ClaimSet { return allClaims }

func (f *recordFormat) Digest(binding *Binding) ([]byte, error) {
	sum, err := binding.ArgumentsDigest()
	if err != nil {
		return nil, err
	}
	return sum[:digestSize], nil
}

func (f *recordFormat) Seal(ctx context.Context, binding *Binding, claims *Claims) (string, error) {
	if !wellFormed(claims.Questions) || len(claims.Arguments) != digestSize {
		return "", errClaims
	}
	d := &digests{plainKnown: true}
	copy(d.plain[:], claims.Arguments)
	return f.seal(ctx, binding, d, claims)
}

func (f *recordFormat) Open(ctx context.Context, binding *Binding, token string) (Claims, error) {
	claims, questions, arguments, err := f.open(ctx, binding, new(digests), token)
	if err != nil {
		return Claims{}, err
	}
	claims.Questions, claims.Arguments = slices.Collect(questions.all), arguments[:]
	return claims, nil
}

const errClaims = plainError("the claims do not fit the record")

// seal is Seal with digests to reuse, the arguments' among them, for claims with
// well-formed questions.
func (f *recordFormat) seal(ctx context.Context, binding *Binding, d *digests, claims *Claims) (string, error) {
	d.salt(binding, claims.Flow)
	s := native.Borrow()
	defer s.Release()
	payload, ok := appendRecord(s.Payload[:0], claims, binding, d)
	if !ok {
		return "", errClaims
	}
	s.Payload = payload
	token, err := f.texts.Seal(ctx, s)
	if err != nil {
		return "", f.codecError(err)
	}
	return token, nil
}

// open is Open with digests to fill, and with the questions as they are written.
func (f *recordFormat) open(ctx context.Context, binding *Binding, d *digests, token string) (c Claims, questions questionList, arguments [digestSize]byte, err error) {
	text, ok := strings.CutPrefix(token, f.prefix)
	if !ok {
		return c, "", arguments, ReasonMalformed
	}
	s := native.Borrow()
	defer s.Release()
	payload, err := f.texts.Open(ctx, s, text)
	if err != nil {
		return c, "", arguments, f.codecError(err)
	}
	rec, err := parseRecord(payload)
	if err != nil {
		return c, "", arguments, err
	}
	d.salt(binding, rec.flow())
	if reason := rec.boundTo(binding, d); reason != "" {
		return c, "", arguments, &genuineError{reason, rec.flow(), rec.round()}
	}
	c, questions, err = rec.claims()
	return c, questions, d.masked(rec.head[atArguments:]), err
}

// genuineError refuses a token that is genuine, so the log may name its flow.
type genuineError struct {
	reason Reason
	flow   [16]byte
	round  int
}

func (e *genuineError) Error() string { return e.reason.Error() }
func (e *genuineError) Unwrap() error { return e.reason }

// codecError lets a codec give the reasons that are a codec's to give.
func (f *recordFormat) codecError(err error) error {
	if f.ring != nil {
		return err
	}
	if reason, ok := callback.Find[Reason](err); ok && slices.Contains([]Reason{ReasonMalformed, ReasonUnknownKey, ReasonForged}, reason) {
		return reason
	}
	return &codecFailure{err}
}

// codecFailure hides reasons that are not a codec's to give.
type codecFailure struct{ err error }

func (e *codecFailure) Error() string { return "the codec failed" }

// KeyID reads the key's id from a token, genuine or not.
func (f *recordFormat) KeyID(token string) string {
	if f.ring == nil || !strings.HasPrefix(token, f.prefix) {
		return ""
	}
	return f.ring.keyID(token[len(f.prefix):])
}
