package mcpgo

import (
	"reflect"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcpseal/mcpseal/adapter"
	"github.com/mcpseal/mcpseal/exactjson"
)

// pagedTools has the limits of the paged tools of a server. A tool is known by the memory
// of its schema, because an author may register another tool of the same name.
type pagedTools struct {
	mu     sync.RWMutex
	limits map[uintptr]pagedLimit
	least  int // the lowest limit of a paged tool
}

type pagedLimit struct {
	tool  mcp.Tool // keeps the memory of the schema, so that no other tool can get it
	names PageOptions
}

func (p *pagedTools) add(tool *mcp.Tool, names PageOptions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limits == nil {
		p.limits, p.least = make(map[uintptr]pagedLimit), names.MaxArguments
	}
	p.least = min(p.least, names.MaxArguments)
	p.limits[schemaOf(tool)] = pagedLimit{*tool, names}
}

// mayRefuse reports whether a paged tool could refuse arguments of this length.
func (p *pagedTools) mayRefuse(arguments []byte) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.limits != nil && len(arguments) > p.least
}

// refuses reports whether a tool is a paged one whose arguments, without the cursor, are
// too long.
func (p *pagedTools) refuses(tool *mcp.Tool, arguments []byte) bool {
	if tool == nil {
		return false
	}
	p.mu.RLock()
	limit, ok := p.limits[schemaOf(tool)]
	p.mu.RUnlock()
	if !ok || len(arguments) <= limit.names.MaxArguments {
		return false
	}
	if len(arguments) > limit.names.MaxArguments+adapter.CursorRoom {
		return true
	}
	rest, _, err := exactjson.Cut(arguments, limit.names.Cursor)
	return err != nil || len(rest) > limit.names.MaxArguments
}

// schemaOf returns the address of a tool's schema.
func schemaOf(tool *mcp.Tool) uintptr {
	if len(tool.RawInputSchema) > 0 {
		return reflect.ValueOf(tool.RawInputSchema).Pointer()
	}
	return reflect.ValueOf(tool.InputSchema.Properties).Pointer()
}
