package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

// measured returns everything that the benchmark prints, from a run that is so short that its
// times mean nothing. It panics if a contender fails.
var measured = sync.OnceValue(func() (all []printedTable) {
	defer cleanUp()
	for _, c := range comparisons() {
		p := printedTable{comparison: c}
		if c.missing == nil {
			p.table = c.table(20 * time.Millisecond)
			var text strings.Builder
			p.print(&text)
			p.parse(text.String())
		}
		all = append(all, p)
	}
	return all
})

// printedTable is a table as a reader sees it.
type printedTable struct {
	comparison
	table
	heading string
	columns []string
	names   []string
	cells   map[string]map[string]string // the text of each cell, by row name and then by column name
	after   []string                     // the lines after the rows
	faults  []string
}

const nameWidth = 46

func (p *printedTable) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// parse reads a printed table. A cell ends where the name of its column ends.
func (p *printedTable) parse(text string) {
	lines := strings.Split(text, "\n")
	if len(lines) < 5 || lines[1] != "" {
		p.fault("no title, empty line, header and rows in\n%s", text)
		return
	}
	p.heading, p.cells = lines[0], make(map[string]map[string]string)
	var ends []int
	for _, at := range regexp.MustCompile(`\S+( \S+)*`).FindAllStringIndex(lines[2], -1) {
		p.columns, ends = append(p.columns, lines[2][at[0]:at[1]]), append(ends, at[1])
	}
	rows := lines[3:]
	end := slices.Index(rows, "")
	for _, row := range rows[:end] {
		name := strings.TrimSpace(row[:min(len(row), nameWidth)])
		p.names, p.cells[name] = append(p.names, name), make(map[string]string)
		start := nameWidth
		for i, end := range ends {
			if len(row) < end {
				break
			}
			if row[start] != ' ' {
				p.fault("%q: wider than its column, before %q", row, p.columns[i])
			}
			p.cells[name][p.columns[i]] = strings.TrimSpace(row[start:end])
			start = end
		}
		if len(row) > start {
			p.fault("%q: %q after the last column", row, row[start:])
		}
	}
	p.after = rows[end:]
}

// TestEveryTableHasItsShape checks which rows, columns and targets are printed, and that every
// cell has a number. It checks no time.
func TestEveryTableHasItsShape(t *testing.T) {
	titles := make(map[string]bool)
	for _, p := range measured() {
		if titles[p.title] {
			t.Errorf("%s: twice", p.title)
		}
		titles[p.title] = true
		if p.missing != nil {
			t.Logf("%s: not on this machine: %v", p.title, p.missing)
			continue
		}
		for _, fault := range p.faults {
			t.Errorf("%s: %s", p.title, fault)
		}
		names, columns, optional := p.shape()
		if p.heading != p.title || !slices.Equal(p.names, names) || !slices.Equal(p.columns, columns) {
			t.Errorf("%s: printed as %q with the rows %q and the columns %q, want the rows %q and the columns %q", p.title, p.heading, p.names, p.columns, names, columns)
		}
		if distinct := slices.Compact(slices.Sorted(slices.Values(names))); len(distinct) < 2 || len(distinct) != len(names) {
			t.Errorf("%s: the rows are %q", p.title, names)
		}
		for name, cells := range p.cells {
			for _, column := range p.columns {
				text := cells[column]
				if text == "" && slices.Contains(optional, column) {
					continue
				}
				for _, number := range strings.Split(text, "/") {
					if value, err := strconv.ParseFloat(number, 64); err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
						t.Errorf("%s: %s: %s is %q", p.title, name, column, text)
					}
				}
			}
		}
		for _, r := range p.Rows {
			if r.Nanos <= 0 || r.Ratio <= 0 {
				t.Errorf("%s: %+v", p.title, r)
			}
		}
		for _, h := range p.Hops {
			if h.Plain <= 0 || h.Sealing <= 0 || h.Ratio <= 0 {
				t.Errorf("%s: %+v", p.title, h)
			}
		}
		for _, s := range p.Sizes {
			if s.Bytes <= 0 {
				t.Errorf("%s: %+v", p.title, s)
			}
		}
		printed := regexp.MustCompile(`(?m)^target: .*: .*(met|missed)`).MatchString(strings.Join(p.after, "\n"))
		if wanted := p.most > 0 || p.growth != nil || p.scaling != nil || p.hops != nil; printed != wanted {
			t.Errorf("%s: a target is printed: %v, want %v", p.title, printed, wanted)
		}
	}
	for _, size := range []int{64, 256, 273, 1024, 4096} {
		if !titles[retryTitle(size)] {
			t.Errorf("no retry with %d B", size)
		}
	}
}

// shape returns the rows and columns that the table must have, and the columns that may be
// empty.
func (p *printedTable) shape() (names, columns, optional []string) {
	switch {
	case p.growth != nil:
		for _, g := range growingJobs() {
			names = append(names, g.name)
		}
		return names, []string{"sizes", "ns, small", "ns, medium", "ns, large", "exponent", "at most"}, nil
	case p.scaling != nil:
		return []string{
			"floor: AES-GCM and base64", "seal", "open",
			"spend, a naive store: a map and a mutex", "spend, the store in memory alone", "spend, with the retry that it belongs to",
			"a call with a question, unprotected", "a call with a question, protected",
		}, []string{"ns, one", "ns, two", "by CPU", "by clock", "turns", "at least"}, []string{"at least"}
	case p.hops != nil:
		for _, h := range p.Hops {
			names = append(names, h.Name)
		}
		if strings.Contains(p.title, "rates") {
			return names, []string{"per s, plain", "per s, seal", "ratio", "at least"}, nil
		}
		return names, []string{"ns, plain", "ns, seal", "ratio", "at most"}, nil
	case p.sizes != nil:
		for _, s := range p.Sizes {
			names = append(names, s.Name)
		}
		return names, []string{"bytes"}, nil
	}
	for _, r := range p.Rows {
		names = append(names, r.Name)
	}
	if p.contenders != nil {
		names = nil
		for _, c := range p.contenders {
			names = append(names, c.name)
		}
		for _, r := range p.remotes {
			names = append(names, r.name)
		}
	}
	return names, []string{"ns", "ratio", "allocations", "characters"}, []string{"allocations", "characters"}
}

// TestEveryGrowthIsAtMostLinearOrSaysWhyNot checks that every target above linear growth has a
// reason. Only a full run of the benchmark tells whether the targets are met.
func TestEveryGrowthIsAtMostLinearOrSaysWhyNot(t *testing.T) {
	jobs := growingJobs()
	for _, thing := range []string{"state", "arguments", "questions", "rounds of elicit", "keys in a file", "used tokens"} {
		if !slices.ContainsFunc(jobs, func(g growing) bool { return strings.HasPrefix(g.name, thing) }) {
			t.Errorf("the growth with %s is not measured", thing)
		}
	}
	for _, g := range jobs {
		if g.most > linear && g.why == "" {
			t.Errorf("%s: may grow with an exponent of %v, and does not say why", g.name, g.most)
		}
		large := 100 * g.sizes[0]
		if strings.HasPrefix(g.name, "questions") {
			large = tripseal.MaxQuestions
		}
		if g.sizes[1] != 10*g.sizes[0] || g.sizes[2] != large {
			t.Errorf("%s: the sizes are %v", g.name, g.sizes)
		}
	}
	for _, p := range measured() {
		for _, g := range p.Growth {
			if after := strings.Join(p.after, "\n"); g.Why != "" && !strings.Contains(after, "\n"+g.Name+": "+g.Why+"\n") {
				t.Errorf("%s: no reason in\n%s", g.Name, after)
			}
		}
	}
}

func TestGrowthFasterThanItsTargetIsMissed(t *testing.T) {
	sizes := [3]int{1, 10, 100}
	for _, c := range []struct {
		nanos    [3]float64
		most     float64
		exponent float64
		met      bool
	}{
		{[3]float64{5, 5, 5}, constant, 0, true},
		{[3]float64{5, 5, 10}, constant, 0.301, false},
		{[3]float64{1, 10, 100}, linear, 1, true},
		{[3]float64{1000, 1100, 11000}, linear, 1, true}, // fixed costs do not count
		{[3]float64{100, 110, 10100}, linear, 1.963, false},
		{[3]float64{1, 100, 10000}, linear, 2, false},
		{[3]float64{1, 100, 10000}, quadratic, 2, true},
	} {
		got := growth{Name: "row", Sizes: sizes, Nanos: c.nanos, Most: c.most}.judged()
		if math.Abs(got.Exponent-c.exponent) > 0.001 || got.Met != c.met {
			t.Errorf("%v: %+v", c, got)
		}
		var text strings.Builder
		printGrowths(&text, []growth{got})
		if missed := strings.Contains(text.String(), ": missed by row\n"); missed == c.met {
			t.Errorf("%v: printed as\n%s", c, text.String())
		}
	}
	if got := nLogN(100, 1000); math.Abs(math.Pow(10, got)-15) > 1e-9 {
		t.Errorf("n log n: %v", got)
	}
}

func TestSpeedUpBelowTheTargetIsMissed(t *testing.T) {
	row := func(name string, cpu, clock float64, turns int, least float64) scaling {
		return scaling{Name: name, CPU: cpu, Clock: clock, Turns: turns, Least: least}
	}
	var text strings.Builder
	printScalings(&text, []scaling{
		row("good", 1.8, 1.8, fewestTurns, leastSpeedUp),
		row("costly", 1.79, 2, fewestTurns, leastSpeedUp),
		row("sleepy", 2, 1.79, fewestTurns, leastSpeedUp),
		row("disturbed", 2, 2, fewestTurns-1, leastSpeedUp),
		row("without a target", 1, 1, 0, 0),
	})
	for _, want := range []string{
		"\nnot tested, because other programs, or goroutines that wake each other, interrupted all but a few turns: disturbed\n",
		"\ntarget: two goroutines do at least 1.8 times the work of one: missed by costly; sleepy; disturbed\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

func TestAHopSlowerThanItsTargetIsMissed(t *testing.T) {
	for _, c := range []struct {
		hop
		met bool
	}{
		{hop{Ratio: 1.10, Most: 1.10}, true},
		{hop{Ratio: 1.11, Most: 1.10}, false},
		{hop{Ratio: 0.90, Least: 0.90}, true},
		{hop{Ratio: 0.89, Least: 0.90}, false},
	} {
		c.Name = "row"
		var text strings.Builder
		printHops(&text, []hop{c.hop})
		if missed := strings.Contains(text.String(), ": missed by row\n"); missed == c.met {
			t.Errorf("%+v: printed as\n%s", c.hop, text.String())
		}
	}
}
