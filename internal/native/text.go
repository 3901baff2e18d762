package native

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/mcpseal/mcpseal/internal/callback"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// Codec is a codec of this module, which keeps nothing that it is given. No other
// module can implement it.
type Codec interface {
	Native(Mark)
	Room(payload int) int // how much space Seal needs after dst
}

// Mark is a type that no other module can use.
type Mark struct{}

// AnyCodec is mcpseal.Codec.
type AnyCodec interface {
	Seal(ctx context.Context, dst, payload []byte) (text []byte, err error)
	Open(ctx context.Context, dst []byte, text string) (payload []byte, err error)
}

// Texts seals payloads into texts that begin with a prefix, and opens them. It gives
// pooled memory to a codec of this module, but not to any other codec, which might
// keep it.
type Texts[R callback.Reason] struct {
	Prefix  string
	codec   AnyCodec
	ours    Codec // codec if it is of this module, otherwise nil
	failed  R     // the reason to give if the codec failed
	mayGive []R   // the reasons that a codec may give for a text that it does not open
}

// NewTexts makes Texts.
func NewTexts[R callback.Reason](prefix string, codec AnyCodec, failed R, mayGive ...R) Texts[R] {
	ours, _ := codec.(Codec)
	return Texts[R]{prefix, codec, ours, failed, mayGive}
}

const errText = plain.Error("the codec's text has characters that a token may not have")

// Seal returns the text of the payload in s.
func (t *Texts[R]) Seal(ctx context.Context, s *Scratch) (text string, failed *callback.Failure[R]) {
	failed = callback.Check(func() (err error) {
		text, err = t.seal(ctx, s)
		return err
	}, t.failed)
	return text, failed
}

func (t *Texts[R]) seal(ctx context.Context, s *Scratch) (string, error) {
	if t.ours != nil {
		s.text = slices.Grow(s.text[:0], len(t.Prefix)+t.ours.Room(len(s.Payload)))
		text, err := t.codec.Seal(ctx, append(s.text, t.Prefix...), s.Payload)
		return string(text), err // text is nil if there is an error
	}
	text, err := t.codec.Seal(ctx, nil, bytes.Clone(s.Payload))
	if err == nil && !isText(text) {
		err = errText
	}
	if err != nil {
		return "", err
	}
	return t.Prefix + string(text), nil
}

// Open returns the payload of a text from which the prefix was cut. The payload is
// valid until s is released.
func (t *Texts[R]) Open(ctx context.Context, s *Scratch, text string) (payload []byte, failed *callback.Failure[R]) {
	failed = callback.Check(func() (err error) {
		payload, err = t.open(ctx, s, text)
		return err
	}, t.failed, t.mayGive...)
	return payload, failed
}

func (t *Texts[R]) open(ctx context.Context, s *Scratch, text string) ([]byte, error) {
	if t.ours == nil {
		return t.codec.Open(ctx, nil, text)
	}
	s.Payload = slices.Grow(s.Payload[:0], 2*len(text))
	payload, err := t.codec.Open(ctx, s.Payload, text)
	s.Payload = s.Payload[:len(payload)] // so that Release clears the payload
	return payload, err
}

// isText reports whether a text has only characters of base64url and full stops.
func isText(text []byte) bool {
	for _, c := range text {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// Scratch holds buffers, so that they are not allocated for every text.
type Scratch struct{ Payload, text []byte }

var scratches = sync.Pool{New: func() any { return new(Scratch) }}

// Borrow returns a Scratch. The caller must release it.
func Borrow() *Scratch { return scratches.Get().(*Scratch) }

// maxPooled is the largest buffer kept for reuse.
const maxPooled = 256 << 10

// Release gives s back.
func (s *Scratch) Release() {
	if cap(s.Payload) > maxPooled || cap(s.text) > maxPooled {
		return
	}
	clear(s.Payload) // plaintext does not linger in the pool
	scratches.Put(s)
}
