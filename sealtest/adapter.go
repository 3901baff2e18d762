package sealtest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tripseal/tripseal"
)

// TestAdapter tests an adapter of an MCP SDK. Each subtest checks a promise that every adapter must
// keep. The function start makes a server with the adapter under test, and returns a client of that
// server. The [AdapterServer] says what the server must be like. Each subtest starts its own
// servers. Call TestAdapter in a test of your adapter; the tests of gosdk and mcpgo do the same.
func TestAdapter(t *testing.T, start func(t *testing.T, server AdapterServer) AdapterClient, limits AdapterLimits) {
	promises := adapterPromises()
	kept := make(map[string]bool) // maps a key of limits.Cannot to true if the adapter kept all promises of that entry
	for _, promise := range promises {
		t.Run(promise.name, func(t *testing.T) {
			failures := promise.run(t, start, limits)
			entry := limits.entryFor(promise.name)
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
		if !slices.ContainsFunc(promises, func(p adapterPromise) bool { return limits.entryFor(p.name) == entry }) {
			t.Errorf("%q is not a promise: take it out of the list of what the SDK cannot do", entry)
		} else if kept[entry] {
			t.Errorf("the adapter keeps the promise %q: take it out of the list of what the SDK cannot do (%s)", entry, why)
		}
	}
}

// AdapterLimits lists what an adapter cannot do because of its SDK. Pass an
// AdapterLimits to [TestAdapter]. The zero value means no limits.
type AdapterLimits struct {
	// Cannot is a list of the promises that the adapter cannot keep. Each entry has the name of a
	// promise, and the reason. A name that ends with * means all promises whose names begin with
	// the text before the *. TestAdapter still tests the listed promises. If one is broken, its
	// test is reported as skipped. If the adapter keeps all promises of an entry, TestAdapter
	// fails: remove the entry.
	Cannot map[string]string
	// InvalidCursor is the message of the error that refuses the cursor of a list. "" means
	// the message that package cursor has for this error.
	InvalidCursor string
}

// entryFor looks for a promise in the map l.Cannot. It returns the key of the entry that lists the
// promise, or "" if there is none.
func (l AdapterLimits) entryFor(promise string) string {
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

// AdapterServer describes a server that a subtest of [TestAdapter] needs. The function that you
// pass to TestAdapter makes this server.
type AdapterServer struct {
	// Boundary is the boundary with which the adapter protects the server.
	Boundary *tripseal.Boundary
	// Tools and Prompts map names to handlers. A tool takes any object as its arguments. A
	// prompt has two optional arguments, which are called "region" and "more".
	Tools, Prompts map[string]AdapterHandler
	// Resources maps URIs to handlers. Templates maps URI templates to handlers.
	Resources, Templates map[string]AdapterHandler
	// PageSize is the number of entries on a page of a list. 0 means the SDK's default.
	PageSize int

	// Principal tells the adapter who is calling. The parameter user is the user that
	// [AdapterClient] got with this request. Principal may fail or panic.
	Principal func(ctx context.Context, user string) (string, error)
	// AllowAnonymous is true if an empty name from Principal means that there is no user. If
	// it is false, an empty name is an error.
	AllowAnonymous bool
	// RejectedText is the text of the tool result that a client gets if its token is
	// rejected. "" means that the client gets the protocol's error.
	RejectedText string
	// Logger gets the adapter's own messages.
	Logger *slog.Logger
}

// AdapterHandler is a handler that does not depend on an SDK. The server under test calls
// it from a handler of the SDK. That handler of the SDK must not recover panics of the
// AdapterHandler.
type AdapterHandler func(ctx context.Context, call AdapterCall) (AdapterResult, error)

// AdapterCall is what the SDK passed to a handler. Fill it in from the request of the
// SDK, before you call an [AdapterHandler].
type AdapterCall struct {
	// State is the opened state that the handler got. "" means that there is none.
	State string
	// Answers maps the key of each question to its answer, as JSON text.
	Answers map[string]string
	// Arguments is the SDK's own value, not a copy: bytes of JSON, or a map. A handler may
	// change it in place. It is nil for resources.
	Arguments any
}

// AdapterResult is what an [AdapterHandler] returns. Convert it into a result of the SDK.
type AdapterResult struct {
	// Text is the content of a complete result.
	Text string
	// State is what the handler wants to remember. A result that asks no question may, by
	// mistake, have a state too.
	State string
	// Questions maps the key of each question to the kind of the question. Nil means that
	// the result is complete. An empty map asks no question, but makes the client call
	// again.
	Questions map[string]tripseal.Kind
}

// AdapterClient sends one JSON-RPC request of protocol revision 2026-07-28 as the given user, and
// returns the response. If user is "", the request has no user. An AdapterClient is called
// concurrently. The function that you pass to [TestAdapter] returns it.
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

// forCarriers returns one promise for each carrier, that is, for each kind of request.
func forCarriers(carriers []adapterCarrier, name string, test func(*adapterTrial, adapterCarrier)) []adapterPromise {
	var promises []adapterPromise
	for _, carrier := range carriers {
		promises = append(promises, adapterPromise{
			carrier.name + ": " + name, func(a *adapterTrial) { test(a, carrier) },
		})
	}
	return promises
}

// run calls the test of the promise. It returns how the promise was broken, or nil if it was
// kept.
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

// adapterTrial is the test of one promise. It collects failures instead of failing the test,
// because the adapter is allowed to break a promise that is in limits.Cannot.
type adapterTrial struct {
	t        *testing.T
	start    func(*testing.T, AdapterServer) AdapterClient
	limits   AdapterLimits
	mu       sync.Mutex
	failures []string
	refusal  map[string]string // maps the message of a rejection to the first response with this message
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
