package main

import (
	"testing"
	"time"
)

// TestEveryContenderWorks runs everything once: a contender that fails panics.
func TestEveryContenderWorks(t *testing.T) {
	defer cleanUp()
	for _, c := range comparisons() {
		measured := c.table(20 * time.Millisecond)
		if len(measured.Rows)+len(measured.Sizes) < 2 {
			t.Errorf("%s: %d rows", c.title, len(measured.Rows))
		}
		for _, r := range measured.Rows {
			if r.Nanos <= 0 || r.Ratio <= 0 {
				t.Errorf("%s: %+v", c.title, r)
			}
		}
		for _, s := range measured.Sizes {
			if s.Bytes <= 0 {
				t.Errorf("%s: %+v", c.title, s)
			}
		}
	}
}
