package mcpgo

import "sync"

// recent holds the values that were put in last, until they are taken. mcp-go gives hooks
// and middleware no way to hand each other a value, so they meet here. A value whose
// request failed on the way is never taken, so the oldest values are dropped. The zero
// value is empty. It is safe for concurrent use.
type recent[K comparable, V any] struct {
	mu       sync.Mutex
	newer    map[K]held[V]
	older    map[K]held[V] // what was newer before maxRecent values were put in
	received int           // how many values were put into newer
}

type held[V any] struct {
	value V
	times int // how often the value was put in, and can still be taken
}

// maxRecent is how many values are held at least; at most twice as many are.
const maxRecent = 1 << 15

// put keeps a value.
func (r *recent[K, V]) put(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newer == nil || r.received >= maxRecent {
		r.newer, r.older, r.received = make(map[K]held[V]), r.newer, 0
	}
	r.newer[key] = held[V]{value, r.newer[key].times + 1}
	r.received++
}

// take returns a value. A value can be taken as often as it was put in: some formats give
// equal calls equal tokens.
func (r *recent[K, V]) take(key K) (value V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, values := range []map[K]held[V]{r.newer, r.older} {
		h, ok := values[key]
		if !ok {
			continue
		}
		if h.times--; h.times > 0 {
			values[key] = h
		} else {
			delete(values, key)
		}
		return h.value, true
	}
	return value, false
}
