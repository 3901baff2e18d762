// Package mac computes HMAC-SHA256, with a key that is prepared once for many messages.
package mac

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"io"
	"sync"
)

// Size is the length of a MAC, in bytes.
const Size = sha256.Size

// Key is a key for HMAC-SHA256. It is safe for concurrent use. Printing it shows only an
// address.
type Key struct{ hashes *sync.Pool }

// NewKey returns a Key with a copy of these bytes.
func NewKey(key []byte) Key {
	key = append([]byte(nil), key...)
	return Key{&sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

// Sum returns the MAC of a message that consists of the parts, one after the other.
func (k Key) Sum(parts ...string) (sum [Size]byte) {
	h := k.hashes.Get().(hash.Hash)
	h.Reset()
	for _, part := range parts {
		io.WriteString(h, part)
	}
	h.Sum(sum[:0])
	k.hashes.Put(h)
	return sum
}

// Verify reports, in constant time, whether sum is the MAC of the message.
func (k Key) Verify(sum []byte, message string) bool {
	want := k.Sum(message)
	return hmac.Equal(sum, want[:])
}
