package mcpgo_test

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
)

func ExampleProtect() {
	log := exampleLog{}
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "release.example.com"})
	if err != nil {
		log.Fatal(err)
	}

	srv := server.NewMCPServer("release", "1.0.0")
	mcpgo.Protect(srv, boundary, &mcpgo.Options{Principal: userFromContext}) // the line

	srv.AddTool(mcp.NewTool("release"), release)
	fmt.Println("protected")
	// Output: protected
}

// exampleLog stands in for the package log: the example calls log.Fatal, as the README does, but in
// this package log is the name of a type.
type exampleLog struct{}

func (exampleLog) Fatal(v ...any) { stdlog.Fatal(v...) }

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
			Message: "Release it?", RequestedSchema: map[string]any{"type": "object"},
		}).ToolResult()
		return result, mcpgo.SetState(ctx, result, confirmation{Version: req.GetString("version", "")})
	}
	answer := server.ElicitationResponse(req.Params.InputResponses, "confirm")
	if answer == nil || answer.Action != mcp.ElicitationResponseActionAccept {
		return mcp.NewToolResultText("not released"), nil
	}
	return mcp.NewToolResultText("released " + asked.Version), nil
}

type verifiedUser struct{}

// Principal reads the user from the context. HTTP middleware, or a context function of mcp-go,
// puts the user there.
func ExampleOptions_principal() {
	verify := func(token string) (user string, err error) { return "alice", nil } // your own
	fromRequest := func(ctx context.Context, r *http.Request) context.Context {
		user, err := verify(r.Header.Get("Authorization"))
		if err != nil {
			return ctx
		}
		return context.WithValue(ctx, verifiedUser{}, user)
	}
	options := &mcpgo.Options{Principal: func(ctx context.Context) (string, error) {
		user, ok := ctx.Value(verifiedUser{}).(string)
		if !ok {
			return "", errors.New("nobody is signed in")
		}
		return user, nil
	}}
	srv := server.NewMCPServer("release", "1.0.0")
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral()})
	if err != nil {
		stdlog.Fatal(err)
	}
	mcpgo.Protect(srv, boundary, options)
	_ = server.NewStreamableHTTPServer(srv, server.WithHTTPContextFunc(fromRequest))
}
