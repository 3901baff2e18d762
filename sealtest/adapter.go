package sealtest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpseal/mcpseal"
)

// TestAdapter tests an adapter of an MCP SDK: each subtest is a promise that every adapter
// keeps. start makes a server with the adapter under test, as AdapterServer describes
// it, and returns a client of that server. Each promise starts servers of its own.
func TestAdapter(t *testing.T, start func(t *testing.T, server AdapterServer) AdapterClient, limits AdapterLimits) {
	promises := adapterPromises()
	kept := make(map[string]bool) // for each entry of limits.Cannot that was tried: all its promises hold
	for _, promise := range promises {
		t.Run(promise.name, func(t *testing.T) {
			failures := promise.run(t, start, limits)
			entry := limits.entry(promise.name)
			if before, tried := kept[entry]; before || !tried {
				kept[entry] = len(failures) == 0
			}
			if entry != "" && len(failures) > 0 {
				t.Skipf("the SDK cannot do this: %s: %s", limits.Cannot[entry], failures[0])
			}
			for _, failure := range failures {
				t.Error(failure)
			}
		})
	}
	for entry, why := range limits.Cannot {
		if !slices.ContainsFunc(promises, func(p adapterPromise) bool { return limits.entry(p.name) == entry }) {
			t.Errorf("%q is not a promise: take it out of the list of what the SDK cannot do", entry)
		} else if kept[entry] {
			t.Errorf("the adapter keeps the promise %q: take it out of the list of what the SDK cannot do (%s)", entry, why)
		}
	}
}

// AdapterLimits is what an SDK keeps an adapter from doing. The zero value is no limit.
type AdapterLimits struct {
	// Cannot has the reason why a promise cannot be kept, by the name of the promise. A
	// name that ends with * stands for all promises that begin so. The promises run all
	// the same: a failure is reported as skipped, and a name whose promises all hold is
	// reported as a failure.
	Cannot map[string]string
	// InvalidCursor is the message that refuses the cursor of a list. "" means that of
	// package cursor.
	InvalidCursor string
}

// entry returns the name in Cannot that excuses a promise, or "".
func (l AdapterLimits) entry(promise string) string {
	if _, ok := l.Cannot[promise]; ok {
		return promise
	}
	for name := range l.Cannot {
		if begin, ok := strings.CutSuffix(name, "*"); ok && strings.HasPrefix(promise, begin) {
			return name
		}
	}
	return ""
}

// AdapterServer describes the server that a promise needs.
type AdapterServer struct {
	// Boundary is what the adapter protects the server with.
	Boundary *mcpseal.Boundary
	// Tools and Prompts are handlers by name. A tool takes any object as its arguments,
	// and a prompt takes the optional arguments region and more.
	Tools, Prompts map[string]AdapterHandler
	// Resources are handlers by URI, and Templates by URI template.
	Resources, Templates map[string]AdapterHandler
	// PageSize is the number of entries on a page of a list. 0 means the SDK's default.
	PageSize int

	// Principal is what the adapter asks who is calling: with the user that the client
	// named in this very request. It may fail or panic.
	Principal func(ctx context.Context, user string) (string, error)
	// AllowAnonymous says that an empty name from Principal means nobody. Otherwise it
	// fails the check.
	AllowAnonymous bool
	// RejectedText is the text of the tool result that a rejected token gets. "" means
	// the protocol's error.
	RejectedText string
	// Logger gets the adapter's own messages.
	Logger *slog.Logger
}

// AdapterHandler is a handler in neutral terms. The harness calls it from a handler of
// the SDK, and lets its panics pass.
type AdapterHandler func(ctx context.Context, call AdapterCall) (AdapterResult, error)

// AdapterCall is what a handler of the SDK was given.
type AdapterCall struct {
	State string
	// Answers are the answers by key, each written as JSON.
	Answers map[string]string
	// Arguments is the SDK's own value, not a copy: bytes of JSON, or a map. A handler
	// may change it in place. Nil for resources.
	Arguments any
}

// AdapterResult is what a handler of the SDK returns.
type AdapterResult struct {
	// Text is the content of a complete result.
	Text string
	// State is what the handler wants to remember. A result that asks nothing may have
	// one too, by mistake.
	State string
	// Questions are the kinds of what the handler asks, by key. Nil means that the
	// result is complete; an empty map asks nothing, but wants to be called again.
	Questions map[string]mcpseal.Kind
}

// AdapterClient sends one JSON-RPC request of protocol revision 2026-07-28 as this user,
// and returns the response. "" sends it as nobody. It is called concurrently.
type AdapterClient func(user string, request []byte) (response []byte)

// adapterPromise is a promise and its test.
type adapterPromise struct {
	name string
	test func(*adapterTrial)
}

func adapterPromises() []adapterPromise {
	return slices.Concat(flowPromises, rejectionPromises, userPromises, argumentPromises,
		answerPromises, handlerPromises, operatorPromises, listPromises)
}

// forCarriers makes a promise of each carrier.
func forCarriers(carriers []adapterCarrier, name string, test func(*adapterTrial, adapterCarrier)) []adapterPromise {
	var promises []adapterPromise
	for _, carrier := range carriers {
		promises = append(promises, adapterPromise{
			carrier.name + ": " + name, func(a *adapterTrial) { test(a, carrier) },
		})
	}
	return promises
}

// run returns how the promise was broken, and nothing if it was kept.
func (p adapterPromise) run(t *testing.T, start func(*testing.T, AdapterServer) AdapterClient, limits AdapterLimits) (failures []string) {
	a := &adapterTrial{t: t, start: start, limits: limits}
	defer func() {
		if r := recover(); r != nil && r != any(trialOver{}) {
			panic(r)
		}
		failures = a.failures
	}()
	p.test(a)
	return nil
}

// adapterTrial is the test of one promise. It collects failures, so that a promise which
// the SDK cannot keep can be tried too.
type adapterTrial struct {
	t        *testing.T
	start    func(*testing.T, AdapterServer) AdapterClient
	limits   AdapterLimits
	mu       sync.Mutex
	failures []string
	refusal  map[string]string // the first rejection of a state, and of a cursor
}

type trialOver struct{}

func (a *adapterTrial) failf(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failures = append(a.failures, fmt.Sprintf(format, args...))
}

// stopf fails the trial and ends it. Call it from the trial's own goroutine only.
func (a *adapterTrial) stopf(format string, args ...any) {
	a.failf(format, args...)
	panic(trialOver{})
}
