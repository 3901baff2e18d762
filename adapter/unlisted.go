package adapter

import (
	"context"
	"iter"
	"log/slog"
	"sync"
)

// Unlisted finds tools that an option names and no list shows. Their names may be
// misspelt, and then the option has no effect: single use stays off, for example. The
// zero value expects nothing.
type Unlisted struct {
	mu    sync.Mutex
	names map[string]string // the option that names a tool, by the tool; nil after the warning
	pages int               // how many pages were seen in a row, from the first
}

// Expect notes the tools that an option names.
func (u *Unlisted) Expect(option string, tools []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, tool := range tools {
		if u.names == nil {
			u.names = make(map[string]string)
		}
		u.names[tool] = option
	}
}

// Page looks at one page of the list of tools; pages count from 0. After the last page it
// warns, once, about the tools that were on no page. Another replica may have served some
// pages, so it warns only after it has seen a page of each number.
func (u *Unlisted) Page(ctx context.Context, number int, last bool, tools iter.Seq[string], logger func() *slog.Logger) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names == nil {
		return
	}
	for tool := range tools {
		delete(u.names, tool)
	}
	if number == u.pages {
		u.pages++
	}
	if !last || number >= u.pages {
		return
	}
	for tool, option := range u.names {
		logger().WarnContext(ctx, "mcpseal: an option names a tool that the server does not list: check its spelling", "option", option, "tool", tool)
	}
	u.names = nil
}
