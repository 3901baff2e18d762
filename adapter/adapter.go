// Package adapter is for authors of adapters: it has what all MCP SDKs need beside a boundary. If you write a server,
// use an adapter, such as gosdk or mcpgo.
//
// An adapter moves fields between an SDK and a [tripseal.Boundary], and the boundary decides what is accepted. This
// package asks only what the client can answer ([Capabilities]), and seals the cursors of lists ([ListCursors]).
package adapter

import (
	"context"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// StartOver is the text of a tool result that tells a model what to do after a token was rejected. An adapter can send
// this result instead of the protocol's error. Let authors choose between StartOver, their own text and the error.
const StartOver = "The confirmation is no longer valid. Nothing was done. Call the tool again to start over."

// ListCursors returns an issuer of cursors for the SDK's own lists, such as tools/list. It seals with the boundary's
// keys, and is nil if the boundary has none.
func ListCursors(boundary *tripseal.Boundary) cursor.Issuer {
	return nativeCursors(boundary, 32<<10) // an SDK's own cursor holds a name or a URI
}

// ToolCursors returns an issuer of cursors for paged tools: own, or if that is nil, one that seals with the boundary's
// keys, or nil if the boundary has none. It obeys [tripseal.Config.RequireUser]. Pass it to [cursor.ServePage].
func ToolCursors(boundary *tripseal.Boundary, own cursor.Issuer) cursor.Issuer {
	switch {
	case own == nil:
		return nativeCursors(boundary, 0)
	case boundary.Config().RequireUser:
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

// forUsers is an issuer that refuses requests without a user.
type forUsers struct{ cursor.Issuer }

func (f forUsers) Open(ctx context.Context, request tripseal.Request, text string) (cursor.Page, error) {
	ask := request.Principal
	request.Principal = func(ctx context.Context) (string, error) {
		user, err := ask(ctx)
		if err == nil && user == "" {
			err = tripseal.PlainError("nobody is calling, and tripseal.Config.RequireUser is set")
		}
		return user, err
	}
	return f.Issuer.Open(ctx, request, text)
}
