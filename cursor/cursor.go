package cursor

import (
	"context"
	"strings"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/callback"
	"github.com/mcpseal/mcpseal/internal/native"
)

// Issuer opens cursors; what it opens issues the next one. *[Cursors] is one;
// compat/atd has another.
type Issuer interface {
	// Open returns the page that a cursor leads to. An empty cursor leads to the
	// first page and always opens. Any other must be one that was issued for
	// this request, to this user, by this service; otherwise the error is
	// ErrExpired or ErrInvalid. The arguments of a first page are read by
	// [Page.Next], so they must not change until then.
	Open(ctx context.Context, request mcpseal.Request, cursor string) (Page, error)
}

// Cursors issues and opens native cursors. It is safe for concurrent use.
type Cursors struct {
	config  Config
	texts   native.Texts
	service [digestSize]byte
}

// New makes an issuer. An error says what to configure.
func New(config Config) (*Cursors, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	return &Cursors{config, native.NewTexts(prefix, config.Codec), serviceDigest(config.Audience, config.Epoch)}, nil
}

// prefix is what every cursor begins with.
var prefix = mcpseal.PurposeCursor.Prefix()

// maxCursor bounds what is decoded: more than any codec makes of a position.
func (c *Cursors) maxCursor() int { return max(4096, 4*c.config.MaxPosition) }

// Open implements [Issuer].
func (c *Cursors) Open(ctx context.Context, request mcpseal.Request, cursor string) (Page, error) {
	page := Page{cursors: c, caller: request}
	if cursor == "" {
		return page, nil
	}
	start := c.start()
	if fail := c.guardedOpen(ctx, &page, cursor); fail != nil {
		c.report(ctx, OpOpen, start, &request, len(cursor), fail)
		return Page{}, &RejectError{fail.reason, fail.cause}
	}
	c.observe(ctx, OpOpen, start, &request, len(cursor))
	return page, nil
}

func (c *Cursors) open(ctx context.Context, page *Page, cursor string) *failure {
	text, ok := strings.CutPrefix(cursor, prefix)
	if !ok {
		return failed(mcpseal.ReasonMalformed)
	}
	if len(cursor) > c.maxCursor() || len(page.caller.Arguments) > c.config.MaxArguments {
		return failed(mcpseal.ReasonTooLarge)
	}
	s := native.Borrow()
	defer s.Release()
	page.calling = mcpseal.ReasonCodecFailed
	payload, err := c.texts.Open(ctx, s, text)
	if err != nil {
		return codecFailure(err)
	}
	r, head, reason := parseRecord(payload)
	if reason != "" {
		return failed(reason)
	}
	if fail := page.digestArguments(); fail != nil { // only now: a forged cursor buys no digest
		fail.reason = mcpseal.ReasonArguments
		return fail
	}
	if fail := page.bind(ctx, r.who == forEverybody); fail != nil {
		return fail
	}
	if reason := boundTo(head, &page.binding); reason != "" {
		return failed(reason)
	}
	if len(r.position) > c.config.MaxPosition {
		return failed(mcpseal.ReasonTooLarge)
	}
	// Last, so that only who it was issued to learns that it is too old.
	page.opened = time.Now().UnixMilli()
	if reason := inTime(&r, page.opened); reason != "" {
		return failed(reason)
	}
	page.number, page.position = int(r.number), append(make([]byte, 0, len(r.position)), r.position...)
	return nil
}

// inTime states what is accepted, so that a nonsense number is not.
func inTime(r *record, now int64) mcpseal.Reason {
	if !(r.issued <= now+clockSkew.Milliseconds()) {
		return mcpseal.ReasonFromTheFuture
	}
	if !(now < r.issued+r.lifetime) {
		return mcpseal.ReasonExpired
	}
	return ""
}

// guardedOpen is open, in which parts of the user's are called.
func (c *Cursors) guardedOpen(ctx context.Context, page *Page, cursor string) (fail *failure) {
	defer page.recovered(&fail)
	return c.open(ctx, page, cursor)
}

func codecFailure(err error) *failure {
	reason, ok := callback.Find[mcpseal.Reason](err)
	if ok && (reason == mcpseal.ReasonMalformed || reason == mcpseal.ReasonUnknownKey || reason == mcpseal.ReasonForged) {
		return failed(reason)
	}
	return &failure{mcpseal.ReasonCodecFailed, callback.Failed(err)}
}

// issue seals a record.
func (c *Cursors) issue(ctx context.Context, r *record, b *binding) (string, *failure) {
	s := native.Borrow()
	defer s.Release()
	s.Payload = appendRecord(s.Payload[:0], r, b)
	text, err := c.texts.Seal(ctx, s)
	if err != nil {
		return "", &failure{mcpseal.ReasonCodecFailed, callback.Failed(err)}
	}
	return text, nil
}
