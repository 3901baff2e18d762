package gosdk

import (
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk/internal/passage"
)

// Server returns the server.
func (p *Protected) Server() *mcp.Server { return p.server }

// Boundary returns the boundary.
func (p *Protected) Boundary() *mcpseal.Boundary { return p.boundary }

// logger returns the logger for the server's author and operator.
func (p *Protected) logger() *slog.Logger { return mcpseal.Logger(p.options.Logger) }

func init() {
	passage.LoggerOf = func(protected any) *slog.Logger { return protected.(*Protected).logger() }
	passage.CheckCapabilities = func(req mcp.Request, questions mcp.InputRequestMap) error {
		c, _ := anyCall(req)
		return checkCapabilities(req, c, questions)
	}
}
