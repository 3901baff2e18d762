// Package jsonvalue reads the JSON texts of other MCP implementations, called peers, and
// writes values byte for byte as the peers do.
//
// Strings are in UTF-8. A lone surrogate is encoded in three bytes, by the same rule as
// other code points. So every JSON string has exactly one form here, and comparing two
// strings compares their code points.
package jsonvalue

import (
	"crypto/sha256"
	"sync"

	"github.com/tripseal/tripseal/internal/argdigest"
	"github.com/tripseal/tripseal/internal/jsonorder"
)

// Arguments reads the arguments of a request and writes them in the style of a peer.
type Arguments struct{ jsonorder.Reader }

var readers = sync.Pool{New: func() any { return new(Arguments) }}

// SumArguments returns the SHA-256 of a request's arguments in another form. The function rewrite
// writes them in this form. An empty text means {}. An error is the client's fault, and is an
// *argdigest.Error.
//
// SumArguments refuses what the native digest refuses, such as two members of the same name.
// A peer may read only the last of these members, but a handler that uses encoding/json gets both
// merged. SumArguments also refuses objects with alike names: see [jsonorder.Object.Alike].
//
// SumArguments needs no more memory than the native digest. It may call rewrite twice.
func SumArguments(text []byte, rewrite func(*Arguments) error) (sum [sha256.Size]byte, err error) {
	a := readers.Get().(*Arguments)
	defer a.release()
	if err := a.rewrite(text, 0, rewrite); err != nil {
		return sum, err
	}
	a.Sum(&sum)
	return sum, nil
}

// RewriteArguments returns a request's arguments in another form. The function rewrite writes them
// in this form. With a lenience, RewriteArguments accepts texts that SumArguments refuses. So use
// RewriteArguments only in tests that compare this module with a peer that accepts the same texts.
func RewriteArguments(text []byte, lenience jsonorder.Lenience, rewrite func(*Arguments) error) ([]byte, error) {
	a := &Arguments{Reader: jsonorder.Reader{Stream: jsonorder.Stream{Whole: true}}}
	if err := a.rewrite(text, lenience, rewrite); err != nil {
		return nil, err
	}
	return a.Buf, nil
}

func (a *Arguments) rewrite(text []byte, accept jsonorder.Lenience, rewrite func(*Arguments) error) error {
	if len(text) == 0 {
		text = []byte("{}")
	}
	a.Begin(text, accept)
	if err := rewrite(a); err != nil && !a.Refused() {
		return err
	}
	again, refusal := a.Check()
	if refusal != nil {
		return (*argdigest.Error)(refusal)
	}
	if again {
		return rewrite(a)
	}
	return nil
}

// Kind returns the kind of the value that is read next.
func (a *Arguments) Kind() Kind { return kindOf(a.Next()) }

func (a *Arguments) release() {
	if a.Release() {
		readers.Put(a)
	}
}
