package mcpgo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"

	"github.com/tripseal/tripseal/wire"
)

// confirmation is what the tool remembers until the user answers.
type confirmation struct {
	Version string `json:"version"`
}

// release asks the user before it releases a version.
func release(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	asked, present, err := mcpgo.State[confirmation](ctx, req)
	if err != nil {
		return nil, err
	}
	if !present {
		result := server.NewInputRequestBuilder("").Elicit("confirm", mcp.ElicitationParams{
			Message: "Release it?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
		}).ToolResult()
		return result, mcpgo.SetState(ctx, result, confirmation{Version: req.GetString("version", "1.0.0")})
	}
	answer := server.ElicitationResponse(req.Params.InputResponses, "confirm")
	if answer == nil || answer.Action != mcp.ElicitationResponseActionAccept {
		return mcp.NewToolResultText("not released"), nil
	}
	return mcp.NewToolResultText("released " + asked.Version), nil
}

// engineOf returns an engine for an example.
func engineOf(audience string) *wire.Engine {
	boundary, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: audience, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := wire.New(wire.Config{Boundary: boundary})
	if err != nil {
		log.Fatal(err)
	}
	return engine
}

// The handler is for the path of the server. The function auth stands for middleware that verifies who sent a request.
func ExampleHandler() {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "release.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	userOf := func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil } // what auth found
	auth := func(next http.Handler) http.Handler { return next }

	srv := server.NewMCPServer("release", "1.0.0")
	engine, err := wire.New(wire.Config{Boundary: boundary})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/mcp", auth(mcpgo.Handler(srv, engine, wire.Options{User: userOf}))) // the line
	srv.AddTool(mcp.NewTool("release"), release)
}

// Over standard input and output, the user is whoever started the process.
func ExampleServeStdio() {
	srv, engine := server.NewMCPServer("release", "1.0.0"), engineOf("release.example.com")
	if err := mcpgo.ServeStdio(context.Background(), srv, engine, tripseal.User("owner")); err != nil {
		log.Fatal(err)
	}
}

// A tool remembers a Go value from the round that asks to the round that gets the answer. In between, the client holds
// it as a sealed token.
func Example() {
	srv := server.NewMCPServer("release", "1.0.0")
	srv.AddTool(mcp.NewTool("release"), release)

	// Real authentication would verify the user. Here, a header names the user.
	userOf := func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }
	handler := mcpgo.Handler(srv, engineOf("release.example.com"), wire.Options{User: userOf}) // the line

	web := httptest.NewServer(handler)
	defer web.Close()
	c := connect(web.URL)
	defer c.Close()
	result, err := c.CallTool(context.Background(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "release"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Content[0].(mcp.TextContent).Text)
	// Output: released 1.0.0
}

// connect returns a client of alice, who accepts every question.
func connect(url string) *client.Client {
	over, err := transport.NewStreamableHTTP(url, transport.WithHTTPHeaders(map[string]string{"X-User": "alice"}))
	if err != nil {
		log.Fatal(err)
	}
	c := client.NewClient(over, client.WithElicitationHandler(yes{}))
	if err := c.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	if _, err := c.Initialize(context.Background(), mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: mcp.LATEST_PROTOCOL_VERSION, ClientInfo: mcp.Implementation{Name: "client", Version: "1.0.0"},
	}}); err != nil {
		log.Fatal(err)
	}
	return c
}

type ticket struct {
	ID   int64  `json:"id"`
	Team string `json:"team"`
}

type ticketArgs struct {
	Team string `json:"team"`
}

var tickets = []ticket{{1, "red"}, {2, "blue"}, {3, "red"}, {5, "red"}}

// listTickets returns at most two tickets of a team. The position is the key of the last row. A database would do the
// same with WHERE team = $1 AND id > $2 ORDER BY id LIMIT 3: the third row only shows that there is another page.
func listTickets(
	_ context.Context, _ mcp.CallToolRequest, in ticketArgs, after *int64,
) (page []ticket, next *int64, err error) {
	for _, t := range tickets {
		if t.Team != in.Team || after != nil && t.ID <= *after {
			continue
		}
		if len(page) == 2 {
			return page, &page[1].ID, nil // there are more tickets
		}
		page = append(page, t)
	}
	return page, nil, nil // the last page
}

// A client walks through the pages of a tool. It cannot read the cursors.
func ExampleAddPagedTool() {
	srv, engine := server.NewMCPServer("tickets", "1.0.0"), engineOf("tickets.example.com")
	mcpgo.AddPagedTool(srv, engine, mcp.NewTool("list_tickets", mcp.WithInputSchema[ticketArgs]()), listTickets, nil)
	handler := mcpgo.Handler(srv, engine, wire.Options{AllowAnonymous: true}) // for one user at one machine
	web := httptest.NewServer(handler)
	defer web.Close()

	c := connect(web.URL)
	defer c.Close()
	arguments := map[string]any{"team": "red"}
	for more := true; more; {
		result, err := c.CallTool(context.Background(), mcp.CallToolRequest{
			Params: mcp.CallToolParams{Name: "list_tickets", Arguments: arguments},
		})
		if err != nil {
			log.Fatal(err)
		}
		var page struct {
			Items      []ticket `json:"items"`
			NextCursor string   `json:"nextCursor"`
		}
		if err := json.NewDecoder(strings.NewReader(result.Content[0].(mcp.TextContent).Text)).Decode(&page); err != nil {
			log.Fatal(err)
		}
		fmt.Println(page.Items)
		arguments["cursor"], more = page.NextCursor, page.NextCursor != ""
	}
	// Output:
	// [{1 red} {3 red}]
	// [{5 red}]
}
