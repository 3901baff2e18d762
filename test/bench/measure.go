package main

import (
	"fmt"
	"io"
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

type row struct {
	Name   string   `json:"name"`
	Nanos  float64  `json:"ns"`
	Ratio  float64  `json:"ratio"`
	Allocs *float64 `json:"allocs,omitempty"` // nil if not counted
	Length int      `json:"length,omitempty"`
}

// size is how much memory one thing takes.
type size struct {
	Name  string  `json:"name"`
	Bytes float64 `json:"bytes"`
}

// turnTime is how long one contender runs before the next has its turn.
const turnTime = 2 * time.Millisecond

// measure runs all contenders in turn, again and again until the budget is spent. A row has
// the median of the contender's times. Its ratio is also a median: each turn gives one ratio,
// the contender's time divided by that of the first contender in the same turn.
func measure(contenders []contender, remotes []remote, budget time.Duration) []row {
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
	rows := make([]row, 0, len(nanos))
	for i := range nanos {
		ratios := make([]float64, len(nanos[i]))
		for turn := range ratios {
			ratios[turn] = nanos[i][turn] / nanos[0][turn]
		}
		r := row{Nanos: median(nanos[i]), Ratio: median(ratios)}
		if i < len(contenders) {
			allocations := allocs(contenders[i].run, min(500, 10*counts[i]))
			r.Name, r.Length, r.Allocs = contenders[i].name, contenders[i].length, &allocations
		} else {
			r.Name, r.Length = remotes[i-len(contenders)].name, remotes[i-len(contenders)].length
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

// allocs returns how many allocations one run makes, on average, as
// testing.AllocsPerRun does.
func allocs(run func(), runs int) float64 {
	run()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		run()
	}
	runtime.ReadMemStats(&after)
	return float64((after.Mallocs - before.Mallocs) / uint64(runs))
}

func (t table) print(w io.Writer) {
	if t.Growth != nil || t.Scaling != nil || t.Hops != nil {
		fmt.Fprintf(w, "%s\n\n", t.Title)
		switch {
		case t.Growth != nil:
			printGrowths(w, t.Growth)
		case t.Scaling != nil:
			printScalings(w, t.Scaling)
		default:
			printHops(w, t.Hops)
		}
		fmt.Fprintln(w)
		return
	}
	if t.Sizes != nil {
		fmt.Fprintf(w, "%s\n\n%-46s %9s\n", t.Title, "", "bytes")
		for _, s := range t.Sizes {
			fmt.Fprintf(w, "%-46s %9.1f\n", s.Name, s.Bytes)
		}
		fmt.Fprintln(w)
		return
	}
	fmt.Fprintf(w, "%s\n\n%-46s %9s %8s %12s %11s\n", t.Title, "", "ns", "ratio", "allocations", "characters")
	for _, r := range t.Rows {
		length, allocations := "", ""
		if r.Length > 0 {
			length = fmt.Sprint(r.Length)
		}
		ratio := fmt.Sprintf("%.2f", r.Ratio)
		if r.Ratio < 0.1 {
			ratio = fmt.Sprintf("%.3f", r.Ratio)
		}
		if r.Allocs != nil {
			allocations = fmt.Sprintf("%.0f", *r.Allocs)
		}
		fmt.Fprintf(w, "%-46s %9.0f %8s %12s %11s\n", r.Name, r.Nanos, ratio, allocations, length)
	}
	if v := t.Target; v != nil {
		outcome := "met"
		if !v.Met {
			outcome = "missed"
		}
		fmt.Fprintf(w, "\ntarget: at most %.0f allocations more in the last row than in the first: %.0f more, %s\n", v.Most, v.More, outcome)
	}
	fmt.Fprintln(w)
}
