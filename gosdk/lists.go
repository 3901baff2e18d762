package gosdk

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// maxCachedMs is a year in milliseconds: the ttlMs of a page extends the life of its cursor by at most that.
const maxCachedMs = 365 * 24 * 60 * 60 * 1000

// serveList serves a list, such as tools/list, with sealed cursors in place of the SDK's cursors.
func (p *Protector) serveList(
	ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request,
) (mcp.Result, error) {
	if p.lists == nil {
		return next(ctx, method, req)
	}
	token, with, ok := listRequest(req)
	if !ok {
		return nil, p.refuse(ctx, method, "a request of an unknown type was refused")
	}
	page, err := p.lists.Open(ctx, tripseal.Request{Method: method, Principal: p.userOf(req)}, token)
	if err != nil {
		return nil, sdkError(cursor.Wire(err))
	}
	if token != "" {
		req = with(string(page.Position()))
	}
	result, err := next(ctx, method, req)
	if err != nil {
		return nil, err
	}
	plain, sealed, ok := listResult(result)
	switch {
	case !ok:
		return nil, p.refuse(ctx, method, "a list that is nil or of an unknown type was refused: nobody could seal its cursor")
	case plain == "":
		return result, nil
	}
	// If a cache may serve the page to other users, the cursor works for them too, and outlives the cached page. Any
	// other cursor is bound to the user, also that of a page with a ttlMs of 0: the SDK marks it as public, but no
	// cache keeps it.
	after := cursor.NextPage{Position: []byte(plain)}
	if cacheable, ok := result.(mcp.CacheableResult); ok && cacheable.GetTTLMs() > 0 {
		scope := cacheable.GetCacheScope()
		after.Shared = scope == "public" || scope == "" // "" means public
		after.Cached = time.Duration(min(int64(cacheable.GetTTLMs()), maxCachedMs)) * time.Millisecond
	}
	text, err := page.Next(ctx, after)
	if err != nil {
		return nil, sdkError(cursor.Wire(err))
	}
	return sealed(text), nil
}

// listRequest reads the cursor of a list request, and returns a function that copies the request with another cursor.
func listRequest(req mcp.Request) (text string, with func(string) mcp.Request, ok bool) {
	switch r := req.(type) {
	case *mcp.ListToolsRequest:
		return cursorIn(r, func(p *mcp.ListToolsParams) *string { return &p.Cursor })
	case *mcp.ListPromptsRequest:
		return cursorIn(r, func(p *mcp.ListPromptsParams) *string { return &p.Cursor })
	case *mcp.ListResourcesRequest:
		return cursorIn(r, func(p *mcp.ListResourcesParams) *string { return &p.Cursor })
	case *mcp.ListResourceTemplatesRequest:
		return cursorIn(r, func(p *mcp.ListResourceTemplatesParams) *string { return &p.Cursor })
	}
	return "", nil, false
}

func cursorIn[T any, P interface {
	*T
	mcp.Params
}](r *mcp.ServerRequest[P], at func(P) *string) (text string, with func(string) mcp.Request, ok bool) {
	if r.Params == nil {
		return "", nil, true
	}
	return *at(r.Params), func(text string) mcp.Request {
		copied := copyRequest(r)
		*at(copied.Params) = text
		return copied
	}, true
}

// listResult reads the cursor of a page, and returns a function that copies the page with another cursor.
func listResult(result mcp.Result) (text string, with func(string) mcp.Result, ok bool) {
	switch r := result.(type) {
	case *mcp.ListToolsResult:
		if r != nil {
			return r.NextCursor, func(text string) mcp.Result { c := *r; c.NextCursor = text; return &c }, true
		}
	case *mcp.ListPromptsResult:
		if r != nil {
			return r.NextCursor, func(text string) mcp.Result { c := *r; c.NextCursor = text; return &c }, true
		}
	case *mcp.ListResourcesResult:
		if r != nil {
			return r.NextCursor, func(text string) mcp.Result { c := *r; c.NextCursor = text; return &c }, true
		}
	case *mcp.ListResourceTemplatesResult:
		if r != nil {
			return r.NextCursor, func(text string) mcp.Result { c := *r; c.NextCursor = text; return &c }, true
		}
	}
	return "", nil, false
}
