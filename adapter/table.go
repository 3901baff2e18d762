package adapter

import (
	"maps"
	"sync"
	"weak"
)

// Table holds a value for each of some objects, such as the servers that an adapter
// protects. It does not keep an object from being collected. The zero value is empty. It
// is safe for concurrent use.
type Table[K, V any] struct {
	mu      sync.RWMutex
	entries map[weak.Pointer[K]]V
	sweep   int // the number of entries at which those of collected objects are removed
}

// Add adds an object, and reports whether it is new. It does not change the value of an
// object that is there already.
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

// Get returns the value of an object.
func (t *Table[K, V]) Get(object *K) (value V, ok bool) {
	if object == nil {
		return value, false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	value, ok = t.entries[weak.Make(object)]
	return value, ok
}
