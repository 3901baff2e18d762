package atd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// Cursors returns a [cursor.Issuer] that issues ATD cursors in place of native ones. The tool of a
// cursor is the target of the request, and the caller is the user of the request. A cursor does not
// hold the method, so only requests with the method tools/call can have cursors. Sessions keep
// services apart: a cursor of another session is rejected as invalid. ([Issuer.Open] rejects such a
// cursor as expired.) A [cursor.NextPage] with Shared or Cached set is refused. The log says once
// what these cursors do not protect. Set the result as Options.Cursors of an adapter.
func (i *Issuer) Cursors() cursor.Issuer {
	i.warned.Do(func() {
		session := "Options.Session"
		if i.derived {
			session = "derived from the key: set Options.Session to keep services apart"
		}
		tripseal.Logger(i.logger).Warn("atd: these cursors can be read, name their user in clear text, "+
			"and work at every service with the same key and session", "session", session)
	})
	return cursors{i}
}

type cursors struct{ *Issuer }

const methodTool = "tools/call"

func (c cursors) Open(ctx context.Context, request tripseal.Request, text string) (cursor.Page, error) {
	if text == "" {
		return c.pageOf(request, Page{}, nil), nil
	}
	page, requestPayload, reason := c.open(ctx, request, text)
	if reason != "" {
		var cause error
		if reason == tripseal.ReasonRequest && bytes.Contains(request.Arguments, []byte(text)) {
			cause = errAmongArguments
		}
		c.log(ctx, reason.Level(), "atd: cursor rejected", cause, "reason", string(reason), "tool", tripseal.PlainText(request.Target), "cursor_bytes", len(text))
		return cursor.Page{}, &cursor.Error{Reason: reason}
	}
	return c.pageOf(request, page, requestPayload), nil
}

// log writes a record to the log, with the cause if that is not nil. The cause must hold no
// secret.
func (c cursors) log(ctx context.Context, level slog.Level, message string, cause error, args ...any) {
	if cause != nil {
		args = append(args, "cause", cause.Error())
	}
	tripseal.Logger(c.logger).Log(ctx, level, message, args...)
}

func (c cursors) open(ctx context.Context, request tripseal.Request, text string) (Page, *payload, tripseal.Reason) {
	if request.Method != methodTool {
		return Page{}, nil, tripseal.ReasonRequest
	}
	user, err := request.Principal.Identify(ctx)
	if err != nil {
		return Page{}, nil, unknownCaller(ctx)
	}
	page, requestPayload, err := c.Issuer.open(Request{Tool: request.Target, Caller: user, Arguments: request.Arguments}, text)
	switch {
	case err == nil && page.Index > 0:
		return page, requestPayload, ""
	case errors.Is(err, errSession):
		return Page{}, nil, tripseal.ReasonAudience
	case errors.Is(err, ErrExpired):
		return Page{}, nil, tripseal.ReasonExpired
	case errors.Is(err, ErrMismatch):
		return Page{}, nil, tripseal.ReasonRequest
	case errors.Is(err, ErrSignature):
		return Page{}, nil, tripseal.ReasonForged
	case errors.Is(err, ErrTooLarge):
		return Page{}, nil, tripseal.ReasonTooLarge
	case isParams(err):
		return Page{}, nil, tripseal.ReasonArguments
	}
	return Page{}, nil, tripseal.ReasonMalformed
}

// unknownCaller returns the reason to give after Identify has failed: ReasonCanceled if the
// call was cancelled, otherwise ReasonPrincipalFailed.
func unknownCaller(ctx context.Context) tripseal.Reason {
	if errors.Is(ctx.Err(), context.Canceled) {
		return tripseal.ReasonCanceled
	}
	return tripseal.ReasonPrincipalFailed
}

func isParams(err error) bool {
	var params *argumentsError
	return errors.As(err, &params)
}

// pageOf converts a Page to a cursor.Page, which can issue the next cursor. In the parameter
// requestPayload, only the session and the fields that depend on the request are set; the
// parameter is nil for a first page.
func (c cursors) pageOf(request tripseal.Request, page Page, requestPayload *payload) cursor.Page {
	return cursor.NewPage(int(page.Index), page.State, func(ctx context.Context, next cursor.NextPage) (string, error) {
		token, reason, cause := c.issueNext(ctx, request, page, requestPayload, next)
		if reason != "" {
			c.log(ctx, slog.LevelError, "atd: cursor not issued", cause, "reason", string(reason), "tool", tripseal.PlainText(request.Target), "state_bytes", len(next.Position))
			return "", &cursor.Error{Op: cursor.OpIssue, Reason: reason}
		}
		return token, nil
	})
}

// These causes are written to the log if a cursor is rejected or not issued.
var (
	errEverybody      = errors.New("these cursors carry neither NextPage.Shared nor NextPage.Cached")
	errMethod         = errors.New("these cursors are for " + methodTool + " alone")
	errPages          = errors.New("a walk has at most 4294967295 pages")
	errAmongArguments = errors.New("the cursor is among the arguments: give Request.Arguments without the cursor, which differs on every page")
)

// issueNext returns the cursor of the next page, or the reason why it is not issued. The error
// is the cause to write to the log; it is nil if the cause may hold a secret.
func (c cursors) issueNext(ctx context.Context, request tripseal.Request, page Page, requestPayload *payload, next cursor.NextPage) (string, tripseal.Reason, error) {
	switch {
	case next.Shared || next.Cached != 0:
		return "", tripseal.ReasonMisuse, errEverybody
	case request.Method != methodTool:
		return "", tripseal.ReasonMisuse, errMethod
	case page.Index == math.MaxUint32:
		return "", tripseal.ReasonTooLarge, errPages
	}
	if requestPayload == nil {
		user, err := request.Principal.Identify(ctx)
		if err != nil {
			return "", unknownCaller(ctx), nil
		}
		if requestPayload, err = c.payloadOf(Request{Tool: request.Target, Caller: user, Arguments: request.Arguments}, c.plain); err != nil {
			return "", tripseal.ReasonInvalidParams, err
		}
	}
	token, err := c.issuePage(*requestPayload, Page{page.Index + 1, next.Position})
	switch {
	case err == nil:
		return token, "", nil
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrStateTooLarge):
		return "", tripseal.ReasonTooLarge, err
	}
	return "", tripseal.ReasonMisuse, err
}
