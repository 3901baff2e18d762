package parts

import (
	"context"
	"iter"
	"log/slog"
	"sync"
)

// Unlisted finds tools that an option names but the server does not list. Such a name may
// be misspelt, and then the option has no effect: for example, single use stays off. The
// zero value knows no options.
type Unlisted struct {
	mu    sync.Mutex
	names map[string]string // maps each named tool to the option that names it; nil after the warning
	pages int               // how many pages were seen without a gap, from the first page on
}

// Expect records the tools that an option names. Call it once for each option that names
// tools, when you protect the server.
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

// Page checks which tools are on one page of the list of tools. The first page has number
// 0. After the last page, Page logs a warning, once, about each tool that was on no page.
// Another replica may have served some of the pages. So Page warns only if it has seen
// all pages, from number 0 to the last. Call Page for each result of tools/list.
func (u *Unlisted) Page(ctx context.Context, number int, last bool, tools iter.Seq[string], logger func() *slog.Logger) {
	for tool, option := range u.missing(number, last, tools) {
		logger().WarnContext(ctx, "tripseal: an option names a tool that this user cannot call, or that is not registered under this name: check its spelling", "option", option, "tool", tool)
	}
}

// missing returns the tools to warn about. It does not log the warnings itself: it holds the
// lock, and a logger may list the tools, which needs the lock too.
func (u *Unlisted) missing(number int, last bool, tools iter.Seq[string]) map[string]string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.names == nil {
		return nil
	}
	for tool := range tools {
		delete(u.names, tool)
	}
	if number == u.pages {
		u.pages++
	}
	if !last || number >= u.pages {
		return nil
	}
	missing := u.names
	u.names = nil
	return missing
}
