package gosdk

import (
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// What follows is for packages that build on a protected server, such as elicit.

// Server returns the server.
func (p *Protected) Server() *mcp.Server { return p.server }

// Boundary returns the boundary.
func (p *Protected) Boundary() *mcpseal.Boundary { return p.boundary }

// Logger returns the logger for the server's author and operator.
func (p *Protected) Logger() *slog.Logger {
	return mcpseal.Logger(p.options.Logger)
}

// CheckCapabilities returns the -32021 of the protocol for questions that the
// client of a request has not declared it can answer, or nil.
func (p *Protected) CheckCapabilities(req mcp.Request, questions mcp.InputRequestMap) error {
	c, _ := anyCall(req)
	return checkCapabilities(req, c, questions)
}
