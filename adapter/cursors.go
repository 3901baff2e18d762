package adapter

import (
	"context"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// maxListPosition is the greatest length of an SDK's own cursor that an adapter seals. An SDK's cursor holds a name or
// a URI.
const maxListPosition = 32 << 10

// ListCursors returns an issuer of cursors for the SDK's own lists, such as tools/list. It seals with the boundary's
// keys. ListCursors returns nil if the boundary has no keys. Use ListCursors to replace the cursors of the SDK, which
// clients can read and change.
func ListCursors(boundary *tripseal.Boundary) cursor.Issuer {
	return nativeCursors(boundary, maxListPosition)
}

// ToolCursors returns an issuer of cursors for paged tools. The second parameter is the issuer that the server's author
// set, or nil if the author set none. ToolCursors returns the author's issuer if there is one. Otherwise it returns an
// issuer that seals with the boundary's keys, or nil if the boundary has no keys. The returned issuer obeys
// [tripseal.Config.RequireUser]. Call ToolCursors once for each boundary, and pass the issuer to [cursor.ServePage].
func ToolCursors(boundary *tripseal.Boundary, own cursor.Issuer) cursor.Issuer {
	if own == nil {
		return nativeCursors(boundary, 0)
	}
	if boundary.Config().RequireUser {
		return forUsers{own}
	}
	return own
}

func nativeCursors(boundary *tripseal.Boundary, maxPosition int) cursor.Issuer {
	if boundary.Codec(tripseal.PurposeCursor) == nil {
		return nil
	}
	cursors, err := cursor.New(boundary, cursor.Options{MaxPosition: maxPosition})
	if err != nil {
		panic("adapter: " + err.Error()) // happens only if the options above are wrong
	}
	return cursors
}

// forUsers is an issuer that refuses requests without a user. Open replaces the request's Principal by a function that
// fails if there is no user.
type forUsers struct{ cursor.Issuer }

func (f forUsers) Open(ctx context.Context, request tripseal.Request, text string) (cursor.Page, error) {
	ask := request.Principal
	request.Principal = func(ctx context.Context) (string, error) {
		user, err := ask(ctx)
		if err == nil && user == "" {
			err = errNobody
		}
		return user, err
	}
	return f.Issuer.Open(ctx, request, text)
}

const errNobody = tripseal.PlainError("nobody is calling, and tripseal.Config.RequireUser is set")
