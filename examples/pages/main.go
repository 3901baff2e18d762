// Command pages serves a table of 100,000 orders to MCP clients, page by page. The server
// stores nothing between two pages: the cursor says where the next page begins. A client
// cannot read, change or forge a cursor, or use the cursor of another user.
//
//	go run . -http 127.0.0.1:8080
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// ListArgs are the arguments of the tool list_orders, without the cursor.
type ListArgs struct {
	Status string `json:"status,omitempty" jsonschema:"only orders with this status"`
	Limit  int    `json:"limit,omitempty" jsonschema:"orders on a page, 100 if left out, at most 1000"`
}

func (a ListArgs) pageSize() int {
	if a.Limit <= 0 {
		return 100
	}
	return min(a.Limit, 1000)
}

// newServer returns a protected server with a tool that lists the orders.
func newServer(orders *Orders, config tripseal.Config) (*mcp.Server, error) {
	boundary, err := tripseal.New(config)
	if err != nil {
		return nil, err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "orders", Version: "1.0.0"}, nil)
	protected := gosdk.Protect(server, boundary, nil)
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list_orders"},
		func(ctx context.Context, _ *mcp.CallToolRequest, in ListArgs, after *Key) ([]Order, *Key, error) {
			return orders.Page(ctx, in.Status, after, in.pageSize()) // the key is nil for the first page
		}, &gosdk.PageOptions{Unbound: []string{"limit"}}) // language models change the limit between pages
	return server, nil
}

func newHandler(server *mcp.Server) http.Handler {
	return gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil)
}

func main() {
	address := flag.String("http", "127.0.0.1:8080", "where to listen")
	path := flag.String("db", ":memory:", "the database")
	flag.Parse()
	orders, err := OpenOrders(*path)
	if err != nil {
		log.Fatal(err)
	}
	if err := orders.Fill(context.Background(), 100_000); err != nil {
		log.Fatal(err)
	}
	server, err := newServer(orders, tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "orders.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("serving http://%s\n", listener.Addr())
	web := &http.Server{Handler: newHandler(server), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(web.Serve(listener))
}
