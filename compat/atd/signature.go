package atd

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
)

const macSize = sha256.Size

// macKey is a key for HMAC-SHA256. It holds the secret behind a pointer, so printing it
// shows only an address.
type macKey struct{ secret *[keySize]byte }

func newMACKey(secret []byte) macKey {
	key := [keySize]byte(secret)
	return macKey{&key}
}

func (k macKey) sum(message []byte) []byte {
	h := hmac.New(sha256.New, k.secret[:])
	h.Write(message)
	return h.Sum(nil)
}

// verify reports whether sum is the MAC of the message. It compares in constant time.
func (k macKey) verify(sum, message []byte) bool { return hmac.Equal(sum, k.sum(message)) }

// decodeText decodes base64url, and reports whether the text is valid. The standard
// library's decoder skips CR and LF. So decodeText encodes the result again, and accepts the
// text only if the new text is the same.
func decodeText(text string) ([]byte, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return b, err == nil && base64.RawURLEncoding.EncodeToString(b) == text
}
