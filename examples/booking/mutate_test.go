package main

import (
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/test/mutate"
)

func TestTheServerSurvivesMutatedRequests(t *testing.T) {
	book := func(word, answer string) mutate.Call {
		return mutate.Call{Method: "tools/call", Params: map[string]any{"name": "book", "arguments": map[string]any{"city": "Rome"}}, Answer: visitor(word, answer)}
	}
	mutate.Survive(t, mutate.Target{
		Start: func(config tripseal.Config) (*mcp.Server, http.Handler, error) {
			server, err := newServer(config)
			return server, newHandler(server), err
		},
		Calls:   []mutate.Call{book("", ""), book("Shall", `{"action":"decline"}`)},
		Secrets: []string{`"v":2`, `"q":{"`, `"k":{"number"`},
	})
}
