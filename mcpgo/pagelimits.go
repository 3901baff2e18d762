package mcpgo

import (
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcpseal/mcpseal/adapter"
	"github.com/mcpseal/mcpseal/exactjson"
)

// pagedTools has the limits of the paged tools of a server. A tool is recognised by the
// address of its output schema, which AddPagedTool made. Its name is not enough, because an
// author may register another tool of the same name. The limits of a tool that is gone are
// forgotten.
type pagedTools struct {
	limits adapter.Table[byte, PageOptions]
	mu     sync.RWMutex
	least  int // the lowest limit of a paged tool; 0 if there is none
}

func (p *pagedTools) add(outputSchema []byte, names PageOptions) {
	p.limits.Add(&outputSchema[0], names)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.least == 0 || names.MaxArguments < p.least {
		p.least = names.MaxArguments
	}
}

// hasAny reports whether the server has a paged tool.
func (p *pagedTools) hasAny() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.least > 0
}

// mayRefuse reports whether a paged tool could refuse arguments of this length.
func (p *pagedTools) mayRefuse(arguments []byte) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.least > 0 && len(arguments) > p.least
}

// mustRefuse reports whether a tool is a paged one whose arguments, without the cursor, are
// too long.
func (p *pagedTools) mustRefuse(tool *mcp.Tool, arguments []byte) bool {
	if tool == nil || len(tool.RawOutputSchema) == 0 {
		return false
	}
	names, ok := p.limits.Get(&tool.RawOutputSchema[0])
	if !ok || len(arguments) <= names.MaxArguments {
		return false
	}
	if len(arguments) > names.MaxArguments+adapter.CursorRoom {
		return true
	}
	rest, _, err := exactjson.Cut(arguments, names.Cursor)
	return err != nil || len(rest) > names.MaxArguments
}
