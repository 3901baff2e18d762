package gosdk

import (
	"context"
	"sync/atomic"
)

// installation finds out at the first call whether the middleware is installed
// twice on one server: it would seal what is sealed already.
type installation struct{ state atomic.Int32 }

const (
	unchecked = iota
	alone
	twice
)

type installedKey struct{}

// check returns the context to go on with, and false if another instance is
// further out. After the first call it costs one load.
func (i *installation) check(ctx context.Context) (context.Context, bool) {
	switch i.state.Load() {
	case alone:
		return ctx, true
	case twice:
		return ctx, false
	}
	if ctx.Value(installedKey{}) != nil {
		i.state.Store(twice)
		return ctx, false
	}
	// Whoever is further in learns of us. Several first calls may do this.
	return context.WithValue(ctx, installedKey{}, true), true
}

// passed ends the check after a call that went through.
func (i *installation) passed() { i.state.CompareAndSwap(unchecked, alone) }
