package elicit_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tripseal/tripseal/elicit"
)

// maze is a random handler with parts that are independent, links that are asked again, and values. Between two rounds,
// a client flips the words of its questions, their order, which of them are made ahead, and which are left out.
type maze struct {
	steps   []mazeStep
	flips   map[string]int
	asked   map[string]map[string]string // by the words of each question of this run: what was known when it was made
	given   map[string]given             // by the text of each answer that the client gave
	read    map[string]string            // the answers that this run has read
	relied  map[string]map[string]string // for each answer and value that this run has used: what was known when it was made
	strange []string                     // answers that came to another question
}

type given struct {
	to   string            // the words of the question
	knew map[string]string // what was known when it was made
}

type mazeStep struct {
	key       string
	parts     [][]mazeStep // for a step that is an All
	once, url bool
}

func randomMaze(random *rand.Rand, n *int, depth int) (steps []mazeStep) {
	for range 1 + random.IntN(3) {
		*n++
		s := mazeStep{key: fmt.Sprint("q", *n)}
		switch kind := random.IntN(8); {
		case kind < 2 && depth < 2:
			for range 2 + random.IntN(2) {
				s.parts = append(s.parts, randomMaze(random, n, depth+1))
			}
		case kind == 2:
			s.once = true
		case kind == 3:
			s.url = true
		}
		steps = append(steps, s)
	}
	return steps
}

// makes notes what is known when a question is made, and returns its words.
func (m *maze) makes(key string, known map[string]string) string {
	words := fmt.Sprint(key, ", version ", m.flips[key])
	if _, ok := m.asked[words]; !ok {
		m.asked[words] = maps.Clone(known)
	}
	return words
}

// walk runs steps, and returns what is known after them.
func (m *maze) walk(a *elicit.Asker, steps []mazeStep, known map[string]string) (map[string]string, error) {
	known, steps = maps.Clone(known), slices.Clone(steps)
	if m.flips["order"]%2 == 1 && len(steps) > 1 {
		steps[0], steps[1] = steps[1], steps[0]
	}
	for _, s := range steps {
		if m.flips["ahead"]%3 == 1 && s.parts == nil && !s.once && !s.url {
			elicit.Form[value](a, s.key, m.makes(s.key, known))
		}
	}
	for _, s := range steps {
		switch {
		case s.parts != nil:
			after, parts := maps.Clone(known), []func() error(nil)
			for _, part := range s.parts {
				parts = append(parts, func() error {
					got, err := m.walk(a, part, known)
					maps.Copy(after, got)
					return err
				})
			}
			if err := elicit.All(a, parts...); err != nil {
				return nil, err
			}
			known = after
		case s.once:
			knew, err := elicit.Once(a, s.key, func() (map[string]string, error) { return known, nil })
			if err != nil {
				return nil, err
			}
			m.relied["the value "+s.key] = knew
		case s.url:
			link := elicit.URL(a, s.key, m.makes(s.key, known), "https://example.com")
			action, _, err := link.Outcome()
			if err != nil {
				return nil, err
			}
			if m.flips["paid"]%4 == 1 {
				return nil, link.NotYet()
			}
			known[s.key] = string(action)
			m.read[s.key] = known[s.key]
		default:
			words := m.makes(s.key, known)
			action, v, err := elicit.Form[value](a, s.key, words).Outcome()
			if err != nil {
				return nil, err
			}
			if action == elicit.Accept {
				if m.given[v.Value].to != words {
					m.strange = append(m.strange, fmt.Sprintf("%q came to %q", v.Value, words))
				}
				m.relied["the answer "+v.Value] = m.given[v.Value].knew
			}
			known[s.key] = words + string(action) + v.Value
			m.read[s.key] = known[s.key]
			if len(v.Value)%2 == 0 && m.flips["skip"]%2 == 1 {
				return known, nil
			}
		}
	}
	return known, nil
}

func (m *maze) handle(a *elicit.Asker) (string, error) {
	m.asked, m.read, m.relied, m.strange = map[string]map[string]string{}, map[string]string{}, map[string]map[string]string{}, nil
	_, err := m.walk(a, m.steps, map[string]string{})
	return "done", err
}

// faults returns what a run that is done has used wrongly: an answer or a value that relies on another answer than the
// one that the run has read.
func (m *maze) faults() []string {
	for what, knew := range m.relied {
		for key, then := range knew {
			if now, ok := m.read[key]; ok && now != then {
				m.strange = append(m.strange, fmt.Sprintf("%s relies on %q, not on %q", what, then, now))
			}
		}
	}
	return m.strange
}

// walkMazes checks that what a run uses goes together, in whatever order the handler asks and reads.
func walkMazes(t *testing.T, calls uint64) {
	outcomes := map[string]int{}
	for seed := range calls {
		random, n := rand.New(rand.NewPCG(seed, 99)), 0
		m := &maze{steps: randomMaze(random, &n, 0), flips: map[string]int{}, given: map[string]given{}}
		s := newService(t)
		type round struct {
			reply
			asked map[string]map[string]string
		}
		var past []round
		outcome, answered := "too many rounds", answers{}
		got := reply{}
		for i := range 20 {
			if got = s.round(m.handle, got.token, answered); got.questions == nil {
				outcome = got.text
				break
			}
			past = append(past, round{got, m.asked})
			now := past[len(past)-1]
			if random.IntN(10) == 0 { // the client repeats a round
				now = past[random.IntN(len(past))]
			}
			got, answered = now.reply, answers{}
			for _, key := range slices.Sorted(maps.Keys(got.questions)) {
				text := fmt.Sprint(key, "#", len(m.given))
				switch q := got.questions[key]; {
				case random.IntN(10) == 0: // the answer is dropped on the way
				case q.URL != "":
					answered[key] = agreed
				case random.IntN(14) == 0:
					answered[key] = declined
				default:
					m.given[text], answered[key] = given{q.Message, now.asked[q.Message]}, form(text)
				}
			}
			if flip := random.IntN(8); i < 12 && flip < 4 {
				m.flips[[]string{"order", "ahead", "skip", "paid"}[flip]]++
			} else if i < 12 && flip == 4 {
				m.flips[fmt.Sprint("q", 1+random.IntN(n))] ^= 1
			}
		}
		if faults := m.faults(); outcome == "done" && faults != nil {
			t.Fatalf("seed %d, %+v: %s", seed, m.steps, faults)
		}
		outcomes[outcome]++
	}
	if uint64(outcomes["done"]) < calls/2 {
		t.Errorf("the calls ended with %v", outcomes)
	}
}
