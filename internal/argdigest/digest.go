// Package argdigest computes a digest of the JSON text of a request's arguments. Two texts
// have the same digest if and only if they have the same value.
//
// White space, escapes and the spelling of a number do not change the digest. The order of members
// counts only if an object has two member names that a handler may confuse, such as "a" and "A"
// (see [jsonorder.Object.Alike]). Everything else changes the digest. Numbers are compared by their
// exact decimal value, and are never converted to a float. Strings are sequences of UTF-16 code
// units.
//
// Each value is written to a stream of bytes: first a tag for its type, then its length if
// values of this type differ in length, then its content (see docs/token.md). The digest is
// the SHA-256 of that stream.
package argdigest

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/tripseal/tripseal/internal/jsonorder"
)

const (
	// MaxLevels is how deep arrays and objects may nest.
	MaxLevels = jsonorder.MaxLevels
	// MaxText is the greatest length of a text that Sum accepts, in bytes.
	MaxText = jsonorder.MaxText
)

// Size is the length of a digest, in bytes.
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

// Whole returns an Error about the whole text rather than one position.
func Whole(problem string) *Error { return &Error{-1, problem} }

// noArguments is the digest of {}, for requests without arguments.
var noArguments = sha256.Sum256(emptyObject)

var writers = sync.Pool{New: func() any { return new(writer) }}

// Sum returns the digest of text. An empty text and null mean {}.
//
// It allocates at most four times the length of the text, and nothing for a text of
// a few kilobytes.
func Sum(text []byte) (sum [Size]byte, err error) {
	if len(text) == 0 {
		return noArguments, nil
	}
	w := writers.Get().(*writer)
	defer w.release()
	w.Begin(text, jsonorder.AlikeNames)
	w.root()
	again, refusal := w.Check()
	if refusal != nil {
		return sum, (*Error)(refusal)
	}
	if again {
		w.root()
	}
	w.Sum(&sum)
	return sum, nil
}

func (w *writer) release() {
	if w.Release() {
		writers.Put(w)
	}
}
