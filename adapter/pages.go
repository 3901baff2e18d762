package adapter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/cursor"
)

// PageOptions names what a paged tool adds to arguments and results, and limits the
// arguments.
type PageOptions struct {
	Cursor     string // the name of the argument; "" means cursor
	NextCursor string // the member of the result with the next cursor; "" means nextCursor
	Items      string // the member of the result with the items; "" means items

	// Unbound names arguments that may differ from page to page, such as limit. The
	// schema still checks them and the handler still gets them, but the cursor is not
	// bound to them. Names are case-sensitive, and must be among the properties at the
	// root of the schema. Nil means none: all arguments must stay the same.
	//
	// Name only what decides how much is on a page, never what is listed: with a filter
	// or a tenant here, a client can carry its position from one list into another. And
	// keep a key in the position: a page number means another row if the size changes.
	Unbound []string

	// MaxArguments limits the JSON of the arguments, without the cursor, in bytes. It is
	// applied before the arguments are read. MaxArguments must not exceed
	// mcpseal.Config.MaxArguments. 0 means 64 KiB, or mcpseal.Config.MaxArguments if less.
	MaxArguments int
}

// defaultMaxPaged is how many bytes of arguments a paged tool reads unless its author sets
// another limit. To refuse arguments, a schema library may take many times their memory.
const defaultMaxPaged = 64 << 10

// CursorRoom is how many bytes the cursor may add to the arguments of a paged tool. The
// longest native cursor has 128 KiB, and its name takes some bytes too.
const CursorRoom = 132 << 10

// WithDefaults returns the options with defaults in place of zeros, or an error. Most is
// the boundary's limit of arguments. Nil options mean all defaults.
func (o *PageOptions) WithDefaults(most int) (PageOptions, error) {
	var resolved PageOptions
	if o != nil {
		resolved = *o
	}
	resolved.Cursor = cmp.Or(resolved.Cursor, "cursor")
	resolved.NextCursor = cmp.Or(resolved.NextCursor, "nextCursor")
	resolved.Items = cmp.Or(resolved.Items, "items")
	resolved.MaxArguments = cmp.Or(resolved.MaxArguments, min(defaultMaxPaged, most))
	if resolved.NextCursor == resolved.Items {
		return resolved, fmt.Errorf("the result cannot have two members called %q", resolved.Items)
	}
	if resolved.MaxArguments < 0 || resolved.MaxArguments > most {
		return resolved, fmt.Errorf("PageOptions.MaxArguments is %d, not between 1 and %d, which is mcpseal.Config.MaxArguments", resolved.MaxArguments, most)
	}
	return resolved, nil
}

// ServePage serves one page of a paged tool: it opens the cursor, calls the handler with
// the position where the previous page ended, and returns the JSON of the result, with the
// next cursor. The handler does not run if the cursor is rejected. An error about a cursor
// is a *[CursorError].
func ServePage[At, Item any](
	ctx context.Context, cursors cursor.Issuer, request mcpseal.Request, token string, names PageOptions,
	handler func(after *At) (items []Item, next *At, err error),
) ([]byte, error) {
	place, err := cursor.For[At](cursors).Open(ctx, request, token)
	if err != nil {
		return nil, &CursorError{err}
	}
	var after *At
	if !place.First() {
		after = &place.After
	}
	items, next, err := handler(after)
	if err != nil {
		return nil, err
	}
	if items == nil {
		items = []Item{}
	}
	result := map[string]any{names.Items: items}
	if next != nil {
		token, err := place.Next(ctx, *next)
		if err != nil {
			return nil, &CursorError{err}
		}
		result[names.NextCursor] = token
	}
	text, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("the items cannot be written as JSON: %w", err)
	}
	return text, nil
}

// CursorError is an error of an issuer of cursors. Send the client what [CursorError.Wire]
// returns, and nothing else.
type CursorError struct{ err error }

func (e *CursorError) Error() string { return e.Wire().Message }

// Wire returns what the client may see.
func (e *CursorError) Wire() mcpseal.WireError { return cursor.Wire(e.err) }

// ErrNoKeys is for a paged tool on a boundary that cannot seal cursors.
var ErrNoKeys = errors.New("the boundary has no keys of its own; set Options.Cursors, or add mcpseal.NativeFormat to Config.AlsoOpen")
