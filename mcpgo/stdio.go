package mcpgo

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// mcp-go has one stdio session for the whole process. If server.StdioServer serves two connections,
// for example in a daemon, an older client could get the questions for another client, and answer
// in its place. Nothing tells for certain that a connection has ended. Even the end of the session
// does not: an HTTP client can end the stdio session with a DELETE while the connection is open. So
// after a second connection, older clients over stdio are not asked any more.

var (
	stdioBegan      atomic.Bool // true once a stdio session has begun on a protected server of this process
	stdioBeganAgain atomic.Bool // true once a second stdio session has begun
)

func stdioBegins(_ context.Context, session server.ClientSession) {
	if isStdio(session) && stdioBegan.Swap(true) {
		stdioBeganAgain.Store(true)
	}
}

// isStdio reports whether a session is mcp-go's stdio session. Its type is not exported, and
// its id is not enough: a client can choose the id of an HTTP session.
func isStdio(session server.ClientSession) bool {
	t := reflect.TypeOf(session)
	return t != nil && t.Kind() == reflect.Pointer && t.Elem().Name() == "stdioSession" && t.Elem().PkgPath() == reflect.TypeFor[server.MCPServer]().PkgPath()
}

const stdioShared = "this process has served more than one connection over stdio, and in mcp-go all its connections share one session: " +
	"a client of an older revision cannot be asked, because another client could answer. Start a process for each client"

// sharesStdio reports whether a call comes from an older client, over a stdio session that other
// clients may share.
func sharesStdio(ctx context.Context) bool {
	return stdioBeganAgain.Load() && !mcp.IsModernProtocol(server.RequestProtocolVersion(ctx)) && isStdio(server.ClientSessionFromContext(ctx))
}
