// Package attacks tries to make a server act without its user's yes: with the state of
// another user, of another tool or of other arguments, with one that was changed, left
// out or used before, on each of two replicas.
//
// [AreRefused] wants a server to withstand all of them. [Work] wants each to succeed on
// the same server without mcpseal: an attack that never succeeds proves nothing.
package attacks

import (
	"fmt"
	"testing"
)

// Target is a server and how to attack it.
type Target struct {
	// Start serves two replicas of the server, until the test ends.
	Start func(testing.TB) Fleet

	Tool, Other               string         // two tools that ask and take the same arguments; the attacks call Tool
	Arguments, OtherArguments map[string]any // two sets of arguments for which Tool acts after a yes
	Yes                       map[string]any // the answers that say yes to the questions of both tools

	// Tamper changes the state of a call, so that the tool does what nobody said yes
	// to. It reports whether it could read the state.
	Tamper func(*Call) bool
}

// Fleet is a running server with two replicas.
type Fleet struct {
	URLs       [2]string
	Alice, Bob string        // access tokens of two users
	Holds      func() string // returns a text of what the server holds, to notice changes
	Reset      func()        // undoes all changes to what the server holds
}

// attack is one way to change an honest call.
type attack struct {
	name   string
	begin  func(*Target) (tool string, arguments map[string]any) // the call that the user is asked about; nil means the honest call
	change func(*Target, *Fleet, *Call)
	after  bool // true if the honest confirmation is sent before the attack
	asks   bool // true if a protected server must ask again; otherwise it must reject the state
}

var all = []attack{
	{name: "a second user confirms", change: func(_ *Target, f *Fleet, c *Call) { c.Bearer = f.Bob }},
	{name: "a tampered state", change: func(target *Target, _ *Fleet, c *Call) {
		if !target.Tamper(c) {
			c.State = flip(c.State, len(c.State)/2)
		}
	}},
	{name: "a state that the client wrote", change: func(target *Target, _ *Fleet, c *Call) { c.State = ""; target.Tamper(c) }},
	{name: "another tool",
		begin:  func(target *Target) (string, map[string]any) { return target.Other, target.Arguments },
		change: func(*Target, *Fleet, *Call) {}},
	{name: "other arguments", change: func(target *Target, _ *Fleet, c *Call) { c.Arguments = target.OtherArguments }},
	{name: "a missing state", asks: true, change: func(_ *Target, _ *Fleet, c *Call) { c.State = "" }},
	{name: "a repeated confirmation", after: true, change: func(*Target, *Fleet, *Call) {}},
}

// AreRefused fails the test if an attack does anything, or is answered with anything but
// the one error for a rejected state. Then the honest confirmation must be accepted.
func AreRefused(t *testing.T, target Target) { each(t, target, true) }

// Work fails the test if an attack does nothing.
func Work(t *testing.T, target Target) { each(t, target, false) }

func each(t *testing.T, target Target, protected bool) {
	for _, attack := range all {
		// Every flow begins on the first replica. The second replica must go on with a
		// flow that it did not begin.
		for replica := range 2 {
			t.Run(fmt.Sprintf("%s, replica %d", attack.name, replica+1), func(t *testing.T) {
				attack.try(t, &target, replica, protected)
			})
		}
	}
}

func (a *attack) try(t *testing.T, target *Target, replica int, protected bool) {
	fleet := target.Start(t)
	tool, arguments := target.Tool, target.Arguments
	if a.begin != nil {
		tool, arguments = a.begin(target)
	}
	asked := fleet.Send(t, Call{Bearer: fleet.Alice, Tool: tool, Arguments: arguments})
	if !asked.Asks() || asked.State == "" {
		t.Fatalf("the first round: %s", asked)
	}
	honest := Call{Replica: 1, Bearer: fleet.Alice, Tool: tool, Arguments: arguments, State: asked.State, Answers: target.Yes}
	call := honest
	call.Replica, call.Tool = replica, target.Tool
	a.change(target, &fleet, &call)
	if a.after {
		fleet.mustAct(t, honest)
		fleet.Reset()
	}

	before := fleet.Holds()
	reply := fleet.Send(t, call)
	acted := fleet.Holds() != before
	if !protected {
		if !acted {
			t.Errorf("the attack does nothing even without mcpseal: %s", reply)
		}
		return
	}
	if acted || a.asks != reply.Asks() || a.asks == reply.Rejected() {
		t.Errorf("acted: %t, answered: %s", acted, reply)
	}
	if !a.after { // the honest call must still work, because a server that refuses everything proves nothing
		fleet.mustAct(t, honest)
	}
}

// mustAct sends an honest confirmation, and fails the test if the server then does
// nothing.
func (f *Fleet) mustAct(t *testing.T, honest Call) {
	t.Helper()
	before := f.Holds()
	if reply := f.Send(t, honest); f.Holds() == before {
		t.Fatalf("the honest confirmation did nothing: %s", reply)
	}
}

// flip changes one character of a token.
func flip(token string, at int) string {
	other := "A"
	if token[at] == 'A' {
		other = "B"
	}
	return token[:at] + other + token[at+1:]
}
