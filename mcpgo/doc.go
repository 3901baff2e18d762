// Package mcpgo protects servers of github.com/mark3labs/mcp-go with one line:
//
//	mcpgo.Protect(srv, boundary, &mcpgo.Options{Principal: userFromContext})
//
// Call it directly after server.NewMCPServer, before you add other middleware or hooks.
// From then on every requestState that leaves on tools/call and prompts/get is sealed,
// and every one that comes back is checked before any handler runs. Handlers go on
// reading and writing plaintext. Answers reach a handler only if the sealed state says
// that they were asked for. The cursors of the server's lists are sealed too. If a
// handler panics, its call fails and the process goes on.
//
// [SetState] and [State] put a Go value into a result and get it back. [Sealed] tells a
// handler whether its request came through a boundary. [AddPagedTool] adds a tool that
// returns its items page by page.
//
// mcp-go asks clients from before multi round-trip requests by itself, in the middle of
// the call. It calls the handler again with the token and the answers, so the same checks
// apply there. It never asks such clients over the older SSE transport.
//
// What mcp-go does not let an adapter do is in docs/threat-model.md.
package mcpgo
