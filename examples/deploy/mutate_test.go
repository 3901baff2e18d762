package main

import (
	"net/http"
	"testing"

	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/test/mutate"
)

func TestTheServerSurvivesMutatedRequests(t *testing.T) {
	call := func(tool string) mutate.Call {
		return mutate.Call{Method: "tools/call", Params: map[string]any{"name": tool, "arguments": frontend}, Answer: user}
	}
	onEachSDK(t, func(t *testing.T, sdk string) {
		target := mutate.Target{
			Path: "/mcp", Users: []string{"alice-token", "bob-token"},
			Calls:   []mutate.Call{call("deploy"), call("rollback")},
			Secrets: []string{"step=1", "step=2", "traffic=10", `"traffic"`},
		}
		if sdk == "mcp-go" {
			target.StartMCPGo = func(config tripseal.Config, options ...server.ServerOption) (http.Handler, error) {
				srv, err := newMCPGoServer(config, options...)
				return newMCPGoHandler(srv), err
			}
		} else {
			target.Start = func(config tripseal.Config) (*mcp.Server, http.Handler, error) {
				server, err := newServer(config)
				return server, newHandler(server), err
			}
		}
		mutate.Survive(t, target)
	})
}
