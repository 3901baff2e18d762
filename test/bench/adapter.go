package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

var deployArguments = json.RawMessage(`{"service":"frontend","version":"1.4.2","region":"eu-west"}`)

var confirmation = mcp.InputRequestMap{question: &mcp.ElicitParams{
	Message: "Really deploy?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}},
}}

// askingServer returns a server with two tools: one asks the user a question once, and the
// other asks nothing.
func askingServer(protected bool) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	object := map[string]any{"type": "object"}
	done := func() (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
	}
	server.AddTool(&mcp.Tool{Name: target, InputSchema: object}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if len(req.Params.InputResponses) > 0 {
			return done()
		}
		return &mcp.CallToolResult{InputRequests: confirmation, RequestState: "step=1"}, nil
	})
	server.AddTool(&mcp.Tool{Name: "silent", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return done() })
	if protected {
		quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
		b, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: audience, Logger: quiet})
		check(err)
		gosdk.Protect(server, b, &gosdk.Options{Logger: quiet})
	}
	return server
}

func sdkClient(automatic bool) *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, &mcp.ClientOptions{
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: !automatic},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
		},
	})
}

func inMemory(server *mcp.Server, client *mcp.Client) *mcp.ClientSession {
	ctx := context.Background()
	clientSide, serverSide := mcp.NewInMemoryTransports()
	_, err := server.Connect(ctx, serverSide, nil)
	check(err)
	session, err := client.Connect(ctx, clientSide, nil)
	check(err)
	return session
}

// round returns a function that calls the tool that asks the user. The client sends two
// tools/call requests: the first call, and the retry with the answer.
func round(session *mcp.ClientSession) func() {
	return func() {
		result, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: target, Arguments: deployArguments})
		check(err)
		if len(result.Content) != 1 {
			panic("not done")
		}
	}
}

// adapterComparisons returns comparisons that measure the cost of the middleware in two
// calls: one that asks a question, and its retry with the answer. First whole calls, then the
// middleware alone, against middleware that does nothing.
func adapterComparisons() []comparison {
	const about = "the adapter for the official SDK, "
	user := &mcp.RequestExtra{
		Header:    http.Header{"Authorization": {"Bearer x"}},
		TokenInfo: &auth.TokenInfo{UserID: principal, Extra: map[string]any{"iss": "https://id.example", "client_id": "bench"}},
	}
	more := func(most float64) []limit { return []limit{{"protected", moreAllocations, most}} }
	return []comparison{
		{title: about + "in memory", contenders: adapterContenders(), limits: []limit{
			{"of which the middleware", ratio, 0.02}, {"the middleware, a call that never asks", allocations, 1},
		}},
		{title: about + "a round of a tool: two calls", contenders: middlewareRounds(nil), limits: more(6)},
		{title: about + "a round of a tool: two calls of a user", contenders: middlewareRounds(user), limits: more(8)},
	}
}

func middlewareRounds(extra *mcp.RequestExtra) []contender {
	return []contender{
		{"empty middleware", 0, middlewareRound(passOn, extra)},
		{"protected", 0, middlewareRound(sealing(), extra)},
	}
}

// passOn is middleware that does nothing.
func passOn(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		return next(ctx, method, req)
	}
}

// sealing is the middleware of a protected server.
func sealing() mcp.Middleware {
	return func(next mcp.MethodHandler) (protected mcp.MethodHandler) {
		server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
		server.AddReceivingMiddleware(func(mcp.MethodHandler) mcp.MethodHandler { return next })
		gosdk.Protect(server, boundary(tripseal.Ephemeral()), nil)
		server.AddReceivingMiddleware(func(whole mcp.MethodHandler) mcp.MethodHandler {
			protected = whole
			return whole
		})
		return protected
	}
}

// adapterContenders returns contenders that make whole calls, and contenders that run only
// the middleware. The difference between the first two rows also shows the middleware's
// time, but with more noise.
func adapterContenders() []contender {
	return []contender{
		{"two tools/call, unprotected", 0, round(inMemory(askingServer(false), sdkClient(true)))},
		{"two tools/call, protected", 0, round(inMemory(askingServer(true), sdkClient(true)))},
		{"of which the middleware", 0, middlewareRound(sealing(), nil)},
		{"the middleware, a call that never asks", 0, middlewareSilent()},
	}
}

// middlewareRound returns a function that runs only the middleware, around a handler that
// does almost nothing.
func middlewareRound(middleware mcp.Middleware, extra *mcp.RequestExtra) func() {
	ctx := context.Background()
	// Only the SDK can make a result that asks the user. So get one by calling a server.
	asking, err := inMemory(askingServer(false), sdkClient(false)).CallTool(ctx, &mcp.CallToolParams{Name: target})
	check(err)
	if !asking.NeedsInput() {
		panic("does not ask")
	}
	asking.Meta = nil // the SDK adds Meta only after the middleware has run
	complete := &mcp.CallToolResult{}
	handler := middleware(func(_ context.Context, _ string, req mcp.Request) (mcp.Result, error) {
		if req.(*mcp.CallToolRequest).Params.RequestState == "" {
			return asking, nil
		}
		return complete, nil
	})
	meta := mcp.Meta{mcp.MetaKeyClientCapabilities: map[string]any{"elicitation": map[string]any{}}}
	answers := mcp.InputResponseMap{question: &mcp.ElicitResult{Action: "accept"}}
	return func() {
		first, err := handler(ctx, method, &mcp.CallToolRequest{Extra: extra, Params: &mcp.CallToolParamsRaw{Name: target, Arguments: deployArguments, Meta: meta}})
		check(err)
		token := first.(*mcp.CallToolResult).RequestState
		_, err = handler(ctx, method, &mcp.CallToolRequest{Extra: extra, Params: &mcp.CallToolParamsRaw{
			Name: target, Arguments: deployArguments, Meta: meta, RequestState: token, InputResponses: answers,
		}})
		check(err)
	}
}

func middlewareSilent() func() {
	ctx := context.Background()
	complete := &mcp.CallToolResult{}
	handler := sealing()(func(context.Context, string, mcp.Request) (mcp.Result, error) { return complete, nil })
	var req mcp.Request = &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "silent", Arguments: deployArguments}}
	return func() {
		_, err := handler(ctx, method, req)
		check(err)
	}
}
