package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// doorJobs are what a client does at a handler with and without a door, with the limits for the ratios of the times.
func doorJobs() []proxiedJob {
	return []proxiedJob{
		{name: "a call that never asks", json: 1.08, run: func(c *proxyClient) error { return c.call("silent", "") }},
		{name: "two rounds: a question and its answer", json: 1.20, run: (*proxyClient).flow},
		{name: "a call with an answer of 64 KiB", json: 1.05, run: func(c *proxyClient) error { return c.call("large", "") }},
	}
}

func doorComparisons() []comparison {
	return []comparison{{title: "wire.Handler around an SDK's handler against the bare handler, over HTTP on loopback", measure: doorTimes}}
}

// doorTimes measures the median time of each job, at the bare handler and at the door, which take turns.
func doorTimes(budget time.Duration) table {
	var all []hop
	jobs := doorJobs()
	for _, sdk := range []struct {
		name    string
		handler http.Handler
	}{{"mcp-go", mcpgoHandler()}, {"go-sdk", gosdkHandler()}} {
		pair := doorPair(sdk.handler)
		for _, job := range jobs {
			clients := pair.clients("application/json, text/event-stream")
			var nanos [2][]float64
			warmUp(clients, job)
			deadline := time.Now().Add(budget / time.Duration(2*len(jobs)))
			for turn := 0; turn == 0 || time.Now().Before(deadline); turn++ {
				for i := range clients {
					i = (i + turn) % 2
					start := time.Now()
					check(job.run(clients[i]))
					nanos[i] = append(nanos[i], float64(time.Since(start)))
				}
			}
			h := hop{name: sdk.name + ", " + job.name, plain: median(nanos[0]), sealing: median(nanos[1]), most: job.json}
			h.ratio = h.sealing / h.plain
			all = append(all, h)
		}
	}
	return hopTable(all)
}

// doorPair serves a handler without and with a door.
func doorPair(handler http.Handler) proxyPair {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	b, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: audience, Logger: quiet})
	check(err)
	engine, err := wire.New(wire.Config{Boundary: b, Logger: quiet})
	check(err)
	user := func(*http.Request) (string, error) { return principal, nil }
	var pair proxyPair
	for i, h := range []http.Handler{handler, engine.Handler(handler, wire.Options{User: user})} {
		s := httptest.NewServer(h)
		atEnd = append(atEnd, s.Close)
		pair[i] = s.URL + "/mcp"
	}
	return pair
}

// mcpgoHandler returns a server on mcp-go with the three tools of the jobs.
func mcpgoHandler() http.Handler {
	srv := server.NewMCPServer("bench", "1")
	srv.AddTool(mcpgo.NewTool(target), func(_ context.Context, req mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		if len(req.Params.InputResponses) > 0 {
			return mcpgo.NewToolResultText("done"), nil
		}
		return server.NewInputRequestBuilder(stubState).Elicit(question, mcpgo.ElicitationParams{
			Message: "Really deploy?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}},
		}).ToolResult(), nil
	})
	for name, text := range map[string]string{"silent": "done", "large": largeText()} {
		srv.AddTool(mcpgo.NewTool(name), func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			return mcpgo.NewToolResultText(text), nil
		})
	}
	return server.NewStreamableHTTPServer(srv, server.WithStateLess(true))
}

// gosdkHandler returns a server on the official SDK with the three tools of the jobs.
func gosdkHandler() http.Handler {
	srv := askingServer(false)
	text := largeText()
	srv.AddTool(&mcp.Tool{Name: "large", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
}

// largeText returns 64 KiB of a tool's text.
func largeText() (text string) {
	for len(text) < 64<<10 {
		text += fmt.Sprintf("2026-07-28T10:00:%02dZ INFO deploy: pod \"web-5d9c\" in zone eu-1 is ready\n", len(text)%60)
	}
	return text
}
