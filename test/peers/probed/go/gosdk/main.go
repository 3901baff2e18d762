// Command gosdk is an MCP server on the official Go SDK, without tripseal. The probe attacks it.
//
// It does what the SDK's pages show: InputRequests and a plain RequestState in a result ("Multi
// round-trip requests" in server.md), ServerOptions.PageSize, and RequireBearerToken with a
// verifier ("Authorization" in protocol.md). The SDK has nothing that protects a state, and
// its pages do not mention protection.
//
// Two things are our choice: what the state contains, and that the handler believes the state.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	port := flag.Int("port", 0, "`port` to listen on; 0 means a free one")
	flag.Parse()
	server := newServer()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	mux := http.NewServeMux()
	mux.Handle("/mcp", auth.RequireBearerToken(verify, nil)(handler))
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(web.Serve(listener))
}

// verify checks an access token. It knows two users, alice and bob.
func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	user, ok := strings.CutSuffix(token, "-token")
	if !ok || user != "alice" && user != "bob" {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: user, Expiration: time.Now().Add(time.Hour)}, nil
}

func newServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "go-sdk", Version: "1"}, &mcp.ServerOptions{PageSize: 3})
	mcp.AddTool(server, &mcp.Tool{Name: "deploy", Description: "Deploys a build."}, confirmed("deployed"))
	mcp.AddTool(server, &mcp.Tool{Name: "rollback", Description: "Rolls a build back."}, confirmed("rolled back"))
	// These tools do not ask the user. They make tools/list longer than one page.
	for _, name := range []string{"history", "owners", "regions", "status", "versions"} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return text("none"), nil, nil
		})
	}
	return server
}

type arguments struct {
	Env   string `json:"env"`
	Build int    `json:"build"`
}

// state is what the handler must remember until the answer comes.
type state struct {
	Step string `json:"step"`
	Env  string `json:"env"`
}

// confirmed returns a handler that asks the user to confirm. If the user confirms, the result
// begins with the text doneText.
func confirmed(doneText string) mcp.ToolHandlerFor[arguments, any] {
	return func(_ context.Context, req *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, any, error) {
		answer, ok := req.Params.InputResponses["confirm"].(*mcp.ElicitResult)
		if !ok {
			return ask(args)
		}
		if ok, _ := answer.Content["ok"].(bool); answer.Action != "accept" || !ok {
			return text("nothing was done"), nil, nil
		}
		// If there is no state, env keeps the value from the arguments. The SDK's example does the
		// same: it looks only at the answer.
		env := args.Env
		if req.Params.RequestState != "" {
			// The handler believes the state that the client sent back.
			var remembered state
			if err := json.Unmarshal([]byte(req.Params.RequestState), &remembered); err != nil {
				return nil, nil, err
			}
			env = remembered.Env
		}
		return text(fmt.Sprintf("%s %s build %d", doneText, env, args.Build)), nil, nil
	}
}

func ask(args arguments) (*mcp.CallToolResult, any, error) {
	remembered, err := json.Marshal(state{Step: "confirm", Env: args.Env})
	if err != nil {
		return nil, nil, err
	}
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{"confirm": &mcp.ElicitParams{
			Message: fmt.Sprintf("Really do this to %s, build %d?", args.Env, args.Build),
			RequestedSchema: &jsonschema.Schema{
				Type:       "object",
				Properties: map[string]*jsonschema.Schema{"ok": {Type: "boolean"}},
				Required:   []string{"ok"},
			},
		}},
		RequestState: string(remembered),
	}, nil, nil
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
