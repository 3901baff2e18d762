package atd

import (
	"context"
	"errors"
	"log/slog"
	"math"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/cursor"
)

// Cursors has the issuer serve wherever native cursors do. The tool is the
// request's target, the caller its user; the method is not in a cursor, so that
// there are none for any but tools/call. A cursor of another session is invalid there,
// not expired: it is not this service's. A cursor for everybody cannot be issued, nor
// one that waits for a cache.
func (i *Issuer) Cursors() cursor.Issuer { return cursors{i} }

type cursors struct{ *Issuer }

const methodTool = "tools/call"

func (c cursors) Open(ctx context.Context, request mcpseal.Request, text string) (cursor.Page, error) {
	if text == "" {
		return c.page(request, Page{}, nil), nil
	}
	page, bound, reason := c.open(ctx, request, text)
	if reason != "" {
		c.log(ctx, reason.Level(), "atd: cursor rejected", "reason", string(reason), "tool", mcpseal.PlainText(request.Target), "cursor_bytes", len(text))
		return cursor.Page{}, &cursor.RejectError{Reason: reason}
	}
	return c.page(request, page, bound), nil
}

func (c cursors) log(ctx context.Context, level slog.Level, message string, args ...any) {
	mcpseal.Logger(c.logger).Log(ctx, level, message, args...)
}

func (c cursors) open(ctx context.Context, request mcpseal.Request, text string) (Page, *payload, mcpseal.Reason) {
	if request.Method != methodTool {
		return Page{}, nil, mcpseal.ReasonRequest
	}
	user, err := request.Principal.Identify(ctx)
	if err != nil {
		return Page{}, nil, unknownCaller(ctx)
	}
	page, bound, err := c.Issuer.open(Request{Tool: request.Target, Caller: user, Arguments: request.Arguments}, text)
	switch {
	case err == nil && page.Index > 0:
		return page, bound, ""
	case errors.Is(err, errSession):
		return Page{}, nil, mcpseal.ReasonAudience
	case errors.Is(err, ErrExpired):
		return Page{}, nil, mcpseal.ReasonExpired
	case errors.Is(err, ErrMismatch):
		return Page{}, nil, mcpseal.ReasonRequest
	case errors.Is(err, ErrSignature):
		return Page{}, nil, mcpseal.ReasonForged
	case errors.Is(err, ErrTooLarge):
		return Page{}, nil, mcpseal.ReasonTooLarge
	case isParams(err):
		return Page{}, nil, mcpseal.ReasonArguments
	}
	return Page{}, nil, mcpseal.ReasonMalformed
}

// unknownCaller is why it is not known who is calling: nobody waits for the answer
// any more, or the function that tells failed.
func unknownCaller(ctx context.Context) mcpseal.Reason {
	if errors.Is(ctx.Err(), context.Canceled) {
		return mcpseal.ReasonCanceled
	}
	return mcpseal.ReasonPrincipalFailed
}

func isParams(err error) bool {
	var params *argumentsError
	return errors.As(err, &params)
}

// page issues the cursor of the next one. Bound is what it is bound to, nil on a
// first page.
func (c cursors) page(request mcpseal.Request, page Page, bound *payload) cursor.Page {
	return cursor.NewPage(int(page.Index), page.State, func(ctx context.Context, next cursor.NextPage) (string, error) {
		token, reason := c.next(ctx, request, page, bound, next)
		if reason != "" {
			c.log(ctx, slog.LevelError, "atd: cursor not issued", "reason", string(reason), "tool", mcpseal.PlainText(request.Target), "state_bytes", len(next.Position))
			return "", &cursor.IssueError{Reason: reason}
		}
		return token, nil
	})
}

func (c cursors) next(ctx context.Context, request mcpseal.Request, page Page, bound *payload, next cursor.NextPage) (string, mcpseal.Reason) {
	if next.Shared || next.Cached != 0 || request.Method != methodTool {
		return "", mcpseal.ReasonMisuse
	}
	if page.Index == math.MaxUint32 {
		return "", mcpseal.ReasonTooLarge
	}
	if bound == nil {
		user, err := request.Principal.Identify(ctx)
		if err != nil {
			return "", unknownCaller(ctx)
		}
		if bound, err = c.payloadOf(Request{Tool: request.Target, Caller: user, Arguments: request.Arguments}, c.plain); err != nil {
			return "", mcpseal.ReasonInvalidParams
		}
	}
	token, err := c.issuePage(*bound, Page{page.Index + 1, next.Position})
	switch {
	case err == nil:
		return token, ""
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrStateTooLarge):
		return "", mcpseal.ReasonTooLarge
	}
	return "", mcpseal.ReasonMisuse
}
