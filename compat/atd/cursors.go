package atd

import (
	"context"
	"errors"
	"math"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/cursor"
	"github.com/mcpseal/mcpseal/internal/argdigest"
	"github.com/mcpseal/mcpseal/internal/callback"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// Cursors has the issuer serve wherever native cursors do. The tool is the
// request's target, the caller its principal. A cursor of another session is
// invalid there, not expired: it is not this service's. A cursor for everybody
// cannot be issued, nor one that waits for a cache.
func (i *Issuer) Cursors() cursor.Issuer { return cursors{i} }

type cursors struct{ *Issuer }

func (c cursors) Open(ctx context.Context, request mcpseal.Request, text string) (cursor.Page, error) {
	if text == "" {
		return c.page(request, Page{}), nil
	}
	page, reason := c.open(ctx, request, text)
	if reason != "" {
		callback.Quietly(func() {
			c.logger.WarnContext(ctx, "atd: cursor rejected", "reason", string(reason), "tool", plain.Text(request.Target), "cursor_bytes", len(text))
		})
		return cursor.Page{}, &cursor.RejectError{Reason: reason}
	}
	return c.page(request, page), nil
}

func (c cursors) open(ctx context.Context, request mcpseal.Request, text string) (Page, mcpseal.Reason) {
	user, failed := callback.Identify(ctx, request.Principal)
	if failed != nil {
		return Page{}, mcpseal.ReasonPrincipalFailed
	}
	page, err := c.Issuer.Open(Request{Tool: request.Target, Caller: user, Arguments: request.Arguments}, text)
	switch {
	case err == nil && page.Index > 0:
		return page, ""
	case errors.Is(err, errSession):
		return Page{}, mcpseal.ReasonAudience
	case errors.Is(err, ErrExpired):
		return Page{}, mcpseal.ReasonExpired
	case errors.Is(err, ErrMismatch):
		return Page{}, mcpseal.ReasonRequest
	case errors.Is(err, ErrSignature):
		return Page{}, mcpseal.ReasonForged
	case errors.Is(err, ErrTooLarge):
		return Page{}, mcpseal.ReasonTooLarge
	case isParams(err):
		return Page{}, mcpseal.ReasonInvalidParams
	}
	return Page{}, mcpseal.ReasonMalformed
}

func isParams(err error) bool {
	var params *argdigest.Error
	return errors.As(err, &params)
}

// page issues the cursor of the next one.
func (c cursors) page(request mcpseal.Request, page Page) cursor.Page {
	return cursor.NewPage(int(page.Index), page.State, func(ctx context.Context, next cursor.Next) (string, error) {
		token, reason := c.next(ctx, request, page, next)
		if reason != "" {
			callback.Quietly(func() {
				c.logger.ErrorContext(ctx, "atd: cursor not issued", "reason", string(reason), "tool", plain.Text(request.Target), "state_bytes", len(next.Position))
			})
			return "", &cursor.IssueError{Reason: reason}
		}
		return token, nil
	})
}

func (c cursors) next(ctx context.Context, request mcpseal.Request, page Page, next cursor.Next) (string, mcpseal.Reason) {
	if next.Shared || next.Cached != 0 {
		return "", mcpseal.ReasonMisuse
	}
	user, failed := callback.Identify(ctx, request.Principal)
	if failed != nil {
		return "", mcpseal.ReasonPrincipalFailed
	}
	if page.Index == math.MaxUint32 {
		return "", mcpseal.ReasonTooLarge
	}
	token, err := c.Issue(Request{Tool: request.Target, Caller: user, Arguments: request.Arguments}, Page{page.Index + 1, next.Position})
	switch {
	case err == nil:
		return token, ""
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrStateTooLarge):
		return "", mcpseal.ReasonTooLarge
	case isParams(err):
		return "", mcpseal.ReasonInvalidParams
	}
	return "", mcpseal.ReasonMisuse
}
