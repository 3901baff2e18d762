package compat

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/b64u"
)

const minSecret = 32

func checkSecret(peer string, secret []byte) error {
	if len(secret) < minSecret {
		return fmt.Errorf("compat: a secret for %s has at least %d bytes, this one has %d", peer, minSecret, len(secret))
	}
	return nil
}

// derive derives a key from a secret with HKDF-SHA-256, as the peers do.
func derive(secret []byte, info string) ([]byte, error) {
	return hkdf.Key(sha256.New, secret, nil, info, sha256.Size)
}

// sealer seals payloads with AES-256-GCM. It puts the random nonce in front of the ciphertext.
type sealer struct{ aead cipher.AEAD }

// The lengths of the nonce and the tag that sealing adds to a payload, in bytes.
const nonceSize, tagSize = 12, 16

func newSealer(key []byte) (*sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &sealer{aead}, nil
}

// seal returns a token: the prefix, followed by one base64url text that holds the head and
// the sealed payload.
func (s *sealer) seal(prefix string, head, payload, additional []byte) string {
	sealed := make([]byte, len(head), len(head)+nonceSize+len(payload)+tagSize)
	copy(sealed, head)
	sealed = s.aead.Seal(sealed, nil, payload, additional)
	text := append(make([]byte, 0, len(prefix)+b64u.EncodedLen(len(sealed))), prefix...)
	return string(b64u.Append(text, sealed))
}

// open decrypts a sealed payload and returns it, or ReasonForged if the sealed bytes are not
// genuine.
func (s *sealer) open(buf *scratch, sealed, additional []byte) (string, error) {
	payload, err := s.aead.Open(buf.payload[:0], nil, sealed, additional)
	if err != nil {
		return "", tripseal.ReasonForged
	}
	buf.payload = payload
	return string(payload), nil
}

// scratch holds the buffers for opening a token. Scratches are kept in a pool, so that most
// tokens need no new buffers.
type scratch struct{ sealed, payload []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// decode decodes a base64url text into s.sealed. It returns false if the text is malformed,
// or too short to hold a sealed payload after a head of the given length.
func (s *scratch) decode(text string, head int) bool {
	sealed, err := b64u.Decode(s.sealed[:0], text)
	if err != nil {
		return false
	}
	s.sealed = sealed
	return len(sealed) >= head+nonceSize+tagSize
}

// release clears the plaintext and returns the buffers to the pool. Buffers that are too large
// for the pool are neither cleared nor returned.
func (s *scratch) release() {
	const maxPooled = 256 << 10
	if cap(s.sealed) > maxPooled || cap(s.payload) > maxPooled {
		return
	}
	clear(s.payload)
	scratches.Put(s)
}

// The type redacted holds the name of a format. A format that embeds this type prints as that name
// for every verb of fmt. So the format's other fields, which hold secrets, are never printed.
type redacted string

func (r redacted) String() string             { return "compat." + string(r) }
func (r redacted) GoString() string           { return r.String() }
func (r redacted) Format(s fmt.State, _ rune) { io.WriteString(s, r.String()) }
func (r redacted) LogValue() slog.Value       { return slog.StringValue(r.String()) }
