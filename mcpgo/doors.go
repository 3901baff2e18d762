package mcpgo

import (
	"context"
	"io"
	"net/http"
	"os"

	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// Handler returns a protected HTTP handler for the server, which speaks streamable HTTP. It puts [Guard] on the server.
// Put authentication around it, and set options.User, which reads what the authentication found. Handler panics where
// [wire.Engine.Handler] does.
func Handler(
	srv *server.MCPServer, engine *wire.Engine, options wire.Options, opts ...server.StreamableHTTPOption,
) http.Handler {
	Guard(srv, engine)
	return engine.Handler(server.NewStreamableHTTPServer(srv, opts...), options)
}

// ServeStdio serves one client over standard input and output, until the input ends or ctx is canceled. It puts [Guard]
// on the server. The parameter user says who the client is: whoever started the process.
func ServeStdio(
	ctx context.Context, srv *server.MCPServer, engine *wire.Engine, user tripseal.Principal, opts ...server.StdioOption,
) error {
	return serve(ctx, srv, engine, user, os.Stdin, os.Stdout, opts...)
}

func serve(
	ctx context.Context, srv *server.MCPServer, engine *wire.Engine, user tripseal.Principal,
	clientIn io.Reader, clientOut io.Writer, opts ...server.StdioOption,
) error {
	Guard(srv, engine)
	stdio := server.NewStdioServer(srv)
	for _, set := range opts {
		set(stdio)
	}
	in, out := engine.Stdio(clientIn, clientOut, user)
	defer out.Close()
	defer in.Close()
	return stdio.Listen(ctx, in, out)
}
