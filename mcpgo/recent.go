package mcpgo

import "sync"

// recent holds the values that were put in last, until they are taken. mcp-go gives hooks
// and middleware no way to hand each other a value, so they meet here. A value whose
// request failed on the way is never taken, so the oldest values are dropped. The zero
// value is empty. It is safe for concurrent use.
type recent[K comparable, V any] struct {
	mu       sync.Mutex
	newer    map[K]V
	older    map[K]V // what was newer before maxRecent values were put in
	received int     // how many values were put into newer
}

// maxRecent is how many values are held at least; at most twice as many are.
const maxRecent = 1 << 15

// put keeps a value.
func (r *recent[K, V]) put(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newer == nil || r.received >= maxRecent {
		r.newer, r.older, r.received = make(map[K]V), r.newer, 0
	}
	r.newer[key] = value
	r.received++
}

// take returns a value, once.
func (r *recent[K, V]) take(key K) (value V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, values := range []map[K]V{r.newer, r.older} {
		if value, ok = values[key]; ok {
			delete(values, key)
			return value, true
		}
	}
	return value, false
}
