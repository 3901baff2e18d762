package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
)

// growth is how the CPU time of a job grew with the size of what the job works on.
type growth struct {
	growing
	nanos [3]float64
}

// growing is a job whose growth is measured.
type growing struct {
	name  string
	sizes [3]int
	most  float64                            // the highest exponent that is allowed
	why   string                             // why the exponent may be more than 1
	job   func(n int) (nanos func() float64) // returns a function that measures one run with data of size n
}

// The highest exponents that are allowed. The exponent is k if the time grows as n to the
// power of k.
const (
	constant  = 0.0
	lookup    = 0.5 // a lookup in a larger map takes longer: a map of 100,000 entries does not fit into the fastest caches
	linear    = 1.0
	quadratic = 2.0
	slack     = 0.1 // how much a measured exponent may exceed its limit, because access to larger data is slower, and because times have noise
)

// nLogN returns the exponent k for which n to the power of k grows as much as n log n
// between two sizes. It is slightly more than 1.
func nLogN(from, to int) float64 {
	a, b := math.Log(float64(from)), math.Log(float64(to))
	return 1 + math.Log(b/a)/(b-a)
}

func growths(budget time.Duration) table {
	var all []growth
	jobs := growingJobs()
	for _, g := range jobs {
		var sizes []remote
		for _, n := range g.sizes {
			sizes = append(sizes, remote{name: g.name, nanos: g.job(n)})
		}
		result := growth{growing: g}
		for i, r := range measure(nil, sizes, budget/time.Duration(len(jobs))) {
			result.nanos[i] = r.nanos
		}
		all = append(all, result)
	}
	return growthTable(all)
}

// growthTable compares each exponent with the highest that is allowed. It uses the exponent of the
// last step, because at the smaller sizes fixed costs hide growth.
func growthTable(all []growth) table {
	t := table{columns: []string{"sizes", "ns, small", "ns, medium", "ns, large", "exponent", "at most"}}
	target := verdict{target: fmt.Sprintf("no exponent exceeds its limit by more than %.1f", slack)}
	for _, g := range all {
		exponent := math.Log(g.nanos[2]/g.nanos[1]) / math.Log(float64(g.sizes[2])/float64(g.sizes[1]))
		t.add(g.name, fmt.Sprintf("%d/%d/%d", g.sizes[0], g.sizes[1], g.sizes[2]),
			fmt.Sprintf("%.0f", g.nanos[0]), fmt.Sprintf("%.0f", g.nanos[1]), fmt.Sprintf("%.0f", g.nanos[2]),
			fmt.Sprintf("%.2f", exponent), fmt.Sprintf("%.2f", g.most))
		if g.why != "" {
			t.notes = append(t.notes, g.name+": "+g.why)
		}
		if !(exponent <= g.most+slack) {
			target.missed = append(target.missed, g.name)
		}
	}
	t.targets = []verdict{target}
	return t
}

func growingJobs() []growing {
	// Most of the largest sizes are close to what a boundary or a store allows by default.
	var (
		states    = [3]int{160, 1_600, 16_000}
		texts     = [3]int{40_000, 400_000, 4_000_000}
		members   = [3]int{650, 6_500, 65_000}
		questions = [3]int{1, 10, tripseal.MaxQuestions}
		rounds    = [3]int{1, 10, 100}
		keys      = [3]int{10, 100, 1_000}
		uses      = [3]int{1_000, 10_000, 100_000}
	)
	return []growing{
		{name: "state, bytes: a retry", sizes: states, most: linear, job: func(n int) func() float64 { return timed(native(strings.Repeat("x", n)).run) }},
		{name: "arguments, bytes of a text: digest", sizes: texts, most: linear, job: func(n int) func() float64 {
			return digestOf(`{"text":"` + strings.Repeat("x", n-11) + `"}`)
		}},
		{name: "arguments, elements of an array: digest", sizes: members, most: linear, job: func(n int) func() float64 {
			return digestOf(`{"list":[` + strings.Repeat("12345,", n-1) + `12345]}`)
		}},
		{name: "arguments, members in random order: digest", sizes: members, most: nLogN(members[1], members[2]), job: func(n int) func() float64 {
			return digestOf(string(objectOf(rand.New(rand.NewPCG(1, 2)).Perm(n))))
		}, why: "members are sorted, which takes n log n"},
		{name: "questions, keys of 128 B: seal", sizes: questions, most: linear, job: sealQuestions},
		{name: "questions, keys of 128 B: open", sizes: questions, most: linear, job: openQuestions},
		{name: "questions, keys of 128 B: accept all answers", sizes: questions, most: nLogN(questions[1], questions[2]), job: acceptAnswers,
			why: "the question of each answer is found by a binary search, which takes log n"},
		{name: "rounds of elicit: the last round", sizes: rounds, most: linear, job: func(n int) func() float64 {
			i := remarks()
			last := i.call(n)
			return timed(func() { i.send(last) })
		}},
		{name: "rounds of elicit: all rounds of a call", sizes: rounds, most: quadratic, job: func(n int) func() float64 {
			i := remarks()
			return timed(func() { i.call(n) })
		},
			why: "the server stores nothing, so every round carries all answers so far"},
		{name: "keys in a file: open a token", sizes: keys, most: constant, job: openWithFile},
		{name: "keys in a file: read the file", sizes: keys, most: linear, job: readFile},
		{name: "used tokens: record all of them", sizes: uses, most: linear, job: recordUses},
		{name: "used tokens: refuse one of them", sizes: uses, most: lookup, job: refuseUse},
	}
}

// timed returns a function that measures the mean CPU time of one run. It does not use
// the clock: on a busy machine, long runs would seem slower, because other programs
// interrupt only long runs.
func timed(run func()) func() float64 {
	count := 1
	return func() float64 {
		for range count/8 + 1 { // a warm-up, as in measure
			run()
		}
		for {
			before := cpuTime()
			for range count {
				run()
			}
			if took := cpuTime() - before; took >= turnTime {
				return float64(took) / float64(count)
			}
			count *= 2
		}
	}
}

func digestOf(arguments string) func() float64 {
	b := tripseal.Binding{Arguments: []byte(arguments)}
	return timed(func() {
		_, err := b.ArgumentsDigest()
		check(err)
	})
}

func questionsOf(n int) (all []tripseal.Question) {
	for i := range n {
		all = append(all, tripseal.Question{Key: fmt.Sprintf("%0*d", tripseal.MaxQuestionKey, i), Kind: tripseal.KindForm})
	}
	return all
}

func sealQuestions(n int) func() float64 {
	ctx, b, questions, state := context.Background(), boundary(ring(tripseal.GenerateKey())), questionsOf(n), "x"
	round, err := b.Open(ctx, request, "")
	check(err)
	return timed(func() {
		_, err := b.Seal(ctx, &round, &state, questions...)
		check(err)
	})
}

func openQuestions(n int) func() float64 {
	ctx, b := context.Background(), boundary(ring(tripseal.GenerateKey()))
	token := sealFirst(b, "x", questionsOf(n)...)
	return timed(func() {
		_, err := b.Open(ctx, request, token)
		check(err)
	})
}

func acceptAnswers(n int) func() float64 {
	b, questions := boundary(ring(tripseal.GenerateKey())), questionsOf(n)
	round, err := b.Open(context.Background(), request, sealFirst(b, "x", questions...))
	check(err)
	return timed(func() {
		for i := range questions {
			if !round.Accepts(questions[i].Key, questions[i].Kind) {
				panic("not accepted")
			}
		}
	})
}

func openWithFile(n int) func() float64 {
	all := someKeys(n)
	ctx, b := context.Background(), boundary(file(all))
	token := sealFirst(boundary(ring(all[n-1])), "x")
	return timed(func() {
		_, err := b.Open(ctx, request, token)
		check(err)
	})
}

func readFile(n int) func() float64 {
	path := writeKeys(someKeys(n))
	return timed(func() {
		source, err := keys.OpenFile(path, &keys.Options{Logger: slog.New(slog.DiscardHandler)})
		check(err)
		check(source.Close())
	})
}

// recordUses returns a function that measures the CPU time to record n uses in a new store.
// The time to make the store does not count.
func recordUses(n int) func() float64 {
	return func() float64 {
		use := spendOne("", memoryStore())
		before := cpuTime()
		for range n {
			use.run()
		}
		return float64(cpuTime() - before)
	}
}

func refuseUse(n int) func() float64 {
	store := memoryStore()
	for i := range n {
		spend(store, uint64(i))
	}
	order, i := rand.New(rand.NewPCG(1, 2)).Perm(n), 0
	return timed(func() {
		i = (i + 1) % n
		first, err := store.Spend(context.Background(), newUse(uint64(order[i]), 0))
		check(err)
		if first {
			panic("not used before")
		}
	})
}
