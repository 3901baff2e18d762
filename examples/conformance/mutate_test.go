package main

import (
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/examples/internal/mutate"
)

func TestTheServerSurvivesMutatedRequests(t *testing.T) {
	target := mutate.Target{
		Start: func(config mcpseal.Config) (*mcp.Server, http.Handler, error) {
			server, err := newServer(settings{config: config})
			return server, sdkHandler(server), err
		},
		Calls:   []mutate.Call{{Method: "tools/list"}, {Method: "prompts/list"}},
		Secrets: []string{`"asked"`, "all three", "step 1"},
	}
	for _, s := range scenarios {
		target.Calls = append(target.Calls, call(s.name, answer))
	}
	mutate.Survive(t, target)
}
