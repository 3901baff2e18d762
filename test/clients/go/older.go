//go:build !oldest

package main

import "github.com/modelcontextprotocol/go-sdk/mcp"

// The oldest SDK that gosdk supports cannot choose a revision.
func init() { olderRevision = &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"} }
