package tripseal

import (
	"math/bits"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestAnAnswerIsCheckedAgainstFewQuestions counts how many questions a look-up reads. The
// test makes each question unreadable in turn. A look-up that then fails has read that question.
func TestAnAnswerIsCheckedAgainstFewQuestions(t *testing.T) {
	for name, round := range roundsWith(t, shuffled(MaxQuestions)) {
		asked, intact := slices.Collect(round.Asked), round.questions
		for _, q := range asked {
			reads, at := 0, 0
			for _, other := range asked {
				text := []byte(intact.text)
				text[at] = 0 // no kind has the number 0, so this question is unreadable
				at += len(appendQuestions(nil, []Question{other}))
				round.questions = questionList{string(text), intact.order}
				if !round.Accepts(q.Key, q.Kind) {
					reads++
				}
			}
			if most := bits.Len(MaxQuestions); reads < 1 || reads > most {
				t.Errorf("%s: one of %d questions is found after reading %d, want at most %d", name, len(asked), reads, most)
			}
		}
	}
}

// TestEveryQuestionTakesItsAnswer tries rounds with every number of questions. Two goroutines
// read each round at the same time.
func TestEveryQuestionTakesItsAnswer(t *testing.T) {
	everything := shuffled(MaxQuestions)
	for n := range MaxQuestions + 1 {
		asked := make(map[string]Kind, n)
		for _, q := range shuffled(n) {
			asked[q.Key] = q.Kind
		}
		for name, round := range roundsWith(t, shuffled(n)) {
			var readers sync.WaitGroup
			for range 2 {
				readers.Go(func() {
					for _, q := range everything {
						for _, key := range []string{q.Key, q.Key + "!", "K" + q.Key} {
							for kind := range KindRoots + 2 {
								want, ok := asked[key]
								if round.Accepts(key, kind) != (ok && want == kind) {
									t.Errorf("%s, %d questions: an answer of kind %d to %q is judged wrong", name, n, kind, key)
								}
							}
						}
					}
				})
			}
			readers.Wait()
		}
	}
}

// shuffled returns n questions that are not in the order of their keys. One key is empty,
// and many keys begin with the key of another question.
func shuffled(n int) (all []Question) {
	for i := range n {
		i = (i*67 + 11) % n // 67 is prime and larger than n, so this yields each number once
		all = append(all, Question{Key: strings.Repeat("k", i/3) + []string{"", "\x00", "\xff"}[i%3], Kind: KindSampling + Kind(i%2)})
	}
	return all
}

// roundsWith returns rounds whose tokens hold these questions. Tokens of the native format are
// read differently from those of other formats, so one token is native and one is not.
func roundsWith(t *testing.T, asked []Question) map[string]*Round {
	ring := Ephemeral()
	rounds := make(map[string]*Round)
	for name, config := range map[string]Config{
		"native":         {Keys: ring},
		"another format": {Audience: "svc", Format: struct{ Format }{NativeFormat(ring)}},
	} {
		b, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		request, state := Request{Method: "tools/call", Target: "deploy"}, "step=1"
		first, _ := b.Open(t.Context(), request, "")
		token, err := b.Seal(t.Context(), &first, &state, asked...)
		if err != nil {
			t.Fatal(err)
		}
		round, err := b.Open(t.Context(), request, token)
		if err != nil {
			t.Fatal(err)
		}
		rounds[name] = &round
	}
	return rounds
}
