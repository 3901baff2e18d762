package mcpseal

import (
	"context"
)

// Codec proves that a payload is genuine and gives it back. It knows nothing of
// time, users or requests. Implement one to seal with a key that this process
// does not hold (an HSM, a key service); [RingCodec] is the native one.
//
// Exactly one text may open for each sealed value, any other text is an
// error, and a payload must not be readable from its text. A text consists of
// the characters of base64url and the full stop. A codec is called
// concurrently, honours the context, and keeps neither payload nor dst after
// it returns. The payload's first two bytes name its purpose and version,
// and whoever opens it checks them, so one codec can serve several purposes.
//
// An error that wraps [ReasonMalformed], [ReasonUnknownKey] or [ReasonForged]
// says that the text is not genuine; any other error, and a panic, says that
// the codec failed. The token is rejected either way.
//
// The suite sealtest.TestCodec holds a codec to all this.
type Codec interface {
	// Seal appends the text that carries payload to dst.
	Seal(ctx context.Context, dst, payload []byte) (text []byte, err error)
	// Open appends the payload that text carries to dst.
	Open(ctx context.Context, dst []byte, text string) (payload []byte, err error)
}

// Purpose keeps apart what one ring seals. Every purpose has keys, a prefix
// and a first payload byte of its own, so that a token made for one is never
// accepted for another.
type Purpose uint8

const (
	// PurposeState is for request states.
	PurposeState Purpose = iota
	// PurposeCursor is for pagination cursors.
	PurposeCursor

	purposes // how many there are
)

var purposeDetails = [purposes]struct {
	prefix  string // of a token, and part of what is authenticated
	keyInfo string // derives the AES key
	mark    byte   // the payload's first byte
}{
	PurposeState:  {"ms1.", "mcpseal/1 state aes-256-gcm", 'S'},
	PurposeCursor: {"mc1.", "mcpseal/1 cursor aes-256-gcm", 'C'},
}

func (p Purpose) valid() bool { return p < purposes }

// Prefix is what every token of this purpose begins with.
func (p Purpose) Prefix() string {
	if !p.valid() {
		return ""
	}
	return purposeDetails[p].prefix
}

// Mark is the first byte of every payload of this purpose.
func (p Purpose) Mark() byte {
	if !p.valid() {
		return 0
	}
	return purposeDetails[p].mark
}
