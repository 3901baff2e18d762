package cursor

import (
	"context"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/native"
)

// Issuer opens cursors; the page that it returns issues the next one. *[Cursors] is
// an Issuer; compat/atd has another.
type Issuer interface {
	// Open returns the page that a cursor leads to. An empty cursor leads to the
	// first page and always opens. Any other must be one that was issued for
	// this request, to this user, by this service; otherwise the error is
	// ErrExpired or ErrInvalid. Pass the arguments without the cursor itself, which
	// is different on every page. On a first page [Page.Next] reads them, so they
	// must not change until then.
	Open(ctx context.Context, request mcpseal.Request, cursor string) (Page, error)
}

// Cursors issues and opens native cursors. It is safe for concurrent use.
type Cursors struct {
	config  Config
	texts   native.Texts[mcpseal.Reason]
	service [digestSize]byte
}

// New makes an issuer. An error says what to configure.
func New(config Config) (*Cursors, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	texts := native.NewTexts(prefix, config.Codec,
		mcpseal.ReasonCodecFailed, mcpseal.ReasonMalformed, mcpseal.ReasonUnknownKey, mcpseal.ReasonForged)
	return &Cursors{config, texts, serviceDigest(config.Audience, config.Epoch)}, nil
}

// prefix is what every cursor begins with.
var prefix = mcpseal.PurposeCursor.Prefix()

// maxCursor is the longest cursor that is decoded. No codec makes a longer one.
func (c *Cursors) maxCursor() int { return max(4096, 4*c.config.MaxPosition) }

// Open implements [Issuer].
func (c *Cursors) Open(ctx context.Context, request mcpseal.Request, cursor string) (Page, error) {
	page := Page{cursors: c, request: request}
	if cursor == "" {
		return page, nil
	}
	start := c.start()
	fail := page.open(ctx, cursor)
	c.report(ctx, OpOpen, start, &request, cursor, fail)
	if fail != nil {
		return Page{}, &RejectError{fail.Reason, fail.Cause}
	}
	return page, nil
}
