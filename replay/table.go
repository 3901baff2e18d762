package replay

import (
	"hash/maphash"
	"slices"
)

// table is a map whose entries lie in a row, numbered from 0, so that they can
// be kept in an order. A Go map never shrinks, and takes more than twice the
// memory just after it grew.
type table[K comparable, V any] struct {
	seed  maphash.Seed
	rows  []*[rowLen]entry[K, V]
	index []uint32 // 1 + the number of an entry, near its hash; 0 is free
	count int
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

const (
	rowLen   = 32 // entries that are allocated at once
	minIndex = 16
)

func (t *table[K, V]) at(n int) *entry[K, V] { return &t.rows[n/rowLen][n%rowLen] }

// find returns the number of the entry, or -1.
func (t *table[K, V]) find(key K) int {
	if t.count == 0 {
		return -1
	}
	for i := t.home(key); ; i = t.after(i) {
		switch n := int(t.index[i]) - 1; {
		case n < 0:
			return -1
		case t.at(n).key == key:
			return n
		}
	}
}

// add appends an entry that is not there yet and returns its number.
func (t *table[K, V]) add(key K, value V) int {
	// Fuller, and a search that finds nothing would look at too many entries.
	if (t.count+1)*8 > len(t.index)*5 {
		t.reindex(max(minIndex, len(t.index)*2))
	}
	if t.count == len(t.rows)*rowLen {
		t.rows = append(t.rows, new([rowLen]entry[K, V]))
	}
	n := t.count
	t.count++
	*t.at(n) = entry[K, V]{key, value}
	t.enter(n)
	return n
}

// swap exchanges the numbers of two entries.
func (t *table[K, V]) swap(a, b int) {
	if a == b {
		return
	}
	i, j := t.place(a), t.place(b)
	t.index[i], t.index[j] = t.index[j], t.index[i]
	ea, eb := t.at(a), t.at(b)
	*ea, *eb = *eb, *ea
}

// lift returns an entry that is to get another number, and its place in the
// index. Until it is settled, its old number is free for another.
func (t *table[K, V]) lift(n int) (e entry[K, V], place int) { return *t.at(n), t.place(n) }

// move gives an entry a number that is free, and frees its own.
func (t *table[K, V]) move(from, to int) {
	t.index[t.place(from)] = uint32(to + 1)
	*t.at(to) = *t.at(from)
}

// settle gives an entry that was lifted the number that is free.
func (t *table[K, V]) settle(n int, e entry[K, V], place int) {
	t.index[place] = uint32(n + 1)
	*t.at(n) = e
}

// removeLast removes the entry with the highest number, and gives memory back.
func (t *table[K, V]) removeLast() {
	n := t.count - 1
	t.leave(t.place(n))
	*t.at(n) = entry[K, V]{}
	t.count--
	// One row more than needed stays, so that a table whose size goes up and
	// down by one does not allocate each time.
	if spare := len(t.rows)*rowLen - t.count; spare >= 2*rowLen {
		t.rows[len(t.rows)-1] = nil
		t.rows = t.rows[:len(t.rows)-1]
	}
	// Twice as full then, and still some way from growing again.
	if len(t.index) > minIndex && t.count*4 < len(t.index) {
		t.reindex(len(t.index) / 2)
		t.rows = slices.Clone(t.rows)
	}
}

func (t *table[K, V]) home(key K) int {
	return int(maphash.Comparable(t.seed, key)) & (len(t.index) - 1)
}

func (t *table[K, V]) after(i int) int { return (i + 1) & (len(t.index) - 1) }

// place returns where the index holds entry n.
func (t *table[K, V]) place(n int) int {
	i := t.home(t.at(n).key)
	for int(t.index[i])-1 != n {
		i = t.after(i)
	}
	return i
}

func (t *table[K, V]) enter(n int) {
	i := t.home(t.at(n).key)
	for t.index[i] != 0 {
		i = t.after(i)
	}
	t.index[i] = uint32(n + 1)
}

// leave frees a place, and moves up those behind it that would no longer be
// found.
func (t *table[K, V]) leave(free int) {
	mask := len(t.index) - 1
	for i := t.after(free); t.index[i] != 0; i = t.after(i) {
		home := t.home(t.at(int(t.index[i]) - 1).key)
		if (i-home)&mask >= (i-free)&mask {
			t.index[free] = t.index[i]
			free = i
		}
	}
	t.index[free] = 0
}

func (t *table[K, V]) reindex(size int) {
	t.index = make([]uint32, size)
	for n := range t.count {
		t.enter(n)
	}
}
