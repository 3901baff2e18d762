// Package argdigest digests the JSON text of a request's arguments so that two
// texts share a digest exactly when they denote the same value.
//
// White space, member order, escapes and the spelling of a number do not
// count; everything else does. Numbers are compared by their exact decimal
// value and never pass through a float; strings are sequences of UTF-16 code
// units. The text is rewritten as a type-tagged, length-framed stream (see
// docs/token.md), and the digest is the SHA-256 of that stream.
package argdigest

import (
	"crypto/sha256"
	"fmt"
	"sync"
)

const (
	// MaxLevels is how deep arrays and objects may nest.
	MaxLevels = 128
	// MaxText is the longest text that is digested.
	MaxText = 16 << 20
	// maxExponentDigits keeps an exponent, and what normalising adds to it,
	// within an int64.
	maxExponentDigits = 18
	// maxPooled is the largest stream whose buffers are kept for reuse.
	maxPooled = 64 << 10
)

// Size is the length of a digest.
const Size = sha256.Size

// Error says why a text has no digest. It never repeats the text.
type Error struct {
	Offset  int
	Problem string
}

func (e *Error) Error() string {
	if e.Offset < 0 {
		return "arguments: " + e.Problem
	}
	return fmt.Sprintf("arguments: %s at byte %d", e.Problem, e.Offset)
}

// Whole is a problem that stands nowhere in particular.
func Whole(problem string) *Error { return &Error{-1, problem} }

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// noArguments is the digest of {}, what most requests that carry no arguments
// are given.
var noArguments = sha256.Sum256(emptyObject)

// Sum returns the digest of text. A missing text and null count as {}.
func Sum(text []byte) ([Size]byte, error) {
	if len(text) == 0 {
		return noArguments, nil
	}
	if len(text) > MaxText {
		return [Size]byte{}, &Error{MaxText, "the text is too long"}
	}
	e := encoders.Get().(*encoder)
	defer e.release()
	stream, err := e.encode(text)
	if err != nil {
		return [Size]byte{}, err
	}
	return sha256.Sum256(stream), nil
}

func (e *encoder) release() {
	if cap(e.out) > maxPooled || cap(e.sorted) > maxPooled ||
		cap(e.members) > maxPooled/32 || cap(e.pending) > maxPooled/32 || cap(e.objects) > maxPooled/32 {
		return
	}
	e.text = nil
	clear(e.out)
	clear(e.sorted)
	encoders.Put(e)
}
