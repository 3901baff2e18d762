package cursor

import (
	"context"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/native"
)

// Issuer opens cursors. Open returns a [Page], which issues the next cursor. *[Cursors]
// implements Issuer, and so does a type in compat/atd. Implement an Issuer only to share
// cursors with servers whose cursors are not native.
type Issuer interface {
	// Open returns the page that a cursor leads to. An empty cursor leads to the
	// first page and always opens. A non-empty cursor must have been issued for this
	// request, to this user, by this service; otherwise the error is ErrExpired or
	// ErrInvalid. Pass the arguments without the cursor itself, which is different on
	// every page. On a first page [Page.Next] reads the arguments, so they must not
	// change until Next returns.
	Open(ctx context.Context, request tripseal.Request, cursor string) (Page, error)
}

// Cursors issues and opens native cursors. It is safe for concurrent use. Make one when
// the server starts.
type Cursors struct {
	config  Config
	texts   native.Texts
	service [digestSize]byte
}

// New makes an [Issuer] of native cursors. An error says what to change in the config.
// Call it once, when the server starts.
func New(config Config) (*Cursors, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	return &Cursors{config, native.NewTexts(prefix, config.Codec), serviceDigest(config.Audience, config.Epoch)}, nil
}

// prefix is the text that every cursor begins with.
var prefix = tripseal.PurposeCursor.Prefix()
