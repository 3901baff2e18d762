// This program is a client that uses the official Go SDK. It calls the tools, the prompt and the
// resource of a server in test/peers/proxied, and checks the results. Its arguments are the URL of the
// server, or a command line that starts a server on stdio.
//
// With REVISION=legacy in the environment it is an older client, whom the server's SDK asks with a request of its own.
// Then it goes through one flow; over HTTP, with a session and the notifications of its stream. WITHOUT names what the
// server cannot do: with "resource", no resource asks; with "roots", the flow that asks for roots is left out.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const prefix = "test_input_required_result_"

var (
	legacy        = os.Getenv("REVISION") == "legacy"
	olderRevision *mcp.ClientSessionOptions // set in older.go
)

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if legacy {
		if err := older(ctx); err != nil {
			log.Fatal("an older client: ", err)
		}
		return
	}
	if err := automatic(ctx); err != nil {
		log.Fatal("a client that answers by itself: ", err)
	}
	if err := manual(ctx); err != nil {
		log.Fatal("a client that is told what to send: ", err)
	}
	flows := 5
	for _, what := range []string{"resource", "roots"} {
		if without(what) {
			flows--
		}
	}
	fmt.Printf("Go client, %s: %d flows, 2 rejections\n", version(), flows)
}

func without(what string) bool { return slices.Contains(strings.Fields(os.Getenv("WITHOUT")), what) }

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/modelcontextprotocol/go-sdk" {
			for module.Replace != nil {
				module = module.Replace
			}
			return module.Version
		}
	}
	return "?"
}

func connect(ctx context.Context, options *mcp.ClientOptions) (*mcp.ClientSession, error) {
	options.ElicitationHandler = func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		schema, _ := req.Params.RequestedSchema.(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		content := map[string]any{}
		for field := range properties {
			content[field] = map[string]any{"name": "Alice", "color": "blue", "context": "tests", "ok": true}[field]
		}
		return &mcp.ElicitResult{Action: "accept", Content: content}, nil
	}
	options.CreateMessageHandler = func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
		return &mcp.CreateMessageResult{Role: "assistant", Model: "e2e", Content: &mcp.TextContent{Text: "Good morning,"}}, nil
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, options)
	client.AddRoots(&mcp.Root{URI: "file:///work", Name: "work"})
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: os.Args[1]}
	if !strings.HasPrefix(os.Args[1], "http://") {
		command := exec.Command(os.Args[1], os.Args[2:]...)
		command.Stderr = os.Stderr
		transport = &mcp.CommandTransport{Command: command}
	}
	if !legacy {
		return client.Connect(ctx, transport, nil)
	}
	if olderRevision == nil {
		return nil, errors.New("this SDK cannot choose an older revision")
	}
	return client.Connect(ctx, transport, olderRevision)
}

func older(ctx context.Context) error {
	announced := make(chan struct{}, 1)
	options := &mcp.ClientOptions{}
	options.PromptListChangedHandler = func(context.Context, *mcp.PromptListChangedRequest) {
		select {
		case announced <- struct{}{}:
		default:
		}
	}
	session, err := connect(ctx, options)
	if err != nil {
		return err
	}
	if err := call(ctx, session, "request_state", "state-ok: asked, true"); err != nil {
		return errors.Join(err, session.Close())
	}
	told, words := !strings.HasPrefix(os.Args[1], "http://"), ""
	for range 100 { // the stream may begin after the first call
		if told {
			break
		}
		again := &mcp.CallToolParams{Name: prefix + "request_state", Arguments: map[string]any{"announce": true}}
		if _, err := session.CallTool(ctx, again); err != nil {
			return errors.Join(err, session.Close())
		}
		select {
		case <-announced:
			told, words = true, ", notified"
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err := session.Close(); err != nil {
		return err
	}
	if !told {
		return errors.New("no notification came")
	}
	fmt.Printf("Go client, %s, older revision: 1 flow%s\n", version(), words)
	return nil
}

func automatic(ctx context.Context) error {
	session, err := connect(ctx, &mcp.ClientOptions{})
	if err != nil {
		return err
	}
	defer session.Close()
	names := 0
	for _, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		names++
	}
	if names != 8 {
		return fmt.Errorf("%d tools instead of 8", names)
	}
	if err := call(ctx, session, "multi_round", "Alice likes blue"); err != nil {
		return err
	}
	accepted := mcp.InputResponseMap{"step2": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"color": "red"}}}
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: prefix + "multi_round", RequestState: "Mallory|x|y", InputResponses: accepted})
	if err := rejected(err); err != nil {
		return err
	}
	if !without("roots") {
		if err := call(ctx, session, "multiple_inputs", "Good morning, Alice, with 1 roots"); err != nil {
			return err
		}
	}
	prompt, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: prefix + "prompt"})
	if err != nil {
		return err
	}
	if len(prompt.Messages) != 1 || prompt.Messages[0].Content.(*mcp.TextContent).Text != "With this in mind: tests" {
		return fmt.Errorf("the prompt is %+v", prompt.Messages)
	}
	resource, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://asks"})
	if err != nil {
		return err
	}
	asked := "state-ok: asked, true"
	if without("resource") {
		asked = "nothing is asked"
	}
	if len(resource.Contents) != 1 || resource.Contents[0].Text != asked {
		return fmt.Errorf("the resource is %+v", resource.Contents)
	}
	return nil
}

func manual(ctx context.Context) error {
	session, err := connect(ctx, &mcp.ClientOptions{MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}})
	if err != nil {
		return err
	}
	defer session.Close()
	first, err := session.CallTool(ctx, &mcp.CallToolParams{Name: prefix + "request_state"})
	if err != nil {
		return err
	}
	retry := &mcp.CallToolParams{
		Name: prefix + "request_state", RequestState: changed(first.RequestState),
		InputResponses: mcp.InputResponseMap{"confirm": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}},
	}
	_, err = session.CallTool(ctx, retry)
	if err := rejected(err); err != nil {
		return err
	}
	retry.RequestState = first.RequestState
	done, err := session.CallTool(ctx, retry)
	return expect(done, err, "state-ok: asked, true")
}

// changed returns the token with one character in its middle replaced.
func changed(token string) string {
	at := len(token) / 2
	other := "A"
	if token[at:at+1] == other {
		other = "B"
	}
	return token[:at] + other + token[at+1:]
}

func call(ctx context.Context, session *mcp.ClientSession, tool, want string) error {
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: prefix + tool})
	return expect(result, err, want)
}

func expect(result *mcp.CallToolResult, err error, want string) error {
	if err != nil {
		return err
	}
	if len(result.Content) != 1 || result.Content[0].(*mcp.TextContent).Text != want {
		return fmt.Errorf("the result is %+v instead of %q", result.Content, want)
	}
	return nil
}

// rejected returns nil if err is the protocol's error for a rejected state.
func rejected(err error) error {
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams {
		return fmt.Errorf("a changed state gives %v", err)
	}
	return nil
}
