package cursor

import (
	"bytes"
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
	service [digestSize]byte
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
	if len(cursor) > c.maxCursor() {
		return failed(mcpseal.ReasonTooLarge)
	}
	if fail := page.digestArguments(); fail != nil {
		return fail
	}
	s := scratches.Get().(*scratch)
	defer s.release()
	s.buf = slices.Grow(s.buf[:0], 2*len(text)+64)
	page.calling = mcpseal.ReasonCodecFailed
	payload, err := c.config.Codec.Open(ctx, s.buf, text)
	if err != nil {
		return codecFailure(err)
	}
	if s.owns(payload) {
		s.buf = payload // what release clears
	}
	r, head, reason := parseRecord(payload)
	if reason != "" {
		return failed(reason)
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

// guardedIssue is issue, in which parts of the user's are called.
func (p *Page) guardedIssue(ctx context.Context, next *Next) (cursor string, fail *failure) {
	defer p.recovered(&fail)
	return p.issue(ctx, next)
}

// recovered is deferred: a part that panics has failed.
func (p *Page) recovered(fail **failure) {
	if v := recover(); v != nil {
		*fail = &failure{p.calling, callback.Panicked(v)}
	}
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
	s.text = append(slices.Grow(s.text[:0], len(prefix)+4*len(s.buf)+256), prefix...)
	text, err := c.config.Codec.Seal(ctx, s.text, s.buf)
	if err != nil {
		return "", &failure{mcpseal.ReasonCodecFailed, callback.Failed(err)}
	}
	if !bytes.HasPrefix(text, []byte(prefix)) {
		return "", &failure{mcpseal.ReasonCodecFailed, callback.Explain("the codec did not append to what it was given")}
	}
	return string(text), nil
}

// Page is a page of a walk: where to go on, and how to say so. It is not safe
// for concurrent use.
type Page struct {
	number   int
	position []byte
	next     func(context.Context, Next) (string, error) // of another issuer

	opened  int64          // Unix time in milliseconds; 0 on the first page
	calling mcpseal.Reason // what a part of the user's that is being called has failed with, if it panics
	cursors *Cursors
	caller  mcpseal.Request

	arguments [sha256.Size]byte
	user      string
	known     struct{ arguments, user bool }
	binding   binding
	bound     struct { // what the binding is to
		known bool
		who   byte
	}
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

// Next returns the cursor of the page behind this one. Its TTL begins when this
// page was opened. The error is an *[IssueError].
func (p *Page) Next(ctx context.Context, next Next) (string, error) {
	if p.next != nil {
		return p.next(ctx, next)
	}
	c := p.cursors
	if c == nil {
		return "", &IssueError{mcpseal.ReasonMisuse, callback.Failed(errNoPage)}
	}
	start := c.start()
	cursor, fail := p.guardedIssue(ctx, &next)
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
	if fail := p.bind(ctx, next.Shared); fail != nil {
		return "", fail
	}
	if p.opened == 0 {
		p.opened = time.Now().UnixMilli()
	}
	r := record{
		who: p.bound.who, issued: p.opened, lifetime: (c.config.TTL + next.Cached).Milliseconds(),
		number: int64(p.number) + 1, position: next.Position,
	}
	if !r.fits() {
		return "", &failure{mcpseal.ReasonTooLarge, callback.Explain("a walk has at most %d pages", int64(maxNumber))}
	}
	p.calling = mcpseal.ReasonCodecFailed
	return c.issue(ctx, &r, &p.binding)
}

// digestArguments comes first: what it finds says nothing about a cursor.
func (p *Page) digestArguments() *failure {
	if p.known.arguments {
		return nil
	}
	if len(p.caller.Method) > maxNamed || len(p.caller.Target) > maxNamed {
		return failed(mcpseal.ReasonInvalidParams)
	}
	arguments, err := argdigest.Sum(p.caller.Arguments)
	if err != nil {
		fail := failed(mcpseal.ReasonInvalidParams)
		if problem, ok := err.(*argdigest.Error); ok {
			fail.cause = callback.Explain("%s", problem.Error()) // repeats nothing of them
		}
		return fail
	}
	p.arguments, p.known.arguments = arguments, true
	return nil
}

// bind binds to the caller, asking once who that is, or to everybody.
func (p *Page) bind(ctx context.Context, shared bool) *failure {
	who, user := byte(forEverybody), ""
	if !shared {
		if fail := p.identify(ctx); fail != nil {
			return fail
		}
		if who, user = forNobody, p.user; user != "" {
			who = forUser
		}
	}
	if !p.bound.known || p.bound.who != who {
		p.binding = bind(&p.cursors.service, &p.caller, &p.arguments, who, user)
		p.bound.known, p.bound.who = true, who
	}
	return nil
}

func (p *Page) identify(ctx context.Context) *failure {
	if p.known.user {
		return nil
	}
	p.calling = mcpseal.ReasonPrincipalFailed
	user, err := callback.Ask(ctx, p.caller.Principal)
	switch {
	case err != nil:
		return &failure{mcpseal.ReasonPrincipalFailed, callback.Failed(err)}
	case user == "" && p.cursors.config.RequirePrincipal:
		return failed(mcpseal.ReasonPrincipal)
	}
	p.user, p.known.user = user, true
	return nil
}

// scratch holds what need not be allocated for every cursor.
type scratch struct{ buf, text []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// owns says whether a codec appended to our buffer, as it should; another's
// memory is not ours to clear or to keep.
func (s *scratch) owns(b []byte) bool {
	return cap(b) > 0 && cap(s.buf) > 0 && &b[:1][0] == &s.buf[:1][0]
}

func (s *scratch) release() {
	if cap(s.buf) > 2*maxPosition {
		return
	}
	clear(s.buf) // positions do not linger in the pool
	scratches.Put(s)
}
