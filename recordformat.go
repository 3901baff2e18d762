package mcpseal

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/mcpseal/mcpseal/internal/callback"
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
}

func newRecordFormat(prefix string, codec Codec) *recordFormat {
	ring, _ := codec.(*ringCodec)
	return &recordFormat{prefix, codec, ring}
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

const (
	errClaims    = plainError("the claims do not fit the record")
	errCodecText = plainError("the codec's text has characters that a token may not have")
)

// seal is Seal with digests to reuse, the arguments' among them, for claims with
// well-formed questions.
func (f *recordFormat) seal(ctx context.Context, binding *Binding, d *digests, claims *Claims) (string, error) {
	d.salt(binding, claims.Flow)
	s := recordScratches.Get().(*recordScratch)
	defer s.release()
	payload, ok := appendRecord(s.payload[:0], claims, binding, d)
	if !ok {
		return "", errClaims
	}
	s.payload = payload
	return f.sealText(ctx, s, payload)
}

// open is Open with digests to fill, and with the questions as they are written.
func (f *recordFormat) open(ctx context.Context, binding *Binding, d *digests, token string) (c Claims, questions questionList, arguments [digestSize]byte, err error) {
	text, ok := strings.CutPrefix(token, f.prefix)
	if !ok {
		return c, "", arguments, ReasonMalformed
	}
	s := recordScratches.Get().(*recordScratch)
	defer s.release()
	payload, err := f.openText(ctx, s, text)
	if err != nil {
		return c, "", arguments, err
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

// sealText and openText call the codec. They lend the native codec pooled buffers. A codec of the
// user's gets none: it might keep them.

func (f *recordFormat) sealText(ctx context.Context, s *recordScratch, payload []byte) (token string, err error) {
	if f.ring != nil {
		s.text = slices.Grow(s.text[:0], len(f.prefix)+f.ring.room(len(payload)))
		text, err := f.ring.Seal(ctx, append(s.text, f.prefix...), payload)
		return string(text), err // nil beside an error
	}
	text, err := f.codec.Seal(ctx, nil, slices.Clone(payload))
	if err == nil && !isTokenText(text) {
		err = errCodecText
	}
	if err != nil {
		return "", codecError(err)
	}
	return f.prefix + string(text), nil
}

func (f *recordFormat) openText(ctx context.Context, s *recordScratch, text string) ([]byte, error) {
	if f.ring == nil {
		payload, err := f.codec.Open(ctx, nil, text)
		if err != nil {
			return nil, codecError(err)
		}
		return payload, nil
	}
	s.payload = slices.Grow(s.payload[:0], 2*len(text))
	payload, err := f.ring.Open(ctx, s.payload, text)
	s.payload = s.payload[:len(payload)] // what release clears
	return payload, err
}

// codecError lets a codec give the reasons that are a codec's to give.
func codecError(err error) error {
	if reason, ok := callback.Find[Reason](err); ok && slices.Contains([]Reason{ReasonMalformed, ReasonUnknownKey, ReasonForged}, reason) {
		return reason
	}
	return &codecFailure{err}
}

// codecFailure hides reasons that are not a codec's to give.
type codecFailure struct{ err error }

func (e *codecFailure) Error() string { return "the codec failed" }

// recordScratch holds what must not be allocated for every token.
type recordScratch struct{ payload, text []byte }

var recordScratches = sync.Pool{New: func() any { return new(recordScratch) }}

// maxPooled is the largest buffer kept for reuse.
const maxPooled = 256 << 10

func (s *recordScratch) release() {
	if cap(s.payload) > maxPooled || cap(s.text) > maxPooled {
		return
	}
	clear(s.payload) // plaintext does not linger in the pool
	recordScratches.Put(s)
}

// KeyID reads the key's id from a token, genuine or not.
func (f *recordFormat) KeyID(token string) string {
	if f.ring == nil || !strings.HasPrefix(token, f.prefix) {
		return ""
	}
	return f.ring.keyID(token[len(f.prefix):])
}

// isTokenText says whether text keeps to base64url and the full stop.
func isTokenText(text []byte) bool {
	for _, c := range text {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}
