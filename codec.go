package tripseal

import (
	"context"
	"strings"
)

// Codec seals payloads into texts, and opens only texts that it sealed. It knows nothing
// about time, users or requests. Implement a Codec to seal with a key that this process
// does not hold (it may be in an HSM or a key service). [RingCodec] returns the native
// codec.
//
// Open accepts a text only if it is exactly as Seal made it, and otherwise returns an error.
// Nobody can read the payload from its text. A text has only characters of base64url and
// full stops. The methods of a codec are called concurrently and honour the context. After
// they return, they do not keep the slices that they were passed. The payload's first two
// bytes name its purpose and version, and the caller of Open checks them, so one codec can
// serve several purposes.
//
// An error that wraps [ReasonMalformed], [ReasonUnknownKey] or [ReasonForged] means that
// the text is not genuine. Any other error, or a panic, means that the codec failed. After
// every error or panic, the token is rejected.
//
// A codec may also have a method KeyID(text string) string, which returns the id of the
// key that a text names, whether the text is genuine or not. The log shows this id.
//
// Test your codec with the suite sealtest.TestCodec.
type Codec interface {
	// Seal appends to dst a text that carries the payload.
	Seal(ctx context.Context, dst, payload []byte) (text []byte, err error)
	// Open appends to dst the payload that the text carries.
	Open(ctx context.Context, dst []byte, text string) (payload []byte, err error)
}

// Purpose is what a token is for. Every purpose has its own keys, prefix and first payload
// byte, so a ring never accepts a token of one purpose as a token of another. Pass a
// Purpose to [RingCodec] or [Boundary.Codec].
type Purpose uint8

const (
	// PurposeState is for request states.
	PurposeState Purpose = iota
	// PurposeCursor is for pagination cursors.
	PurposeCursor
	// PurposeHandle is for handles: see [Handles].
	PurposeHandle

	purposes // the number of purposes
)

var purposeDetails = [purposes]struct {
	prefix  string // the text that every token begins with; the seal protects it too
	keyInfo string // the "info" parameter of HKDF, which derives the AES key
	mark    byte   // the payload's first byte
}{
	PurposeState:  {"ms1.", "tripseal/1 state aes-256-gcm", 'S'},
	PurposeCursor: {"mc1.", "tripseal/1 cursor aes-256-gcm", 'C'},
	PurposeHandle: {"mh1.", "tripseal/1 handle aes-256-gcm", 'H'},
}

func (p Purpose) valid() bool { return p < purposes }

// Prefix returns the text that every token of this purpose begins with. Use it to
// recognise a native token or cursor.
func (p Purpose) Prefix() string {
	if !p.valid() {
		return ""
	}
	return purposeDetails[p].prefix
}

// Mark returns the first byte of every payload of this purpose. Whoever opens a text with
// a [Codec] must check that the payload begins with this byte.
func (p Purpose) Mark() byte {
	if !p.valid() {
		return 0
	}
	return purposeDetails[p].mark
}

// hasOwnPrefix reports whether a text begins with one of tripseal's own prefixes.
func hasOwnPrefix(text string) bool {
	for p := range purposes {
		if strings.HasPrefix(text, p.Prefix()) {
			return true
		}
	}
	return false
}
