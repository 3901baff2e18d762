package atd

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/cursor"
	"github.com/mcpseal/mcpseal/internal/callback"
)

// Cursors has the issuer serve wherever native cursors do. The tool is the
// request's target, the caller its principal. Errors are those of the package
// cursor, and wrap those of this one. A cursor for everybody cannot be issued.
func (i *Issuer) Cursors() cursor.Issuer { return cursors{i} }

type cursors struct{ *Issuer }

func (c cursors) Open(ctx context.Context, request mcpseal.Request, text string) (cursor.Page, error) {
	user, failed := callback.Identify(ctx, request.Principal)
	if failed != nil {
		return cursor.Page{}, &rejection{cursor.ErrInvalid, failed}
	}
	bound := Request{Tool: request.Target, Caller: user, Arguments: request.Arguments}
	if text == "" {
		return c.page(bound, Page{}), nil
	}
	page, err := c.Issuer.Open(bound, text)
	switch {
	case errors.Is(err, ErrExpired):
		return cursor.Page{}, &rejection{cursor.ErrExpired, err}
	case err != nil || page.Index == 0:
		return cursor.Page{}, &rejection{cursor.ErrInvalid, err}
	}
	return c.page(bound, page), nil
}

func (c cursors) page(request Request, page Page) cursor.Page {
	return cursor.NewPage(int(page.Index), page.State, func(_ context.Context, next cursor.Next) (string, error) {
		switch {
		case next.Shared:
			return "", errors.New("atd: a cursor is bound to its caller and cannot be shared")
		case next.Cached != 0:
			return "", fmt.Errorf("atd: a cursor lives for the TTL and cannot wait %v for a cache", next.Cached)
		case page.Index == math.MaxUint32:
			return "", errors.New("atd: the walk has no more pages")
		}
		return c.Issue(request, Page{page.Index + 1, next.Position})
	})
}

// rejection says no more than what a client may know.
type rejection struct{ kind, cause error }

func (r *rejection) Error() string   { return r.kind.Error() }
func (r *rejection) Unwrap() []error { return []error{r.kind, r.cause} }
