//go:build !race

package tripseal

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// Under the race detector a sync.Pool drops items at random, so the tests of this file are left out there.

// TestQuestionsTakeNoAllocation checks that sealing a token with a question allocates only the
// text of the token, and that reading the question allocates nothing.
func TestQuestionsTakeNoAllocation(t *testing.T) {
	b, err := New(Config{Keys: Ephemeral()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, request := context.Background(), Request{Method: "tools/call", Target: "deploy"}
	asked, state := Question{Key: "confirm", Kind: KindForm}, "step=1"
	round, _ := b.Open(ctx, request, "")
	token, err := b.Seal(ctx, &round, &state, asked)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { b.Seal(ctx, &round, &state, asked) }); n != 1 {
		t.Errorf("%v allocations to seal a question", n)
	}
	if round, err = b.Open(ctx, request, token); err != nil {
		t.Fatal(err)
	}
	seen := 0
	if n := testing.AllocsPerRun(100, func() {
		for q := range round.Asked {
			if q == asked {
				seen++
			}
		}
	}); n != 0 || seen != 101 { // 100 runs, and one more to warm up
		t.Errorf("%v allocations to read %d questions", n, seen)
	}
}

func TestAllocations(t *testing.T) {
	ring, err := NewRing(GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(Config{Keys: ring, Audience: "svc"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	request := Request{Method: "tools/call", Target: "deploy", Arguments: []byte(`{"a":1}`), Principal: User("alice")}
	state := strings.Repeat("x", 256)
	round, _ := b.Open(ctx, request, "")
	token, err := b.Seal(ctx, &round, &state)
	if err != nil {
		t.Fatal(err)
	}
	var questions []Question
	for i := range MaxQuestions {
		questions = append(questions, Question{Key: fmt.Sprint(i), Kind: KindForm})
	}
	asking, err := b.Seal(ctx, &round, &state, questions...)
	if err != nil {
		t.Fatal(err)
	}
	askedRound, err := b.Open(ctx, request, asking)
	if err != nil {
		t.Fatal(err)
	}
	var events, uses int
	watched, err := New(Config{Keys: ring, Audience: "svc",
		Observer: func(context.Context, Event) { events++ }, Replay: countingStore{&uses}, ReplayTools: []string{"watched"}})
	if err != nil {
		t.Fatal(err)
	}
	watchedRound, _ := watched.Open(ctx, request, "")
	once := request
	once.Target = "watched"
	onceRound, _ := watched.Open(ctx, once, "")
	onceToken, err := watched.Seal(ctx, &onceRound, &state)
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := NewHandles(b, "session", 0)
	if err != nil {
		t.Fatal(err)
	}
	handle, err := sessions.Seal(ctx, request.Principal, "session-7")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		want float64
		f    func()
	}{
		"first round":       {0, func() { b.Open(ctx, request, "") }},
		"open":              {1, func() { b.Open(ctx, request, token) }},
		"seal":              {1, func() { b.Seal(ctx, &round, &state) }},
		"open 64 questions": {1, func() { b.Open(ctx, request, asking) }},
		"seal 64 questions": {1, func() { b.Seal(ctx, &round, &state, questions...) }},
		"accept 64 answers": {0, func() {
			for i := range questions {
				askedRound.Accepts(questions[i].Key, KindForm)
			}
		}},
		"open, observed":      {1 + 2, func() { watched.Open(ctx, request, token) }},
		"seal, observed":      {1 + 2, func() { watched.Seal(ctx, &watchedRound, &state) }},
		"open a handle":       {1, func() { sessions.Open(ctx, request.Principal, handle) }},
		"seal a handle":       {1, func() { sessions.Seal(ctx, request.Principal, "session-7") }},
		"open once, observed": {1 + 2, func() { watched.Open(ctx, once, onceToken) }},
	} {
		if n := testing.AllocsPerRun(200, c.f); n != c.want {
			t.Errorf("%s: %v allocations, want %v", name, n, c.want)
		}
	}
	if events < 600 || uses < 200 {
		t.Errorf("%d events and %d uses: the test shows nothing", events, uses)
	}
}
