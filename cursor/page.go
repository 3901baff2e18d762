package cursor

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/guard"
	"github.com/tripseal/tripseal/internal/native"
	"github.com/tripseal/tripseal/internal/strictjson"
)

// Page is one page of a paginated list. It has the position where the page begins, and issues the cursor of the next
// page. It is not safe for concurrent use. [Issuer].Open returns a Page for each request.
type Page struct {
	number   int
	position []byte
	next     func(context.Context, NextPage) (string, error) // issues the next cursor; nil unless NewPage made this page

	cursors *Cursors
	request tripseal.Request
	opened  int64 // when the page was opened, in Unix milliseconds; 0 on the first page until Next is called

	arguments [sha256.Size]byte
	user      string
	known     struct{ arguments, user bool }
	binding   binding // to the caller, or to everybody; zero until it is known
}

// NextPage says where the next page begins, and who may use its cursor. Pass it to [Page.Next].
type NextPage struct {
	Position []byte // where the next page begins; on that page, Page.Position returns this value
	// Shared lets everyone who makes the same request use the cursor. Set it if a cache may serve the page with this
	// cursor to other users.
	Shared bool
	// Cached is how long a cache may serve the page that holds the cursor. The cursor lives for Options.TTL plus
	// Cached. If the keys come from a file, set keys.Options.LongestTTL to at least this sum.
	Cached time.Duration
}

// NewPage makes a page for your own [Issuer]. The function next returns the cursor of the page after this one. Call
// NewPage in the method Open of that issuer.
func NewPage(number int, position []byte, next func(context.Context, NextPage) (string, error)) Page {
	return Page{number: number, position: position, next: next}
}

// Format writes the page's number, without position, user or arguments, for every verb of package fmt. So printing a
// page is safe.
func (p Page) Format(s fmt.State, _ rune) {
	io.WriteString(s, "cursor.Page("+strconv.Itoa(p.number)+")")
}

// First reports whether this is the first page. On the first page, begin the list at its start.
func (p *Page) First() bool { return p.number == 0 }

// Number returns how many pages came before this one, for example to limit how far a client may read.
func (p *Page) Number() int { return p.number }

// Position returns where this page begins: what the handler passed to Next on the previous page. It is nil on the
// first page. Use it in the query for the rows of this page.
func (p *Page) Position() []byte { return p.position }

// Next returns the cursor of the next page. The cursor's TTL counts from when this page was opened or, on the first
// page, from the first call of Next. The error is an *[Error]. Call Next unless this page is the last.
func (p *Page) Next(ctx context.Context, next NextPage) (string, error) {
	if p.next != nil {
		return p.next(ctx, next)
	}
	start := time.Now()
	cursor, fail := p.issue(ctx, &next)
	return cursor, p.report(ctx, OpIssue, start, cursor, fail)
}

// issue returns the sealed cursor of the next page, or why that cursor cannot be issued.
func (p *Page) issue(ctx context.Context, next *NextPage) (cursor string, fail *Error) {
	c := p.cursors
	if c == nil {
		return "", failedBecause(tripseal.ReasonMisuse, "the Page does not come from a successful Open")
	}
	if n := len(next.Position); n > c.MaxPosition {
		return "", failedBecause(tripseal.ReasonTooLarge, "the position has %d bytes, more than %d", n, c.MaxPosition)
	}
	if next.Cached < 0 || next.Cached > maxTTL {
		return "", failedBecause(tripseal.ReasonMisuse, "NextPage.Cached is %v, not between 0 and %v", next.Cached, maxTTL)
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
		who: p.binding.who, issued: p.opened, lifetime: (c.TTL + next.Cached).Milliseconds(),
		number: int64(p.number) + 1, position: next.Position,
	}
	if !r.fits() {
		return "", failedBecause(tripseal.ReasonTooLarge, "a walk has at most %d pages", int64(maxNumber))
	}
	s := native.Borrow()
	defer s.Release()
	s.Payload = appendRecord(s.Payload[:0], &r, &p.binding)
	cause := guard.Call(func() (err error) {
		cursor, err = c.texts.Seal(ctx, s)
		return err
	})
	if cause != nil {
		return "", &Error{Reason: tripseal.ReasonCodecFailed, cause: cause}
	}
	return cursor, nil
}

// digestArguments computes the digest of the arguments and keeps it in p, unless p has it already.
func (p *Page) digestArguments() *Error {
	if p.known.arguments {
		return nil
	}
	if len(p.request.Method) > maxNamed || len(p.request.Target) > maxNamed {
		return failed(tripseal.ReasonInvalidParams)
	}
	if n, most := len(p.request.Arguments), p.cursors.policy.MaxArguments; n > most {
		return failedBecause(tripseal.ReasonInvalidParams, "the arguments have %d bytes, more than %d", n, most)
	}
	sum, err := strictjson.Sum(p.request.Arguments)
	if err != nil {
		return failedBecause(tripseal.ReasonInvalidParams, "%s", err) // the error's text quotes nothing from the arguments
	}
	p.arguments, p.known.arguments = sum, true
	return nil
}

// bind sets p.binding. If shared is true, everyone may use cursors with this binding; otherwise only the caller may.
func (p *Page) bind(ctx context.Context, shared bool) *Error {
	who, user := byte(forEverybody), ""
	if !shared {
		if fail := p.identify(ctx); fail != nil {
			return fail
		}
		if who, user = forNobody, p.user; user != "" {
			who = forUser
		}
	}
	if p.binding.service == nil || p.binding.who != who {
		p.binding = bind(&p.cursors.service, &p.request, &p.arguments, who, user)
	}
	return nil
}

func (p *Page) identify(ctx context.Context) *Error {
	if p.known.user {
		return nil
	}
	user, err := p.request.Principal.Identify(ctx)
	switch {
	case err != nil:
		return &Error{Reason: tripseal.ReasonPrincipalFailed, cause: err.(*guard.Error)}
	case user == "" && p.cursors.policy.RequireUser:
		return failed(tripseal.ReasonUser)
	}
	p.user, p.known.user = user, true
	return nil
}
