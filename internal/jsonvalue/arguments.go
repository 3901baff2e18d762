package jsonvalue

import (
	"crypto/sha256"

	"github.com/mcpseal/mcpseal/internal/argdigest"
)

// SumArguments is the SHA-256 of the JSON text of a request's arguments as
// rewrite appends it. It refuses what the native digest refuses, such as two
// members of one name: a peer may keep the last of them where encoding/json
// merges them. A missing text counts as {}. An error is the client's fault, an
// *argdigest.Error.
func SumArguments(text []byte, rewrite func(d *Document, dst []byte) ([]byte, error)) (sum [sha256.Size]byte, err error) {
	if len(text) == 0 {
		text = []byte("{}")
	}
	var d *Document
	if len(text) <= argdigest.MaxText {
		d, err = Parse(string(text), false)
	}
	if d == nil || d.Duplicates() {
		if _, err := argdigest.Sum(text); err != nil { // says where
			return sum, err
		}
		return sum, argdigest.Whole("not a JSON text")
	}
	defer d.Release()
	rewritten, err := rewrite(d, d.buf)
	d.buf = rewritten[:0] // what release clears
	if err != nil {
		return sum, err
	}
	return sha256.Sum256(rewritten), nil
}
