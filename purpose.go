package mcpseal

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
