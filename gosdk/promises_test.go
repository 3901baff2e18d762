package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/gosdktest"
	"github.com/tripseal/tripseal/gosdk/internal/revision"
)

const invalidState = `{"code":-32602,"message":"Invalid or expired requestState","data":{"reason":"invalid_request_state"}}`

// wire returns, as JSON, the JSON-RPC error that a client got.
func wireText(err error) string {
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
	protector := gosdk.NewProtector(boundary(t, &book{}, nil), &gosdk.Options{Logger: slog.New(slog.DiscardHandler)})
	handler := protector.Handler(func(*http.Request) *mcp.Server { return server }, nil)
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
		"a client of nil":       {info("u", nil), info("u", map[string]any{"client_id": nil}), false},
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
			if c.ok && err != nil || !c.ok && wireText(err) != invalidState {
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
		if got := wireText(err); got != `{"code":-32021,"message":"Missing required client capabilities","data":{"requiredCapabilities":{`+want+`}}}` {
			t.Errorf("%s: %s", tool, got)
		}
	}
}

func TestOlderClientsGetNoTokensAndTheirsAreChecked(t *testing.T) {
	server := newServer()
	tool := addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	session := connect(t, server, answering(), revision2025)
	if _, err := callTool(t, session, &mcp.CallToolParams{Name: "steps", RequestState: "step=1", InputResponses: accepted}); wireText(err) != invalidState {
		t.Errorf("a state made by hand: %s", wireText(err))
	}
	result, err := callTool(t, session, &mcp.CallToolParams{Name: "steps", InputResponses: accepted})
	if err != nil || text(result) != "done after 1" || result.RequestState != "" || result.InputRequests != nil {
		t.Errorf("%+v, %v", result, err)
	}
	if log := tool.log(); log[0] != `"" ` {
		t.Errorf("unsolicited answers reached the handler: %q", log)
	}
}

// What a user got for an answer must not be served to another user from a cache.
func TestAnAnsweredResourceIsNotCachedForOthers(t *testing.T) {
	server := newServer()
	server.AddResource(&mcp.Resource{URI: "file:///r", Name: "r"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		if req.Params.RequestState == "asked" && len(req.Params.InputResponses) == 1 {
			return &mcp.ReadResourceResult{Cacheable: mcp.Cacheable{TTLMs: 60_000, CacheScope: "public"}, Contents: []*mcp.ResourceContents{{URI: "file:///r", Text: "done"}}}, nil
		}
		// For older clients, the SDK needs Contents here that are not nil. They may be empty.
		return &mcp.ReadResourceResult{RequestState: "asked", Contents: []*mcp.ResourceContents{}, InputRequests: mcp.InputRequestMap{"q1": form("?")}}, nil
	})
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	for _, revision := range []string{revision2026, revision2025} {
		done, err := connect(t, server, answering(), revision).ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///r"})
		if err != nil || len(done.Contents) != 1 || done.CacheScope != "private" || done.TTLMs != 0 {
			t.Errorf("%s: %+v, %v", revision, done, err)
		}
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
	for name, value := range map[string]any{"a large integer in an any": map[string]any{"id": int64(1<<53 + 1)}, "a channel": make(chan int)} {
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

func TestACallThatNeverAsksPaysOneAllocation(t *testing.T) {
	receiving := gosdk.Receiving(gosdk.NewProtector(boundary(t, &book{}, nil), nil))
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
