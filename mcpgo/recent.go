package mcpgo

import "sync"

// recent is a map in which taking a value also removes it. A value that was put in twice can
// be taken twice. Middleware and hooks use the map to pass values to each other, because
// mcp-go gives them no other way. If a request fails on the way, its value is never taken. So
// recent holds only the values that were put in last, and drops the oldest. The zero value is
// empty. A recent is safe for concurrent use.
type recent[K comparable, V any] struct {
	mu       sync.Mutex
	newer    map[K]held[V]
	older    map[K]held[V] // the map that was in newer until maxRecent values were put into it
	received int           // how many values were put into newer, including those already taken
}

type held[V any] struct {
	value V
	times int // how many times the value can still be taken
}

// maxRecent limits how many values are held. The last maxRecent values that were put in are
// never dropped. Older values may be dropped: at most 2*maxRecent values are held.
const maxRecent = 1 << 15

// put stores a value under a key, until it is taken or dropped.
func (r *recent[K, V]) put(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newer == nil || r.received >= maxRecent {
		r.newer, r.older, r.received = make(map[K]held[V]), r.newer, 0
	}
	r.newer[key] = held[V]{value, r.newer[key].times + 1}
	r.received++
}

// take returns the value of a key. A value can be taken as often as it was put in, because
// some formats give equal calls equal tokens. The result ok is false if there is no such
// value.
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
