package replay

import "maps"

// shrinking is a map that frees memory when entries are removed, which a Go map never does.
// It consists of several Go maps. When one of them has lost many of its entries, the rest is
// copied into a smaller Go map. Keys must be hashes, so that they spread evenly over the Go
// maps.
type shrinking[K ~uint32 | ~uint64, V any] struct {
	parts [parts]part[K, V]
	count int
}

type part[K comparable, V any] struct {
	entries map[K]V
	largest int // the largest number of entries that the map has held since it was made
}

const (
	parts = 32 // the number of Go maps; there are many, so that copying one takes little time
	small = 64 // a Go map that never held more entries than this is not worth copying
)

func (m *shrinking[K, V]) get(key K) (value V, ok bool) {
	value, ok = m.parts[key%parts].entries[key]
	return value, ok
}

func (m *shrinking[K, V]) set(key K, value V) {
	p := &m.parts[key%parts]
	if p.entries == nil {
		p.entries = make(map[K]V)
	}
	before := len(p.entries)
	p.entries[key] = value
	p.largest = max(p.largest, len(p.entries))
	m.count += len(p.entries) - before
}

func (m *shrinking[K, V]) remove(key K) {
	p := &m.parts[key%parts]
	before := len(p.entries)
	delete(p.entries, key)
	m.count += len(p.entries) - before
	if n := len(p.entries); p.largest > small && n < p.largest*3/5 {
		smaller := make(map[K]V, n)
		maps.Copy(smaller, p.entries)
		p.entries, p.largest = smaller, n
	}
}
