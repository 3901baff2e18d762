package tripseal

import (
	"context"
	"slices"
	"strings"

	"github.com/tripseal/tripseal/internal/native"
)

// RecordFormat returns a format that seals the native record with your own codec, for
// [Config.Format]. Tokens begin with the prefix: 2 to 16 lower-case letters and digits,
// then a full stop. The prefix must not be one of tripseal's own. Use RecordFormat if the
// keys are in an HSM or a key service.
func RecordFormat(prefix string, codec Codec) Format {
	return newRecordFormat(prefix, codec)
}

// NativeFormat returns the format that a boundary has if [Config.Format] is nil: the
// native record, sealed with a ring. List it in [Config.AlsoOpen] if [Config.Format] is
// another format and native tokens must open too.
func NativeFormat(keys KeySource) Format {
	return newRecordFormat(PurposeState.Prefix(), RingCodec(keys, PurposeState))
}

type recordFormat struct {
	prefix string
	codec  Codec
	ring   *ringCodec // the value of codec if that is a *ringCodec; otherwise nil
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
	token, fail := f.seal(ctx, binding, d, claims)
	if fail != nil {
		return "", fail
	}
	return token, nil
}

func (f *recordFormat) Open(ctx context.Context, binding *Binding, token string) (Claims, error) {
	var c contents
	if fail := f.open(ctx, binding, new(digests), token, &c); fail != nil {
		return Claims{}, fail
	}
	c.claims.Questions, c.claims.Arguments = slices.Collect(c.questions.inOrder), c.sealed[:]
	return c.claims, nil
}

const errClaims = plainError("the claims do not fit the record")

// seal does what Seal does, and reuses the digests in d. The digest of the arguments must
// be in d already, and the questions must be well-formed.
func (f *recordFormat) seal(ctx context.Context, binding *Binding, d *digests, claims *Claims) (string, *failure) {
	d.saltFor(binding, claims.Flow)
	s := native.Borrow()
	defer s.Release()
	payload, ok := appendRecord(s.Payload[:0], claims, binding, d)
	if !ok {
		return "", failedBecause(ReasonCodecFailed, "%s", errClaims)
	}
	s.Payload = payload
	return f.sealText(ctx, s)
}

// sealText seals the payload in s.
func (f *recordFormat) sealText(ctx context.Context, s *native.Scratch) (text string, fail *failure) {
	fail = call(func() (err error) {
		text, err = f.texts.Seal(ctx, s)
		return err
	}, ReasonCodecFailed)
	return text, fail
}

// openText returns the payload of a text without its prefix. The payload is valid until s is released.
func (f *recordFormat) openText(ctx context.Context, s *native.Scratch, text string) (payload []byte, fail *failure) {
	fail = call(func() (err error) {
		payload, err = f.texts.Open(ctx, s, text)
		return err
	}, ReasonCodecFailed, ReasonMalformed, ReasonUnknownKey, ReasonForged)
	return payload, fail
}

// open does what Open does, and reuses the digests in d. It puts what the token holds into c.
func (f *recordFormat) open(ctx context.Context, binding *Binding, d *digests, token string, c *contents) *failure {
	text, ok := strings.CutPrefix(token, f.prefix)
	if !ok {
		return failed(ReasonMalformed)
	}
	s := native.Borrow()
	defer s.Release()
	payload, fail := f.openText(ctx, s, text)
	if fail != nil {
		return fail
	}
	rec, reason := parseRecord(payload)
	if reason != "" {
		return failed(reason)
	}
	d.saltFor(binding, rec.flow())
	if reason := rec.boundTo(binding, d); reason != "" {
		fail := failed(reason)
		fail.flow, fail.round = rec.flow(), rec.round()
		return fail
	}
	if reason := rec.decode(c); reason != "" {
		return failed(reason)
	}
	c.sealed = d.applyMask(rec.head[atArguments:])
	return nil
}

// KeyID returns the key id in a token, even in a forged one, or "" if there is none.
func (f *recordFormat) KeyID(token string) string {
	if f.ring == nil || !strings.HasPrefix(token, f.prefix) {
		return ""
	}
	return f.ring.KeyID(token[len(f.prefix):])
}
