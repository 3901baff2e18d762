package gosdk

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// maxCachedMs is a year in milliseconds. The ttlMs of a page extends the life of the
// page's cursor, but by at most maxCachedMs.
const maxCachedMs = 365 * 24 * 60 * 60 * 1000

func isList(method string) bool {
	switch method {
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return true
	}
	return false
}

// serveList serves a list, such as tools/list, with sealed cursors in place of the SDK's
// cursors.
func (p *Protection) serveList(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) (mcp.Result, error) {
	token, ok := listCursor(req)
	if !ok {
		return nil, p.refuse(ctx, method, "a request of an unknown type was refused")
	}
	if p.lists == nil {
		result, err := next(ctx, method, req)
		if tools, ok := result.(*mcp.ListToolsResult); ok && tools != nil && token == "" {
			p.meet(ctx, 0, tools)
		}
		return p.withoutInput(ctx, method, result, err)
	}
	by := p.callerOf(req)
	page, err := p.lists.Open(ctx, tripseal.Request{Method: method, Principal: p.principalOf(&by)}, token)
	if err != nil {
		return nil, cursorError(err)
	}
	if token != "" {
		req = withListCursor(req, string(page.Position()))
	}
	result, err := next(ctx, method, req)
	if err != nil {
		return nil, err
	}
	if !isListResult(result) {
		return nil, p.refuse(ctx, method, "a list that is nil or of an unknown type was refused: nobody could seal its cursor")
	}
	if tools, ok := result.(*mcp.ListToolsResult); ok {
		p.meet(ctx, page.Number(), tools)
	}
	return p.sealedList(ctx, &by, &page, result)
}

// sealedList seals the cursor of a page. If a cache may serve the page to other users,
// the cursor works for them too, and outlives the cached page. Any other cursor is
// bound to the user. That includes the cursor of a page with a ttlMs of 0: the SDK marks
// the page as public, but no cache keeps it.
func (p *Protection) sealedList(ctx context.Context, by *caller, page *cursor.Page, result mcp.Result) (mcp.Result, error) {
	plain, with := nextListCursor(result)
	if plain == "" {
		return result, nil
	}
	next := cursor.NextPage{Position: []byte(plain)}
	if cacheable, ok := result.(mcp.CacheableResult); ok && cacheable.GetTTLMs() > 0 {
		scope := cacheable.GetCacheScope()
		next.Shared = scope == "public" || scope == "" // "" means public
		next.Cached = time.Duration(min(int64(cacheable.GetTTLMs()), maxCachedMs)) * time.Millisecond
	}
	if !next.Shared {
		p.warnUsers(ctx, by)
	}
	sealed, err := page.Next(ctx, next)
	if err != nil {
		return nil, cursorError(err)
	}
	return with(sealed), nil
}

// cursorError returns the error that the client gets for an error about a cursor.
func cursorError(err error) error {
	wire := cursor.Wire(err)
	return &jsonrpc.Error{Code: wire.Code, Message: wire.Message, Data: wire.Data}
}

// listCursor reads the cursor of a list request; ok is false for any other request.
func listCursor(req mcp.Request) (text string, ok bool) {
	switch r := req.(type) {
	case *mcp.ListToolsRequest:
		if r != nil && r.Params != nil {
			text = r.Params.Cursor
		}
	case *mcp.ListPromptsRequest:
		if r != nil && r.Params != nil {
			text = r.Params.Cursor
		}
	case *mcp.ListResourcesRequest:
		if r != nil && r.Params != nil {
			text = r.Params.Cursor
		}
	case *mcp.ListResourceTemplatesRequest:
		if r != nil && r.Params != nil {
			text = r.Params.Cursor
		}
	default:
		return "", false
	}
	return text, true
}

// withListCursor returns a copy of a list request with another cursor. The request must
// have params.
func withListCursor(req mcp.Request, text string) mcp.Request {
	switch r := req.(type) {
	case *mcp.ListToolsRequest:
		params := *r.Params
		params.Cursor = text
		return &mcp.ListToolsRequest{Session: r.Session, Params: &params, Extra: r.Extra}
	case *mcp.ListPromptsRequest:
		params := *r.Params
		params.Cursor = text
		return &mcp.ListPromptsRequest{Session: r.Session, Params: &params, Extra: r.Extra}
	case *mcp.ListResourcesRequest:
		params := *r.Params
		params.Cursor = text
		return &mcp.ListResourcesRequest{Session: r.Session, Params: &params, Extra: r.Extra}
	case *mcp.ListResourceTemplatesRequest:
		params := *r.Params
		params.Cursor = text
		return &mcp.ListResourceTemplatesRequest{Session: r.Session, Params: &params, Extra: r.Extra}
	}
	return req
}

// isListResult reports whether a result is a page whose cursor can be read.
func isListResult(result mcp.Result) bool {
	switch r := result.(type) {
	case *mcp.ListToolsResult:
		return r != nil
	case *mcp.ListPromptsResult:
		return r != nil
	case *mcp.ListResourcesResult:
		return r != nil
	case *mcp.ListResourceTemplatesResult:
		return r != nil
	}
	return false
}

// nextListCursor returns the cursor of a page, and a function that returns a copy of the
// page with another cursor. The page itself must not change, because inner middleware
// may keep it.
func nextListCursor(result mcp.Result) (text string, with func(string) mcp.Result) {
	switch r := result.(type) {
	case *mcp.ListToolsResult:
		return r.NextCursor, func(text string) mcp.Result { c := *r; c.NextCursor = text; return &c }
	case *mcp.ListPromptsResult:
		return r.NextCursor, func(text string) mcp.Result { c := *r; c.NextCursor = text; return &c }
	case *mcp.ListResourcesResult:
		return r.NextCursor, func(text string) mcp.Result { c := *r; c.NextCursor = text; return &c }
	case *mcp.ListResourceTemplatesResult:
		return r.NextCursor, func(text string) mcp.Result { c := *r; c.NextCursor = text; return &c }
	}
	return "", nil
}

// meet tells p.unlisted which tools are on a page of tools/list. After the last page,
// p.unlisted warns of tools that an option names but no page has.
func (p *Protection) meet(ctx context.Context, number int, page *mcp.ListToolsResult) {
	p.unlisted.Page(ctx, number, page.NextCursor == "", func(yield func(string) bool) {
		for _, tool := range page.Tools {
			if tool != nil && !yield(tool.Name) {
				return
			}
		}
	}, p.logger)
}
