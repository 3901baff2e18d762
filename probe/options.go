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

// Options say what the probe calls, as which users, and how many requests it may send.
type Options struct {
	// Targets are the tools, prompts and resources that the probe calls. The calls have real
	// effects on the server. A target must ask the user something, or there is no state to
	// attack.
	Targets []Target
	// Paged are tools that return pages: they have an argument called cursor, and their
	// structured result has a member nextCursor.
	Paged []Target
	// Bearer and OtherBearer are the access tokens of two users. Each has at least 8 characters. No
	// report shows them.
	Bearer, OtherBearer string
	// UserHeader is for a server behind a gateway that puts the user's name into a header. If
	// UserHeader names that header, Bearer and OtherBearer are the names of two users. The
	// probe sends them in that header, and reports show them.
	UserHeader string
	// Unsolicited has the names of tools that are meant to accept answers in their first call.
	// The probe reports this as an accepted risk.
	Unsolicited []string
	// Accept has the ids of attacks whose findings are an accepted risk.
	Accept []string
	// Require has the ids of attacks that the probe must be able to try. If it cannot try one
	// of them, the run does not succeed.
	Require []string
	// If Only is not nil, the probe tries only the attacks with these ids.
	Only []string
	// Decline makes the probe answer every elicitation with a refusal by the user, so that
	// honest calls have no effect.
	Decline bool
	// SingleUse says that a state must work only once. If it is false, a state that works
	// twice is reported as information.
	SingleUse bool
	// Refusal is for a server that answers with an ordinary result, not with an error, when it
	// refuses a state. A result that contains this text counts as a refusal.
	Refusal string
	// MaxAge is the age after which a state must be refused. If it is zero, the attack
	// "expired" is not tried.
	MaxAge time.Duration
	// Rate is the maximum number of requests per second. Budget is the maximum number of
	// requests of the whole run. For both, 0 means no limit.
	Rate, Budget int
	// Timeout is how long the probe waits for one answer, by default 10 seconds.
	Timeout time.Duration
	// MaxTime is how long the whole run may take, by default 30 minutes plus MaxAge.
	MaxTime time.Duration
	// Progress is called before each attack that is tried, and at every 100th request. It may
	// be nil.
	Progress func(Progress)

	sleep func(time.Duration) // waits; replaced in tests
}

// Target is a tool, a prompt or a resource. List it in [Options].Targets or
// [Options].Paged.
type Target struct {
	Method    string            // tools/call, prompts/get or resources/read
	Name      string            // the name, or the URI of a resource
	Arguments string            // a JSON object; "" means {}
	Others    string            // other valid arguments, a JSON object; if "", the probe makes some up
	Answers   map[string]string // maps the key of a question to its answer, a JSON text; the probe makes up missing answers
}

// String returns the target as a person reads it, such as "tool deploy". Reports name
// targets like this.
func (t Target) String() string {
	kind, _, _ := strings.Cut(t.Method, "/")
	return strings.TrimSuffix(kind, "s") + " " + t.Name
}

// Progress says how far the probe is. The function in [Options].Progress gets it, to show
// that the run goes on.
type Progress struct {
	Attack   string // the id of the current attack
	Number   int    // the number of the current attack, from 1
	Of       int    // how many attacks there are
	Requests int    // how many requests were sent so far
}

// Check returns an error if the options make no sense. [Run] calls it too; call it
// yourself to find a mistake before you start a server.
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
	switch {
	case o.UserHeader == "":
		for _, token := range []string{o.Bearer, o.OtherBearer} {
			if token != "" && len(token) < 8 {
				return errors.New("a bearer token has fewer than 8 characters, and could not be kept out of the report; if it is the name of a user, name the header for it")
			}
		}
	case strings.Trim(strings.ToLower(o.UserHeader), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || strings.EqualFold(o.UserHeader, "Authorization"):
		return errors.New("that is not the name of a header for a user's name, such as X-User")
	case o.Bearer == "":
		return errors.New("there is a header for the name of a user, but no user")
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

// Requests returns the maximum number of requests that the attack with this id sends. If id is
// "", it returns the maximum for the whole run, including the requests before the first attack.
// The second parameter is the number of times that each target asks questions. Use Requests to
// tell the owner of the server what to expect.
func (o *Options) Requests(id string, asks int) (n int) {
	rounds, books := max(1, len(o.Targets))*asks, len(lists)+len(o.Paged)
	for i := range attacks {
		a := &attacks[i]
		if a.ID == id || id == "" && (o.Only == nil || slices.Contains(o.Only, a.ID)) {
			n += a.maxRequests(rounds, books)
		}
	}
	if id == "" {
		n += maxLookRequests(rounds, len(o.Paged))
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
