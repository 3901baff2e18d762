// Package attacks tries to make a server act although its user did not say yes. The attacks
// use a state of another user, another tool or other arguments; a state that was changed; a
// state that was used before; or no state. Each attack is made on each of two replicas.
//
// [AreRefused] fails the test unless the server withstands every attack. [Work] runs the
// same attacks on the same server without tripseal, and fails the test if one of them has no
// effect: an attack that never succeeds proves nothing.
package attacks

import (
	"fmt"
	"testing"
)

// Target describes a server to attack, and what the attacks need to know about it.
type Target struct {
	// Start starts two replicas of the server, which run until the test ends.
	Start func(testing.TB) Fleet

	Tool, Other               string         // two tools that ask the user and take the same arguments; the attacks call Tool
	Arguments, OtherArguments map[string]any // two sets of arguments; with each of them, Tool acts if the user says yes
	Yes                       map[string]any // the answers that say yes to the questions of both tools

	// Tamper changes the state of a call so that the tool does something to which the user
	// did not say yes. It returns false if it could not read the state.
	Tamper func(*Call) bool
}

// Fleet is a running server with two replicas.
type Fleet struct {
	URLs       [2]string
	Alice, Bob string        // access tokens of two users
	Holds      func() string // returns the data of the server as text, so that a change can be noticed
	Reset      func()        // undoes all changes to the data of the server
}

// attack is one way to change an honest call.
type attack struct {
	name   string
	begin  func(*Target) (tool string, arguments map[string]any) // chooses the tool and the arguments of the first round; if begin is nil, they are Target.Tool and Target.Arguments
	change func(*Target, *Fleet, *Call)
	after  bool // true if the attack is made after the honest confirmation
	asks   bool // true if a protected server must ask the user again; false if it must reject the state
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

// AreRefused fails the test if an attack makes the server act. It also fails the test if the
// server does not answer as it must: with the error for a rejected state or, if the state is
// missing, with the question. After an attack, the server must still accept the honest
// confirmation, unless this confirmation was used before.
func AreRefused(t *testing.T, target Target) { each(t, target, true) }

// Work checks that every attack makes the server act. Otherwise it fails the test.
func Work(t *testing.T, target Target) { each(t, target, false) }

func each(t *testing.T, target Target, protected bool) {
	for _, attack := range all {
		// Every flow begins on the first replica. So an attack on the second replica sends
		// it a state that the first replica made.
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
			t.Errorf("the attack does nothing even without tripseal: %s", reply)
		}
		return
	}
	if acted || a.asks != reply.Asks() || a.asks == reply.Rejected() {
		t.Errorf("acted: %t, answered: %s", acted, reply)
	}
	if !a.after { // the honest call must still work: a server that refuses everything would pass the check above too
		fleet.mustAct(t, honest)
	}
}

// mustAct sends an honest confirmation, and fails the test if the server does not act.
func (f *Fleet) mustAct(t *testing.T, honest Call) {
	t.Helper()
	before := f.Holds()
	if reply := f.Send(t, honest); f.Holds() == before {
		t.Fatalf("the honest confirmation did nothing: %s", reply)
	}
}

// flip replaces the character at the given index, and returns the new token.
func flip(token string, at int) string {
	other := "A"
	if token[at] == 'A' {
		other = "B"
	}
	return token[:at] + other + token[at+1:]
}
