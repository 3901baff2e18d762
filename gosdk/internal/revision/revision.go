// Package revision connects test clients that speak a given revision of the protocol.
package revision

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The revisions that tests speak.
const (
	V2026 = "2026-07-28"
	V2025 = "2025-11-25"
)

// Connect connects a client. The parameter version is the revision that the client speaks. For V2025, Connect makes the
// client's server/discover fail, so that the client falls back to V2025: not every release of the SDK has an option to
// choose the revision.
func Connect(ctx context.Context, client *mcp.Client, transport mcp.Transport, version string) (*mcp.ClientSession, error) {
	if version == V2025 {
		client.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "server/discover" {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client is older"}
				}
				return next(ctx, method, req)
			}
		})
	}
	return client.Connect(ctx, transport, nil)
}
