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
	onEachSDK(t, func(t *testing.T, sdk string) {
		target := mutate.Target{
			Calls:   []mutate.Call{{Method: "tools/list"}, {Method: "prompts/list"}},
			Secrets: []string{`"asked"`, "all three", "step 1"},
		}
		for _, s := range scenarios {
			target.Calls = append(target.Calls, call(s.name, answer))
		}
		if sdk == "mcp-go" {
			target.StartMCPGo = func(config tripseal.Config, options ...server.ServerOption) (http.Handler, error) {
				srv, err := newMCPGoServer(settings{config: config}, options...)
				return mcpgoHandler(srv), err
			}
		} else {
			target.Start = func(config tripseal.Config) (*mcp.Server, http.Handler, error) {
				server, err := newServer(settings{config: config})
				return server, sdkHandler(server), err
			}
		}
		mutate.Survive(t, target)
	})
}
