// Package whole finds a nil where the SDK expects a value. The SDK reads JSON's null as
// nil. If the SDK had to write a nil in a question or a result, it would panic, and
// nothing would recover from the panic.
package whole

import (
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Question returns false if a question or something in it is nil.
func Question(question mcp.InputRequest) bool {
	switch q := question.(type) {
	case *mcp.ElicitParams:
		return q != nil
	case *mcp.ListRootsParams:
		return q != nil
	case *mcp.CreateMessageParams:
		return q != nil && hints(q.ModelPreferences) &&
			!slices.ContainsFunc(q.Messages, func(m *mcp.SamplingMessage) bool { return m == nil || !Content(m.Content) })
	case *mcp.CreateMessageWithToolsParams:
		return q != nil && hints(q.ModelPreferences) && !slices.Contains(q.Tools, nil) &&
			!slices.ContainsFunc(q.Messages, func(m *mcp.SamplingMessageV2) bool { return m == nil || m.Content == nil || !Contents(m.Content) })
	}
	return false
}

func hints(p *mcp.ModelPreferences) bool { return p == nil || !slices.Contains(p.Hints, nil) }

// Contents returns false if one of the contents, or something in it, is nil.
func Contents(contents []mcp.Content) bool {
	return !slices.ContainsFunc(contents, func(c mcp.Content) bool { return !Content(c) })
}

// Content returns false if a content or something in it is nil.
func Content(content mcp.Content) bool {
	switch c := content.(type) {
	case *mcp.TextContent:
		return c != nil
	case *mcp.ImageContent:
		return c != nil
	case *mcp.AudioContent:
		return c != nil
	case *mcp.ResourceLink:
		return c != nil
	case *mcp.EmbeddedResource:
		return c != nil && c.Resource != nil
	case *mcp.ToolUseContent:
		return c != nil
	case *mcp.ToolResultContent:
		return c != nil && Contents(c.Content)
	}
	return false
}
