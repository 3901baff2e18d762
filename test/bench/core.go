package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/tripseal/tripseal"
)

// coreComparisons measure how much slower a retry is with a replay store, and with an
// observer. They also measure how much longer it takes to open a token with many questions.
func coreComparisons() []comparison {
	return []comparison{
		{title: "a retry with single use in memory; 256 B of state", contenders: []contender{
			retryContender("no store", tripseal.Config{}),
			retryContender("replay.SingleProcess", tripseal.Config{Replay: memoryStore()}),
		}, limits: []limit{{"replay.SingleProcess", ratio, 1.7}}},
		{title: "a retry with a counting observer; 256 B of state", contenders: []contender{
			retryContender("no observer", tripseal.Config{}),
			retryContender("a counting observer", tripseal.Config{Observer: countEvents()}),
		}, limits: []limit{{"a counting observer", ratio, 1.3}, {"a counting observer", moreAllocations, 6}}},
		{title: "opening 64 questions with keys of 128 bytes", contenders: manyQuestions(),
			limits: []limit{{"64 questions", nanoseconds, 20_000}}},
	}
}

func countEvents() func(context.Context, tripseal.Event) {
	var counts [2]atomic.Int64
	return func(_ context.Context, e tripseal.Event) {
		if e.Reason == "" {
			counts[0].Add(1)
		} else {
			counts[1].Add(1)
		}
	}
}

// retryContender returns a contender. Each run opens the token that the previous run sealed, so
// that every token is used once.
func retryContender(name string, config tripseal.Config) contender {
	config.Keys, config.Audience, config.Logger = ring(tripseal.GenerateKey()), audience, slog.New(slog.DiscardHandler)
	config.MaxRounds, config.MaxFlow = tripseal.NoLimit, tripseal.NoLimit
	b, err := tripseal.New(config)
	check(err)
	ctx := context.Background()
	state := strings.Repeat("x", 256)
	questions := []tripseal.Question{{Key: question, Kind: tripseal.KindForm}}
	token, left := "", 0
	return contender{name: name, run: func() {
		if left == 0 {
			token, left = sealFirst(b, state, questions...), 60_000 // a flow has at most 65,535 rounds
		}
		left--
		round, err := b.Open(ctx, request, token)
		check(err)
		opened, _ := round.State()
		token, err = b.Seal(ctx, &round, &opened, questions...)
		check(err)
	}}
}

// manyQuestions compares tokens of the same length, with one question and with 64.
func manyQuestions() []contender {
	open := func(name string, state string, questions ...tripseal.Question) contender {
		b, ctx := boundary(ring(tripseal.GenerateKey())), context.Background()
		token := sealFirst(b, state, questions...)
		return contender{name, len(token), func() {
			_, err := b.Open(ctx, request, token)
			check(err)
		}}
	}
	var many []tripseal.Question
	for i := range tripseal.MaxQuestions {
		// The keys differ only in their last characters, and are not sorted, so that
		// comparing and sorting take longest.
		key := strings.Repeat("k", tripseal.MaxQuestionKey-3) + fmt.Sprintf("%03d", i*37%101)
		many = append(many, tripseal.Question{Key: key, Kind: tripseal.KindForm})
	}
	asLong := (tripseal.MaxQuestions - 1) * (2 + tripseal.MaxQuestionKey)
	return []contender{
		open("one question, and a state of the same length", strings.Repeat("x", asLong), many[0]),
		open("64 questions", "", many...),
	}
}
