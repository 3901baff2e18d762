package replay

import "maps"

// shrinking is a map that gives memory back, which a Go map never does: a part of it
// that has become too large is copied. Its keys are hashes.
type shrinking[K ~uint32 | ~uint64, V any] struct {
	parts [parts]part[K, V]
	count int
}

type part[K comparable, V any] struct {
	entries map[K]V
	largest int // len of entries since it was made
}

const (
	parts = 32 // so that a copy takes little time
	small = 64 // entries that are not worth one
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
