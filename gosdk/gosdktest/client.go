package gosdktest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk/internal/revision"
)

// Names of users for tests. You may use any other name too; "" means a caller without a name.
const (
	Alice = "alice" // Connect returns a client of this user
	Bob   = "bob"   // another user
)

// Options changes what [Connect] does. Nil or the zero value suits a server that takes its users from access tokens.
type Options struct {
	// Extra returns what each request of this user carries: an access token, headers, or both. It is called for every
	// request that has a user. Set it if the server's gosdk.Options.User reads something other than the token's UserID.
	// Nil means a token with this UserID and nothing else.
	Extra func(user string) *mcp.RequestExtra
	// Older means clients of revision 2025-11-25. They never hold tokens. They get questions during a call, so set
	// Client too: it answers them. False means clients of revision 2026-07-28.
	Older bool
	// Client has the handlers that answer questions. If Client is set, a call returns only when it is done, on either
	// revision. Nil means a client that declares every kind of question, but does not answer by itself: the test
	// answers each round with [Round.Answer].
	Client *mcp.ClientOptions
	// RejectedText must equal the server's gosdk.Options.RejectedText: the text of the result that a tool call with a
	// rejected token gets. "" means that such a call gets the protocol's error.
	RejectedText string
}

// Client calls a server as one user. [Connect] returns the first one, and [Client.As] returns those of other users.
type Client struct {
	user string
	*connections
}

// Connect connects a client of the user [Alice] to a server, in memory, until the test ends. If you use a bubble of
// testing/synctest, make the server and call Connect inside the bubble. Call Connect at the start of a test.
func Connect(t testing.TB, server *mcp.Server, options *Options) *Client {
	t.Helper()
	c := &Client{Alice, &connections{t: t, server: server, byUser: make(map[string]*mcp.ClientSession)}}
	if options != nil {
		c.options = *options
	}
	if c.options.Older && c.options.Client == nil {
		t.Fatal("gosdktest: an older client is asked in the middle of a call: set Options.Client to answer")
	}
	c.Session()
	return c
}

// As returns a client of the given user, for the same server.
func (c *Client) As(user string) *Client { return &Client{user, c.connections} }

// Session returns the SDK's session of this user, for methods that Client does not have.
func (c *Client) Session() *mcp.ClientSession {
	c.t.Helper()
	session, err := c.session(c.user)
	if err != nil {
		c.t.Fatal(err)
	}
	return session
}

// connections has one connection for each user, as over HTTP, where users do not share connections.
type connections struct {
	t       testing.TB
	server  *mcp.Server
	options Options

	mu     sync.Mutex
	byUser map[string]*mcp.ClientSession
}

func (c *connections) session(user string) (*mcp.ClientSession, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if session := c.byUser[user]; session != nil {
		return session, nil
	}
	ctx := c.t.Context()
	clientSide, serverSide := mcp.NewInMemoryTransports()
	serving, err := c.server.Connect(ctx, &transport{serverSide, c.extraOf(user)}, nil)
	if err != nil {
		return nil, fmt.Errorf("gosdktest: the server does not connect: %w", err)
	}
	version := revision.V2026
	if c.options.Older {
		version = revision.V2025
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "gosdktest", Version: "1"}, c.clientOptions())
	session, err := revision.Connect(ctx, client, clientSide, version)
	if err != nil {
		serving.Close()
		return nil, fmt.Errorf("gosdktest: the client does not connect: %w", err)
	}
	c.t.Cleanup(func() { session.Close(); serving.Wait() })
	if got := session.InitializeResult().ProtocolVersion; got != version {
		return nil, fmt.Errorf("gosdktest: the server speaks revision %s, and the test needs %s", got, version)
	}
	c.byUser[user] = session
	return session, nil
}

// extraOf returns a function that makes the RequestExtra for each request of this user. Each request gets its own
// RequestExtra, because a handler may change it.
func (c *connections) extraOf(user string) func() *mcp.RequestExtra {
	switch {
	case user == "":
		return func() *mcp.RequestExtra { return nil }
	case c.options.Extra != nil:
		return func() *mcp.RequestExtra { return c.options.Extra(user) }
	}
	return func() *mcp.RequestExtra { return &mcp.RequestExtra{TokenInfo: &auth.TokenInfo{UserID: user}} }
}

func (c *connections) clientOptions() *mcp.ClientOptions {
	if c.options.Client != nil {
		return c.options.Client
	}
	return &mcp.ClientOptions{
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		Capabilities: &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
			Sampling:    &mcp.SamplingCapabilities{Tools: &mcp.SamplingToolsCapabilities{}, Context: &mcp.SamplingContextCapabilities{}},
			RootsV2:     &mcp.RootCapabilities{},
		},
	}
}

// transport gives each request a RequestExtra, as the SDK's HTTP transport does. The SDK passes the RequestExtra on to
// the handler, whatever the transport.
type transport struct {
	mcp.Transport
	extra func() *mcp.RequestExtra
}

func (t *transport) Connect(ctx context.Context) (mcp.Connection, error) {
	connection, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &requests{connection, t.extra}, nil
}

type requests struct {
	mcp.Connection
	extra func() *mcp.RequestExtra
}

func (r *requests) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := r.Connection.Read(ctx)
	if request, ok := message.(*jsonrpc.Request); ok && err == nil {
		request.Extra = r.extra()
	}
	return message, err
}
