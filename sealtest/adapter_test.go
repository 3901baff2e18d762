package sealtest_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal/sealtest"
)

func TestASoundAdapterKeepsItsPromises(t *testing.T) {
	sealtest.TestAdapter(t, fakeWith(""), sealtest.AdapterLimits{})
}

// The variable faults maps each fault of the fake adapter to the promises that it breaks.
var faults = map[string][]string{
	"RejectedText everywhere": {"RejectedText is the rejection of tools alone"},
	"a flow for each round":   {"a flow ends at its last round"},
	"a no with content":       {"what comes with a no never reaches the handler"},
	"all answers": {
		"answers that were not asked for never reach the handler",
		"answers of an earlier round never reach the handler",
		"an answer of another kind never reaches the handler",
		"answers that were dropped are an event",
	},
	"always a token": {
		"a state on a complete result is dropped",
		"a call that asks nothing gets no token",
	},
	"an empty state counts": {"an empty state is none"},
	"answers of any kind":   {"an answer of another kind never reaches the handler"},
	"answers of first calls": {
		"a state that is spelt in another way never reaches the handler unchecked",
		"answers of a first call never reach the handler",
		"answers that were dropped are an event",
	},
	"answers of rejected calls": {"a rejected state can be asked for again"},
	"answers with holes":        {"an answer that is not whole never reaches the handler"},
	"arguments as floats": {
		"numbers that a float64 cannot tell apart are told apart",
		"numbers that Go misreads are refused",
		"arguments that name a member twice are refused",
		"names that differ only in case cannot be swapped",
	},
	"arguments as strings": {
		"arguments may be spelt differently",
		"arguments of every type are bound",
		"numbers that Go misreads are refused",
		"arguments that name a member twice are refused",
	},
	"arguments byte by byte": {
		"arguments may be spelt differently",
		"numbers that Go misreads are refused",
		"arguments that name a member twice are refused",
	},
	"arguments in another order in retries": {
		"names that differ only in case cannot be swapped",
		"names that differ only in case may be sent again",
	},
	"arguments that the handler changes": {"what arrived is bound, whatever the handler does to its arguments"},
	"arguments by their exact name":      {"the arguments that the handler sees are bound, however they are spelt"},
	"states by their exact name":         {"a state that is spelt in another way never reaches the handler unchecked"},
	"cursors opened twice":               {"a refused cursor is one event, with a reason"},
	"asks everybody":                     {"a question that the client has not declared is not asked"},
	"cached tokens": {
		"a state never leaves in plaintext",
		"a state works once if it must",
		"all rejections look the same",
	},
	"cursors for every list": {
		"a cursor of another list is refused",
		"a refused cursor is one event, with a reason",
	},
	"cursors for everybody": {
		"a cursor of another user is refused",
		"a principal that fails refuses the cursor",
		"a cursor needs a user if the boundary says so",
		"a refused cursor is one event, with a reason",
	},
	"errors are rejections":   {"an error of a handler is not a rejection"},
	"everybody may be nobody": {"an empty name fails the check"},
	"failed principals are nobody": {
		"a principal that fails is a rejection like any other",
		"the event of a rejection has the reason",
		"a principal that fails refuses the cursor",
	},
	"failed principals are told": {
		"a call that asks nothing gets no token",
		"all rejections look the same",
		"an empty name fails the check",
		"a principal that fails is a rejection like any other",
		"a principal that panics is a rejection like any other",
		"the event of a rejection has the reason",
		"a principal that fails refuses the cursor",
	},
	"its own audience": {
		"a state of another service is rejected",
		"the event of a rejection has the reason",
		"a cursor of another service is refused",
	},
	"its own keys": {
		"a state under other keys is rejected",
		"an expired state is rejected",
		"all rejections look the same",
		"a codec that fails tells the client nothing",
		"the event of a rejection has the reason",
		"a state whose token pins the wording of its questions never reaches the handler",
	},
	"its own limits": {
		"arguments that are too long are refused",
		"a state that is too long is not sealed",
		"the event of a rejection has the reason",
	},
	"its own policy for expiry": {
		"an expired state is rejected",
		"all rejections look the same",
		"a rejected state can be asked for again",
		"the event of a rejection has the reason",
	},
	"its own policy for single use": {
		"a state works once if it must",
		"all rejections look the same",
		"the event of a rejection has the reason",
	},
	"its own users": {
		"a user is required if the boundary says so",
		"a cursor needs a user if the boundary says so",
	},
	"logs tokens":    {"the log repeats no state, token, answer or user"},
	"pinned states":  {"a state whose token pins the wording of its questions never reaches the handler"},
	"pinned answers": {"a state whose token pins the wording of its questions never reaches the handler"},
	"long tokens are ignored": {
		"a state that is too long is rejected",
		"all rejections look the same",
		"the event of a rejection has the reason",
	},
	"no RejectedText": {"RejectedText is the rejection of tools alone"},
	"no arguments": {
		"all rejections look the same",
		"a state with other arguments is rejected",
		"arguments of every type are bound",
		"numbers that a float64 cannot tell apart are told apart",
		"numbers that Go misreads are refused",
		"arguments that name a member twice are refused",
		"names that differ only in case cannot be swapped",
		"what arrived is bound, whatever the handler does to its arguments",
		"arguments that are too long are refused",
		"the event of a rejection has the reason",
		"the arguments that the handler sees are bound, however they are spelt",
	},
	"no method": {
		"a state for a tool is rejected for the prompt of its name",
		"every seal and every open is one event",
		"the event of a rejection has the reason",
	},
	"no state": {
		"a handler sees its state and the answer",
		"a flow has several rounds",
		"a state needs no question",
		"users who call at once get their own states",
		"what arrived is bound, whatever the handler does to its arguments",
		"answers of an earlier round never reach the handler",
		"a state that is too long is not sealed",
		"every seal and every open is one event",
		"a state that is spelt in another way never reaches the handler unchecked",
	},
	"no target": {
		"a state for another target is rejected",
		"a state for a target that does not exist is rejected like any other",
		"a rejected state is not used up",
		"all rejections look the same",
		"RejectedText is the rejection of tools alone",
		"every seal and every open is one event",
		"the event of a rejection has the reason",
	},
	"no token without a question": {"a state needs no question"},
	"no token without a state":    {"a question needs no state"},
	"no user": {
		"a rejected state is not used up",
		"all rejections look the same",
		"a rejected state can be asked for again",
		"RejectedText is the rejection of tools alone",
		"two users cannot use each other's states",
		"a state of a user is rejected for nobody, and the reverse",
		"an empty name fails the check",
		"a principal that fails is a rejection like any other",
		"a principal that panics is a rejection like any other",
		"a user is required if the boundary says so",
		"users who call at once get their own states",
		"the event of a rejection has the reason",
		"a cursor of another user is refused",
		"a principal that fails refuses the cursor",
		"a cursor needs a user if the boundary says so",
		"a refused cursor is one event, with a reason",
	},
	"opens twice": {
		"a state works once if it must",
		"a rejected state is not used up",
		"all rejections look the same",
		"every seal and every open is one event",
		"the event of a rejection has the reason",
	},
	"panics tell": {"a panic of a handler tells the client nothing, and the server lives"},
	"plain cursors": {
		"a list is whole, and its cursors are sealed",
		"a forged cursor is refused",
		"a cursor of another user is refused",
		"a cursor of another list is refused",
		"a cursor of another service is refused",
		"a principal that fails refuses the cursor",
		"a state is no cursor, and a cursor is no state",
		"a cursor needs a user if the boundary says so",
		"a refused cursor is one event, with a reason",
	},
	"rejections in other words": rejecting,
	"rejections tell": {
		"a forged state is rejected",
		"a state for a target that does not exist is rejected like any other",
		"an expired state is rejected",
		"a rejected state is not used up",
		"all rejections look the same",
		"RejectedText is the rejection of tools alone",
		"a principal that fails is a rejection like any other",
		"a principal that panics is a rejection like any other",
		"a state is no cursor, and a cursor is no state",
	},
	"silent drops":               {"answers that were dropped are an event"},
	"states of complete results": {"a state on a complete result is dropped"},
	"the first question alone":   {"questions that cannot be sealed are not asked"},
	"the state beside the token": {
		"a state never leaves in plaintext",
		"a state needs no question",
	},
	"the state if it is not sealed": {
		"a flow ends at its last round",
		"an empty name fails the check",
		"a principal that fails is a rejection like any other",
		"a principal that panics is a rejection like any other",
		"a user is required if the boundary says so",
		"numbers that Go misreads are refused",
		"arguments that name a member twice are refused",
		"arguments that are too long are refused",
		"a state that is too long is not sealed",
		"questions that cannot be sealed are not asked",
		"a codec that fails tells the client nothing",
	},
	"trimmed cursors":       {"a forged cursor is refused"},
	"trimmed tokens":        {"a forged state is rejected"},
	"unknown targets first": {"a state for a target that does not exist is rejected like any other"},
}

// rejecting has the promises about rejected states.
var rejecting = []string{
	"a forged state is rejected",
	"a state that is too long is rejected",
	"a state for another target is rejected",
	"a state for a tool is rejected for the prompt of its name",
	"a state for a target that does not exist is rejected like any other",
	"a state of another service is rejected",
	"a state under other keys is rejected",
	"an expired state is rejected",
	"a state works once if it must",
	"a rejected state is not used up",
	"all rejections look the same",
	"RejectedText is the rejection of tools alone",
	"two users cannot use each other's states",
	"a state of a user is rejected for nobody, and the reverse",
	"an empty name fails the check",
	"a principal that fails is a rejection like any other",
	"a principal that panics is a rejection like any other",
	"a user is required if the boundary says so",
	"users who call at once get their own states",
	"a state with other arguments is rejected",
	"arguments of every type are bound",
	"numbers that a float64 cannot tell apart are told apart",
	"numbers that Go misreads are refused",
	"arguments that name a member twice are refused",
	"names that differ only in case cannot be swapped",
	"what arrived is bound, whatever the handler does to its arguments",
	"arguments that are too long are refused",
	"a state is no cursor, and a cursor is no state",
}

// ofTools returns the name of a promise without its prefix, such as "tool: ". The result ok is false
// for promises about prompts, resources and templates, because each of them repeats a promise about
// tools.
func ofTools(promise string) (name string, ok bool) {
	of, name, found := strings.Cut(promise, ": ")
	if !found {
		return promise, true
	}
	return name, of == "tool" || of == "list of tools"
}

func TestEachFaultOfAnAdapterBreaksItsPromises(t *testing.T) {
	for fault, want := range faults {
		t.Run(fault, func(t *testing.T) {
			var broken []string
			for _, promise := range sealtest.AdapterPromises() {
				if name, ok := ofTools(promise); ok && len(sealtest.AdapterFailures(t, promise, fakeWith(fault))) > 0 {
					broken = append(broken, name)
				}
			}
			for _, name := range broken {
				if !slices.Contains(want, name) {
					t.Errorf("breaks %q too", name)
				}
			}
			for _, name := range want {
				if !slices.Contains(broken, name) {
					t.Errorf("does not break %q", name)
				}
			}
		})
	}
}

// TestNoPromiseOfAdaptersIsEmpty checks that each promise has a fault that breaks it. A test that
// cannot fail is worth nothing.
func TestNoPromiseOfAdaptersIsEmpty(t *testing.T) {
	breakable := make(map[string]bool)
	for _, names := range faults {
		for _, name := range names {
			breakable[name] = true
		}
	}
	seen := make(map[string]bool)
	for _, promise := range sealtest.AdapterPromises() {
		if name, ok := ofTools(promise); ok && !breakable[name] {
			t.Errorf("no fault breaks %q", name)
		}
		if seen[promise] {
			t.Errorf("there are two promises %q", promise)
		}
		seen[promise] = true
	}
}

const adapterEnv = "SEALTEST_ADAPTER"

// TestThePromisesThatAnSDKCannotKeepAreCheckedToo checks how the suite treats the promises in
// AdapterLimits.Cannot. For example, the suite must fail if the adapter keeps such a promise. The
// test runs this test binary again, so that the suite fails in another process.
func TestThePromisesThatAnSDKCannotKeepAreCheckedToo(t *testing.T) {
	const promise = "tool: a state for a target that does not exist is rejected like any other"
	excused := make(map[string]string)
	for _, of := range []string{"tool", "prompt", "resource", "template"} {
		excused[of+strings.TrimPrefix(promise, "tool")] = "it looks for the target first"
	}
	cases := map[string]struct {
		fault  string
		cannot map[string]string
		passes bool
		want   string
	}{
		"broken":   {"unknown targets first", nil, false, "is not rejected with"},
		"excused":  {"unknown targets first", excused, true, "it looks for the target first"},
		"kept":     {"", map[string]string{promise: "it looks for the target first"}, false, "the adapter keeps the promise"},
		"all":      {"unknown targets first", map[string]string{"*": "it looks for the target first"}, true, "it looks for the target first"},
		"all kept": {"", map[string]string{"tool: *": "it looks for the target first"}, false, "the adapter keeps the promise"},
		"unknown":  {"", map[string]string{"tool: a promise": "no reason"}, false, `"tool: a promise" is not a promise`},
	}
	if name := os.Getenv(adapterEnv); name != "" {
		sealtest.TestAdapter(t, fakeWith(cases[name].fault), sealtest.AdapterLimits{Cannot: cases[name].cannot})
		return
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.v", "-test.run=^TestThePromisesThatAnSDKCannotKeepAreCheckedToo$")
			cmd.Env = append(os.Environ(), adapterEnv+"="+name)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) || (err == nil) != c.passes || !bytes.Contains(out, []byte(c.want)) {
				t.Errorf("%v, and no %q in:\n%.2000s", err, c.want, out)
			}
		})
	}
}
