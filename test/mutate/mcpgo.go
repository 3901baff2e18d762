package mutate

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// watchMCPGo does for a server on mcp-go what the method watch does for the official SDK. Put
// the returned options first in the list: mcp-go runs middleware in the order in which it was added.
func (j *judge) watchMCPGo() []server.ServerOption {
	count := func(ctx context.Context, state string, s *acceptance, result bool) {
		if state != "" && !server.IsModernRequest(ctx) {
			// With an older protocol revision, a state is treated as the sign of a later round of the
			// same request. Only the first round is counted.
			return
		}
		if state != "" && s.accepted.Load() {
			j.accepted.Add(1)
		}
		if result {
			j.reached.Add(1)
		}
	}
	return []server.ServerOption{
		server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
			return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				s := new(acceptance)
				result, err := next(context.WithValue(ctx, acceptanceKey{}, s), req)
				count(ctx, req.Params.RequestState, s, err == nil && result != nil && !result.IsError)
				return result, err
			}
		}),
		server.WithPromptHandlerMiddleware(func(next server.PromptHandlerFunc) server.PromptHandlerFunc {
			return func(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				s := new(acceptance)
				result, err := next(context.WithValue(ctx, acceptanceKey{}, s), req)
				count(ctx, req.Params.RequestState, s, err == nil && result != nil)
				return result, err
			}
		}),
	}
}
