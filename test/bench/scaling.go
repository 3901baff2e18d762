package main

import (
	"context"
	"fmt"
	"io"
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
	Name  string  `json:"name"`
	One   float64 `json:"one_ns"`          // the CPU time of a job with one goroutine
	Two   float64 `json:"two_ns"`          // the CPU time of a job with two goroutines
	CPU   float64 `json:"by_cpu"`          // the scaling by CPU time: each turn gives 2 * One / Two, and CPU is their median
	Clock float64 `json:"by_clock"`        // the scaling by elapsed time: the median of all turns
	Turns int     `json:"turns"`           // the number of undisturbed turns
	Least float64 `json:"least,omitempty"` // the lowest CPU and Clock that are allowed; 0 means no limit
}

func (s scaling) measured() bool { return s.Turns >= fewestTurns }
func (s scaling) met() bool      { return s.measured() && min(s.CPU, s.Clock) >= s.Least }

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

func scalingComparison() comparison {
	return comparison{title: "scaling: two goroutines on two cores against one", scaling: scalings}
}

func scalings(budget time.Duration) (all []scaling) {
	jobs := parallelJobs()
	for _, p := range jobs {
		s := measureScaling([2]func(){p.job(0), p.job(1)}, budget/time.Duration(len(jobs)))
		s.Name, s.Least = p.name, p.least
		all = append(all, s)
	}
	return all
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
	s.Turns = len(counted)
	if !s.measured() {
		counted = all // too few undisturbed turns: use all turns, for rough figures
	}
	of := func(figure func(one, two cost) float64) float64 {
		var figures []float64
		for _, turn := range counted {
			figures = append(figures, figure(turn[0], turn[1]))
		}
		return median(figures)
	}
	s.One = of(func(one, _ cost) float64 { return one.cpu })
	s.Two = of(func(_, two cost) float64 { return two.cpu })
	s.CPU = of(func(one, two cost) float64 { return 2 * one.cpu / two.cpu })
	s.Clock = of(func(one, two cost) float64 { return one.clock / two.clock })
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

func printScalings(w io.Writer, all []scaling) {
	fmt.Fprintf(w, "%-46s %9s %9s %9s %9s %7s %9s\n", "", "ns, one", "ns, two", "by CPU", "by clock", "turns", "at least")
	var missed, untested []string
	for _, s := range all {
		least := ""
		if s.Least > 0 {
			least = fmt.Sprintf("%.2f", s.Least)
		}
		fmt.Fprintf(w, "%-46s %9.0f %9.0f %9.2f %9.2f %7d %9s\n", s.Name, s.One, s.Two, s.CPU, s.Clock, s.Turns, least)
		switch {
		case s.Least > 0 && !s.measured():
			untested = append(untested, s.Name)
		case s.Least > 0 && !s.met():
			missed = append(missed, s.Name)
		}
	}
	fmt.Fprintln(w)
	if len(untested) > 0 {
		fmt.Fprintf(w, "not tested, because other programs, or goroutines that wake each other, interrupted all but a few turns: %s\n", strings.Join(untested, "; "))
	}
	printTarget(w, fmt.Sprintf("two goroutines do at least %.1f times the work of one", leastSpeedUp), append(missed, untested...))
}

func parallelJobs() []parallel {
	state := strings.Repeat("x", 256)
	b, single := boundary(ring(tripseal.GenerateKey())), renew(singleUse)
	token := sealFirst(b, state)
	naive := renew(func() tripseal.ReplayStore { return &mutexStore{used: map[mapKey]time.Time{}} })
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
		{"spend, a naive store: a map and a mutex", 0, func(g int) func() { return spendFrom(g, naive) }},
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
		first, err := store().Spend(context.Background(), newUse(n, lifetime, 0))
		check(err)
		if !first {
			panic("not the first")
		}
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
