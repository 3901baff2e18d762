package gosdk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/gosdktest"
	"github.com/tripseal/tripseal/gosdk/internal/revision"
)

const invalidState = `{"code":-32602,"message":"Invalid or expired requestState","data":{"reason":"invalid_request_state"}}`

// wire returns, as JSON, the JSON-RPC error that a client got.
func wire(err error) string {
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) {
		return fmt.Sprint("no JSON-RPC error: ", err)
	}
	text, _ := json.Marshal(rpc)
	return string(text)
}

// serve makes a server reachable over HTTP, and returns its URL. The parameter verify verifies the
// access tokens. If it is nil, nobody is authenticated.
func serve(t testing.TB, server *mcp.Server, verify auth.TokenVerifier) string {
	t.Helper()
	handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil)
	if verify != nil {
		handler = auth.RequireBearerToken(verify, nil)(handler)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return web.URL
}

func byName(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// dial connects to a URL as a user. The bearer token is the name of the user.
func dial(t testing.TB, url, user string, options *mcp.ClientOptions, version string) *mcp.ClientSession {
	t.Helper()
	return dialWith(t, url, bearer(user), options, version)
}

// dialWith connects to a URL over the given transport. A nil transport sends no token.
func dialWith(t testing.TB, url string, over http.RoundTripper, options *mcp.ClientOptions, version string) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, options)
	transport := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: over}}
	session, err := revision.Connect(ctx, client, transport, version)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

var accepted = mcp.InputResponseMap{"q1": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "x"}}}

func TestTwoUsersCannotUseEachOthersState(t *testing.T) {
	b := &book{}
	server := newServer()
	addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, b, nil), nil)
	url := serve(t, server, byName)
	alice, bob := dial(t, url, "alice", raw(), revision2026), dial(t, url, "bob", raw(), revision2026)
	asked, err := callTool(t, alice, &mcp.CallToolParams{Name: "steps"})
	if err != nil {
		t.Fatal(err)
	}
	params := &mcp.CallToolParams{Name: "steps", RequestState: asked.RequestState, InputResponses: accepted}
	if _, err := callTool(t, bob, params); wire(err) != invalidState {
		t.Errorf("bob gets %s", wire(err))
	}
	if result, err := callTool(t, alice, params); err != nil || text(result) != "done after 1" {
		t.Errorf("alice gets %s, %v", text(result), err)
	}
	if !strings.Contains(b.String(), "reason=user") || strings.Contains(b.String(), "alice") {
		t.Errorf("the log: %s", b)
	}
}

func TestTwoServicesThatShareAKeyCannotUseEachOthersState(t *testing.T) {
	b, keys := &book{}, tripseal.Ephemeral()
	var urls []string
	for _, audience := range []string{"a", "b"} {
		server := newServer()
		addSteps(server, "steps", 1)
		gosdk.Protect(server, boundary(t, b, func(c *tripseal.Config) { c.Keys, c.Audience = keys, audience }), nil)
		urls = append(urls, serve(t, server, byName))
	}
	asked, err := callTool(t, dial(t, urls[0], "alice", raw(), revision2026), &mcp.CallToolParams{Name: "steps"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = callTool(t, dial(t, urls[1], "alice", raw(), revision2026),
		&mcp.CallToolParams{Name: "steps", RequestState: asked.RequestState, InputResponses: accepted})
	if wire(err) != invalidState {
		t.Errorf("service b answers %s", wire(err))
	}
}

func TestPrincipals(t *testing.T) {
	info := func(user string, extra map[string]any) auth.TokenVerifier {
		return func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
			return &auth.TokenInfo{UserID: user, Extra: extra, Expiration: time.Now().Add(time.Hour)}, nil
		}
	}
	issue := map[string]any{"iss": "https://a", "client_id": "c"}
	for name, c := range map[string]struct {
		sealed, opened auth.TokenVerifier
		ok             bool
	}{
		"the same":              {info("u", issue), info("u", issue), true},
		"nobody":                {nil, nil, true},
		"another issuer":        {info("u", issue), info("u", map[string]any{"iss": "https://b", "client_id": "c"}), false},
		"another client":        {info("u", issue), info("u", map[string]any{"iss": "https://a", "client_id": "d"}), false},
		"no issuer":             {info("u", issue), info("u", map[string]any{"client_id": "c"}), false},
		"an empty issuer":       {info("u", map[string]any{"iss": ""}), info("u", nil), false},
		"a moved boundary":      {info("ua", map[string]any{"iss": "b"}), info("u", map[string]any{"iss": "ab"}), false},
		"nobody, then somebody": {nil, info("u", nil), false},
		"somebody, then nobody": {info("u", nil), nil, false},
		"no user id":            {info("u", nil), info("", nil), false},
		"an issuer of 5":        {info("u", nil), info("u", map[string]any{"iss": 5}), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &book{}
			server := newServer()
			addSteps(server, "steps", 1)
			gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
			first, second := serve(t, server, c.sealed), serve(t, server, c.opened)
			asked, err := callTool(t, dial(t, first, "x", raw(), revision2026), &mcp.CallToolParams{Name: "steps"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = callTool(t, dial(t, second, "x", raw(), revision2026),
				&mcp.CallToolParams{Name: "steps", RequestState: asked.RequestState, InputResponses: accepted})
			if c.ok && err != nil || !c.ok && wire(err) != invalidState {
				t.Errorf("%v\n%s", err, b)
			}
			if name == "no user id" && !strings.Contains(b.String(), "set TokenInfo.UserID") {
				t.Errorf("the log does not say what to configure: %s", b)
			}
			if name == "nobody" && strings.Count(b.String(), "nobody is authenticated") != 1 {
				t.Errorf("the log does not say once that nobody is authenticated: %s", b)
			}
		})
	}
}

func TestAPrincipalFunctionReplacesTheToken(t *testing.T) {
	var user atomic.Value
	user.Store("alice")
	b := &book{}
	server := newServer()
	addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, b, func(c *tripseal.Config) { c.RequireUser = true }), &gosdk.Options{
		Logger:    b.logger(),
		Principal: func(context.Context, mcp.Request) (string, error) { return user.Load().(string), nil },
	})
	session := connect(t, server, raw(), revision2026)
	asked, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"})
	if err != nil {
		t.Fatal(err)
	}
	params := &mcp.CallToolParams{Name: "steps", RequestState: asked.RequestState, InputResponses: accepted}
	for _, other := range []string{"bob", ""} {
		user.Store(other)
		if _, err := callTool(t, session, params); wire(err) != invalidState {
			t.Errorf("%q gets %s", other, wire(err))
		}
	}
	if _, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"}); wire(err) != `{"code":-32603,"message":"Internal error"}` {
		t.Errorf("nobody gets %s", wire(err))
	}
	user.Store("alice")
	if _, err := callTool(t, session, params); err != nil {
		t.Error(err)
	}
}

type failingStore struct{ fail func() error }

func (s failingStore) Spend(context.Context, tripseal.Use) (bool, error) { return true, s.fail() }

// brokenCodec works until c.broken is true. After that, Seal and Open fail: they panic if c.panics
// is true, and return c.err otherwise.
type brokenCodec struct {
	tripseal.Codec
	broken *atomic.Bool
	err    error
	panics bool
}

func (c brokenCodec) fail() error {
	if c.broken.Load() && c.panics {
		panic("hush")
	}
	if c.broken.Load() {
		return c.err
	}
	return nil
}

func (c brokenCodec) Seal(ctx context.Context, dst, payload []byte) ([]byte, error) {
	if err := c.fail(); err != nil {
		return nil, err
	}
	return c.Codec.Seal(ctx, dst, payload)
}

func (c brokenCodec) Open(ctx context.Context, dst []byte, text string) ([]byte, error) {
	if err := c.fail(); err != nil {
		return nil, err
	}
	return c.Codec.Open(ctx, dst, text)
}

type failingKeys struct {
	ring   *tripseal.Ring
	broken atomic.Bool
}

func (k *failingKeys) Ring() *tripseal.Ring {
	if k.broken.Load() {
		panic("hush: the keys")
	}
	return k.ring
}

func TestFailingPartsNeverReachTheClient(t *testing.T) {
	for name, fail := range map[string]func() error{
		"fails":  func() error { return errors.New("hush: a secret text") },
		"panics": func() error { panic("hush: a secret text") },
	} {
		t.Run(name, func(t *testing.T) {
			b := &book{}
			var broken atomic.Bool
			server := newServer()
			addSteps(server, "steps", 1)
			gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Principal: func(context.Context, mcp.Request) (string, error) {
				if broken.Load() {
					return "hush", fail()
				}
				return "alice", nil
			}})
			session := connect(t, server, raw(), revision2026)
			asked, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"})
			if err != nil {
				t.Fatal(err)
			}
			broken.Store(true)
			params := &mcp.CallToolParams{Name: "steps", RequestState: asked.RequestState, InputResponses: accepted}
			if _, err := callTool(t, session, params); wire(err) != invalidState {
				t.Errorf("on the way in: %s", wire(err))
			}
			if _, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"}); wire(err) != `{"code":-32603,"message":"Internal error"}` {
				t.Errorf("on the way out: %s", wire(err))
			}
			stored := newServer()
			addSteps(stored, "steps", 1)
			gosdk.Protect(stored, boundary(t, b, func(c *tripseal.Config) { c.Replay = failingStore{fail} }), nil)
			session = connect(t, stored, raw(), revision2026)
			if asked, err = callTool(t, session, &mcp.CallToolParams{Name: "steps"}); err != nil {
				t.Fatal(err)
			}
			params.RequestState = asked.RequestState
			if _, err := callTool(t, session, params); wire(err) != invalidState {
				t.Errorf("a store that %s: %s", name, wire(err))
			}
			if strings.Contains(b.String(), "hush") {
				t.Errorf("the log repeats it: %s", b)
			}
		})
	}
	for _, codec := range []brokenCodec{{err: errors.New("hush")}, {panics: true}} {
		b, working := &book{}, tripseal.RingCodec(tripseal.Ephemeral(), tripseal.PurposeState)
		codec.Codec, codec.broken = working, new(atomic.Bool)
		server := newServer()
		addSteps(server, "steps", 1)
		gosdk.Protect(server, boundary(t, b, func(c *tripseal.Config) { c.Keys, c.Format = nil, tripseal.RecordFormat("own1.", codec) }), nil)
		session := connect(t, server, raw(), revision2026)
		asked, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"})
		if err != nil {
			t.Fatal(err)
		}
		codec.broken.Store(true)
		if _, err := callTool(t, session, &mcp.CallToolParams{Name: "steps", RequestState: asked.RequestState, InputResponses: accepted}); wire(err) != invalidState {
			t.Errorf("a broken codec on the way in: %s", wire(err))
		}
		if _, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"}); wire(err) != `{"code":-32603,"message":"Internal error"}` {
			t.Errorf("a broken codec on the way out: %s", wire(err))
		}
		if strings.Contains(b.String(), "hush") {
			t.Errorf("the log repeats it: %s", b)
		}
	}
	keys := &failingKeys{ring: tripseal.Ephemeral()}
	server := newServer()
	addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.Keys = keys }), nil)
	session := connect(t, server, raw(), revision2026)
	keys.broken.Store(true)
	if _, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"}); wire(err) != `{"code":-32603,"message":"Internal error"}` {
		t.Errorf("keys that panic: %s", wire(err))
	}
}

// greet follows the pattern of the SDK's documentation: it trusts that the answers were asked
// for, and never reads its state.
func greet(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if len(req.Params.InputResponses) == 0 {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"user_name": form("What is your name?")}, RequestState: "step=1"}, nil
	}
	answer, ok := req.Params.InputResponses["user_name"].(*mcp.ElicitResult)
	if !ok {
		return nil, errors.New("no name")
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("Hello, ", answer.Content["value"])}}}, nil
}

func TestTheDocumentedPatternBecomesSafe(t *testing.T) {
	unsolicited := mcp.InputResponseMap{"user_name": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "forged"}}}
	for _, protected := range []bool{false, true} {
		server := newServer()
		server.AddTool(&mcp.Tool{Name: "greet", InputSchema: map[string]any{"type": "object"}}, greet)
		if protected {
			gosdk.Protect(server, boundary(t, &book{}, nil), nil)
		}
		session := connect(t, server, raw(), revision2026)
		result, err := callTool(t, session, &mcp.CallToolParams{Name: "greet", InputResponses: unsolicited})
		if err != nil {
			t.Fatal(err)
		}
		if got := text(result) == "Hello, forged"; got == protected {
			t.Errorf("protected %v: %q, asks %v", protected, text(result), result.NeedsInput())
		}
		if protected && !result.NeedsInput() {
			t.Error("the question does not come again")
		}
		if honest, err := callTool(t, connect(t, server, answering(), revision2026), &mcp.CallToolParams{Name: "greet"}); err != nil ||
			text(honest) != "Hello, to What is your name?" {
			t.Errorf("protected %v: the honest call gets %q, %v", protected, text(honest), err)
		}
	}
}

func TestAnswersOfAnotherKindOrKeyAreDropped(t *testing.T) {
	server := newServer()
	tool := addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	session := connect(t, server, raw(), revision2026)
	asked, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"})
	if err != nil {
		t.Fatal(err)
	}
	for name, answers := range map[string]mcp.InputResponseMap{
		"another key":  {"q2": accepted["q1"]},
		"another kind": {"q1": &mcp.ListRootsResult{Roots: []*mcp.Root{}}},
		"a sample":     {"q1": &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", Content: []mcp.Content{&mcp.TextContent{Text: "x"}}}},
	} {
		result, err := callTool(t, session, &mcp.CallToolParams{Name: "steps", RequestState: asked.RequestState, InputResponses: answers})
		if err != nil || !result.NeedsInput() {
			t.Errorf("%s: %v, %v", name, text(result), err)
		}
		if log := tool.log(); log[len(log)-1] != `"step=1" ` {
			t.Errorf("%s: the handler saw %s", name, log[len(log)-1])
		}
	}
	both := mcp.InputResponseMap{"q1": accepted["q1"], "extra": accepted["q1"]}
	if result, err := callTool(t, session, &mcp.CallToolParams{Name: "steps", RequestState: asked.RequestState, InputResponses: both}); err != nil || text(result) != "done after 1" {
		t.Errorf("an unknown key beside the right one: %q, %v", text(result), err)
	}
	if log := tool.log(); log[len(log)-1] != `"step=1" q1=accept x` {
		t.Errorf("the handler saw %s", log[len(log)-1])
	}
}

func TestThreeReplicasBehindARoundRobin(t *testing.T) {
	keys := tripseal.Ephemeral()
	var replicas []http.Handler
	var tools []*steps
	for range 3 {
		server := newServer()
		tools = append(tools, addSteps(server, "steps", 3))
		gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.Keys = keys }), nil)
		replicas = append(replicas, auth.RequireBearerToken(byName, nil)(gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil)))
	}
	var next, calls atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			calls.Add(1)
			replicas[int(next.Add(1))%3].ServeHTTP(w, r)
			return
		}
		replicas[0].ServeHTTP(w, r)
	}))
	defer web.Close()
	result, err := callTool(t, dial(t, web.URL, "alice", answering(), revision2026), &mcp.CallToolParams{Name: "steps"})
	if err != nil || text(result) != "done after 3" || calls.Load() != 4 {
		t.Fatalf("%q after %d calls, %v", text(result), calls.Load(), err)
	}
	for i, tool := range tools {
		if len(tool.log()) == 0 {
			t.Errorf("replica %d was never asked", i)
		}
	}
}

func TestBothRevisionsAtOneURLAndOverStdio(t *testing.T) {
	for _, revision := range []string{revision2026, revision2025} {
		t.Run(revision, func(t *testing.T) {
			server := newServer()
			addSteps(server, "steps", 3)
			gosdk.Protect(server, boundary(t, &book{}, nil), nil)
			url := serve(t, server, byName)
			result, err := callTool(t, dial(t, url, "alice", answering(), revision), &mcp.CallToolParams{Name: "steps"})
			if err != nil || text(result) != "done after 3" {
				t.Errorf("over HTTP: %q, %v", text(result), err)
			}
			result, err = callTool(t, pipe(t, server, answering(), revision), &mcp.CallToolParams{Name: "steps"})
			if err != nil || text(result) != "done after 3" {
				t.Errorf("over stdio: %q, %v", text(result), err)
			}
		})
	}
}

// pipe connects a client to the server over two pipes, with the line protocol of stdio.
func pipe(t testing.TB, server *mcp.Server, options *mcp.ClientOptions, version string) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	serving, err := server.Connect(ctx, &mcp.IOTransport{Reader: fromClient, Writer: toClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, options)
	session, err := revision.Connect(ctx, client, &mcp.IOTransport{Reader: fromServer, Writer: toServer}, version)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close(); serving.Close() })
	return session
}

// The SDK itself refuses a state or an answer that is a number. Such a request never reaches the
// middleware.
func TestWhatTheSDKRefusesOverStdio(t *testing.T) {
	server := newServer()
	addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	serving, err := server.Connect(context.Background(), &mcp.IOTransport{Reader: fromClient, Writer: toClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer serving.Close()
	answers := bufio.NewScanner(fromServer)
	for _, params := range []string{`"requestState":12345`, `"inputResponses":{"q1":12345}`} {
		fmt.Fprintf(toServer, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"steps",%s,"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n", params)
		if !answers.Scan() {
			t.Fatal("no answer")
		}
		if answer := answers.Text(); !strings.Contains(answer, `"code":-32602`) || !strings.Contains(answer, "12345") || strings.Contains(answer, "invalid_request_state") {
			t.Errorf("%s: %s", params, answer)
		}
	}
}

func TestOlderClientsAreAskedOnlyWhatTheyDeclared(t *testing.T) {
	server := newServer()
	asks := func(question mcp.InputRequest) mcp.ToolHandler {
		return func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if len(req.Params.InputResponses) > 0 {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "answered"}}}, nil
			}
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": question}}, nil
		}
	}
	server.AddTool(&mcp.Tool{Name: "form", InputSchema: object}, asks(form("?")))
	server.AddTool(&mcp.Tool{Name: "roots", InputSchema: object}, asks(&mcp.ListRootsParams{}))
	server.AddTool(&mcp.Tool{Name: "sample", InputSchema: object}, asks(&mcp.CreateMessageParams{
		MaxTokens: 5, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "?"}}}}))
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	silent := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	session := connect(t, server, silent, revision2025)
	for tool, want := range map[string]string{"form": `"elicitation":{"form":{}}`, "roots": `"roots":{}`, "sample": `"sampling":{}`} {
		result, err := callTool(t, session, &mcp.CallToolParams{Name: tool})
		if err == nil {
			t.Errorf("%s: %q", tool, text(result))
			continue
		}
		if tool == "form" {
			continue // the SDK refuses this question with its own error
		}
		if got := wire(err); got != `{"code":-32021,"message":"Missing required client capabilities","data":{"requiredCapabilities":{`+want+`}}}` {
			t.Errorf("%s: %s", tool, got)
		}
	}
}

func TestOlderClientsEndAtTheRoundLimit(t *testing.T) {
	b := &book{}
	server := newServer()
	tool := addSteps(server, "endless", 1000)
	gosdk.Protect(server, boundary(t, b, func(c *tripseal.Config) { c.MaxRounds = 6 }), nil)
	if _, err := callTool(t, connect(t, server, answering(), revision2025), &mcp.CallToolParams{Name: "endless"}); wire(err) != `{"code":-32603,"message":"Internal error"}` {
		t.Errorf("%s", wire(err))
	}
	if n := len(tool.log()); n != 7 || !strings.Contains(b.String(), "too_many_rounds") {
		t.Errorf("the handler ran %d times: %s", n, b)
	}
}

func TestOlderClientsGetNoTokensAndTheirsAreChecked(t *testing.T) {
	server := newServer()
	tool := addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	session := connect(t, server, answering(), revision2025)
	if _, err := callTool(t, session, &mcp.CallToolParams{Name: "steps", RequestState: "step=1", InputResponses: accepted}); wire(err) != invalidState {
		t.Errorf("a state made by hand: %s", wire(err))
	}
	result, err := callTool(t, session, &mcp.CallToolParams{Name: "steps", InputResponses: accepted})
	if err != nil || text(result) != "done after 1" || result.RequestState != "" || result.InputRequests != nil {
		t.Errorf("%+v, %v", result, err)
	}
	if log := tool.log(); log[0] != `"" ` {
		t.Errorf("unsolicited answers reached the handler: %q", log)
	}
}

func TestPromptsAndResourcesAreProtectedToo(t *testing.T) {
	ctx := context.Background()
	server := newServer()
	server.AddPrompt(&mcp.Prompt{Name: "p"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if req.Params.RequestState == "asked" && len(req.Params.InputResponses) == 1 {
			return &mcp.GetPromptResult{Description: "done", Messages: []*mcp.PromptMessage{}}, nil
		}
		return &mcp.GetPromptResult{RequestState: "asked", InputRequests: mcp.InputRequestMap{"q1": form("?")}}, nil
	})
	server.AddResource(&mcp.Resource{URI: "file:///r", Name: "r"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		if req.Params.RequestState == "asked" && len(req.Params.InputResponses) == 1 {
			return &mcp.ReadResourceResult{Cacheable: mcp.Cacheable{TTLMs: 60_000, CacheScope: "public"}, Contents: []*mcp.ResourceContents{{URI: "file:///r", Text: "done"}}}, nil
		}
		return &mcp.ReadResourceResult{RequestState: "asked", InputRequests: mcp.InputRequestMap{"q1": form("?")}}, nil
	})
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	session := connect(t, server, raw(), revision2026)

	prompt, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "p", Arguments: map[string]string{"a": "b"}})
	if err != nil || !strings.HasPrefix(prompt.RequestState, "ms1.") {
		t.Fatal(prompt, err)
	}
	retry := &mcp.GetPromptParams{Name: "p", Arguments: map[string]string{"a": "b"}, RequestState: prompt.RequestState, InputResponses: accepted}
	if done, err := session.GetPrompt(ctx, retry); err != nil || done.Description != "done" {
		t.Error(done, err)
	}
	retry.Arguments = map[string]string{"a": "c"}
	if _, err := session.GetPrompt(ctx, retry); wire(err) != invalidState {
		t.Error(wire(err))
	}

	resource, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "file:///r"})
	if err != nil || !strings.HasPrefix(resource.RequestState, "ms1.") || resource.CacheScope != "private" || resource.TTLMs != 0 {
		t.Fatal(resource, err)
	}
	done, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "file:///r", RequestState: resource.RequestState, InputResponses: accepted})
	if err != nil || len(done.Contents) != 1 || done.CacheScope != "private" || done.TTLMs != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestLoadSheddingAndStrayStatesAreHandled(t *testing.T) {
	b := &book{}
	server := newServer()
	shed := &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{}, RequestState: "later"}
	stray := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}, RequestState: "a secret"}
	server.AddTool(&mcp.Tool{Name: "shed", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return shed, nil })
	server.AddTool(&mcp.Tool{Name: "stray", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return stray, nil })
	gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	session := connect(t, server, raw(), revision2026)
	result, err := callTool(t, session, &mcp.CallToolParams{Name: "shed"})
	if err != nil || !result.NeedsInput() || !strings.HasPrefix(result.RequestState, "ms1.") {
		t.Errorf("load shedding: %+v, %v", result, err)
	}
	result, err = callTool(t, session, &mcp.CallToolParams{Name: "stray"})
	if err != nil || result.RequestState != "" || text(result) != "done" || !strings.Contains(b.String(), "an InputRequests that is empty and not nil (official SDK)") {
		t.Errorf("a stray state: %+v, %v\n%s", result, err, b)
	}
	if shed.RequestState != "later" || stray.RequestState != "a secret" {
		t.Error("the handler's own result was changed")
	}
}

func TestTypedState(t *testing.T) {
	type progress struct {
		Step int    `json:"step"`
		Name string `json:"name"`
	}
	server := newServer()
	server.AddTool(&mcp.Tool{Name: "typed", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		state, present, err := gosdk.State[progress](ctx, req)
		if err != nil || present != (state.Step > 0) {
			return nil, fmt.Errorf("%+v, %v, %w", state, present, err)
		}
		if state.Step == 2 {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: state.Name}}}, nil
		}
		result := &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q1": form("?")}}
		return result, gosdk.SetState(ctx, req, result, progress{state.Step + 1, "ünï"})
	})
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	if result, err := callTool(t, connect(t, server, answering(), revision2026), &mcp.CallToolParams{Name: "typed"}); err != nil || text(result) != "ünï" {
		t.Errorf("%q, %v", text(result), err)
	}
	ctx := gosdktest.Context(t)
	for _, text := range []string{"hush, not JSON", `{"step":1,"hush":2}`, `{"step":"hush"}`, `{"step":1} hush`, `{"step":1}{"step":2}`} {
		wrong := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{RequestState: text}}
		if state, present, err := gosdk.State[progress](ctx, wrong); !present || err == nil || strings.Contains(err.Error(), "hush") || state != (progress{}) {
			t.Errorf("%s is a progress: %v, %v, %v", text, state, present, err)
		}
	}
	type hidden struct{ approvedBy string }
	for name, value := range map[string]any{"bytes": struct{ ID string }{"\xff"}, "unexported": hidden{"alice"}} {
		if err := gosdk.SetState(ctx, &mcp.CallToolRequest{}, &mcp.CallToolResult{}, value); err == nil {
			t.Errorf("%s: a state that would come back as another was taken", name)
		}
	}
	if err := gosdk.SetState(ctx, &mcp.CallToolRequest{}, &mcp.ListToolsResult{}, 1); err == nil {
		t.Error("a list carries a state")
	}
	if err := gosdk.SetState(ctx, &mcp.CallToolRequest{}, &mcp.CallToolResult{}, make(chan int)); err == nil {
		t.Error("a channel is written as JSON")
	}
}

func TestStateFailsWithoutProtection(t *testing.T) {
	request := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{RequestState: `1`}}
	if value, present, err := gosdk.State[int](t.Context(), request); !errors.Is(err, gosdk.ErrNotProtected) || present || value != 0 {
		t.Errorf("State: %v, %v, %v", value, present, err)
	}
	result := &mcp.CallToolResult{}
	if err := gosdk.SetState(t.Context(), request, result, 1); !errors.Is(err, gosdk.ErrNotProtected) || result.RequestState != "" {
		t.Errorf("SetState: %v, %q", err, result.RequestState)
	}
	if gosdk.Sealed(t.Context(), request) {
		t.Error("a call that nobody saw counts as sealed")
	}
	// SetState also fails in a real call, if Protect was forgotten on the server.
	server := newServer()
	server.AddTool(&mcp.Tool{Name: "forgotten", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		result := &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q1": form("?")}}
		return result, gosdk.SetState(ctx, req, result, "hush")
	})
	if result, err := callTool(t, connect(t, server, raw(), revision2026), &mcp.CallToolParams{Name: "forgotten"}); err == nil || result != nil {
		t.Errorf("%+v, %v", result, err)
	}
}

// A test may call a handler directly with the context that gosdktest.Context returns. The request
// then counts as sealed. But calls to a server do not count as sealed, even if the server was
// connected with this context.
func TestATestsContextSealsNoServer(t *testing.T) {
	server := newServer()
	sealed := true
	server.AddTool(&mcp.Tool{Name: "tool", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		sealed = gosdk.Sealed(ctx, req)
		return &mcp.CallToolResult{}, nil
	})
	ctx := gosdktest.Context(t)
	if !gosdk.Sealed(ctx, &mcp.CallToolRequest{}) {
		t.Error("a request without a session is not marked")
	}
	clientSide, serverSide := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, serverSide, nil); err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, raw()).Connect(ctx, clientSide, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := callTool(t, session, &mcp.CallToolParams{Name: "tool"}); err != nil || sealed {
		t.Errorf("sealed %v, %v", sealed, err)
	}
}

// A protected handler calls a tool of a server without Protect. That call does not count as
// sealed, although its context is derived from the handler's context.
func TestAServerBehindAProtectedOneIsNotSealed(t *testing.T) {
	inner := newServer()
	var sealed bool
	var failed error
	inner.AddTool(&mcp.Tool{Name: "inner", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		sealed = gosdk.Sealed(ctx, req)
		_, _, failed = gosdk.State[string](ctx, req)
		return &mcp.CallToolResult{}, nil
	})
	outer := newServer()
	outer.AddTool(&mcp.Tool{Name: "outer", InputSchema: object}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		clientSide, serverSide := mcp.NewInMemoryTransports()
		if _, err := inner.Connect(ctx, serverSide, nil); err != nil {
			return nil, err
		}
		back, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, raw()).Connect(ctx, clientSide, nil)
		if err != nil {
			return nil, err
		}
		defer back.Close()
		return back.CallTool(ctx, &mcp.CallToolParams{Name: "inner", RequestState: `"forged"`})
	})
	gosdk.Protect(outer, boundary(t, &book{}, nil), nil)
	if _, err := callTool(t, connect(t, outer, raw(), revision2026), &mcp.CallToolParams{Name: "outer"}); err != nil {
		t.Fatal(err)
	}
	if sealed || !errors.Is(failed, gosdk.ErrNotProtected) {
		t.Errorf("sealed %v, %v", sealed, failed)
	}
}

// On a protected server, a request counts as sealed in the handler of a tool, a prompt and a
// resource, in every round and revision. On any other server, it does not.
func TestEveryCarrierIsSealedForItsHandler(t *testing.T) {
	for _, protected := range []bool{true, false} {
		server := newServer()
		var seen []bool
		see := func(ctx context.Context, req mcp.Request) { seen = append(seen, gosdk.Sealed(ctx, req)) }
		server.AddTool(&mcp.Tool{Name: "tool", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if see(ctx, req); len(req.Params.InputResponses) > 0 {
				return &mcp.CallToolResult{}, nil
			}
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q1": form("?")}, RequestState: "s"}, nil
		})
		server.AddPrompt(&mcp.Prompt{Name: "prompt"}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			see(ctx, req)
			return &mcp.GetPromptResult{}, nil
		})
		server.AddResource(&mcp.Resource{URI: "test:resource", Name: "r"}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			see(ctx, req)
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{}}, nil
		})
		if protected {
			gosdk.Protect(server, boundary(t, &book{}, nil), nil)
		}
		for _, revision := range []string{revision2026, revision2025} {
			session := connect(t, server, answering(), revision)
			if _, err := callTool(t, session, &mcp.CallToolParams{Name: "tool"}); err != nil {
				t.Fatal(err)
			}
			if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "prompt"}); err != nil {
				t.Fatal(err)
			}
			if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test:resource"}); err != nil {
				t.Fatal(err)
			}
		}
		if len(seen) != 8 || slices.Contains(seen, !protected) {
			t.Errorf("with Protect %v: %v", protected, seen)
		}
	}
}

func TestOtherMethodsPassUntouched(t *testing.T) {
	b := &book{}
	server := newServer()
	addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, b, nil), nil)
	for _, revision := range []string{revision2026, revision2025} {
		session := connect(t, server, answering(), revision)
		if tools, err := session.ListTools(context.Background(), nil); err != nil || len(tools.Tools) != 1 {
			t.Errorf("%v, %v", tools, err)
		}
	}
}

func TestACallThatNeverAsksPaysOneAllocation(t *testing.T) {
	receiving, _ := gosdk.Middleware(boundary(t, &book{}, nil), nil)
	result := &mcp.CallToolResult{}
	handler := receiving(func(context.Context, string, mcp.Request) (mcp.Result, error) { return result, nil })
	var req mcp.Request = &mcp.CallToolRequest{
		Params: &mcp.CallToolParamsRaw{Name: "x", Arguments: []byte(`{"a":1}`)},
		Extra: &mcp.RequestExtra{
			Header:    http.Header{"Authorization": {"Bearer x"}},
			TokenInfo: &auth.TokenInfo{UserID: "u", Extra: map[string]any{"iss": "i", "client_id": "c"}},
		},
	}
	ctx := context.Background()
	handler(ctx, "tools/call", req)
	if n := testing.AllocsPerRun(100, func() { handler(ctx, "tools/call", req) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func TestAHandlerMayChangeItsParams(t *testing.T) {
	server := newServer()
	server.AddTool(&mcp.Tool{Name: "greedy", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		defer func() {
			req.Params.Arguments, req.Params.RequestState = []byte(`{"changed":true}`), "changed"
		}()
		if req.Params.RequestState == "asked" {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q1": form("?")}, RequestState: "asked"}, nil
	})
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	for _, revision := range []string{revision2026, revision2025} {
		result, err := callTool(t, connect(t, server, answering(), revision), &mcp.CallToolParams{Name: "greedy", Arguments: map[string]any{"a": 1}})
		if err != nil || text(result) != "done" {
			t.Errorf("%s: %q, %v", revision, text(result), err)
		}
	}
}

func TestParamsAreNotMutated(t *testing.T) {
	receiving, _ := gosdk.Middleware(boundary(t, &book{}, nil), nil)
	handler := receiving(func(_ context.Context, _ string, req mcp.Request) (mcp.Result, error) {
		return &mcp.CallToolResult{}, nil
	})
	params := &mcp.CallToolParamsRaw{Name: "x", InputResponses: accepted}
	if _, err := handler(context.Background(), "tools/call", &mcp.CallToolRequest{Params: params}); err != nil {
		t.Fatal(err)
	}
	if len(params.InputResponses) != 1 || params.Name != "x" {
		t.Error("the caller's params were changed")
	}
}

// Answers that are dropped do not reach the handler, but stay in the caller's params.
func TestDroppedAnswersStayInTheCallersParams(t *testing.T) {
	yes, no := &mcp.ElicitResult{Action: "accept"}, &mcp.ElicitResult{Action: "decline", Content: map[string]any{"value": "x"}}
	for name, c := range map[string]struct{ sent, want mcp.InputResponseMap }{
		"as asked":     {mcp.InputResponseMap{"q1": yes}, mcp.InputResponseMap{"q1": yes}},
		"one too many": {mcp.InputResponseMap{"q1": yes, "q2": yes}, mcp.InputResponseMap{"q1": yes}},
		"a no":         {mcp.InputResponseMap{"q1": no}, mcp.InputResponseMap{"q1": &mcp.ElicitResult{Action: "decline"}}},
		"of no kind":   {mcp.InputResponseMap{"q1": yes, "q2": nil}, mcp.InputResponseMap{"q1": yes}},
		"not asked":    {mcp.InputResponseMap{"q2": yes}, nil},
		"empty":        {mcp.InputResponseMap{}, nil},
	} {
		var seen mcp.InputResponseMap
		call := askingOnce(t, protecting(t, nil), nil, func(answers mcp.InputResponseMap) { seen = answers })
		token := call("", nil).RequestState
		before := maps.Clone(c.sent)
		call(token, c.sent)
		if !reflect.DeepEqual(seen, c.want) {
			t.Errorf("%s: the handler saw %v, want %v", name, seen, c.want)
		}
		if !maps.Equal(c.sent, before) {
			t.Errorf("%s: the caller's answers were changed to %v", name, c.sent)
		}
	}
	var seen mcp.InputResponseMap
	anything := askingOnce(t, protecting(t, &gosdk.Options{Unsolicited: []string{"asks"}}), nil, func(answers mcp.InputResponseMap) { seen = answers })
	if anything("", mcp.InputResponseMap{"q1": nil, "q2": yes}); !reflect.DeepEqual(seen, mcp.InputResponseMap{"q2": yes}) {
		t.Errorf("a handler that gets every answer saw %v", seen)
	}
}
