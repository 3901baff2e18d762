package gosdk

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// strangers are the tools that an option names and no list has shown so far. A
// misspelt name would switch single use off, or answers on, for nobody.
type strangers struct {
	mu    sync.Mutex
	names map[string]string // from the tool to the option; nil once all is said
	pages int               // that were seen in a row, from the first one on
}

func (s *strangers) expect(option string, tools []string) {
	for _, tool := range tools {
		if s.names == nil {
			s.names = make(map[string]string)
		}
		s.names[tool] = option
	}
}

// meet looks at a page of a list of tools. After the last one it says, once, which
// tools were on none. Pages that another replica served were not seen, so there
// must have been one of each number.
func (s *strangers) meet(ctx context.Context, p *Protected, number int, page *mcp.ListToolsResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		return
	}
	for _, tool := range page.Tools {
		if tool != nil {
			delete(s.names, tool.Name)
		}
	}
	if number == s.pages {
		s.pages++
	}
	if page.NextCursor != "" || number >= s.pages {
		return
	}
	for tool, option := range s.names {
		p.logger().WarnContext(ctx, "gosdk: an option names a tool that the server does not list: check its spelling", "option", option, "tool", tool)
	}
	s.names = nil
}
