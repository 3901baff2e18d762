package gosdk_test

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var yes = mcp.InputResponseMap{"q1": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "yes"}}}
