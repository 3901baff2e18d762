// Package cursor seals pagination cursors. A cursor tells the server where the next page begins; the client keeps it
// and sends it back, and the server stores nothing.
//
//	cursors, err := cursor.New(cursor.Config{Keys: ring, Audience: "rows.example.com"})
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
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/guard"
	"github.com/tripseal/tripseal/internal/native"
	"github.com/tripseal/tripseal/internal/strictjson"
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

// Config says how cursors are sealed, bound and limited. Pass it to [New], which copies it. Set Keys and Audience;
// zero is a good choice for the other fields.
type Config struct {
	// Keys seals and opens cursors. Required, unless Codec is set. Use the ring of your boundary: the ring derives
	// separate keys for cursors.
	Keys tripseal.KeySource
	// Codec seals and opens cursors in place of Keys, for example if the key is in an HSM.
	Codec tripseal.Codec
	// Audience names this service, in at most 1024 bytes. Services with different names refuse each other's cursors
	// even if they share keys. Required.
	Audience string
	// Epoch names the version of the data that positions refer to, in at most 1024 bytes. A change of the epoch makes
	// all earlier cursors invalid: change it, for example, after a change of the schema. "" is a valid epoch.
	Epoch string
	// RequireUser means that a call without a user can neither get nor use a cursor. Shared cursors are an exception:
	// see [NextPage.Shared]. Set RequireUser if every caller signs in.
	RequireUser bool
	// TTL is the lifetime of a cursor. 0 means 1 hour. A cursor keeps the TTL that it was issued with.
	TTL time.Duration
	// MaxPosition is the greatest length of a position, in bytes. 0 means 256.
	MaxPosition int
	// MaxArguments is the greatest length of a request's arguments, in bytes of JSON. 0 means 4 MiB.
	MaxArguments int
	// Logger gets one log record for each rejection. Nil means slog.Default().
	Logger *slog.Logger
	// Observer gets an event, for metrics, after each attempt to issue or open a cursor. Nil means no observer.
	Observer func(context.Context, tripseal.Event)
}

const (
	defaultTTL          = time.Hour
	defaultMaxPosition  = 256
	defaultMaxArguments = 4 << 20

	maxName     = 1024
	maxTTL      = 365 * 24 * time.Hour
	maxPosition = 32 << 10
	clockSkew   = 60 * time.Second
)

// ConfigOf returns a Config for cursors that takes its keys, Audience, RequireUser, MaxArguments, Logger and Observer
// from a boundary. It returns false if the boundary has neither a ring nor a codec. If boundaries have no audience and
// share one [tripseal.Ephemeral] ring, they accept each other's cursors.
func ConfigOf(boundary *tripseal.Boundary) (config Config, ok bool) {
	codec, policy := boundary.Codec(tripseal.PurposeCursor), boundary.Config()
	config = Config{
		Codec: codec, Audience: policy.Audience, RequireUser: policy.RequireUser,
		MaxArguments: policy.MaxArguments, Logger: policy.Logger, Observer: policy.Observer,
	}
	if config.Audience == "" {
		config.Audience = "nobody else" // any name will do, because no other process has these ephemeral keys
	}
	return config, codec != nil
}

// RandomEpoch returns an epoch that no other process has. With it, cursors die with this process, and no replica
// accepts another replica's cursors. Use it for positions that mean something in this process only, such as an index
// into a list in memory.
func RandomEpoch() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Cursors issues and opens native cursors. It is safe for concurrent use. Make one when the server starts.
type Cursors struct {
	config  Config
	texts   native.Texts
	service [digestSize]byte
}

// New makes an [Issuer] of native cursors. An error says what to change in the config. Call it once, when the server
// starts.
func New(c Config) (*Cursors, error) {
	chosen := c.TTL != 0
	orDefault(&c.TTL, defaultTTL)
	orDefault(&c.MaxPosition, defaultMaxPosition)
	orDefault(&c.MaxArguments, defaultMaxArguments)
	ring, isRing := c.Keys.(*tripseal.Ring)
	switch {
	case c.Codec != nil && c.Keys != nil:
		return nil, errors.New("cursor: Config has both Keys and Codec; set only one")
	case c.Codec == nil && (c.Keys == nil || isRing && len(ring.IDs()) == 0):
		return nil, errors.New("cursor: Config.Keys is missing; use the ring of your boundary, or tripseal.Ephemeral()")
	case c.Audience == "":
		return nil, errors.New("cursor: Config.Audience is missing; name this service, for example by its host name, " +
			"so that another service with the same keys cannot open its cursors")
	case len(c.Audience) > maxName || len(c.Epoch) > maxName:
		return nil, fmt.Errorf("cursor: Config.Audience and Config.Epoch have at most %d bytes", maxName)
	case c.TTL < time.Second || c.TTL > maxTTL:
		return nil, fmt.Errorf("cursor: Config.TTL is %v, not between 1s and %v", c.TTL, maxTTL)
	case c.MaxPosition < 1 || c.MaxPosition > maxPosition:
		return nil, fmt.Errorf("cursor: Config.MaxPosition is %d, not between 1 and %d", c.MaxPosition, maxPosition)
	case c.MaxArguments < 1 || c.MaxArguments > strictjson.MaxText:
		return nil, fmt.Errorf("cursor: Config.MaxArguments is %d, not between 1 and %d", c.MaxArguments, strictjson.MaxText)
	case c.Codec == nil:
		c.Codec = tripseal.RingCodec(c.Keys, tripseal.PurposeCursor)
	}
	// The key source is told only a TTL that the config sets: a file with keys for an hour is good enough for the
	// default.
	if codec, ok := c.Codec.(interface{ Outlast(time.Duration) error }); ok && chosen {
		if err := codec.Outlast(c.TTL); err != nil {
			return nil, fmt.Errorf("cursor: Config.Keys: %w", err)
		}
	}
	return &Cursors{c, native.NewTexts(prefix, c.Codec), serviceDigest(c.Audience, c.Epoch)}, nil
}

func orDefault[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
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
	fail := page.open(ctx, cursor)
	c.report(ctx, OpOpen, start, &request, cursor, fail)
	if fail != nil {
		return Page{}, &RejectError{fail.reason, fail.cause}
	}
	return page, nil
}

const errAmongArguments = "the cursor is among the arguments: give Request.Arguments without the cursor, " +
	"which differs on every page"

// open sets p to the page that a cursor leads to, or returns why the cursor is refused.
func (p *Page) open(ctx context.Context, cursor string) *failure {
	c := p.cursors
	// 1. Do the checks that cost nothing.
	text, ok := strings.CutPrefix(cursor, prefix)
	if !ok {
		return failed(tripseal.ReasonMalformed)
	}
	if len(cursor) > c.maxCursor() || len(p.request.Arguments) > c.config.MaxArguments {
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
		fail.reason = tripseal.ReasonArguments
		return fail
	}
	if fail := p.bind(ctx, r.who == forEverybody); fail != nil {
		return fail
	}
	if reason := boundTo(head, &p.binding); reason != "" {
		if bytes.Contains(p.request.Arguments, []byte(cursor)) { // so no cursor of this server can ever open
			return &failure{reason, guard.Explain(errAmongArguments)}
		}
		return failed(reason)
	}
	if len(r.position) > c.config.MaxPosition {
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
func (c *Cursors) openText(ctx context.Context, s *native.Scratch, text string) (payload []byte, fail *failure) {
	cause := guard.Call(func() (err error) {
		payload, err = c.texts.Open(ctx, s, text)
		switch reason, _ := guard.Find[tripseal.Reason](err); reason {
		case tripseal.ReasonMalformed, tripseal.ReasonUnknownKey, tripseal.ReasonForged:
			fail, err = failed(reason), nil
		}
		return err
	})
	if cause != nil {
		return nil, &failure{tripseal.ReasonCodecFailed, cause}
	}
	return payload, fail
}

// maxCursor returns the greatest length of a cursor. Open refuses a longer cursor without decoding it. No codec makes
// a longer one.
func (c *Cursors) maxCursor() int { return max(4096, 4*c.config.MaxPosition) }
