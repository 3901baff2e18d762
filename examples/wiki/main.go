// Wiki is a server whose handlers return Markdown. They are registered with the SDK's own AddTool.
// A handler, and every function inside it, can ask the user with the helper function named confirm.
// Inside the handlers, only this helper uses tripseal.
//
//	go run ./examples/wiki                        stdio, for one client
//	go run ./examples/wiki -http 127.0.0.1:8080   HTTP, for alice and bob
//
// The bearer tokens are "alice-token" and "bob-token".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
	"github.com/tripseal/tripseal/replay"
)

// Confirm is the form that every question shows to the user.
type Confirm struct {
	OK bool `json:"ok" jsonschema:"go ahead"`
}

// errDeclined means that the user did not say yes.
var errDeclined = errors.New("declined")

// confirm asks the user a question. All handlers use it. It returns nil if the user said yes.
// If there is no answer yet, it returns an error of type *asking.
func confirm(ctx context.Context, req *mcp.CallToolRequest, key, message string) error {
	pending, err := elicit.Within(ctx, req, func(ask *elicit.Asker) error {
		answer, err := elicit.Form[Confirm](ask, key, message).Value()
		if refused := new(elicit.RefusedError); errors.As(err, &refused) || err == nil && !answer.OK {
			return errDeclined
		}
		return err
	})
	if pending != nil {
		return &asking{pending.ToolResult()}
	}
	return err
}

// asking is an error that carries a question from the function confirm up to the SDK. Every
// function in between returns this error at once, and runs again when the client sends the answer.
type asking struct{ result *mcp.CallToolResult }

func (*asking) Error() string { return "the user was not asked yet" }

// markdown makes a tool handler from a function that returns Markdown.
func markdown(page func(context.Context, *mcp.CallToolRequest, Args) (string, error)) mcp.ToolHandlerFor[Args, any] {
	return func(ctx context.Context, req *mcp.CallToolRequest, in Args) (*mcp.CallToolResult, any, error) {
		text, err := page(ctx, req, in)
		asks := new(asking)
		switch {
		case errors.As(err, &asks):
			return asks.result, nil, nil
		case errors.Is(err, errDeclined):
			text = "**Declined.** `" + in.Page + "` is as it was."
		case err != nil:
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	}
}

// Args are the arguments of every tool.
type Args struct {
	Page string `json:"page" jsonschema:"the name of the page"`
}

// newServer returns the server without protection. The helper confirm is a parameter, because
// a test passes a helper that does not use tripseal.
func newServer(pages *pages, confirm confirmer) *mcp.Server {
	w := wiki{pages, confirm}
	server := mcp.NewServer(&mcp.Implementation{Name: "wiki", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "show_page", Description: "Show a page"}, markdown(w.show))
	mcp.AddTool(server, &mcp.Tool{Name: "delete_page", Description: "Delete a page and those below it"}, markdown(w.delete))
	mcp.AddTool(server, &mcp.Tool{Name: "publish_page", Description: "Show a page to the world"}, markdown(w.publish))
	return server
}

// newProtected returns the protected server.
func newProtected(pages *pages, config tripseal.Config) (*mcp.Server, error) {
	boundary, err := tripseal.New(config)
	if err != nil {
		return nil, err
	}
	server := newServer(pages, confirm)
	gosdk.Protect(server, boundary, nil)
	return server, nil
}

// usersOnly refuses requests without a valid bearer token.
func usersOnly(handler http.Handler) http.Handler {
	return auth.RequireBearerToken(verify, nil)(handler)
}

// verify is a placeholder: replace it with your own token verifier, which must set UserID.
func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	user, ok := strings.CutSuffix(token, "-token")
	if !ok || user != "alice" && user != "bob" {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: user, Expiration: time.Now().Add(time.Hour)}, nil
}

func main() {
	address := flag.String("http", "", "`address` to listen on; empty means stdio")
	ttl := flag.Duration("ttl", 0, "lifetime of a state; 0 means 10 minutes")
	flag.Parse()
	once, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		log.Fatal(err)
	}
	server, err := newProtected(newPages(), tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "wiki.example.com", TTL: *ttl, Replay: once})
	if err != nil {
		log.Fatal(err)
	}
	if *address == "" {
		if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
		return
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("serving http://%s\n", listener.Addr())
	handler := usersOnly(gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil))
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(web.Serve(listener))
}
