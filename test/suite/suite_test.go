// Package suite tests the promises that every protection of a server keeps, whatever the SDK: over raw JSON-RPC,
// as a client sees them.
package suite

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

// A system is one way to protect a server: with the adapter of an SDK, or with a door.
type system struct {
	// start makes a protected server, and returns a client of it. A promise starts as many servers as it needs.
	start func(t *testing.T, server Server) Client
	// cannot maps promises that this system cannot keep to the reason. A name that ends with * means all
	// promises that begin with the text before it. These promises are tested too: a broken one is reported as
	// skipped, and an entry that is kept whole fails, because it must be removed.
	cannot map[string]string
}

var systems = map[string]system{"gosdk": officialSDK, "mcpgo": markSDK, "gosdk behind a door": officialDoor}

func TestEverySystemKeepsItsPromises(t *testing.T) {
	for name, system := range systems {
		t.Run(name, func(t *testing.T) { testSystem(t, system) })
	}
}

func testSystem(t *testing.T, system system) {
	kept := make(map[string]bool) // maps a key of system.cannot to true if all promises of that entry were kept
	for _, promise := range promises() {
		t.Run(promise.name, func(t *testing.T) {
			failures := promise.run(t, system)
			entry := system.entryFor(promise.name)
			if before, tried := kept[entry]; before || !tried {
				kept[entry] = len(failures) == 0
			}
			if entry != "" && len(failures) > 0 {
				t.Skipf("this system cannot do this: %s: %s", system.cannot[entry], failures[0])
			}
			for _, failure := range failures {
				t.Error(failure)
			}
		})
	}
	for entry, why := range system.cannot {
		if !slices.ContainsFunc(promises(), func(p promise) bool { return system.entryFor(p.name) == entry }) {
			t.Errorf("%q is not a promise: take it out of the list of what cannot be kept", entry)
		} else if kept[entry] {
			t.Errorf("the promise %q is kept: take it out of the list of what cannot be kept (%s)", entry, why)
		}
	}
}

// entryFor returns the key of the entry of s.cannot that lists the promise, or "" if there is none.
func (s system) entryFor(promise string) string {
	if _, ok := s.cannot[promise]; ok {
		return promise
	}
	for name := range s.cannot {
		if begin, ok := strings.CutSuffix(name, "*"); ok && strings.HasPrefix(promise, begin) {
			return name
		}
	}
	return ""
}

// Server describes the server that a promise needs.
type Server struct {
	// Boundary is the boundary that protects the server.
	Boundary *tripseal.Boundary
	// Tools and Prompts map names to handlers. A tool takes any object as its arguments. A
	// prompt has two optional arguments, which are called "region" and "more".
	Tools, Prompts map[string]Handler
	// Resources maps URIs to handlers. Templates maps URI templates to handlers.
	Resources, Templates map[string]Handler
	// PageSize is the number of entries on a page of a list. 0 means the SDK's default.
	PageSize int

	// Principal tells who is calling. The parameter user is the user that the
	// [Client] got with this request. Principal may fail or panic.
	Principal func(ctx context.Context, user string) (string, error)
	// AllowAnonymous is true if an empty name from Principal means that there is no user. If
	// it is false, an empty name is an error.
	AllowAnonymous bool
	// RejectedText is the text of the tool result that a client gets if its token is
	// rejected. "" means that the client gets the protocol's error.
	RejectedText string
	// Logger gets the messages of the protection.
	Logger *slog.Logger
}

// Handler is a handler that does not depend on an SDK. The server under test calls
// it from a handler of the SDK, which does not recover panics of the Handler.
type Handler func(ctx context.Context, call Call) (Result, error)

// Call is what the SDK passed to a handler.
type Call struct {
	// State is the opened state that the handler got. "" means that there is none.
	State string
	// Answers maps the key of each question to its answer, as JSON text.
	Answers map[string]string
	// Arguments is the SDK's own value, not a copy: bytes of JSON, or a map. A handler may
	// change it in place. It is nil for resources.
	Arguments any
}

// Result is what a [Handler] returns, before it becomes a result of the SDK.
type Result struct {
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

// Client sends one JSON-RPC request of protocol revision 2026-07-28 as the given user, and
// returns the response. If user is "", the request has no user. A Client is called concurrently.
type Client func(user string, request []byte) (response []byte)

// promise is a promise and its test.
type promise struct {
	name string
	test func(*trial)
}

func promises() []promise {
	return slices.Concat(flowPromises, rejectionPromises, userPromises, argumentPromises,
		answerPromises, handlerPromises, operatorPromises, listPromises)
}

// forCarriers returns one promise for each carrier, that is, for each kind of request.
func forCarriers(carriers []carrier, name string, test func(*trial, carrier)) []promise {
	var promises []promise
	for _, carrier := range carriers {
		promises = append(promises, promise{
			carrier.name + ": " + name, func(a *trial) { test(a, carrier) },
		})
	}
	return promises
}

// run calls the test of the promise. It returns how the promise was broken, or nil if it was
// kept.
func (p promise) run(t *testing.T, system system) (failures []string) {
	a := &trial{t: t, system: system}
	defer func() {
		if r := recover(); r != nil && r != any(trialOver{}) {
			panic(r)
		}
		failures = a.failures
	}()
	p.test(a)
	return nil
}

// trial is the test of one promise. It collects failures instead of failing the test,
// because a system may break the promises that it cannot keep.
type trial struct {
	system
	t        *testing.T
	mu       sync.Mutex
	failures []string
	refusal  map[string]string // maps the message of a rejection to the first response with this message
}

type trialOver struct{}

func (a *trial) failf(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failures = append(a.failures, fmt.Sprintf(format, args...))
}

// stopf fails the trial and ends it. Call it from the trial's own goroutine only.
func (a *trial) stopf(format string, args ...any) {
	a.failf(format, args...)
	panic(trialOver{})
}
