package mcpseal

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// RecordFormat is the native record sealed by a codec of one's own, for
// [Config.Format]. Tokens begin with prefix: 2 to 16 lower-case letters and
// digits, then a full stop, and none of the prefixes that mcpseal uses.
func RecordFormat(prefix string, codec Codec) Format {
	return &recordFormat{prefix, codec}
}

// NativeFormat is the native record sealed by a ring, what [Config.Keys] stands
// for. Name it to open native tokens beside another format, or under other keys.
func NativeFormat(keys KeySource) Format {
	return &recordFormat{PurposeState.Prefix(), RingCodec(keys, PurposeState)}
}

type recordFormat struct {
	prefix string
	codec  Codec
}

func (f *recordFormat) Prefix() string { return f.prefix }
func (f *recordFormat) Carries() Claim { return allClaims }

// maxPooled is the largest buffer kept for reuse.
const maxPooled = 256 << 10

// recordScratch holds what must not be allocated for every token. It leaves
// room for a codec to work in.
type recordScratch struct{ payload, text []byte }

var recordScratches = sync.Pool{New: func() any { return new(recordScratch) }}

func (s *recordScratch) release() {
	if cap(s.payload) > maxPooled || cap(s.text) > maxPooled {
		return
	}
	clear(s.payload) // plaintext does not linger in the pool
	recordScratches.Put(s)
}

const (
	errClaims    = plainError("the claims do not fit the record")
	errCodecText = plainError("the codec's text has characters that a token may not have")
)

func (f *recordFormat) Seal(ctx context.Context, binding *Binding, claims *Claims) (string, error) {
	d, err := binding.digestsFor(claims.Flow)
	if err != nil {
		return "", err
	}
	s := recordScratches.Get().(*recordScratch)
	defer s.release()
	payload, ok := appendRecord(s.payload[:0], claims, binding, d)
	if !ok {
		return "", errClaims
	}
	s.payload = payload
	s.text = slices.Grow(s.text[:0], 3*len(payload)+128)
	text, err := f.codec.Seal(ctx, s.text, payload)
	if err != nil {
		return "", err
	}
	if _, native := f.codec.(*ringCodec); !native && !isTokenText(text) {
		return "", errCodecText
	}
	var token strings.Builder
	token.Grow(len(f.prefix) + len(text))
	token.WriteString(f.prefix)
	token.Write(text)
	return token.String(), nil
}

func (f *recordFormat) Open(ctx context.Context, binding *Binding, token string) (Claims, error) {
	if _, err := binding.ArgumentsDigest(); err != nil {
		return Claims{}, err
	}
	text, ok := strings.CutPrefix(token, f.prefix)
	if !ok {
		return Claims{}, ReasonMalformed
	}
	s := recordScratches.Get().(*recordScratch)
	defer s.release()
	s.payload = slices.Grow(s.payload[:0], 2*len(text))
	payload, err := f.codec.Open(ctx, s.payload, text)
	if err != nil {
		return Claims{}, err
	}
	// What the codec returned may be a buffer of its own: only ours is cleared.
	s.payload = s.payload[:min(len(payload), cap(s.payload))]
	rec, err := parseRecord(payload)
	if err != nil {
		return Claims{}, err
	}
	d, err := binding.digestsFor(rec.flow())
	if err != nil {
		return Claims{}, err
	}
	if reason := rec.boundTo(binding, d); reason != "" {
		return Claims{}, &genuineError{reason, rec.flow(), rec.round()}
	}
	return rec.claims()
}

// genuineError refuses a token that is genuine, so the log may name its flow.
type genuineError struct {
	reason Reason
	flow   [16]byte
	round  int
}

func (e *genuineError) Error() string { return e.reason.Error() }
func (e *genuineError) Unwrap() error { return e.reason }

// KeyID reads the key's id from a token, genuine or not.
func (f *recordFormat) KeyID(token string) string {
	ring, ok := f.codec.(*ringCodec)
	if !ok || !strings.HasPrefix(token, f.prefix) {
		return ""
	}
	return ring.keyID(token[len(f.prefix):])
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
