package parts

import (
	"maps"
	"sync"
	"weak"
)

// Table maps objects to values. The objects are, for example, the servers that an adapter
// protects. A Table does not keep its objects alive, but it keeps their values alive: if a
// value refers to its object, the object is never garbage-collected. To avoid this,
// make the value a [weak.Pointer] to the data, and let the object refer to the data.
// The zero Table is empty. A Table is safe for concurrent use. Use a Table to remember
// something about a server whose type is not yours.
type Table[K, V any] struct {
	mu      sync.RWMutex
	entries map[weak.Pointer[K]]V
	sweep   int // when there are this many entries, Add removes those of garbage-collected objects
}

// Add adds an object with its value. If the table has the object already, Add changes nothing and
// returns false. Use the result, for example, to notice that a server is protected twice.
func (t *Table[K, V]) Add(object *K, value V) bool {
	key := weak.Make(object)
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.entries[key]; known {
		return false
	}
	if len(t.entries) >= t.sweep {
		maps.DeleteFunc(t.entries, func(key weak.Pointer[K], _ V) bool { return key.Value() == nil })
		t.sweep = max(1024, 2*len(t.entries))
	}
	if t.entries == nil {
		t.entries = make(map[weak.Pointer[K]]V)
	}
	t.entries[key] = value
	return true
}

// Get returns the value of an object. The result ok is false if the table does not have
// the object. Use Get, for example, to find out whether a server is protected.
func (t *Table[K, V]) Get(object *K) (value V, ok bool) {
	if object == nil {
		return value, false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	value, ok = t.entries[weak.Make(object)]
	return value, ok
}
