package main

import "testing"

func TestElicitMeetsItsTargets(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector pools drop what they hold, so that counts mean nothing")
	}
	for _, c := range elicitComparisons() {
		first, last := allocs(c.contenders[0].run, 1000), allocs(c.contenders[len(c.contenders)-1].run, 1000)
		if last-first > c.most {
			t.Errorf("%s: %v allocations more, want at most %v", c.title, last-first, c.most)
		}
	}
}
