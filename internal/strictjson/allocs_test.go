//go:build !race

package strictjson

import "testing"

// Under the race detector a sync.Pool drops items at random, so this test is left out there.
func TestNoAllocation(t *testing.T) {
	text := []byte(`{"b":[1,2.5e3,"x\u00e9"],"a":{"d":null,"c":true}}`)
	if n := testing.AllocsPerRun(100, func() { Sum(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
