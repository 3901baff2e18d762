package replay

import "maps"

// shrinking is a map that frees memory when entries are removed, which a Go map never does.
// When it has lost many of its entries, the rest is copied into a smaller Go map.
type shrinking[K comparable, V any] struct {
	entries map[K]V
	largest int // the largest number of entries that the Go map has held since it was made
}

// small is a number of entries. A Go map that never held more than that is not worth copying.
const small = 64

func (m *shrinking[K, V]) get(key K) (value V, ok bool) {
	value, ok = m.entries[key]
	return value, ok
}

func (m *shrinking[K, V]) set(key K, value V) {
	if m.entries == nil {
		m.entries = make(map[K]V)
	}
	m.entries[key] = value
	m.largest = max(m.largest, len(m.entries))
}

func (m *shrinking[K, V]) remove(key K) {
	delete(m.entries, key)
	if n := len(m.entries); m.largest > small && n < m.largest*3/5 {
		smaller := make(map[K]V, n)
		maps.Copy(smaller, m.entries)
		m.entries, m.largest = smaller, n
	}
}
