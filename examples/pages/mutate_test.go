package main

import (
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/test/mutate"
)

func TestTheServerSurvivesMutatedRequests(t *testing.T) {
	orders, err := OpenOrders(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	if err := orders.Fill(t.Context(), 200); err != nil {
		t.Fatal(err)
	}
	walk := func(arguments map[string]any) mutate.Call {
		return mutate.Call{Method: "tools/call", Params: map[string]any{"name": "list_orders", "arguments": arguments}, Pages: 5}
	}
	mutate.Survive(t, mutate.Target{
		Start: func(config tripseal.Config) (*mcp.Server, http.Handler, error) {
			server, err := newServer(orders, config)
			return server, newHandler(server), err
		},
		Calls: []mutate.Call{
			walk(map[string]any{"limit": 10}), walk(map[string]any{"limit": 7, "status": "open"}), walk(map[string]any{"limit": 3, "status": "sent"}), {Method: "tools/list"},
		},
		Secrets: []string{`"p":17`, `{"p":`},
	})
}
