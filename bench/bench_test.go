package main

import (
	"testing"
	"time"
)

// TestEveryContenderWorks runs everything once: a contender that fails panics.
func TestEveryContenderWorks(t *testing.T) {
	for _, c := range comparisons() {
		rows := measure(c.contenders, c.remotes, 20*time.Millisecond)
		if len(rows) < 2 {
			t.Errorf("%s: %d rows", c.title, len(rows))
		}
		for _, r := range rows {
			if r.Nanos <= 0 || r.Ratio <= 0 {
				t.Errorf("%s: %+v", c.title, r)
			}
		}
	}
}
