package mcpgo_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal/mcpgo"
)

// connection is the client's end of a connection to a daemon. The daemon starts a stdio server
// for each connection.
type connection struct {
	net.Conn
	lines *bufio.Scanner
	ended chan struct{} // closed when the server has ended
}

func connect(t *testing.T, protection *mcpgo.Protection, user string) *connection {
	t.Helper()
	srv := server.NewMCPServer("daemon", "1")
	protection.Install(srv)
	addHandlers(srv)
	return listen(t, srv, user)
}

func listen(t *testing.T, srv *server.MCPServer, user string) *connection {
	t.Helper()
	here, there := net.Pipe()
	stdio := server.NewStdioServer(srv)
	stdio.SetContextFunc(func(ctx context.Context) context.Context { return as(ctx, user) })
	c := &connection{here, bufio.NewScanner(here), make(chan struct{})}
	go func() {
		defer close(c.ended)
		stdio.Listen(t.Context(), there, there)
	}()
	t.Cleanup(c.end)
	c.write(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	c.read(t)
	return c
}

func (c *connection) write(message string) { fmt.Fprintln(c, message) }

func (c *connection) end() {
	c.Close()
	<-c.ended
}

func (c *connection) read(t *testing.T) (text string, id json.RawMessage) {
	t.Helper()
	if !c.lines.Scan() {
		t.Fatal("the connection has ended")
	}
	var message struct{ ID json.RawMessage }
	if err := json.Unmarshal(c.lines.Bytes(), &message); err != nil {
		t.Fatal(err)
	}
	return c.lines.Text(), message.ID
}

const (
	askOverStdio = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask","arguments":{"x":1}}}`
	answering    = `{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"yes":true}}}`
)

func TestAnOlderClientIsNotAskedIfStdioServersShareASession(t *testing.T) {
	l := new(log)
	protection := mcpgo.Prepare(boundary(t, l, nil), &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
	t.Cleanup(mcpgo.ForgetSharedStdio)

	// The client of the first connection is asked.
	first := connect(t, protection, "alice")
	first.write(askOverStdio)
	_, id := first.read(t)
	first.write(fmt.Sprintf(answering, id))
	if text, _ := first.read(t); !strings.Contains(text, "action=accept") {
		t.Errorf("got %s", text)
	}
	first.end()
	mcpgo.ForgetSharedStdio()

	// Now bob connects to a second server while alice is connected. He must not answer for alice,
	// and must not be asked in her place.
	alice := connect(t, protection, "alice")
	alice.write(askOverStdio)
	_, id = alice.read(t)
	bob := connect(t, protection, "bob")
	bob.write(fmt.Sprintf(answering, id))
	if text, _ := alice.read(t); !strings.Contains(text, "Internal error") {
		t.Errorf("bob answered for alice: %s", text)
	}
	alice.write(askOverStdio)
	if text, _ := alice.read(t); !strings.Contains(text, "Internal error") {
		t.Errorf("alice was asked: %s", text)
	}
	bob.end()
	alice.write(askOverStdio)
	if text, _ := alice.read(t); !strings.Contains(text, "Internal error") {
		t.Errorf("alice was asked: %s", text)
	}
	has(t, l, "this process has served more than one connection over stdio")
}

// TestASecondConnectionWhileATokenIsSealedGetsNoQuestion uses an Options.Principal that waits while
// a token is sealed. The second connection begins during this time. Before that, the adapter
// checked that there is only one connection. It must check again after the token is sealed.
func TestASecondConnectionWhileATokenIsSealedGetsNoQuestion(t *testing.T) {
	l, sealing, goOn := new(log), make(chan struct{}), make(chan struct{})
	var once sync.Once
	protection := mcpgo.Prepare(boundary(t, l, nil), &mcpgo.Options{Logger: l.logger(), Principal: func(ctx context.Context) (string, error) {
		once.Do(func() { close(sealing); <-goOn })
		return userFromContext(ctx)
	}})
	t.Cleanup(mcpgo.ForgetSharedStdio)
	alice := connect(t, protection, "alice")
	alice.write(askOverStdio)
	<-sealing
	bob := connect(t, protection, "bob")
	go func() {
		if bob.lines.Scan() {
			t.Errorf("bob got %s", bob.lines.Text())
		}
	}()
	close(goOn)
	alice.SetReadDeadline(time.Now().Add(time.Minute)) // if the question went to bob, alice would wait for ever
	if text, _ := alice.read(t); !strings.Contains(text, "Internal error") {
		t.Errorf("alice got %s", text)
	}
	has(t, l, "this process has served more than one connection over stdio")
}

func TestRemovingTheHookForSessionsIsRefused(t *testing.T) {
	l := new(log)
	srv := protected(t, l, server.WithPaginationLimit(1))
	srv.GetHooks().OnRegisterSession = nil
	refusesEverything(t, srv, l)
}

// TestASharedStdioSessionIsNoticedInEveryWay ends the session while its connection is still open,
// so mcp-go accepts a second connection. After that, the client of the first connection must not
// be asked any more.
func TestASharedStdioSessionIsNoticedInEveryWay(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, srv *server.MCPServer){
		"by the author": func(t *testing.T, srv *server.MCPServer) { srv.UnregisterSession(context.Background(), "stdio") },
		"by the author, with the context of Listen": func(t *testing.T, srv *server.MCPServer) { srv.UnregisterSession(t.Context(), "stdio") },
		"by an HTTP client": func(t *testing.T, srv *server.MCPServer) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, listening(t, server.NewStreamableHTTPServer(srv)), nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Mcp-Session-Id", "stdio")
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(mcpgo.ForgetSharedStdio)
			l := new(log)
			srv := protected(t, l)
			alice := listen(t, srv, "alice")
			end(t, srv)
			listen(t, srv, "bob")
			alice.write(askOverStdio)
			if text, _ := alice.read(t); !strings.Contains(text, "Internal error") {
				t.Errorf("alice was asked: %s", text)
			}
		})
	}
}

// TestACopyOfAServerIsRefused copies a server with reflect, because go vet would report an
// ordinary copy.
func TestACopyOfAServerIsRefused(t *testing.T) {
	l := new(log)
	srv := protected(t, l)
	copied := reflect.New(reflect.TypeFor[server.MCPServer]())
	copied.Elem().Set(reflect.ValueOf(srv).Elem())
	alice := as(t.Context(), "alice")
	for _, params := range []string{`"name":"ask"`, `"name":"echo"`} {
		if r := send(alice, t, copied.Interface().(*server.MCPServer), "tools/call", params); r.Error == nil {
			t.Errorf("got %s", r.raw)
		}
	}
	has(t, l, "use a pointer to it")
}
