package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// call calls the tool, and asks its questions in the terminal.
func call(ctx context.Context, url string, in io.Reader, out io.Writer) error {
	var mu sync.Mutex
	keyboard := bufio.NewScanner(in)
	prompt := func(format string, args ...any) string {
		fmt.Fprintf(out, format+" ", args...)
		keyboard.Scan()
		return strings.TrimSpace(keyboard.Text())
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "terminal", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
		}},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			mu.Lock() // the client asks all questions of a round at once
			defer mu.Unlock()
			fmt.Fprintf(out, "\n%s\n", req.Params.Message)
			if req.Params.Mode == "url" {
				if prompt("Open %s and press Enter, or type no:", req.Params.URL) == "no" {
					return &mcp.ElicitResult{Action: "decline"}, nil
				}
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
			content := map[string]any{}
			schema, _ := req.Params.RequestedSchema.(map[string]any)
			properties, _ := schema["properties"].(map[string]any)
			names := make([]string, 0, len(properties))
			for name := range properties {
				names = append(names, name)
			}
			slices.Sort(names)
			slices.Reverse(names)
			for _, name := range names {
				property := properties[name].(map[string]any)
				choices, _ := property["oneOf"].([]any)
				for _, choice := range choices {
					fmt.Fprintf(out, "  %s  %s\n", choice.(map[string]any)["const"], choice.(map[string]any)["title"])
				}
				text := prompt("%s (or no):", name)
				if text == "no" {
					return &mcp.ElicitResult{Action: "decline"}, nil
				}
				switch property["type"] {
				case "integer":
					content[name], _ = strconv.Atoi(text)
				case "boolean":
					content[name] = text == "yes" || text == "y"
				default:
					content[name] = text
				}
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "book", Arguments: map[string]any{"city": "Rome"}})
	if err != nil {
		return err
	}
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			fmt.Fprintf(out, "\n%s\n", text.Text)
		}
	}
	return nil
}
