package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
)

// mcpgoComparisons returns the comparisons that measure how long a server takes to turn the
// raw JSON of a message into a result. The messages are of revision 2026-07-28. In the first
// row of each comparison, the server has middleware that does nothing, because any
// middleware takes some time.
func mcpgoComparisons() []comparison {
	const about = "the adapter for mcp-go, "
	return []comparison{
		{title: about + "a tool call that never asks", most: 2, contenders: mcpgoSilents(toolCall)},
		{title: about + "a round of a tool: two calls", most: 12, contenders: mcpgoRounds(toolCall)},
		{title: about + "a prompt that never asks", most: 2, contenders: mcpgoSilents(promptGet)},
		{title: about + "a round of a prompt: two requests", most: 12, contenders: mcpgoRounds(promptGet)},
	}
}

func mcpgoSilents(method string) []contender {
	return []contender{
		{"empty middleware", 0, mcpgoSilent(emptyMiddleware, method)},
		{"no middleware", 0, mcpgoSilent(func(*server.MCPServer) {}, method)},
		{"protected", 0, mcpgoSilent(protectMCPGo, method)},
	}
}

// mcpgoRounds compares rounds with and without protection. A token is longer than the state
// in it, and mcp-go scans every message several times. So one row shows how long mcp-go alone
// takes when an unprotected state is as long as the token.
func mcpgoRounds(method string) []contender {
	const state = "step=1"
	token := mcpgoResult(mcpgoServer(protectMCPGo, state).HandleMessage(context.Background(), append(mcpgoMessage(method, target), "}}"...)))
	return []contender{
		{"empty middleware", len(state), mcpgoRound(emptyMiddleware, method, state)},
		{"empty middleware, state as long as the token", len(token), mcpgoRound(emptyMiddleware, method, strings.Repeat("x", len(token)))},
		{"protected", len(token), mcpgoRound(protectMCPGo, method, state)},
	}
}

const (
	toolCall  = string(mcp.MethodToolsCall)
	promptGet = string(mcp.MethodPromptsGet)
)

func emptyMiddleware(srv *server.MCPServer) {
	srv.Use(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) { return next(ctx, req) }
	})
	server.WithPromptHandlerMiddleware(func(next server.PromptHandlerFunc) server.PromptHandlerFunc {
		return func(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return next(ctx, req)
		}
	})(srv)
}

func protectMCPGo(srv *server.MCPServer) {
	mcpgo.Protect(srv, boundary(tripseal.Ephemeral()), &mcpgo.Options{Principal: tripseal.User(principal), Logger: slog.New(slog.DiscardHandler)})
}

// mcpgoServer returns a server with a tool and a prompt that ask the user a question once,
// and a tool and a prompt that ask nothing.
func mcpgoServer(install func(*server.MCPServer), state string) *server.MCPServer {
	srv := server.NewMCPServer("bench", "1")
	install(srv)
	ask := func() *server.InputRequestBuilder {
		return server.NewInputRequestBuilder(state).Elicit(question, mcp.ElicitationParams{
			Message: "Really deploy?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}},
		})
	}
	accepted := func(answers mcp.InputResponses) bool {
		answer := server.ElicitationResponse(answers, question)
		return answer != nil && answer.Action == mcp.ElicitationResponseActionAccept
	}
	toolDone := func() (*mcp.CallToolResult, error) { return mcp.NewToolResultText("done"), nil }
	promptDone := func() (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("done", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("done"))}), nil
	}
	srv.AddTool(mcp.NewTool(target), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if accepted(req.Params.InputResponses) {
			return toolDone()
		}
		return ask().ToolResult(), nil
	})
	srv.AddPrompt(mcp.NewPrompt(target), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if accepted(req.Params.InputResponses) {
			return promptDone()
		}
		return ask().PromptResult(), nil
	})
	srv.AddTool(mcp.NewTool("silent"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return toolDone() })
	srv.AddPrompt(mcp.NewPrompt("silent"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { return promptDone() })
	return srv
}

// mcpgoMessage returns the JSON of a request without the final "}}", so that the caller can
// append members to its params.
func mcpgoMessage(method, name string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{"name":%q,"arguments":%s,"_meta":{%q:%q,%q:{"elicitation":{}}}`,
		method, name, deployArguments, mcp.MetaKeyProtocolVersion, mcp.ProtocolVersion20260728, mcp.MetaKeyClientCapabilities)
}

// mcpgoResult returns the requestState in a response, or "" if the call is complete. It
// panics if the response is an error.
func mcpgoResult(response mcp.JSONRPCMessage) (state string) {
	answer, ok := response.(mcp.JSONRPCResponse)
	if !ok {
		panic(fmt.Sprintf("an error: %+v", response))
	}
	switch r := answer.Result.(type) {
	case *mcp.CallToolResult:
		if !r.NeedsInput() && (r.IsError || len(r.Content) != 1) {
			panic("not done")
		}
		return r.RequestState
	case mcp.GetPromptResult:
		if !r.NeedsInput() && len(r.Messages) != 1 {
			panic("not done")
		}
		return r.RequestState
	}
	panic(fmt.Sprintf("a result of type %T", answer.Result))
}

func mcpgoSilent(install func(*server.MCPServer), method string) func() {
	srv, ctx := mcpgoServer(install, ""), context.Background()
	message := append(mcpgoMessage(method, "silent"), "}}"...)
	return func() {
		if mcpgoResult(srv.HandleMessage(ctx, message)) != "" {
			panic("asks")
		}
	}
}

// mcpgoRound returns a function that sends a request whose handler asks a question, and then
// the retry with the answer.
func mcpgoRound(install func(*server.MCPServer), method, state string) func() {
	srv, ctx := mcpgoServer(install, state), context.Background()
	open := mcpgoMessage(method, target)
	first := append(append([]byte(nil), open...), "}}"...)
	answered := fmt.Appendf(open, `,"inputResponses":{%q:{"action":"accept","content":{"ok":true}}},"requestState":"`, question)
	retry := make([]byte, 0, 4096) // made once, so that the benchmark does not count this buffer as an allocation
	return func() {
		sent := mcpgoResult(srv.HandleMessage(ctx, first))
		if sent == "" {
			panic("does not ask")
		}
		retry = append(append(append(retry[:0], answered...), sent...), `"}}`...)
		if mcpgoResult(srv.HandleMessage(ctx, retry)) != "" {
			panic("asks again")
		}
	}
}
