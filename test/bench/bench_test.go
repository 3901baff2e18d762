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

// TestAdaptersMeetTheirTargets counts allocations over many runs, so that allocations elsewhere in
// the process do not matter.
func TestAdaptersMeetTheirTargets(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector pools drop what they hold, so that counts mean nothing")
	}
	for _, c := range append(adapterComparisons(), mcpgoComparisons()...) {
		first, last := allocs(c.contenders[0].run, 1000), allocs(c.contenders[len(c.contenders)-1].run, 1000)
		if last-first > c.most {
			t.Errorf("%s: %v allocations more, want at most %v", c.title, last-first, c.most)
		}
	}
}
