// Package cursor seals pagination cursors. A cursor tells the server where the next page begins; the client keeps it
// and sends it back, and the server stores nothing.
//
//	cursors, err := cursor.New(boundary, cursor.Options{})
//	…
//	page, err := cursors.Open(ctx, request, token) // "" is the first page
//	rows := query(page.Position())
//	next, err := page.Next(ctx, cursor.NextPage{Position: last(rows)})
//
// A cursor opens only for the request that it was issued for: the same tool or list, the same caller, the same
// arguments, the same service. It cannot be read, changed or made by a client, and it expires. It carries a page
// number and up to 256 bytes of position, in at most 512 characters.
//
// If the cursor is one of a tool's arguments, take it out of [tripseal.Request.Arguments] and keep the other arguments
// there, as [PageOptions.Cut] does. If you leave the cursor in, no second page opens. If you leave the other arguments
// out, a cursor works for any arguments.
package cursor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/guard"
	"github.com/tripseal/tripseal/internal/native"
)

// Issuer opens cursors. Open returns a [Page], which issues the next cursor. *[Cursors] implements Issuer, and so does
// a type in compat/atd. Implement an Issuer only to share cursors with servers whose cursors are not native.
type Issuer interface {
	// Open returns the page that a cursor leads to. An empty cursor leads to the first page and always opens. A
	// non-empty cursor must have been issued for this request, to this user, by this service; otherwise the error is
	// ErrExpired or ErrInvalid. Pass the arguments without the cursor itself, which is different on every page. On a
	// first page [Page.Next] reads the arguments, so they must not change until Next returns.
	Open(ctx context.Context, request tripseal.Request, cursor string) (Page, error)
}

// Options says how long cursors live and what they hold. Pass it to [New]. Zero is a good choice for every field.
type Options struct {
	// Epoch names the version of the data that positions refer to, in at most 1024 bytes. A change of the epoch makes
	// all earlier cursors invalid: change it, for example, after a change of the schema. If positions mean something
	// in this process only, such as an index into a list in memory, set it to crypto/rand.Text().
	Epoch string
	// TTL is the lifetime of a cursor. 0 means 1 hour. A cursor keeps the TTL that it was issued with.
	TTL time.Duration
	// MaxPosition is the greatest length of a position, in bytes, up to 32 KiB. 0 means 256.
	MaxPosition int
}

const (
	maxTTL      = 365 * 24 * time.Hour
	maxPosition = 32 << 10
	clockSkew   = 60 * time.Second
)

// Cursors issues and opens native cursors. It is safe for concurrent use. Make one when the server starts.
type Cursors struct {
	Options
	policy  tripseal.Config
	codec   tripseal.Codec
	texts   native.Texts
	service [digestSize]byte
}

// New makes an [Issuer] of native cursors, with the keys, Audience, RequireUser, MaxArguments, Logger and Observer of
// the boundary. If boundaries have no audience and share one [tripseal.Ephemeral] ring, they accept each other's
// cursors. An error says what to change. Call New once, when the server starts.
func New(boundary *tripseal.Boundary, o Options) (*Cursors, error) {
	codec, policy, chosen := boundary.Codec(tripseal.PurposeCursor), boundary.Config(), o.TTL != 0
	o.TTL, o.MaxPosition = cmp.Or(o.TTL, time.Hour), cmp.Or(o.MaxPosition, 256)
	switch {
	case codec == nil:
		return nil, errors.New("cursor: the boundary has neither a ring nor a codec; set tripseal.Config.Keys")
	case len(o.Epoch) > 1024:
		return nil, errors.New("cursor: Options.Epoch has more than 1024 bytes")
	case o.TTL < time.Second || o.TTL > maxTTL:
		return nil, fmt.Errorf("cursor: Options.TTL is %v, not between 1s and %v", o.TTL, maxTTL)
	case o.MaxPosition < 1 || o.MaxPosition > maxPosition:
		return nil, fmt.Errorf("cursor: Options.MaxPosition is %d, not between 1 and %d", o.MaxPosition, maxPosition)
	}
	// The key source is told only a TTL that the author chose: a file with keys for an hour is good enough for the
	// default.
	if ring, ok := codec.(interface{ Outlast(time.Duration) error }); ok && chosen {
		if err := ring.Outlast(o.TTL); err != nil {
			return nil, fmt.Errorf("cursor: tripseal.Config.Keys: %w", err)
		}
	}
	// Without an audience the keys are ephemeral: no other process has them, so any name will do.
	service := serviceDigest(cmp.Or(policy.Audience, "nobody else"), o.Epoch)
	return &Cursors{o, policy, codec, native.NewTexts(prefix, codec), service}, nil
}

// prefix is the text that every cursor begins with.
var prefix = tripseal.PurposeCursor.Prefix()

// Open returns the page that a cursor leads to: see [Issuer]. Call it for every request of a paginated list, also for
// the first page.
func (c *Cursors) Open(ctx context.Context, request tripseal.Request, cursor string) (Page, error) {
	page := Page{cursors: c, request: request}
	if cursor == "" {
		return page, nil
	}
	start := time.Now()
	if err := page.report(ctx, OpOpen, start, cursor, page.open(ctx, cursor)); err != nil {
		return Page{}, err
	}
	return page, nil
}

// open sets p to the page that a cursor leads to, or returns why the cursor is refused.
func (p *Page) open(ctx context.Context, cursor string) *Error {
	c := p.cursors
	// 1. Do the checks that cost nothing.
	text, ok := strings.CutPrefix(cursor, prefix)
	if !ok {
		return failed(tripseal.ReasonMalformed)
	}
	if len(cursor) > c.maxCursor() || len(p.request.Arguments) > c.policy.MaxArguments {
		return failed(tripseal.ReasonTooLarge)
	}
	// 2. Check that the cursor is genuine.
	s := native.Borrow()
	defer s.Release()
	payload, fail := c.openText(ctx, s, text)
	if fail != nil {
		return fail
	}
	r, head, reason := parseRecord(payload)
	if reason != "" {
		return failed(reason)
	}
	// 3. Check that it is bound to this request, service and user. No digest is computed for a forged cursor.
	if fail := p.digestArguments(); fail != nil {
		fail.Reason = tripseal.ReasonArguments
		return fail
	}
	if fail := p.bind(ctx, r.who == forEverybody); fail != nil {
		return fail
	}
	if reason := boundTo(head, &p.binding); reason != "" {
		return failed(reason)
	}
	if len(r.position) > c.MaxPosition {
		return failed(tripseal.ReasonTooLarge)
	}
	// 4. Check the times last, so that only somebody who may use the cursor learns that it expired.
	p.opened = time.Now().UnixMilli()
	switch {
	case !(r.issued <= p.opened+clockSkew.Milliseconds()):
		return failed(tripseal.ReasonFromTheFuture)
	case !(p.opened < r.issued+r.lifetime):
		return failed(tripseal.ReasonExpired)
	}
	p.number, p.position = int(r.number), append(make([]byte, 0, len(r.position)), r.position...)
	return nil
}

// openText returns the payload of a genuine cursor.
func (c *Cursors) openText(ctx context.Context, s *native.Scratch, text string) (payload []byte, fail *Error) {
	cause := guard.Call(func() (err error) {
		payload, err = c.texts.Open(ctx, s, text)
		switch reason, _ := guard.Find[tripseal.Reason](err); reason {
		case tripseal.ReasonMalformed, tripseal.ReasonUnknownKey, tripseal.ReasonForged:
			fail, err = failed(reason), nil
		}
		return err
	})
	if cause != nil {
		return nil, &Error{Reason: tripseal.ReasonCodecFailed, cause: cause}
	}
	return payload, fail
}

// maxCursor returns the greatest length of a cursor. Open refuses a longer cursor without decoding it. No codec makes
// a longer one.
func (c *Cursors) maxCursor() int { return max(4096, 4*c.MaxPosition) }
