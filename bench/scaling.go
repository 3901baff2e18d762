package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime/metrics"
	"strings"
	"sync"
	"time"

	"github.com/mcpseal/mcpseal"
)

// scaling is how much more work two goroutines on two cores do than one goroutine. Other
// programs slow the two down on a busy machine. So the target is for the time that a job
// costs, and not for the clock: CPU time, and time spent waiting for locks.
type scaling struct {
	Name    string  `json:"name"`
	One     float64 `json:"one_ns"`          // what a job costs with one goroutine
	Two     float64 `json:"two_ns"`          // what a job costs with two goroutines
	Waiting float64 `json:"two_waiting_ns"`  // the part of Two that is waiting
	PerCPU  float64 `json:"work_per_cpu"`    // work for each CPU second with two goroutines, divided by that with one
	SpeedUp float64 `json:"speed_up"`        // twice One divided by Two
	Clock   float64 `json:"speed_up_clock"`  // the same by the clock
	Least   float64 `json:"least,omitempty"` // the target for SpeedUp; 0 means none
	Met     bool    `json:"met"`
}

// leastSpeedUp is the target for two goroutines.
const leastSpeedUp = 1.8

// parallel is a job that several goroutines do at the same time. The function job returns the
// job of one goroutine, which uses what all goroutines of a server share.
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
		s.Met = s.SpeedUp >= s.Least
		all = append(all, s)
	}
	return all
}

// cost is what one job costs, in nanoseconds.
type cost struct{ cpu, waiting, clock float64 }

// measureScaling lets one goroutine and two goroutines take turns until the budget is spent.
func measureScaling(jobs [2]func(), budget time.Duration) scaling {
	const turn = 5 * slice // longer than other turns, because goroutines must start and end
	var ones, twos, waits, perCPU, speedUps, clocks []float64
	count, deadline := 1, time.Now().Add(budget)
	for len(ones) == 0 || time.Now().Before(deadline) {
		one, two := costOf(jobs[:1], count), costOf(jobs[:], count)
		if one.cpu*float64(count) < float64(turn) {
			count *= 2
			continue
		}
		ones, twos, waits = append(ones, one.cpu+one.waiting), append(twos, two.cpu+two.waiting), append(waits, two.waiting)
		perCPU = append(perCPU, one.cpu/two.cpu)
		speedUps = append(speedUps, 2*(one.cpu+one.waiting)/(two.cpu+two.waiting))
		clocks = append(clocks, one.clock/two.clock)
	}
	return scaling{
		One: median(ones), Two: median(twos), Waiting: median(waits),
		PerCPU: median(perCPU), SpeedUp: median(speedUps), Clock: median(clocks),
	}
}

// costOf runs each job count times, all jobs at the same time.
func costOf(jobs []func(), count int) cost {
	cpu, waiting, start := cpuTime(), lockWaits(), time.Now()
	var done sync.WaitGroup
	for _, job := range jobs {
		done.Go(func() {
			for range count {
				job()
			}
		})
	}
	done.Wait()
	clock, n := time.Since(start), float64(count*len(jobs))
	return cost{float64(cpuTime()-cpu) / n, float64(lockWaits()-waiting) / n, float64(clock) / n}
}

// lockWaits returns for how long goroutines have waited for locks. The runtime estimates it.
func lockWaits() time.Duration {
	sample := []metrics.Sample{{Name: "/sync/mutex/wait/total:seconds"}}
	metrics.Read(sample)
	return time.Duration(sample[0].Value.Float64() * float64(time.Second))
}

func printScalings(w io.Writer, all []scaling) {
	fmt.Fprintf(w, "%-46s %9s %9s %9s %9s %9s %9s %9s\n", "", "one", "two", "waiting", "per CPU", "speed-up", "by clock", "at least")
	var missed []string
	for _, s := range all {
		least := ""
		if s.Least > 0 {
			least = fmt.Sprintf("%.2f", s.Least)
		}
		fmt.Fprintf(w, "%-46s %9.0f %9.0f %9.0f %9.2f %9.2f %9.2f %9s\n", s.Name, s.One, s.Two, s.Waiting, s.PerCPU, s.SpeedUp, s.Clock, least)
		if !s.Met {
			missed = append(missed, s.Name)
		}
	}
	fmt.Fprintln(w)
	printTarget(w, fmt.Sprintf("two goroutines do at least %.1f times the work of one", leastSpeedUp), missed)
}

func parallelJobs() []parallel {
	state := strings.Repeat("x", 256)
	b, single := boundary(ring(mcpseal.GenerateKey())), singleUse()
	token := sealFirst(b, state)
	naive, store := &mutexStore{used: map[mapKey]time.Time{}}, memoryStore()
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
		{"spend, with the retry that it belongs to", leastSpeedUp, func(int) func() { return func() { retry(single, state) } }},
		{"a call with a question, unprotected", 0, func(int) func() { return round(inMemory(open, sdkClient(true))) }},
		{"a call with a question, protected", leastSpeedUp, func(int) func() { return round(inMemory(protected, sdkClient(true))) }},
	}
}

// spendFrom spends tokens that no other goroutine spends.
func spendFrom(goroutine int, store mcpseal.ReplayStore) func() {
	n := uint64(goroutine) << 32
	return func() {
		n++
		first, err := store.Spend(context.Background(), newUse(n, lifetime, 0))
		check(err)
		if !first {
			panic("not the first")
		}
	}
}

func singleUse() *mcpseal.Boundary {
	b, err := mcpseal.New(mcpseal.Config{
		Keys: ring(mcpseal.GenerateKey()), Audience: audience, Logger: slog.New(slog.DiscardHandler), Replay: memoryStore(),
	})
	check(err)
	return b
}

// retry seals the first round of a flow, and opens it, which spends the token.
func retry(b *mcpseal.Boundary, state string) {
	token := sealFirst(b, state)
	_, err := b.Open(context.Background(), request, token)
	check(err)
}
