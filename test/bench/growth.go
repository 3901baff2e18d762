package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
	"github.com/tripseal/tripseal/keys"
)

// growth is how the CPU time of a job grows with the size of what the job works on.
type growth struct {
	Name     string     `json:"name"`
	Sizes    [3]int     `json:"sizes"`
	Nanos    [3]float64 `json:"ns"`
	Exponent float64    `json:"exponent"` // 1 means that the time is proportional to the size
	Most     float64    `json:"most"`     // the highest exponent that is allowed
	Met      bool       `json:"met"`
	Why      string     `json:"why,omitempty"` // why the exponent may be more than 1
}

// growing is a job whose growth is measured.
type growing struct {
	name  string
	sizes [3]int
	most  float64
	why   string
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

func growthComparisons() []comparison {
	return []comparison{
		{title: "growth: the CPU time by the size", growth: growths},
		{title: fmt.Sprintf("growth: all tokens of a call with elicit, answers of %d B", answerSize), sizes: elicitSizes},
	}
}

func growths(budget time.Duration) (all []growth) {
	jobs := growingJobs()
	for _, g := range jobs {
		var sizes []remote
		for _, n := range g.sizes {
			sizes = append(sizes, remote{name: g.name, nanos: g.job(n)})
		}
		result := growth{Name: g.name, Sizes: g.sizes, Most: g.most, Why: g.why}
		for i, r := range measure(nil, sizes, budget/time.Duration(len(jobs))) {
			result.Nanos[i] = r.Nanos
		}
		all = append(all, result.judged())
	}
	return all
}

// judged sets the exponent and compares it with the highest exponent that is allowed. It uses
// the exponent of the last step, because at the smaller sizes fixed costs hide growth.
func (g growth) judged() growth {
	g.Exponent = math.Log(g.Nanos[2]/g.Nanos[1]) / math.Log(float64(g.Sizes[2])/float64(g.Sizes[1]))
	g.Met = g.Exponent <= g.Most+slack
	return g
}

func printGrowths(w io.Writer, all []growth) {
	fmt.Fprintf(w, "%-46s %24s %10s %11s %11s %9s %8s\n", "", "sizes", "ns, small", "ns, medium", "ns, large", "exponent", "at most")
	for _, g := range all {
		sizes := fmt.Sprintf("%d/%d/%d", g.Sizes[0], g.Sizes[1], g.Sizes[2])
		fmt.Fprintf(w, "%-46s %24s %10.0f %11.0f %11.0f %9.2f %8.2f\n", g.Name, sizes, g.Nanos[0], g.Nanos[1], g.Nanos[2], g.Exponent, g.Most)
	}
	fmt.Fprintln(w)
	for _, g := range all {
		if g.Why != "" {
			fmt.Fprintf(w, "%s: %s\n", g.Name, g.Why)
		}
	}
	var missed []string
	for _, g := range all {
		if !g.Met {
			missed = append(missed, g.Name)
		}
	}
	printTarget(w, fmt.Sprintf("no exponent exceeds its limit by more than %.1f", slack), missed)
}

// printTarget prints whether all rows meet a target, and which rows miss it.
func printTarget(w io.Writer, target string, missed []string) {
	outcome := "met"
	if len(missed) > 0 {
		outcome = "missed by " + strings.Join(missed, "; ")
	}
	fmt.Fprintf(w, "target: %s: %s\n", target, outcome)
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
		{name: "rounds of elicit: the last round", sizes: rounds, most: linear, job: lastRound},
		{name: "rounds of elicit: all rounds of a call", sizes: rounds, most: quadratic, job: allRounds,
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
		spend := spendOne("", memoryStore(), time.Hour, 0)
		before := cpuTime()
		for range n {
			spend.run()
		}
		return float64(cpuTime() - before)
	}
}

func refuseUse(n int) func() float64 {
	store := memoryStore()
	for i := range n {
		_, err := store.Spend(context.Background(), newUse(uint64(i), time.Hour, 0))
		check(err)
	}
	order, i := rand.New(rand.NewPCG(1, 2)).Perm(n), 0
	return timed(func() {
		i = (i + 1) % n
		first, err := store.Spend(context.Background(), newUse(uint64(order[i]), time.Hour, 0))
		check(err)
		if first {
			panic("not used before")
		}
	})
}

// answerSize is the length of every answer in the calls with elicit.
const answerSize = 512

type interview struct {
	Rounds int `json:"rounds"`
}

type remark struct {
	Text string `json:"text"`
}

// interviewer returns a client of a server with one tool. The tool asks one question in each
// round. The argument of the call is the number of rounds.
func interviewer() *mcp.ClientSession {
	quiet := slog.New(slog.DiscardHandler)
	b, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: audience, Logger: quiet, MaxRounds: tripseal.NoLimit, MaxState: 1 << 20,
	})
	check(err)
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	protected := gosdk.Protect(server, b, &gosdk.Options{Logger: quiet})
	elicit.AddTool(protected, &mcp.Tool{Name: target}, func(_ context.Context, ask *elicit.Asker, in interview) (remark, error) {
		for i := range in.Rounds {
			if _, err := elicit.Form[remark](ask, fmt.Sprint(question, i), "What else?").Value(); err != nil {
				return remark{}, err
			}
		}
		return remark{"done"}, nil
	})
	return inMemory(server, sdkClient(false))
}

// interviewCall calls the tool, and answers its questions until the call is complete. The
// parameter rounds says in how many rounds the tool must ask. interviewCall returns the tokens
// and the last request, which has the answer to the last question.
func interviewCall(session *mcp.ClientSession, rounds int) (tokens []string, last *mcp.CallToolParams) {
	answer := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"text": strings.Repeat("x", answerSize)}}
	params := &mcp.CallToolParams{Name: target, Arguments: interview{rounds}}
	for {
		result, err := session.CallTool(context.Background(), params)
		check(err)
		if result.IsError {
			panic("the call failed")
		}
		if !result.NeedsInput() {
			if len(tokens) != rounds {
				panic("not so many rounds")
			}
			return tokens, params
		}
		tokens = append(tokens, result.RequestState)
		params = &mcp.CallToolParams{Name: target, Arguments: interview{rounds}, RequestState: result.RequestState, InputResponses: mcp.InputResponseMap{}}
		for key := range result.InputRequests {
			params.InputResponses[key] = answer
		}
	}
}

func allRounds(n int) func() float64 {
	session := interviewer()
	return timed(func() { interviewCall(session, n) })
}

func lastRound(n int) func() float64 {
	session := interviewer()
	_, last := interviewCall(session, n)
	return timed(func() {
		result, err := session.CallTool(context.Background(), last)
		check(err)
		if result.NeedsInput() || result.IsError {
			panic("not done")
		}
	})
}

func elicitSizes() (all []size) {
	session := interviewer()
	for _, rounds := range []int{1, 4, 16} {
		tokens, _ := interviewCall(session, rounds)
		all = append(all, size{fmt.Sprintf("%d rounds of questions, all tokens", rounds), float64(len(strings.Join(tokens, "")))})
	}
	return all
}
