// Command mcpgo is an MCP server on mcp-go, without tripseal. The probe attacks it.
//
// It does what mcp-go's pages and examples show:
//   - NewInputRequestBuilder with a plain state, and ElicitationResponse to read the answer
//     ("Protocol Version 2026-07-28")
//   - a handler that believes the name of the environment in the state that came back
//     (examples/multi_round_trip)
//   - WithPaginationLimit
//
// mcp-go's pages say to keep secrets out of the state, because the client can read the state. They
// do not say that the client can change the state.
//
// We chose JSON for the state. mcp-go has no middleware for bearer tokens, so this server has no
// users.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	port := flag.Int("port", 0, "`port` to listen on; 0 means a free one")
	flag.Parse()
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.NewStreamableHTTPServer(newServer(), server.WithStateLess(true)))
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(web.Serve(listener))
}

func newServer() *server.MCPServer {
	s := server.NewMCPServer("mcp-go", "1",
		server.WithToolCapabilities(false),
		server.WithElicitation(),
		server.WithPaginationLimit(3),
	)
	s.AddTool(tool("deploy", "Deploys a build."), confirmed("deployed"))
	s.AddTool(tool("rollback", "Rolls a build back."), confirmed("rolled back"))
	// These tools do not ask the user. They make tools/list longer than one page.
	for _, name := range []string{"history", "owners", "regions", "status", "versions"} {
		s.AddTool(mcp.NewTool(name), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("none"), nil
		})
	}
	return s
}

func tool(name, description string) mcp.Tool {
	return mcp.NewTool(name,
		mcp.WithDescription(description),
		mcp.WithString("env", mcp.Required()),
		mcp.WithInteger("build", mcp.Required()),
	)
}

// state is what the handler must remember until the answer comes.
type state struct {
	Step string `json:"step"`
	Env  string `json:"env"`
}

// confirmed returns a handler that asks the user to confirm. If the user confirms, the result
// begins with the text doneText.
func confirmed(doneText string) server.ToolHandlerFunc {
	return func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var (
			env   = req.GetString("env", "")
			build = req.GetInt("build", 0)
		)
		answer := server.ElicitationResponse(req.Params.InputResponses, "confirm")
		if answer == nil {
			return ask(env, build)
		}
		content, _ := answer.Content.(map[string]any)
		if ok, _ := content["ok"].(bool); answer.Action != mcp.ElicitationResponseActionAccept || !ok {
			return mcp.NewToolResultText("nothing was done"), nil
		}
		// If there is no state, env keeps the value from the arguments: the handler goes on without
		// a state, as the example on mcp-go's page does.
		if req.Params.RequestState != "" {
			// The handler believes the state that the client sent back.
			var remembered state
			if err := json.Unmarshal([]byte(req.Params.RequestState), &remembered); err != nil {
				return nil, err
			}
			env = remembered.Env
		}
		return mcp.NewToolResultText(fmt.Sprintf("%s %s build %d", doneText, env, build)), nil
	}
}

func ask(env string, build int) (*mcp.CallToolResult, error) {
	remembered, err := json.Marshal(state{Step: "confirm", Env: env})
	if err != nil {
		return nil, err
	}
	return server.NewInputRequestBuilder(string(remembered)).
		Elicit("confirm", mcp.ElicitationParams{
			Mode:    mcp.ElicitationModeForm,
			Message: fmt.Sprintf("Really do this to %s, build %d?", env, build),
			RequestedSchema: map[string]any{
				"type":       "object",
				"properties": map[string]any{"ok": map[string]any{"type": "boolean"}},
				"required":   []string{"ok"},
			},
		}).
		ToolResult(), nil
}
