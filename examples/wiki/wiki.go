package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// confirmer is a function that asks the user a question. It returns nil if the user says yes.
type confirmer func(ctx context.Context, req *mcp.CallToolRequest, key, message string) error

// wiki has the handlers of the tools.
type wiki struct {
	pages   *pages
	confirm confirmer
}

var errNoPage = errors.New("there is no such page")

func (w *wiki) show(_ context.Context, _ *mcp.CallToolRequest, in Args) (string, error) {
	text, found := w.pages.get(in.Page)
	if !found {
		return "", errNoPage
	}
	return text, nil
}

func (w *wiki) delete(ctx context.Context, req *mcp.CallToolRequest, in Args) (string, error) {
	names, err := w.branch(ctx, req, in.Page)
	if err != nil {
		return "", err
	}
	w.pages.remove(names)
	return "# Deleted\n\n- `" + strings.Join(names, "`\n- `") + "`\n", nil
}

// branch asks the user whether to delete a page and all pages below it. If the user agrees,
// it returns the names of these pages.
func (w *wiki) branch(ctx context.Context, req *mcp.CallToolRequest, page string) ([]string, error) {
	if _, found := w.pages.get(page); !found {
		return nil, errNoPage
	}
	if err := w.confirm(ctx, req, "confirm", "Delete the page "+page+"?"); err != nil {
		return nil, err
	}
	below := w.pages.below(page)
	if len(below) > 0 {
		// The question contains the names, so a yes is valid only for these pages.
		if err := w.confirm(ctx, req, "below", "Delete also "+strings.Join(below, ", ")+"?"); err != nil {
			return nil, err
		}
	}
	return append([]string{page}, below...), nil
}

func (w *wiki) publish(ctx context.Context, req *mcp.CallToolRequest, in Args) (string, error) {
	if _, found := w.pages.get(in.Page); !found {
		return "", errNoPage
	}
	if err := w.confirm(ctx, req, "confirm", "Show the page "+in.Page+" to the world?"); err != nil {
		return "", err
	}
	w.pages.publish(in.Page)
	return "# Published\n\n`" + in.Page + "` is public now.\n", nil
}

// pages holds the texts of all pages, by the name of the page. A page "a/b" is below "a".
type pages struct {
	mu     sync.Mutex
	texts  map[string]string
	public map[string]bool
}

func newPages() *pages {
	p := new(pages)
	p.reset()
	return p
}

func (p *pages) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.texts = map[string]string{
		"plan": "# Plan\n\nTo be written.\n", "diary": "# Diary\n",
		"manual": "# Manual\n", "manual/setup": "# Setup\n", "manual/usage": "# Usage\n",
	}
	p.public = make(map[string]bool)
}

func (p *pages) get(name string) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, found := p.texts[name]
	return text, found
}

func (p *pages) below(name string) (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, other := range slices.Sorted(maps.Keys(p.texts)) {
		if strings.HasPrefix(other, name+"/") {
			names = append(names, other)
		}
	}
	return names
}

func (p *pages) remove(names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		delete(p.texts, name)
	}
}

func (p *pages) publish(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.public[name] = true
}

// String returns the names of all pages, and then the names of the public ones.
func (p *pages) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(slices.Sorted(maps.Keys(p.texts)), slices.Sorted(maps.Keys(p.public)))
}
