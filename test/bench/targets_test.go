//go:build !race

package main

import "testing"

// Under the race detector pools drop what they hold, so that counts mean nothing.

// TestAdaptersMeetTheirTargets counts allocations over many runs, so that allocations elsewhere in
// the process do not matter.
func TestAdaptersMeetTheirTargets(t *testing.T) {
	for _, c := range append(adapterComparisons(), mcpgoComparisons()...) {
		first, last := allocs(c.contenders[0].run, 1000), allocs(c.contenders[len(c.contenders)-1].run, 1000)
		if last-first > c.most {
			t.Errorf("%s: %v allocations more, want at most %v", c.title, last-first, c.most)
		}
	}
}

func TestElicitMeetsItsTargets(t *testing.T) {
	for _, c := range elicitComparisons() {
		first, last := allocs(c.contenders[0].run, 1000), allocs(c.contenders[len(c.contenders)-1].run, 1000)
		if last-first > c.most {
			t.Errorf("%s: %v allocations more, want at most %v", c.title, last-first, c.most)
		}
	}
}
