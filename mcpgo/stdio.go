package mcpgo

import (
	"context"
	"reflect"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// mcp-go has one stdio session for the whole process. If server.StdioServer serves two
// connections at the same time, for example in a daemon, an older client gets the questions
// of another, and its answers count as those of the other. So when that has happened, older
// clients over stdio are not asked any more.

// stdioServers is what is known of the servers that listen with server.StdioServer.
var stdioServers struct {
	mu     sync.Mutex
	begun  map[<-chan struct{}]int // how many have begun and not ended, for each channel Done of the context of Listen
	latest <-chan struct{}         // the channel Done of the latest request, which is closed when its connection ends
	shared bool                    // true if two servers, or two connections, have ever used the session at the same time
}

func stdioBegins(ctx context.Context, session server.ClientSession) {
	if !isStdio(session) {
		return
	}
	stdioServers.mu.Lock()
	defer stdioServers.mu.Unlock()
	if stdioServers.begun == nil {
		stdioServers.begun = make(map[<-chan struct{}]int)
	}
	done := ctx.Done()
	stdioServers.begun[done]++
	two := len(stdioServers.begun) > 1 || stdioServers.begun[done] > 1
	stdioServers.shared = stdioServers.shared || two || isOpen(stdioServers.latest)
}

// stdioEnds is called with the context of Listen when Listen ends. It is also called if
// somebody else removes the session, for example an HTTP client with a DELETE for the id
// "stdio". The connection is then still open, so such a call does not count.
func stdioEnds(ctx context.Context, session server.ClientSession) {
	if !isStdio(session) {
		return
	}
	stdioServers.mu.Lock()
	defer stdioServers.mu.Unlock()
	done := ctx.Done()
	if stdioServers.begun[done] == 0 {
		return
	}
	if stdioServers.begun[done]--; stdioServers.begun[done] == 0 {
		delete(stdioServers.begun, done)
	}
	if stdioServers.latest == done { // in mcp-go before 1.2, this channel is not closed when Listen ends
		stdioServers.latest = nil
	}
}

// countRequest notices a request from another connection than the latest one. In mcp-go, all
// requests of a connection have the same channel Done. A request that a handler makes with
// HandleMessage does not count: only such a request has a RequestProtocolInfo this early.
func countRequest(ctx context.Context) {
	done := ctx.Done()
	if done == nil || server.RequestProtocolInfoFromContext(ctx) != nil || !isStdio(server.ClientSessionFromContext(ctx)) {
		return
	}
	stdioServers.mu.Lock()
	defer stdioServers.mu.Unlock()
	if len(stdioServers.begun) == 1 && !stdioServers.shared {
		return // the only connection: the handler of a notification, for example, makes requests with a context of its own
	}
	if done != stdioServers.latest {
		stdioServers.shared = stdioServers.shared || isOpen(stdioServers.latest)
		stdioServers.latest = done
	}
}

func isOpen(connection <-chan struct{}) bool {
	if connection == nil {
		return false
	}
	select {
	case <-connection:
		return false
	default:
		return true
	}
}

// isStdio reports whether a session is mcp-go's stdio session. Its type is not exported, and
// its id is not enough: a client can choose the id of an HTTP session.
func isStdio(session server.ClientSession) bool {
	t := reflect.TypeOf(session)
	return t != nil && t.Kind() == reflect.Pointer && t.Elem().Name() == "stdioSession" && t.Elem().PkgPath() == reflect.TypeFor[server.MCPServer]().PkgPath()
}

const stdioShared = "two connections were served over stdio in this process at the same time, and in mcp-go they share one session: " +
	"a client of an older revision cannot be asked, because another client could answer. Start a process for each client"

// sharesStdio reports whether a call is one of an older client whose stdio session other
// clients share.
func sharesStdio(ctx context.Context) bool {
	if mcp.IsModernProtocol(server.RequestProtocolVersion(ctx)) || !isStdio(server.ClientSessionFromContext(ctx)) {
		return false
	}
	stdioServers.mu.Lock()
	defer stdioServers.mu.Unlock()
	return stdioServers.shared
}
