package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

// contender is one way to do a job. The times of several contenders are compared.
type contender struct {
	name   string
	length int // the length of the contender's token; 0 means that the length is not printed
	run    func()
}

// remote is a contender that another process runs and measures.
type remote struct {
	name   string
	length int
	nanos  func() float64 // measures the time of one run
}

// row is what was measured of one contender.
type row struct {
	name   string
	nanos  float64
	ratio  float64  // relative to the first row
	allocs *float64 // nil if not counted
	length int
}

// limit is a target: the highest figure that a row may have.
type limit struct {
	row  string
	of   figureOf
	most float64
}

type figureOf struct {
	name  string
	value func(r, first row) float64
}

var (
	nanoseconds     = figureOf{"ns", func(r, _ row) float64 { return r.nanos }}
	ratio           = figureOf{"ratio", func(r, _ row) float64 { return r.ratio }}
	allocations     = figureOf{"allocations", func(r, _ row) float64 { return *r.allocs }}
	moreNanoseconds = figureOf{"more ns than the first row", func(r, first row) float64 { return r.nanos - first.nanos }}
	moreAllocations = figureOf{"more allocations than the first row", func(r, first row) float64 {
		return *r.allocs - *first.allocs
	}}
)

// turnTime is how long one contender runs before the next has its turn.
const turnTime = 2 * time.Millisecond

// measure runs all contenders in turn, again and again until the budget is spent. A row has
// the median of the contender's times. Its ratio is also a median: each turn gives one ratio,
// the contender's time divided by that of the first contender in the same turn.
func measure(contenders []contender, remotes []remote, budget time.Duration) (rows []row) {
	counts := make([]int, len(contenders))
	for i, c := range contenders {
		counts[i] = calibrate(c.run)
	}
	nanos := make([][]float64, len(contenders)+len(remotes))
	deadline := time.Now().Add(budget)
	for ok := true; ok; ok = time.Now().Before(deadline) {
		for i, c := range contenders {
			for range counts[i]/8 + 1 { // a warm-up: the other contenders left the caches cold
				c.run()
			}
			start := time.Now()
			for range counts[i] {
				c.run()
			}
			nanos[i] = append(nanos[i], float64(time.Since(start))/float64(counts[i]))
		}
		for i, r := range remotes {
			nanos[len(contenders)+i] = append(nanos[len(contenders)+i], r.nanos())
		}
	}
	for i := range nanos {
		ratios := make([]float64, len(nanos[i]))
		for turn := range ratios {
			ratios[turn] = nanos[i][turn] / nanos[0][turn]
		}
		r := row{nanos: median(nanos[i]), ratio: median(ratios)}
		if i < len(contenders) {
			c := contenders[i]
			allocs := allocsOf(c.run, min(500, 10*counts[i]))
			r.name, r.length, r.allocs = c.name, c.length, &allocs
		} else {
			r.name, r.length = remotes[i-len(contenders)].name, remotes[i-len(contenders)].length
		}
		rows = append(rows, r)
	}
	return rows
}

// calibrate returns how many runs together take about as long as turnTime.
func calibrate(run func()) int {
	for n := 1; ; n *= 2 {
		start := time.Now()
		for range n {
			run()
		}
		if took := time.Since(start); took >= turnTime {
			return max(1, int(float64(n)*float64(turnTime)/float64(took)))
		}
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// allocsOf returns how many allocations one run makes, on average, as
// testing.AllocsPerRun does.
func allocsOf(run func(), runs int) float64 {
	run()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		run()
	}
	runtime.ReadMemStats(&after)
	return float64((after.Mallocs - before.Mallocs) / uint64(runs))
}

// timesOf makes a table of what was measured, and judges it by the limits.
func timesOf(rows []row, limits []limit) (t table) {
	t.columns = []string{"ns", "ratio", "allocations", "characters"}
	for _, r := range rows {
		allocs, length := "", ""
		if r.allocs != nil {
			allocs = fmt.Sprintf("%.0f", *r.allocs)
		}
		if r.length > 0 {
			length = fmt.Sprint(r.length)
		}
		precise := "%.2f"
		if r.ratio < 0.1 {
			precise = "%.3f"
		}
		t.add(r.name, fmt.Sprintf("%.0f", r.nanos), fmt.Sprintf(precise, r.ratio), allocs, length)
		for _, l := range limits {
			if l.row != r.name {
				continue
			}
			var missed []string
			figure := l.of.value(r, rows[0])
			if figure > l.most {
				missed = []string{fmt.Sprintf("%.5g", figure)}
			}
			t.targets = append(t.targets, verdict{fmt.Sprintf("%s, %s: at most %.5g", r.name, l.of.name, l.most), missed})
		}
	}
	return t
}
