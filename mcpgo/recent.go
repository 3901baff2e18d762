package mcpgo

import "sync"

// recent is a map that holds only the values that were put in last, and drops the oldest.
// Middleware and hooks use it to pass values to each other, because mcp-go gives them no other
// way. If a request fails on the way, its value stays until it is dropped. The zero value is
// empty. A recent is safe for concurrent use.
type recent[K comparable, V any] struct {
	mu       sync.Mutex
	newer    map[K]V
	older    map[K]V // the previous r.newer; after maxRecent values, the method put makes a new r.newer
	received int     // how often put has stored a value in r.newer; take does not lower this number
}

// maxRecent limits how many values are held. The last maxRecent values that were put in are
// never dropped. Older values may be dropped: at most 2*maxRecent values are held.
const maxRecent = 1 << 15

// put stores a value under a key, until it is taken or dropped.
func (r *recent[K, V]) put(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newer == nil || r.received >= maxRecent {
		r.newer, r.older, r.received = make(map[K]V), r.newer, 0
	}
	r.newer[key] = value
	r.received++
}

// has returns true if r holds a value for the key.
func (r *recent[K, V]) has(key K) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, isNewer := r.newer[key]
	_, isOlder := r.older[key]
	return isNewer || isOlder
}

// take removes and returns the value of a key. If the key has no value, take returns false.
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
