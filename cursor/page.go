package cursor

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/argdigest"
	"github.com/mcpseal/mcpseal/internal/callback"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// Page is a page of a walk: where to go on, and how to say so. It is not safe
// for concurrent use.
type Page struct {
	number   int
	position []byte
	next     func(context.Context, NextPage) (string, error) // of another issuer

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

// NextPage is where the page after a page begins.
type NextPage struct {
	Position []byte // what the next page's Position returns
	// Shared lets everybody who makes the same request use the cursor: the page
	// that it stands on may be served to others from a cache.
	Shared bool
	// Cached is how long a cache may serve the page that the cursor stands on.
	// The cursor's TTL begins after that.
	Cached time.Duration
}

// NewPage makes a page of another issuer: next issues the cursor of the page
// after it.
func NewPage(number int, position []byte, next func(context.Context, NextPage) (string, error)) Page {
	return Page{number: number, position: position, next: next}
}

// String names the page by its number, without position, user or arguments.
func (p Page) String() string { return "cursor.Page(" + strconv.Itoa(p.number) + ")" }

// Format writes String under every verb.
func (p Page) Format(s fmt.State, _ rune) { io.WriteString(s, p.String()) }

// LogValue is String, for slog.
func (p Page) LogValue() slog.Value { return slog.StringValue(p.String()) }

// First reports whether this is the first page.
func (p *Page) First() bool { return p.number == 0 }

// Number returns how many pages came before.
func (p *Page) Number() int { return p.number }

// Position returns where this page begins, as the page before said; nil on the
// first page.
func (p *Page) Position() []byte { return p.position }

const errNoPage = plain.Error("the Page does not come from a successful Open")

// Next returns the cursor of the page after this one. Its TTL begins when this
// page was opened, or on the first page with the first Next. The error is an
// *[IssueError].
func (p *Page) Next(ctx context.Context, next NextPage) (string, error) {
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

func (p *Page) issue(ctx context.Context, next *NextPage) (string, *failure) {
	c := p.cursors
	if len(next.Position) > c.config.MaxPosition {
		return "", &failure{mcpseal.ReasonTooLarge, callback.Explain("the position has %d bytes, more than %d: "+
			"keep a key in it, not a row", len(next.Position), c.config.MaxPosition)}
	}
	if next.Cached < 0 || next.Cached > maxTTL {
		return "", &failure{mcpseal.ReasonMisuse, callback.Explain("NextPage.Cached is %v, not between 0 and %v", next.Cached, maxTTL)}
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

// digestArguments digests the arguments once.
func (p *Page) digestArguments() *failure {
	if p.known.arguments {
		return nil
	}
	if len(p.caller.Method) > maxNamed || len(p.caller.Target) > maxNamed {
		return failed(mcpseal.ReasonInvalidParams)
	}
	if most := p.cursors.config.MaxArguments; len(p.caller.Arguments) > most {
		return &failure{mcpseal.ReasonInvalidParams, callback.Explain("the arguments have %d bytes, Config.MaxArguments is %d", len(p.caller.Arguments), most)}
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

// guardedIssue is issue, in which parts of the user's are called.
func (p *Page) guardedIssue(ctx context.Context, next *NextPage) (cursor string, fail *failure) {
	defer p.recovered(&fail)
	return p.issue(ctx, next)
}

// recovered is deferred: a part that panics has failed.
func (p *Page) recovered(fail **failure) {
	if v := recover(); v != nil {
		*fail = &failure{p.calling, callback.Panicked(v)}
	}
}
