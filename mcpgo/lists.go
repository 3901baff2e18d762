package mcpgo

import (
	"context"
	"encoding/base64"
	"weak"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// addListHooks adds the hooks that give clients sealed cursors in place of mcp-go's
// cursors. Before mcp-go serves a list, one hook opens the client's cursor. After that,
// another hook seals the cursor of the next page.
//
//go:noinline
func addListHooks(h *server.Hooks) {
	h.AddBeforeListTools(func(ctx context.Context, _ any, req *mcp.ListToolsRequest) {
		openList(ctx, mcp.MethodToolsList, weak.Make(req), &req.Params.Cursor)
	})
	h.AddAfterListTools(func(ctx context.Context, _ any, req *mcp.ListToolsRequest, r *mcp.ListToolsResult) {
		if i := installed(ctx); i != nil {
			i.sealList(ctx, mcp.MethodToolsList, weak.Make(req), &r.NextCursor)
			i.unlisted.Page(ctx, 0, true, i.registered(ctx), i.logger)
		}
	})
	h.AddBeforeListPrompts(func(ctx context.Context, _ any, req *mcp.ListPromptsRequest) {
		openList(ctx, mcp.MethodPromptsList, weak.Make(req), &req.Params.Cursor)
	})
	h.AddAfterListPrompts(func(ctx context.Context, _ any, req *mcp.ListPromptsRequest, r *mcp.ListPromptsResult) {
		sealList(ctx, mcp.MethodPromptsList, weak.Make(req), &r.NextCursor)
	})
	h.AddBeforeListResources(func(ctx context.Context, _ any, req *mcp.ListResourcesRequest) {
		openList(ctx, mcp.MethodResourcesList, weak.Make(req), &req.Params.Cursor)
	})
	h.AddAfterListResources(func(ctx context.Context, _ any, req *mcp.ListResourcesRequest, r *mcp.ListResourcesResult) {
		sealList(ctx, mcp.MethodResourcesList, weak.Make(req), &r.NextCursor)
	})
	h.AddBeforeListResourceTemplates(func(ctx context.Context, _ any, req *mcp.ListResourceTemplatesRequest) {
		openList(ctx, mcp.MethodResourcesTemplatesList, weak.Make(req), &req.Params.Cursor)
	})
	h.AddAfterListResourceTemplates(func(ctx context.Context, _ any, req *mcp.ListResourceTemplatesRequest, r *mcp.ListResourceTemplatesResult) {
		sealList(ctx, mcp.MethodResourcesTemplatesList, weak.Make(req), &r.NextCursor)
	})
	h.AddBeforeListTasks(func(ctx context.Context, _ any, req *mcp.ListTasksRequest) {
		openList(ctx, mcp.MethodTasksList, weak.Make(req), &req.Params.Cursor)
	})
	h.AddAfterListTasks(func(ctx context.Context, _ any, req *mcp.ListTasksRequest, r *mcp.ListTasksResult) {
		sealList(ctx, mcp.MethodTasksList, weak.Make(req), &r.NextCursor)
	})
}

const (
	// refusedCursor replaces a rejected cursor in a request. It is not base64, so mcp-go
	// answers with the code -32602 and its own text. A hook has no other way to make a
	// list fail.
	refusedCursor = "!"
	// unusableCursor is sent to the client if the next cursor could not be sealed. When
	// the client asks for the next page, it gets an error, and so notices that it does
	// not have the whole list.
	unusableCursor = "unavailable"
)

// openList opens the client's cursor in *text, and replaces it with the mcp-go cursor that
// was sealed in it. It replaces a rejected cursor with a cursor that mcp-go refuses.
func openList(ctx context.Context, method mcp.MCPMethod, request any, text *mcp.Cursor) {
	i := installed(ctx)
	if i == nil {
		return
	}
	if !i.intact(ctx) { // beforeRequest did not run: it would have refused the request
		i.refuse(ctx, string(method), hooksChanged)
		*text = refusedCursor
		return
	}
	if i.lists == nil || *text == "" {
		return
	}
	page, err := i.lists.Open(ctx, i.listRequest(method), string(*text))
	if err == nil {
		// mcp-go refuses a position that is not base64, and then nothing would take the page
		// out of i.pages. A cursor may have such a position if a server on another SDK sealed
		// it with the same keys.
		_, err = base64.StdEncoding.DecodeString(string(page.Position()))
	}
	if err != nil {
		*text = refusedCursor
		return
	}
	*text = mcp.Cursor(page.Position())
	i.pages.put(request, &page)
}

// sealList seals the cursor of a list's next page if the server is protected.
func sealList(ctx context.Context, method mcp.MCPMethod, request any, next *mcp.Cursor) {
	if i := installed(ctx); i != nil {
		i.sealList(ctx, method, request, next)
	}
}

// sealList replaces *next, mcp-go's cursor of the next page, with a sealed cursor. If that fails,
// *next becomes unusableCursor. If there is no next page, *next is empty and stays empty.
func (i *installation) sealList(ctx context.Context, method mcp.MCPMethod, request any, next *mcp.Cursor) {
	if !i.intact(ctx) && *next != "" { // beforeRequest and openList did not run, so nobody has checked the cursor of this page
		i.refuse(ctx, string(method), hooksChanged)
		*next = unusableCursor
		return
	}
	if i.lists == nil {
		return
	}
	page, ok := i.pages.take(request)
	if *next == "" {
		return
	}
	if _, err := base64.StdEncoding.DecodeString(string(*next)); err != nil { // openList would refuse this position
		i.refuse(ctx, string(method), "a hook changed the cursor of a list to a text that mcp-go cannot read: leave NextCursor as it is")
		*next = unusableCursor
		return
	}
	if !ok {
		first, err := i.lists.Open(ctx, i.listRequest(method), "")
		if err != nil {
			*next = unusableCursor
			return
		}
		page = &first
	}
	sealed, err := page.Next(ctx, cursor.NextPage{Position: []byte(*next)})
	if err != nil {
		sealed = unusableCursor // the issuer of cursors has logged the reason
	}
	*next = mcp.Cursor(sealed)
}

func (p *Protection) listRequest(method mcp.MCPMethod) tripseal.Request {
	return tripseal.Request{Method: string(method), Principal: p.caller}
}
