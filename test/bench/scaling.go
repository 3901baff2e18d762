package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripseal/tripseal"
)

// scaling is how much more work two goroutines on two cores do than one goroutine.
// Measured by the CPU time of a job, it shows how much the goroutines slow each other
// down. Measured by the clock, it also shows how long they sleep while they wait for each
// other. The figures are medians over many turns; in each turn, first one goroutine works
// and then two. Both figures are meaningless if the goroutines never run at the same time.
// So only undisturbed turns count: turns in which other programs left both cores to the
// benchmark.
type scaling struct {
	name     string
	one, two float64 // the CPU time of a job, in nanoseconds, with one goroutine and with two
	cpu      float64 // the scaling by CPU time: each turn gives 2 * one / two, and cpu is their median
	clock    float64 // the scaling by elapsed time: the median of all turns
	turns    int     // the number of undisturbed turns
	least    float64 // the lowest cpu and clock that are allowed; 0 means no limit
}

// fewestTurns is the smallest number of undisturbed turns whose median means something.
const fewestTurns = 10

// leastSpeedUp is the target for two goroutines.
const leastSpeedUp = 1.8

// parallel is a job that two goroutines do at the same time. The call job(n) returns
// the function that goroutine n runs; n is 0 or 1. Both goroutines use the same boundary,
// store or server, as the goroutines of a real server do.
type parallel struct {
	name  string
	least float64
	job   func(goroutine int) func()
}

func scalings(budget time.Duration) table {
	var all []scaling
	jobs := parallelJobs()
	for _, p := range jobs {
		s := measureScaling([2]func(){p.job(0), p.job(1)}, budget/time.Duration(len(jobs)))
		s.name, s.least = p.name, p.least
		all = append(all, s)
	}
	return scalingTable(all)
}

func scalingTable(all []scaling) table {
	t := table{columns: []string{"ns, one", "ns, two", "by CPU", "by clock", "turns", "at least"}}
	var missed, untested []string
	for _, s := range all {
		least := ""
		if s.least > 0 {
			least = fmt.Sprintf("%.2f", s.least)
		}
		t.add(s.name, fmt.Sprintf("%.0f", s.one), fmt.Sprintf("%.0f", s.two),
			fmt.Sprintf("%.2f", s.cpu), fmt.Sprintf("%.2f", s.clock), fmt.Sprint(s.turns), least)
		switch {
		case s.least > 0 && s.turns < fewestTurns:
			untested = append(untested, s.name)
		case min(s.cpu, s.clock) < s.least:
			missed = append(missed, s.name)
		}
	}
	if len(untested) > 0 {
		t.notes = []string{"not tested, because other programs, or goroutines that wake each other, " +
			"interrupted all but a few turns: " + strings.Join(untested, "; ")}
	}
	target := fmt.Sprintf("two goroutines do at least %.1f times the work of one", leastSpeedUp)
	t.targets = []verdict{{target, append(missed, untested...)}}
	return t
}

// cost is what one job costs, in nanoseconds.
type cost struct {
	cpu, clock float64
	disturbed  bool // true if the system interrupted a thread to run another
}

// measureScaling runs the job in one goroutine and then in two, and repeats this until the
// budget is spent.
func measureScaling(jobs [2]func(), budget time.Duration) (s scaling) {
	var counted, all [][2]cost
	count, deadline := 1, time.Now().Add(budget)
	for len(all) == 0 || time.Now().Before(deadline) {
		one, two := costOf(jobs[:1], count), costOf(jobs[:], count)
		if one.cpu*float64(count) < float64(turnTime) {
			count *= 2
			continue
		}
		all = append(all, [2]cost{one, two})
		if !one.disturbed && !two.disturbed {
			counted = append(counted, [2]cost{one, two})
		}
	}
	s.turns = len(counted)
	if s.turns < fewestTurns {
		counted = all // too few undisturbed turns: use all turns, for rough figures
	}
	of := func(figure func(one, two cost) float64) float64 {
		var figures []float64
		for _, turn := range counted {
			figures = append(figures, figure(turn[0], turn[1]))
		}
		return median(figures)
	}
	s.one = of(func(one, _ cost) float64 { return one.cpu })
	s.two = of(func(_, two cost) float64 { return two.cpu })
	s.cpu = of(func(one, two cost) float64 { return 2 * one.cpu / two.cpu })
	s.clock = of(func(one, two cost) float64 { return one.clock / two.clock })
	return s
}

// costOf runs all jobs at the same time, each in its own goroutine. After a warm-up, each job
// runs n times. costOf returns what one run of a job costs.
func costOf(jobs []func(), n int) cost {
	var cpu time.Duration
	var switches int64
	var begin time.Time
	var arrived atomic.Int32
	var started atomic.Bool
	var done sync.WaitGroup
	for _, job := range jobs {
		done.Go(func() {
			for range n/8 + 1 { // a warm-up, as in the function measure
				job()
			}
			if int(arrived.Add(1)) == len(jobs) {
				switches, cpu, begin = interruptions(), cpuTime(), time.Now()
				started.Store(true)
			}
			for !started.Load() { // wait without giving up the core, so that each job has its own core
			}
			for range n {
				job()
			}
		})
	}
	done.Wait()
	clock, took := time.Since(begin), cpuTime()-cpu
	each := 1 / float64(n*len(jobs))
	return cost{float64(took) * each, float64(clock) * each, interruptions() != switches}
}

func parallelJobs() []parallel {
	state := strings.Repeat("x", 256)
	b, single := boundary(ring(tripseal.GenerateKey())), renew(singleUse)
	token := sealFirst(b, state)
	store := renew(func() tripseal.ReplayStore { return memoryStore() })
	open, protected := askingServer(false), askingServer(true)
	ctx := context.Background()
	return []parallel{
		{"floor: AES-GCM and base64", 0, func(int) func() { return floor(state).run }},
		{"seal", leastSpeedUp, func(int) func() {
			round, err := b.Open(ctx, request, "")
			check(err)
			return func() {
				_, err := b.Seal(ctx, &round, &state)
				check(err)
			}
		}},
		{"open", leastSpeedUp, func(int) func() {
			return func() {
				_, err := b.Open(ctx, request, token)
				check(err)
			}
		}},
		{"spend, the store in memory alone", leastSpeedUp, func(g int) func() { return spendFrom(g, store) }},
		{"spend, with the retry that it belongs to", leastSpeedUp, func(g int) func() {
			boundary := single.getter(g)
			return func() { retry(boundary(), state) }
		}},
		{"a call with a question, unprotected", 0, func(int) func() { return round(inMemory(open, sdkClient(true))) }},
		{"a call with a question, protected", leastSpeedUp, func(int) func() { return round(inMemory(protected, sdkClient(true))) }},
	}
}

// renewed holds a store, or a boundary with a store, and replaces it with an empty one now and
// then. So a store never holds many more than 100,000 used tokens, which is the default capacity
// of a replay.SingleProcess.
type renewed[T any] struct {
	open    func() T
	current atomic.Pointer[T]
}

func renew[T any](open func() T) *renewed[T] {
	r := &renewed[T]{open: open}
	first := open()
	r.current.Store(&first)
	return r
}

// getter returns a function with which one goroutine gets the current store or boundary. In
// goroutine 0, every 50,000th call of this function first makes a new store or boundary.
func (r *renewed[T]) getter(goroutine int) func() T {
	uses := 0
	return func() T {
		if uses++; goroutine == 0 && uses%50_000 == 0 {
			next := r.open()
			r.current.Store(&next)
		}
		return *r.current.Load()
	}
}

// spendFrom returns a function that spends a new token in each call. No two goroutines spend
// the same token.
func spendFrom(goroutine int, stores *renewed[tripseal.ReplayStore]) func() {
	store, n := stores.getter(goroutine), uint64(goroutine)<<32
	return func() {
		n++
		spend(store(), n)
	}
}

func singleUse() *tripseal.Boundary {
	b, err := tripseal.New(tripseal.Config{
		Keys: ring(tripseal.GenerateKey()), Audience: audience, Logger: slog.New(slog.DiscardHandler), Replay: memoryStore(),
	})
	check(err)
	return b
}

// retry seals the first round of a flow, and opens the token. Opening spends the token.
func retry(b *tripseal.Boundary, state string) {
	token := sealFirst(b, state)
	_, err := b.Open(context.Background(), request, token)
	check(err)
}
