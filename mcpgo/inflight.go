package mcpgo

import (
	"context"
	"maps"
	"sync"
)

// inFlight holds values for as long as their requests are served. mcp-go gives hooks and
// middleware no way to hand each other a value, so they meet here. The zero value is
// empty. It is safe for concurrent use.
type inFlight[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]held[V]
	sweep   int // the number of entries at which those of ended requests are removed
}

type held[V any] struct {
	value V
	ended <-chan struct{} // closed when the request has ended
}

// put keeps a value until take, or until the request of ctx has ended.
func (f *inFlight[K, V]) put(ctx context.Context, key K, value V) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.entries) >= f.sweep {
		maps.DeleteFunc(f.entries, func(_ K, h held[V]) bool {
			select {
			case <-h.ended:
				return true
			default:
				return h.ended == nil
			}
		})
		f.sweep = max(1024, 2*len(f.entries))
	}
	if f.entries == nil {
		f.entries = make(map[K]held[V])
	}
	f.entries[key] = held[V]{value, ctx.Done()}
}

// take returns a value, once.
func (f *inFlight[K, V]) take(key K) (value V, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, ok := f.entries[key]
	delete(f.entries, key)
	return h.value, ok
}
