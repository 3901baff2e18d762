// Package mcpgo protects servers of github.com/mark3labs/mcp-go with one line:
//
//	http.Handle("/mcp", auth(mcpgo.Handler(srv, engine, wire.Options{User: userOf}))) // streamable HTTP
//	err = mcpgo.ServeStdio(ctx, srv, engine, tripseal.User("owner"))                  // standard input and output
//
// The server is behind a door of package wire. Every state, list cursor and session id is sealed there when it leaves,
// and checked when it comes back. Handlers, hooks and middleware read and write plaintext, and nothing that they do can
// send a state past the door.
//
// [State] and [SetState] read and write the state as a Go value, and [AddPagedTool] adds a tool that returns its items
// page by page. If you build the transport yourself, put [Guard] on the server and [wire.Engine.Handler] or
// [wire.Engine.Stdio] around the transport.
//
// mcp-go asks a client whose protocol revision has no multi round-trip requests (an older client) during the call, and
// runs the handler again with its state, which never leaves the process. Over the older SSE transport, mcp-go never
// asks such a client.
package mcpgo
