package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Options say what the probe calls, as whom, and how hard.
type Options struct {
	// Targets are called with effect. They must ask, or there is no state to attack.
	Targets []Target
	// Paged are tools that return pages: they take an argument called cursor, and their
	// structured result has a nextCursor.
	Paged []Target
	// Bearer and OtherBearer are the access tokens of two users. No report shows them.
	Bearer, OtherBearer string
	// Unsolicited names tools that take answers with their first call on purpose. That
	// they do is reported as an accepted risk.
	Unsolicited []string
	// Accept has the ids of attacks whose findings are an accepted risk.
	Accept []string
	// Require has the ids of attacks that must have been tried.
	Require []string
	// Only has the ids of the attacks to try. Nil means all.
	Only []string
	// Decline makes honest rounds end with a refusal by the user, so that they have no
	// effect.
	Decline bool
	// SingleUse says that a state must work only once. If it is false, a second use is
	// reported as information.
	SingleUse bool
	// Refusal is a text by which a result is known to be a refusal, if the server refuses a
	// state with an ordinary result and not with an error.
	Refusal string
	// MaxAge is the age after which a state must be refused. If it is zero, the attack
	// "expired" is not tried.
	MaxAge time.Duration
	// Rate is the most requests in a second, 0 for no limit. Budget is the most requests
	// in all, 0 for no limit.
	Rate, Budget int
	// Timeout is how long the probe waits for one answer, by default 10 seconds.
	Timeout time.Duration
	// MaxTime is how long the whole run may take, by default 30 minutes and MaxAge.
	MaxTime time.Duration
	// Progress is called before each attack that is tried and now and then during it; it may be nil.
	Progress func(Progress)

	sleep func(time.Duration) // waits; replaced in tests
}

// Target is a tool, a prompt or a resource.
type Target struct {
	Method    string            // tools/call, prompts/get or resources/read
	Name      string            // the name, or the URI of a resource
	Arguments string            // a JSON object; "" means {}
	Others    string            // other arguments that are valid as well, a JSON object; "" lets the probe make some
	Answers   map[string]string // JSON texts by the key of the question; a missing one is made from the question
}

// String names a target for a person.
func (t Target) String() string {
	kind, _, _ := strings.Cut(t.Method, "/")
	return strings.TrimSuffix(kind, "s") + " " + t.Name
}

// Progress says how far the probe is.
type Progress struct {
	Attack   string // its id
	Number   int    // which attack it is, from 1
	Of       int    // how many there are
	Requests int    // how many were sent so far
}

// Check returns an error if the options make no sense.
func (o *Options) Check() error {
	if o.Rate < 0 || o.Budget < 0 || o.MaxAge < 0 || o.Timeout < 0 || o.MaxTime < 0 {
		return errors.New("rate, budget, age and times must not be negative")
	}
	if o.MaxTime > 0 && o.MaxTime <= o.MaxAge {
		return fmt.Errorf("the run may take %v, and waits for states that are %v old: give it more time", o.MaxTime, o.MaxAge)
	}
	if o.Bearer != "" && o.Bearer == o.OtherBearer {
		return errors.New("the two bearer tokens are the same: nothing could be learned of two users")
	}
	for _, ids := range [][]string{o.Accept, o.Require, o.Only} {
		for _, id := range ids {
			if !slices.ContainsFunc(attacks, func(a Attack) bool { return a.ID == id }) {
				var known []string
				for _, a := range attacks {
					known = append(known, a.ID)
				}
				return fmt.Errorf("there is no attack called %q; the attacks are %s", clip(id, 60), strings.Join(known, ", "))
			}
		}
	}
	for i, targets := range [][]Target{o.Targets, o.Paged} {
		for _, t := range targets {
			if i == 1 && t.Method != "tools/call" || t.Method != "tools/call" && t.Method != "prompts/get" && t.Method != "resources/read" {
				return fmt.Errorf("%s is not a method that carries a state", t.Method)
			}
			for _, text := range slices.Concat([]string{t.Arguments, t.Others}, slices.Collect(maps.Values(t.Answers))) {
				if text != "" && !json.Valid([]byte(text)) {
					return fmt.Errorf("for %s: %q is not JSON", t, clip(text, 60))
				}
			}
			for _, text := range []string{t.Arguments, t.Others} {
				if _, ok := members(text); text != "" && !ok {
					return fmt.Errorf("the arguments of %s are not a JSON object", t)
				}
			}
		}
	}
	return nil
}

// Requests returns the most requests that a run sends if each target asks so many times: those of
// one attack, or for the id "" all of them, with those that look at the server before.
func (o *Options) Requests(id string, asks int) (n int) {
	rounds, books := max(1, len(o.Targets))*asks, len(lists)+len(o.Paged)
	for i := range attacks {
		a := &attacks[i]
		if a.ID == id || id == "" && (o.Only == nil || slices.Contains(o.Only, a.ID)) {
			n += a.most(rounds, books)
		}
	}
	if id == "" {
		n += looks(rounds, len(o.Paged))
	}
	return n
}

// call returns the first request to a target, with the given arguments.
func (t Target) call(arguments string) message {
	m := message{method: t.Method}
	if t.Method == "resources/read" {
		m = m.with("uri", quoted(t.Name))
	} else {
		m = m.with("name", quoted(t.Name)).with("arguments", arguments)
	}
	return m.with("_meta", meta(canEverything))
}

func (t Target) arguments() string {
	if t.Arguments == "" {
		return "{}"
	}
	return t.Arguments
}
