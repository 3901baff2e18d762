package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/test/mutate"
)

// TestAWalkMissesAndRepeatsNothing reads all orders over HTTP, page by page, while other orders are
// inserted before and after the current page.
func TestAWalkMissesAndRepeatsNothing(t *testing.T) {
	const total = 100_000
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	orders, err := OpenOrders(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	if err := orders.Fill(ctx, total); err != nil {
		t.Fatal(err)
	}
	server, err := newServer(orders, tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "orders.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(newHandler(server))
	t.Cleanup(web.Close)
	client := mcp.NewClient(&mcp.Implementation{Name: "walker", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: web.URL, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })

	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		inserted := 0
		defer func() { stopped <- inserted }()
		for inserted < total {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			if err := orders.Insert(ctx, 1700000000+rand.Int64N(1_000_003), "open", "new"); err != nil {
				t.Error(err)
				return
			}
			inserted++
		}
	}()

	seen, pages := make(map[int64]bool, total), 0
	var before Key
	for cursor := any(nil); ; pages++ {
		var page struct {
			Items      []Order
			NextCursor string
		}
		call(t, ctx, session, map[string]any{"limit": 500, "cursor": cursor}, &page)
		for _, order := range page.Items {
			key := Key{order.Placed, order.ID}
			if seen[order.ID] || key.Placed < before.Placed || key.Placed == before.Placed && key.ID <= before.ID {
				t.Fatalf("order %d is shown twice, or out of order", order.ID)
			}
			seen[order.ID], before = true, key
		}
		if page.NextCursor == "" {
			break
		}
		if len(page.NextCursor) > 512 {
			t.Fatalf("a cursor of %d characters", len(page.NextCursor))
		}
		cursor = page.NextCursor
	}
	close(stop)
	inserted := <-stopped
	for id := int64(1); id <= total; id++ {
		if !seen[id] {
			t.Fatalf("order %d was there from the start and is missed", id)
		}
	}
	if pages < total/500-1 || inserted == 0 {
		t.Errorf("%d pages while %d orders came in: this proves nothing", pages, inserted)
	}
	t.Logf("%d orders on %d pages while %d came in", len(seen), pages+1, inserted)
}

func TestAFilteredWalkIsHeldToItsFilter(t *testing.T) {
	ctx := t.Context()
	orders, err := OpenOrders(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	if err := orders.Fill(ctx, 1000); err != nil {
		t.Fatal(err)
	}
	server, err := newServer(orders, tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "orders.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	clientSide, serverSide := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, serverSide, nil); err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "walker", Version: "1"}, nil).Connect(ctx, clientSide, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var page struct {
		Items      []Order
		NextCursor string
	}
	call(t, ctx, session, map[string]any{"status": "open", "limit": 60}, &page)
	if len(page.Items) != 60 || page.NextCursor == "" {
		t.Fatalf("%d orders, then %q", len(page.Items), page.NextCursor)
	}
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "list_orders", Arguments: map[string]any{"limit": 60, "cursor": page.NextCursor}}); err == nil {
		t.Error("a cursor for open orders lists all of them")
	}
	page.Items = nil
	call(t, ctx, session, map[string]any{"status": "open", "limit": 60, "cursor": page.NextCursor}, &page)
	if len(page.Items) != 40 {
		t.Errorf("%d open orders on the second page", len(page.Items))
	}
}

func call(t *testing.T, ctx context.Context, session *mcp.ClientSession, arguments map[string]any, result any) {
	t.Helper()
	answer, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "list_orders", Arguments: arguments})
	if err == nil && answer.IsError {
		err = fmt.Errorf("%+v", answer.Content[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(answer.StructuredContent)
	if err := json.Unmarshal(text, result); err != nil {
		t.Fatal(err)
	}
}

// TestArgumentsThatDoNotFitAreRefused checks that arguments that do not fit never reach the table,
// and that no call gets more than a page.
func TestArgumentsThatDoNotFitAreRefused(t *testing.T) {
	orders, err := OpenOrders(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	if err := orders.Fill(t.Context(), 2500); err != nil {
		t.Fatal(err)
	}
	server, err := newServer(orders, tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "orders.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(newHandler(server))
	t.Cleanup(web.Close)
	client := mutate.Client{URL: web.URL, HTTP: web.Client()}
	list := func(revision, arguments string) (mutate.Outcome, int) {
		t.Helper()
		outcome, err := client.Call(t.Context(), mutate.Call{
			Revision: revision, Method: "tools/call", Params: map[string]any{"name": "list_orders", "arguments": json.RawMessage(arguments)},
		})
		if err != nil {
			t.Fatal(err)
		}
		var result struct{ StructuredContent struct{ Items []Order } }
		json.Unmarshal(outcome.Result, &result)
		return outcome, len(result.StructuredContent.Items)
	}
	for _, revision := range []string{mutate.Newer, mutate.Older} {
		for _, arguments := range []string{
			`{"limit":"10"}`, `{"limit":null}`, `{"limit":1.5}`, `{"limit":1e30}`, `{"limit":[1]}`, `{"status":7}`, `{"status":null}`, `{"status":["open"]}`,
			`{"cursor":7}`, `{"cursor":{}}`, `{"cursor":"x"}`, `{"limit":1,"limit":2}`, `{"Limit":1}`, `{"where":"1=1"}`, `[]`, `"open"`, `7`,
		} {
			outcome, items := list(revision, arguments)
			if said := outcome.String(); items > 0 || outcome.Error == nil && !strings.HasPrefix(said, "error: ") {
				t.Errorf("%s, %s: %d orders, %s", revision, arguments, items, said)
			}
		}
		for arguments, want := range map[string]int{
			`{}`: 100, `{"limit":0}`: 100, `{"limit":-5}`: 100, `{"limit":7}`: 7, `{"limit":1000000000}`: 1000, `{"cursor":null}`: 100,
			`{"status":"' OR 1=1 --"}`: 0, `{"status":"open","limit":1000}`: 250,
		} {
			if outcome, items := list(revision, arguments); items != want {
				t.Errorf("%s, %s: %d orders, %v", revision, arguments, items, outcome.Error)
			}
		}
	}
}
