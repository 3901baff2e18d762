package main

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain lets the benchmark start the test's own program as a server or as a proxy.
func TestMain(m *testing.M) {
	playRole()
	m.Run()
}

var compared = sync.OnceValue(comparisons)

// measured returns everything that the benchmark prints, from a run that is so short that its
// times mean nothing. It panics if a contender fails.
var measured = sync.OnceValue(func() (all []table) {
	defer cleanUp()
	for _, c := range compared() {
		if c.missing != nil {
			all = append(all, table{title: c.title, notes: []string{c.missing.Error()}})
			continue
		}
		all = append(all, c.table(20*time.Millisecond))
	}
	return all
})

// TestEveryTableHasFigures checks no time.
func TestEveryTableHasFigures(t *testing.T) {
	titles := make(map[string]bool)
	for _, table := range measured() {
		if titles[table.title] {
			t.Errorf("%s: twice", table.title)
		}
		titles[table.title] = true
		if table.columns == nil {
			t.Logf("%s: not on this machine: %s", table.title, table.notes)
			continue
		}
		var names []string
		for _, row := range table.rows {
			names = append(names, row.name)
			if len(row.cells) != len(table.columns) {
				t.Fatalf("%s: %s: the cells are %q, the columns %q", table.title, row.name, row.cells, table.columns)
			}
			for i, cell := range row.cells {
				for number := range strings.SplitSeq(cell, "/") {
					value, err := strconv.ParseFloat(number, 64)
					if number != "" && (err != nil || math.IsNaN(value) || math.IsInf(value, 0)) || number == "" && i < 2 {
						t.Errorf("%s: %s: %s is %q", table.title, row.name, table.columns[i], cell)
					}
				}
			}
		}
		if distinct := slices.Compact(slices.Sorted(slices.Values(names))); len(distinct) < 2 || len(distinct) != len(names) {
			t.Errorf("%s: the rows are %q", table.title, names)
		}
	}
}

// TestEveryLimitIsJudged checks that each limit names a row: otherwise its target is not printed.
func TestEveryLimitIsJudged(t *testing.T) {
	for _, c := range compared() {
		for _, l := range c.limits {
			if !slices.ContainsFunc(c.contenders, func(c contender) bool { return c.name == l.row }) {
				t.Errorf("%s: no row %s", c.title, l.row)
			}
		}
	}
}

// TestAllocationsAreWithinTheirLimits counts over many runs, so that allocations elsewhere in the
// process do not matter.
func TestAllocationsAreWithinTheirLimits(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector pools drop what they hold, so that counts mean nothing")
	}
	for _, c := range compared() {
		for _, l := range c.limits {
			if !strings.Contains(l.of.name, "allocations") {
				continue
			}
			count := func(c contender) row {
				allocs := allocsOf(c.run, 1000)
				return row{allocs: &allocs}
			}
			judged := c.contenders[slices.IndexFunc(c.contenders, func(c contender) bool { return c.name == l.row })]
			if got := l.of.value(count(judged), count(c.contenders[0])); got > l.most {
				t.Errorf("%s: %s: %v %s, want at most %v", c.title, l.row, got, l.of.name, l.most)
			}
		}
	}
}

func TestWhatIsBeyondItsTargetIsMissed(t *testing.T) {
	allocs := func(n float64) *float64 { return &n }
	grown := func(most float64, nanos ...float64) table {
		return growthTable([]growth{{growing{name: "row", sizes: [3]int{1, 10, 100}, most: most}, [3]float64(nanos)}})
	}
	scaled := func(cpu, clock float64, turns int) table {
		return scalingTable([]scaling{{name: "row", cpu: cpu, clock: clock, turns: turns, least: leastSpeedUp}, {name: "no limit"}})
	}
	times := []row{{name: "first", ratio: 1, allocs: allocs(10)}, {name: "row", ratio: 1.5, allocs: allocs(12)}}
	for name, c := range map[string]struct {
		table
		met bool
	}{
		"a ratio":                   {timesOf(times, []limit{{"row", ratio, 1.5}}), true},
		"a higher ratio":            {timesOf(times, []limit{{"row", ratio, 1.4}}), false},
		"allocations":               {timesOf(times, []limit{{"row", moreAllocations, 2}}), true},
		"more allocations":          {timesOf(times, []limit{{"row", moreAllocations, 1}}), false},
		"a constant":                {grown(constant, 5, 5, 5), true},
		"a growing constant":        {grown(constant, 5, 5, 10), false},
		"linear":                    {grown(linear, 1, 10, 100), true},
		"fixed costs":               {grown(linear, 1000, 1100, 11000), true},
		"fixed costs, not linear":   {grown(linear, 100, 110, 10100), false},
		"quadratic":                 {grown(quadratic, 1, 100, 10000), true},
		"two cores":                 {scaled(1.8, 1.8, fewestTurns), true},
		"two cores, more work":      {scaled(1.79, 2, fewestTurns), false},
		"two cores, waiting":        {scaled(2, 1.79, fewestTurns), false},
		"two cores, disturbed":      {scaled(2, 2, fewestTurns-1), false},
		"a hop":                     {hopTable([]hop{{name: "row", ratio: 1.10, most: 1.10}}), true},
		"a slower hop":              {hopTable([]hop{{name: "row", ratio: 1.11, most: 1.10}}), false},
		"a hop's rate":              {hopTable([]hop{{name: "row", ratio: 0.90, least: 0.90}}), true},
		"a hop's rate that is less": {hopTable([]hop{{name: "row", ratio: 0.89, least: 0.90}}), false},
	} {
		var text strings.Builder
		c.print(&text)
		met := regexp.MustCompile(`(?m)^target: .*: met$`).MatchString(text.String())
		missed := regexp.MustCompile(`(?m)^target: .*: missed by .`).MatchString(text.String())
		if met != c.met || missed == c.met {
			t.Errorf("%s: printed as\n%s", name, text.String())
		}
	}
}

func TestGrowthAboveLinearSaysWhy(t *testing.T) {
	for _, g := range growingJobs() {
		if g.most > linear && g.why == "" {
			t.Errorf("%s: may grow with an exponent of %v, and does not say why", g.name, g.most)
		}
	}
}
