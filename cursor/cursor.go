package cursor

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/argdigest"
	"github.com/mcpseal/mcpseal/internal/callback"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// Issuer opens cursors; what it opens issues the next one. *[Cursors] is one;
// compat/atd has another.
type Issuer interface {
	// Open returns the page that a cursor leads to. An empty cursor leads to the
	// first page and always opens. Any other must be one that was issued for
	// this request, to this user, by this service; otherwise the error is
	// ErrExpired or ErrInvalid.
	Open(ctx context.Context, request mcpseal.Request, cursor string) (Page, error)
}

// Cursors issues and opens native cursors. It is safe for concurrent use.
type Cursors struct {
	config  Config
	service [sha256.Size]byte
}

// New makes an issuer. An error says what to configure.
func New(config Config) (*Cursors, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	return &Cursors{config, serviceDigest(config.Audience, config.Epoch)}, nil
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
	if fail := c.open(ctx, &page, cursor); fail != nil {
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
	if len(cursor) > c.maxCursor() {
		return failed(mcpseal.ReasonTooLarge)
	}
	if fail := page.digestArguments(); fail != nil {
		return fail
	}
	s := scratches.Get().(*scratch)
	defer s.release()
	s.buf = slices.Grow(s.buf[:0], 2*len(text)+64)
	payload, fail := c.unseal(ctx, s.buf, text)
	if fail != nil {
		return fail
	}
	s.buf = payload // what release clears
	r, head, reason := parseRecord(payload)
	if reason != "" {
		return failed(reason)
	}
	binding, fail := page.bind(ctx, r.shared())
	if fail != nil {
		return fail
	}
	if reason := boundTo(head, binding); reason != "" {
		return failed(reason)
	}
	if len(r.position) > c.config.MaxPosition {
		return failed(mcpseal.ReasonTooLarge)
	}
	// Last, so that only who it was issued to learns that it is too old.
	if reason := inTime(&r); reason != "" {
		return failed(reason)
	}
	page.number, page.position = int(r.number), append(make([]byte, 0, len(r.position)), r.position...)
	return nil
}

// inTime states what is accepted, so that a nonsense number is not.
func inTime(r *record) mcpseal.Reason {
	now := time.Now().UnixMilli()
	if !(r.issued <= now+clockSkew.Milliseconds()) {
		return mcpseal.ReasonFromTheFuture
	}
	if !(now < r.issued+r.lifetime) {
		return mcpseal.ReasonExpired
	}
	return ""
}

// unseal calls the codec, which may be the user's.
func (c *Cursors) unseal(ctx context.Context, dst []byte, text string) (payload []byte, fail *failure) {
	panicked := callback.Guard(func() {
		opened, err := c.config.Codec.Open(ctx, dst, text)
		if err != nil {
			fail = codecFailure(err)
			return
		}
		payload = opened
	})
	if panicked != nil {
		fail = &failure{mcpseal.ReasonCodecFailed, panicked}
	}
	return payload, fail
}

func codecFailure(err error) *failure {
	reason, ok := callback.Find[mcpseal.Reason](err)
	if ok && (reason == mcpseal.ReasonMalformed || reason == mcpseal.ReasonUnknownKey || reason == mcpseal.ReasonForged) {
		return failed(reason)
	}
	return &failure{mcpseal.ReasonCodecFailed, callback.Failed(err)}
}

// issue seals a record.
func (c *Cursors) issue(ctx context.Context, r *record, b *binding) (cursor string, fail *failure) {
	s := scratches.Get().(*scratch)
	defer s.release()
	s.buf = appendRecord(s.buf[:0], r, b)
	s.text = append(s.text[:0], prefix...)
	panicked := callback.Guard(func() {
		text, err := c.config.Codec.Seal(ctx, s.text, s.buf)
		if err != nil {
			fail = &failure{mcpseal.ReasonCodecFailed, callback.Failed(err)}
			return
		}
		s.text, cursor = text, string(text)
	})
	if panicked != nil {
		return "", &failure{mcpseal.ReasonCodecFailed, panicked}
	}
	if fail == nil && !strings.HasPrefix(cursor, prefix) {
		return "", &failure{mcpseal.ReasonCodecFailed, callback.Explain("the codec did not append to what it was given")}
	}
	return cursor, fail
}

// Page is a page of a walk: where to go on, and how to say so. It is not safe
// for concurrent use.
type Page struct {
	number   int
	position []byte
	next     func(context.Context, Next) (string, error) // of another issuer

	cursors *Cursors
	caller  mcpseal.Request
	parts   parts
	known   struct{ arguments, user, bound bool } // of parts, and of binding
	binding binding                               // to the caller
}

// Next is where the page behind a page begins.
type Next struct {
	Position []byte // what the next page's Position returns
	// Shared lets everybody who makes the same request use the cursor: the page
	// that it stands on may be served to others from a cache.
	Shared bool
	// Cached is how long a cache may serve the page that the cursor stands on.
	// The cursor's TTL begins after that.
	Cached time.Duration
}

// NewPage makes a page of another issuer: next issues the cursor of the page
// behind it.
func NewPage(number int, position []byte, next func(context.Context, Next) (string, error)) Page {
	return Page{number: number, position: position, next: next}
}

// String names the page by its number, without position, user or arguments.
func (p Page) String() string { return "cursor.Page(" + strconv.Itoa(p.number) + ")" }

// Format writes String under every verb.
func (p Page) Format(s fmt.State, _ rune) { io.WriteString(s, p.String()) }

// LogValue is String, for slog.
func (p Page) LogValue() slog.Value { return slog.StringValue(p.String()) }

// First says whether this is the first page.
func (p *Page) First() bool { return p.number == 0 }

// Number returns how many pages came before.
func (p *Page) Number() int { return p.number }

// Position returns where this page begins, as the page before said; nil on the
// first page.
func (p *Page) Position() []byte { return p.position }

const errNoPage = plain.Error("the Page does not come from a successful Open")

// Next returns the cursor of the page behind this one. The error is an
// *[IssueError].
func (p *Page) Next(ctx context.Context, next Next) (string, error) {
	if p.next != nil {
		return p.next(ctx, next)
	}
	c := p.cursors
	if c == nil {
		return "", &IssueError{mcpseal.ReasonMisuse, callback.Failed(errNoPage)}
	}
	start := c.start()
	cursor, fail := p.issue(ctx, &next)
	if fail != nil {
		c.report(ctx, OpIssue, start, &p.caller, 0, fail)
		return "", &IssueError{fail.reason, fail.cause}
	}
	c.observe(ctx, OpIssue, start, &p.caller, len(cursor))
	return cursor, nil
}

func (p *Page) issue(ctx context.Context, next *Next) (string, *failure) {
	c := p.cursors
	if len(next.Position) > c.config.MaxPosition {
		return "", &failure{mcpseal.ReasonTooLarge, callback.Explain("the position has %d bytes, more than %d: "+
			"keep a key in it, not a row", len(next.Position), c.config.MaxPosition)}
	}
	if next.Cached < 0 || next.Cached > maxTTL {
		return "", &failure{mcpseal.ReasonMisuse, callback.Explain("Next.Cached is %v, not between 0 and %v", next.Cached, maxTTL)}
	}
	if fail := p.digestArguments(); fail != nil {
		return "", fail
	}
	binding, fail := p.bind(ctx, next.Shared)
	if fail != nil {
		return "", fail
	}
	r := record{
		issued: time.Now().UnixMilli(), lifetime: (c.config.TTL + next.Cached).Milliseconds(),
		number: int64(p.number) + 1, position: next.Position,
	}
	switch {
	case next.Shared:
		r.flags = flagShared
	case p.parts.user != "":
		r.flags = flagPrincipal
	}
	if !r.fits() {
		return "", &failure{mcpseal.ReasonTooLarge, callback.Explain("a walk has at most %d pages", int64(maxNumber))}
	}
	return c.issue(ctx, &r, binding)
}

// digestArguments comes first: it alone says nothing about a cursor.
func (p *Page) digestArguments() *failure {
	if p.known.arguments {
		return nil
	}
	binding := mcpseal.Binding{Arguments: p.caller.Arguments}
	arguments, err := binding.ArgumentsDigest()
	if err != nil {
		fail := failed(mcpseal.ReasonInvalidParams)
		if problem, ok := err.(*argdigest.Error); ok {
			fail.cause = callback.Explain("%s", problem.Error()) // repeats nothing of them
		}
		return fail
	}
	p.parts.service, p.parts.arguments, p.known.arguments = &p.cursors.service, arguments, true
	return nil
}

// bind asks once who is calling, unless that does not matter, and binds once to
// them.
func (p *Page) bind(ctx context.Context, shared bool) (*binding, *failure) {
	if shared {
		b := p.parts.bind(&p.caller, true)
		return &b, nil
	}
	if !p.known.user {
		user, cause := callback.Identify(ctx, p.caller.Principal)
		if cause != nil {
			return nil, &failure{mcpseal.ReasonPrincipalFailed, cause}
		}
		p.parts.user, p.known.user = user, true
	}
	if !p.known.bound {
		p.binding, p.known.bound = p.parts.bind(&p.caller, false), true
	}
	return &p.binding, nil
}

// scratch holds what need not be allocated for every cursor.
type scratch struct{ buf, text []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (s *scratch) release() {
	if cap(s.buf) > maxPosition {
		return
	}
	clear(s.buf) // positions do not linger in the pool
	scratches.Put(s)
}
