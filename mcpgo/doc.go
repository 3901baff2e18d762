// Package mcpgo protects servers of github.com/mark3labs/mcp-go with one line:
//
//	mcpgo.Protect(srv, boundary, &mcpgo.Options{Principal: userFromContext})
//
// Call Protect directly after server.NewMCPServer, before you add other middleware. Pass
// your own hooks to NewMCPServer, with server.WithHooks. On a protected server, every
// requestState in a result of tools/call or prompts/get is sealed, and every requestState
// that comes back is checked before any handler runs. Handlers still read and write plaintext.
// Answers reach a handler only if the sealed state says that their questions were asked.
// The cursors of the server's lists are sealed too. If a handler panics, its call fails
// and the process goes on. So you need no server.WithRecovery. If you add it after Protect,
// it sends the panic's text to the client.
//
// [SetState] writes a Go value into a result as its state, and [State] reads it in the
// next round. [Sealed] tells a handler whether its request came through a boundary.
// [AddPagedTool] adds a tool that returns its items page by page.
//
// A client whose protocol revision has no multi round-trip requests (an older client) gets
// the questions during the call. mcp-go itself asks them, and then calls the handler again
// with the token and the answers, so the same checks apply. Over the older SSE transport,
// mcp-go never asks such a client.
//
// docs/threat-model.md lists what this package cannot do because of the way mcp-go works.
package mcpgo
