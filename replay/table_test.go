package replay

import (
	"hash/maphash"
	"math/rand/v2"
	"testing"
)

// TestTheTableAgreesWithAMap does at random what the store does with a table,
// growing and shrinking.
func TestTheTableAgreesWithAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	table := table[uint32, uint32]{seed: maphash.MakeSeed()}
	model := map[uint32]uint32{}
	for step := range 200_000 {
		key := random.Uint32N(4000)
		growing := step/20_000%2 == 0
		n := table.find(key)
		value, there := model[key]
		switch {
		case there != (n >= 0) || there && table.at(n).value != value:
			t.Fatalf("step %d: key %d is entry %d of the table; in the map: %v", step, key, n, there)
		case !there && (growing || random.IntN(4) == 0):
			table.add(key, key*3)
			model[key] = key * 3
		case there && (!growing || random.IntN(4) == 0):
			table.swap(n, table.count-1)
			table.removeLast()
			delete(model, key)
		case table.count > 0:
			table.swap(random.IntN(table.count), random.IntN(table.count))
		}
		if table.count != len(model) {
			t.Fatalf("step %d: %d entries, want %d", step, table.count, len(model))
		}
		if rows := (table.count + rowLen - 1) / rowLen; len(table.rows) > rows+1 {
			t.Fatalf("step %d: %d rows for %d entries", step, len(table.rows), table.count)
		}
		if slots := len(table.index); slots > minIndex && table.count*4 < slots || table.count*8 > slots*5 {
			t.Fatalf("step %d: an index of %d for %d entries", step, slots, table.count)
		}
	}
}

// TestATableThatGoesUpAndDownIsLeftAlone goes up and down by a few entries at
// every size, on the way up and on the way down.
func TestATableThatGoesUpAndDownIsLeftAlone(t *testing.T) {
	table := table[uint32, uint32]{seed: maphash.MakeSeed()}
	next := uint32(0)
	add := func(n int) {
		for range n {
			table.add(next, 0)
			next++
		}
	}
	remove := func(n int) {
		for range n {
			table.removeLast()
		}
	}
	swing := func() {
		changes, size := 0, len(table.index)
		for range 5 {
			for _, step := range []func(int){add, remove} {
				step(3)
				if len(table.index) != size {
					changes, size = changes+1, len(table.index)
				}
			}
		}
		if changes > 1 {
			t.Fatalf("with %d entries the index changed its size %d times", table.count, changes)
		}
	}
	for add(100); table.count < 3000; add(1) {
		swing()
	}
	for ; table.count > 100; remove(1) {
		swing()
	}
}
