package mcpgo_test

import (
	"context"
	"encoding/json"
	"fmt"
	stdlog "log"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
)

type ticket struct {
	ID   int64  `json:"id"`
	Team string `json:"team"`
}

type ticketArgs struct {
	Team string `json:"team"`
}

// ticketKey is the position of a page: the key of the last row on the previous page.
type ticketKey struct {
	ID int64 `json:"id"`
}

var tickets = []ticket{{1, "red"}, {2, "blue"}, {3, "red"}, {5, "red"}, {8, "red"}, {9, "red"}}

// listTickets returns at most two tickets of a team. A database would do the same with
// WHERE team = $1 AND id > $2 ORDER BY id LIMIT 3: the third row only shows that there is
// another page.
func listTickets(_ context.Context, _ mcp.CallToolRequest, in ticketArgs, after *ticketKey) (page []ticket, next *ticketKey, err error) {
	for _, t := range tickets {
		if t.Team != in.Team || after != nil && t.ID <= after.ID {
			continue
		}
		if len(page) == 2 {
			return page, &ticketKey{ID: page[1].ID}, nil // there are more tickets
		}
		page = append(page, t)
	}
	return page, nil, nil // the last page
}

// A client walks through the pages of a tool. It cannot read the cursors.
func ExampleAddPagedTool() {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "tickets.example.com"})
	if err != nil {
		stdlog.Fatal(err)
	}
	srv := server.NewMCPServer("tickets", "1.0.0")
	protected := mcpgo.Protect(srv, boundary, &mcpgo.Options{AllowAnonymous: true}) // for one user at one machine
	mcpgo.AddPagedTool(protected, mcp.NewTool("list_tickets"), listTickets, nil)

	ctx := context.Background()
	c, err := client.NewInProcessClient(srv)
	if err != nil {
		stdlog.Fatal(err)
	}
	defer c.Close()
	if err := c.Start(ctx); err != nil {
		stdlog.Fatal(err)
	}
	if _, err := c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: mcp.LATEST_PROTOCOL_VERSION, ClientInfo: mcp.Implementation{Name: "client", Version: "1.0.0"},
	}}); err != nil {
		stdlog.Fatal(err)
	}

	arguments := map[string]any{"team": "red"}
	for more := true; more; {
		result, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "list_tickets", Arguments: arguments}})
		if err != nil {
			stdlog.Fatal(err)
		}
		var page struct {
			Items      []ticket `json:"items"`
			NextCursor string   `json:"nextCursor"`
		}
		if err := json.Unmarshal([]byte(result.Content[0].(mcp.TextContent).Text), &page); err != nil {
			stdlog.Fatal(err)
		}
		fmt.Println(page.Items)
		arguments["cursor"], more = page.NextCursor, page.NextCursor != ""
	}
	// Output:
	// [{1 red} {3 red}]
	// [{5 red} {8 red}]
	// [{9 red}]
}
