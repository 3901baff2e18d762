package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
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
func listTickets(_ context.Context, _ *mcp.CallToolRequest, in ticketArgs, after *ticketKey) (page []ticket, next *ticketKey, err error) {
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

// A client walks through the pages of a tool. It can neither read a cursor nor use it for
// another team.
func ExampleAddPagedTool_walk() {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "tickets.example.com", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "tickets", Version: "1.0.0"}, nil)
	protected := gosdk.Protect(server, boundary, nil)
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list_tickets"}, listTickets, nil)

	ctx := context.Background()
	clientSide, serverSide := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, serverSide, nil); err != nil {
		log.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1.0.0"}, nil).Connect(ctx, clientSide, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	arguments, cursors := map[string]any{"team": "red"}, []string(nil)
	for more := true; more; {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "list_tickets", Arguments: arguments})
		if err != nil {
			log.Fatal(err)
		}
		var page struct {
			Items      []ticket `json:"items"`
			NextCursor string   `json:"nextCursor"`
		}
		if err := json.Unmarshal([]byte(result.Content[0].(*mcp.TextContent).Text), &page); err != nil {
			log.Fatal(err)
		}
		fmt.Println(page.Items)
		cursors = append(cursors, page.NextCursor)
		arguments["cursor"], more = page.NextCursor, page.NextCursor != ""
	}
	_, err = session.CallTool(ctx, &mcp.CallToolParams{
		Name: "list_tickets", Arguments: map[string]any{"team": "blue", "cursor": cursors[0]},
	})
	fmt.Println("refused for another team:", err != nil)
	// Output:
	// [{1 red} {3 red}]
	// [{5 red} {8 red}]
	// [{9 red}]
	// refused for another team: true
}
