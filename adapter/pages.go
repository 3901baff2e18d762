package adapter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// PageOptions sets the names of the members that a paged tool adds to its arguments and
// results, and limits the size of its arguments. An adapter gets the PageOptions from the
// author of the paged tool.
type PageOptions struct {
	Cursor     string // the argument that holds the cursor; "" means "cursor"
	NextCursor string // the member of the result that holds the next cursor; "" means "nextCursor"
	Items      string // the member of the result that holds the items; "" means "items"

	// Unbound lists the names of arguments that may differ from page to page, for example
	// "limit". The schema still checks these arguments and the handler still gets them, but
	// the cursor is not bound to them. The names are case-sensitive, and must be among the
	// properties at the root of the schema. Nil means that all arguments must stay the same.
	//
	// List only arguments that decide how many items are on a page, never arguments that
	// decide which items are listed. If a filter or a tenant is unbound, a client can take a
	// position from one list and use it in another list. The position must hold the key of a
	// row, not a page number: when the page size changes, the same page number begins at
	// another row.
	Unbound []string

	// MaxArguments is the greatest length of the arguments' JSON in bytes, without the
	// cursor. The length is checked before the JSON is read. MaxArguments must not exceed
	// tripseal.Config.MaxArguments. 0 means 64 KiB, or tripseal.Config.MaxArguments if that is
	// less.
	MaxArguments int
}

// defaultMaxPaged is the default of PageOptions.MaxArguments, in bytes. It is low, because
// a schema library may use much memory when it refuses arguments: many times their length.
const defaultMaxPaged = 64 << 10

// CursorRoom is how many bytes the cursor may add to the arguments of a paged tool. The
// longest native cursor has 128 KiB, and the name of its argument takes some bytes too.
// Arguments that still include the cursor may be CursorRoom bytes longer than
// [PageOptions.MaxArguments].
const CursorRoom = 132 << 10

// WithDefaults returns a copy of the options in which zero values are replaced with their
// defaults. It returns an error if an option is wrong. The limit must be
// [tripseal.Config.MaxArguments] of the boundary. If the pointer o is nil, every option has
// its default. Call WithDefaults when a paged tool is registered.
func (o *PageOptions) WithDefaults(limit int) (PageOptions, error) {
	var resolved PageOptions
	if o != nil {
		resolved = *o
	}
	resolved.Cursor = cmp.Or(resolved.Cursor, "cursor")
	resolved.NextCursor = cmp.Or(resolved.NextCursor, "nextCursor")
	resolved.Items = cmp.Or(resolved.Items, "items")
	resolved.MaxArguments = cmp.Or(resolved.MaxArguments, min(defaultMaxPaged, limit))
	if resolved.NextCursor == resolved.Items {
		return resolved, fmt.Errorf("the result cannot have two members called %q", resolved.Items)
	}
	if resolved.MaxArguments < 0 || resolved.MaxArguments > limit {
		return resolved, fmt.Errorf("PageOptions.MaxArguments is %d, not between 1 and %d, which is tripseal.Config.MaxArguments", resolved.MaxArguments, limit)
	}
	return resolved, nil
}

// ServePage serves one page of a paged tool: it opens the cursor, calls the handler, and
// returns the JSON of the result, with the next cursor. The handler gets the position where
// the previous page ended, or nil on the first page. If the cursor is rejected, the handler
// does not run. If a cursor cannot be opened or sealed, the error is a *[CursorError]. Call
// ServePage in the handler that you register for a paged tool.
func ServePage[At, Item any](
	ctx context.Context, cursors cursor.Issuer, request tripseal.Request, token string, names PageOptions,
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

// CursorError is an error that an issuer of cursors returned. Send the client what
// [CursorError.Wire] returns, and nothing else.
type CursorError struct{ err error }

// Error returns the message that the client may see.
func (e *CursorError) Error() string { return e.Wire().Message }

// Wire returns the error that the client may see. Send it as the answer to the call.
func (e *CursorError) Wire() tripseal.WireError { return cursor.Wire(e.err) }

// ErrNoKeys is the error for a paged tool on a server whose boundary cannot seal cursors.
// Panic or fail with it when the tool is registered.
var ErrNoKeys = errors.New("the boundary has no keys of its own; set Options.Cursors, or add tripseal.NativeFormat to Config.AlsoOpen")
