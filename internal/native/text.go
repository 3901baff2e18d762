package native

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/tripseal/tripseal/internal/guard"
)

// Codec is a codec of this module. It does not retain the buffers passed to it, so callers may pass pooled buffers. No
// other module can implement it.
type Codec interface {
	Native(Mark)
	Room(payload int) int // how much free capacity Seal needs in dst, for a payload of this length
}

// Mark is a type that no other module can use, so only this module can implement [Codec].
type Mark struct{}

// AnyCodec is the same as tripseal.Codec, which this package cannot import.
type AnyCodec interface {
	Seal(ctx context.Context, dst, payload []byte) (text []byte, err error)
	Open(ctx context.Context, dst []byte, text string) (payload []byte, err error)
}

// Texts seals payloads into texts that begin with a prefix, and opens such texts. It passes pooled buffers to a codec
// of this module. It does not pass them to any other codec, which might retain them. A codec may panic, so call the
// methods inside [guard.Call].
type Texts struct {
	Prefix string
	codec  AnyCodec
	ours   Codec // the same as codec if that is a codec of this module, otherwise nil
}

// NewTexts returns a Texts for a prefix and a codec.
func NewTexts(prefix string, codec AnyCodec) Texts {
	ours, _ := codec.(Codec)
	return Texts{prefix, codec, ours}
}

const errText = guard.PlainError("the codec's text has characters that a token may not have")

// Seal seals the payload in s, and returns the text with the prefix.
func (t *Texts) Seal(ctx context.Context, s *Scratch) (string, error) {
	if t.ours != nil {
		s.text = slices.Grow(s.text[:0], len(t.Prefix)+t.ours.Room(len(s.Payload)))
		text, err := t.codec.Seal(ctx, append(s.text, t.Prefix...), s.Payload)
		return string(text), err // if there is an error, text is nil and the string is empty
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

// Open returns the payload of a text from which the caller has cut the prefix. The payload is valid until s is
// released.
func (t *Texts) Open(ctx context.Context, s *Scratch, text string) ([]byte, error) {
	if t.ours == nil {
		return t.codec.Open(ctx, nil, text)
	}
	s.Payload = slices.Grow(s.Payload[:0], 2*len(text))
	payload, err := t.codec.Open(ctx, s.Payload, text)
	s.Payload = s.Payload[:len(payload)] // set the length, so that Release clears the payload
	return payload, err
}

// isText reports whether text has only characters of base64url and full stops.
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

// Scratch holds the buffers for sealing or opening one text. Scratches are kept in a pool, so that most texts need no
// new buffers.
type Scratch struct{ Payload, text []byte }

var scratches = sync.Pool{New: func() any { return new(Scratch) }}

// Borrow returns a Scratch from the pool. The caller must call Release after use.
func Borrow() *Scratch { return scratches.Get().(*Scratch) }

// maxPooled is the size of the largest buffer that is kept for reuse, in bytes.
const maxPooled = 256 << 10

// Release clears the payload and returns s to the pool, unless its buffers are too large.
func (s *Scratch) Release() {
	if cap(s.Payload) > maxPooled || cap(s.text) > maxPooled {
		return
	}
	clear(s.Payload) // so that no plaintext stays in the pool
	scratches.Put(s)
}
