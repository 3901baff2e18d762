package elicit_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
)

// program is a handler made of random steps. When it makes a question or computes a value, it notes
// what it knew, that is, which answers it had read.
type program struct {
	steps  []step
	words  map[string]int    // how often the words of each question changed
	knew   map[string]string // for each question of this run: what was known when the question was made
	sent   map[string]string // for each answer: what was known when the answered question was made
	faults []string          // one text for each answer or value that this run used wrongly
}

type step struct{ do, key string }

func randomProgram(random *rand.Rand) *program {
	p := &program{words: map[string]int{}, sent: map[string]string{}}
	var unread []string
	for i := range 2 + random.IntN(4) {
		key := fmt.Sprint("q", i)
		p.steps = append(p.steps, step{"make", key})
		unread = append(unread, key)
		for len(unread) > 0 && random.IntN(3) > 0 {
			n := random.IntN(len(unread))
			p.steps = append(p.steps, step{"read", unread[n]})
			unread = slices.Delete(unread, n, n+1)
		}
		if random.IntN(8) == 0 {
			p.steps = append(p.steps, step{"once", key})
		}
	}
	for _, key := range unread {
		p.steps = append(p.steps, step{"read", key})
	}
	return p
}

func (p *program) handle(a *elicit.Asker) (string, error) {
	p.knew, p.faults = map[string]string{}, nil
	made := map[string]*elicit.Answer[value]{}
	known := ""
	for _, s := range p.steps {
		switch s.do {
		case "make":
			words := fmt.Sprint(s.key, ", version ", p.words[s.key])
			made[s.key], p.knew[s.key] = elicit.Form[value](a, s.key, words), words+known
		case "read":
			action, v, err := made[s.key].Outcome()
			if err != nil {
				return "", err
			}
			if p.sent[s.key] != p.knew[s.key] {
				p.faults = append(p.faults, fmt.Sprintf("%s was answered knowing %q, not %q", s.key, p.sent[s.key], p.knew[s.key]))
			}
			known += fmt.Sprint(" ", s.key, "=", action, v.Value)
		case "once":
			kept, err := elicit.Once(a, s.key, func() (string, error) { return known, nil })
			if err != nil {
				return "", err
			}
			if kept != known {
				p.faults = append(p.faults, fmt.Sprintf("the value %s was computed knowing %q, not %q", s.key, kept, known))
			}
		}
	}
	return "done", nil
}

// TestWhatARunUsesGoesTogether runs random handlers, whose questions change and whose answers may
// come late. A run may use an answer to a question that an earlier run sent, but only if both runs
// had read the same answers before they made the question. A run may also use a value that Once
// computed in an earlier run, but only if both runs had read the same answers before they called
// Once.
func TestWhatARunUsesGoesTogether(t *testing.T) {
	calls := uint64(400)
	if n, err := strconv.ParseUint(os.Getenv("TRIPSEAL_CALLS"), 10, 64); err == nil {
		calls = n
	}
	t.Run("in any order", func(t *testing.T) { walkMazes(t, calls) })
	keys := tripseal.Ephemeral()
	outcomes := map[string]int{}
	for seed := range calls {
		random := rand.New(rand.NewPCG(seed, 0))
		servers := [2]*service{}
		for i := range servers {
			servers[i] = newService(t, func(c *tripseal.Config) { c.Keys = keys })
		}
		p := randomProgram(random)
		releases := [2]handler{p.handle, asks("q0", "another release", "q1", "q1, version 0")}
		outcome, got, earlier := "too many rounds", reply{}, []past{}
		given := answers{}
		for n := range 18 {
			s := servers[random.IntN(2)]
			release := releases[0]
			if n < 6 && random.IntN(12) == 0 { // a replica of another release takes over for one round
				release, p.knew = releases[1], map[string]string{"q0": "another release", "q1": "q1, version 0"}
			}
			got = s.round(release, got.token, given)
			if len(p.faults) > 0 {
				t.Fatalf("seed %d, %v: %s", seed, p.steps, p.faults)
			}
			if got.questions == nil {
				if outcome = got.text; outcome == internal {
					outcome = p.whyFailed(s.book.String())
				}
				break
			}
			sent := maps.Clone(p.sent)
			if n < 6 && len(earlier) > 0 && random.IntN(10) == 0 { // the client repeats an earlier round
				again := earlier[random.IntN(len(earlier))]
				got, sent, p.knew = again.reply, maps.Clone(again.sent), again.knew
			}
			earlier = append(earlier, past{got, maps.Clone(sent), maps.Clone(p.knew)})
			given, p.sent = answers{}, sent
			for _, key := range slices.Sorted(maps.Keys(got.questions)) {
				switch random.IntN(14) {
				case 0: // the answer is dropped on the way
				case 1:
					given[key], p.sent[key] = declined, p.knew[key]
				case 2:
					given[key] = []string{`{"roots":[]}`, `null`, `{"action":null}`, `{"action":"accept","role":"user"}`}[random.IntN(4)] // no answer
				case 3:
					given[key], p.sent[key] = `{"action":"accept","content":{"value":"null beside","more":null}}`, p.knew[key]
				default:
					given[key], p.sent[key] = form(fmt.Sprint(n)), p.knew[key]
				}
			}
			if random.IntN(4) == 0 { // an answer to a question that was not asked in this round
				if key := fmt.Sprint("q", random.IntN(6)); got.questions[key].Key == "" {
					given[key] = form("forged")
				}
			}
			if n < 8 && random.IntN(4) == 0 { // the client's locale changes the words of a question, perhaps back
				key := fmt.Sprint("q", random.IntN(6))
				p.words[key] = max(0, p.words[key]+1-2*random.IntN(2))
			}
		}
		outcomes[outcome]++
	}
	if uint64(outcomes["done"]) < calls/4 || uint64(outcomes["a value came after"]) < calls/40 || outcomes[internal] > 0 || outcomes["too many rounds"] > int(calls/20) {
		t.Errorf("the calls ended with %v", outcomes)
	}
}

// past is a round that the client may repeat.
type past struct {
	reply
	sent, knew map[string]string
}

// whyFailed says which of the failures that a client can cause a log tells of.
func (p *program) whyFailed(log string) string {
	for reason, text := range map[string]string{
		"a value came after": " after its answer was read: ", "idle": "brought no answer that counts", "order": "ask in the same order in every round",
		"unread": "nobody read its answer",
	} {
		if strings.Contains(log, text) {
			return reason
		}
	}
	return internal
}
