package main

import (
	"strings"
	"testing"
)

// TestMain lets the benchmark start the test's own program as a server or as a proxy.
func TestMain(m *testing.M) {
	playRole()
	m.Run()
}

func TestTableSaysWhetherTheTargetIsMet(t *testing.T) {
	allocations := func(n float64) row { return row{Name: "row", Nanos: 1, Ratio: 1, Allocs: &n} }
	for _, c := range []struct {
		last float64
		want string
	}{
		{9, "-1 more, met"},
		{12, "2 more, met"},
		{13, "3 more, missed"},
	} {
		var printed strings.Builder
		table{Title: "title", Target: judge([]row{allocations(10), allocations(99), allocations(c.last)}, 2)}.print(&printed)
		if want := "target: at most 2 allocations more in the last row than in the first: " + c.want + "\n"; !strings.Contains(printed.String(), want) {
			t.Errorf("%v allocations: no %q in\n%s", c.last, want, printed.String())
		}
	}
}
