package compat_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

// replica serves one round of a flow: it returns the token for the next round, or the result.
type replica func(ctx context.Context, token string) (next, result string, err error)

// step is the handler of a tool that asks twice. It goes on only with a state that it wrote itself.
// Each state holds the flow's name, which is also the result.
func step(state string) (next, result string, err error) {
	name, at, _ := strings.Cut(state, " ")
	switch {
	case state == "":
		return fmt.Sprintf("flow%d asked", flows.Add(1)), "", nil
	case at == "asked":
		return name + " asked-again", "", nil
	case at == "asked-again":
		return "", name, nil
	}
	return "", "", errors.New("the handler does not know this state")
}

var flows atomic.Int64

// behind returns a replica whose states go through the boundary.
func behind(boundary *tripseal.Boundary) replica {
	return func(ctx context.Context, token string) (string, string, error) {
		round, err := boundary.Open(ctx, request, token)
		if err != nil {
			return "", "", err
		}
		state, _ := round.State()
		state, result, err := step(state)
		if state == "" {
			return "", result, err
		}
		next, err := boundary.Seal(ctx, &round, &state, ask)
		return next, "", err
	}
}

// oldReplica returns a replica that has no boundary. All replicas are like this before the
// roll-outs.
func oldReplica(open func(ctx context.Context, token string) (string, error), seal func(ctx context.Context, state string) (string, error)) replica {
	return func(ctx context.Context, token string) (next, result string, err error) {
		state := ""
		if token != "" {
			if state, err = open(ctx, token); err != nil {
				return "", "", err
			}
		}
		if state, result, err = step(state); state == "" {
			return "", result, err
		}
		next, err = seal(ctx, state)
		return next, "", err
	}
}

// fleet is three replicas behind a load balancer that takes them in turn.
type fleet struct {
	replicas [3]atomic.Pointer[replica]
	turn     atomic.Uint64
}

func (f *fleet) serve(ctx context.Context, token string) (next, result string, err error) {
	return (*f.replicas[f.turn.Add(1)%3].Load())(ctx, token)
}

// flow runs one call to its end.
func (f *fleet) flow(ctx context.Context) error {
	token := ""
	for range 2 {
		next, _, err := f.serve(ctx, token)
		if err != nil {
			return err
		}
		token = next
	}
	if next, result, err := f.serve(ctx, token); err != nil || next != "" || result == "" {
		return fmt.Errorf("a flow ends with %q, %q, %w", next, result, err)
	}
	return nil
}

// This method sends every token to every replica, and returns the tokens of the next rounds.
func (f *fleet) each(ctx context.Context, tokens []string) (next []string, err error) {
	for i := range f.replicas {
		for _, token := range tokens {
			sealed, _, err := (*f.replicas[i].Load())(ctx, token)
			if err != nil {
				return nil, fmt.Errorf("replica %d: %w", i, err)
			}
			if sealed != "" {
				next = append(next, sealed)
			}
		}
	}
	return next, nil
}

// roll replaces one replica after the other while flows are under way. Flows that began before a
// replacement must go on after it, at every replica.
func (f *fleet) roll(ctx context.Context, to replica, finished <-chan struct{}) error {
	for i := range f.replicas {
		asked, err := f.each(ctx, []string{""})
		if err != nil {
			return err
		}
		again, err := f.each(ctx, asked)
		if err != nil {
			return err
		}
		f.replicas[i].Store(&to)
		if _, err = f.each(ctx, append(asked, again...)); err != nil {
			return fmt.Errorf("after replica %d was replaced: %w", i, err)
		}
		for range 500 {
			<-finished
		}
	}
	return nil
}

// underLoad runs flows while the given function runs. It returns after the last of these flows has
// ended.
func (f *fleet) underLoad(t *testing.T, during func(finished <-chan struct{})) {
	finished, stop := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for {
				if err := f.flow(t.Context()); err != nil {
					t.Errorf("a flow was lost: %v (%s)", err, reasonOf(err))
				}
				select {
				case finished <- struct{}{}:
				case <-stop:
					return
				}
			}
		})
	}
	defer group.Wait()
	defer close(stop)
	during(finished)
}

// moving is a fleet that will move from an old format to native tokens.
type moving struct {
	fleet
	old   tripseal.Format
	waive tripseal.ClaimSet
	ring  *tripseal.Ring
}

func newMoving(t *testing.T, old tripseal.Format, waive tripseal.ClaimSet, today replica) *moving {
	m := &moving{old: old, waive: waive, ring: newRing(t)}
	for i := range m.replicas {
		m.replicas[i].Store(&today)
	}
	return m
}

// movers returns the fleets for which docs/migration.md describes two roll-outs.
func movers(t *testing.T) map[string]*moving {
	asIs := func(_ context.Context, text string) (string, error) { return text, nil }
	own := ownFormat{secret}
	alice := &tripseal.Binding{Method: "tools/call", Target: "deploy", User: "alice"}
	return map[string]*moving{
		"a format of its own": newMoving(t, own, lacks(own), oldReplica(
			func(ctx context.Context, token string) (string, error) {
				claims, err := own.Open(ctx, alice, token)
				return claims.State, err
			},
			func(ctx context.Context, state string) (string, error) {
				return own.Seal(ctx, alice, &tripseal.Claims{State: state, Expires: time.Now().Add(time.Hour).UnixMilli()})
			})),
		"plaintext": newMoving(t, plaintextOf(t, time.Hour), everything, oldReplica(asIs, asIs)),
	}
}

func TestNoFlowIsLostInTwoRollOuts(t *testing.T) {
	for name, m := range movers(t) {
		t.Run(name, func(t *testing.T) {
			first := newBoundary(t, firstRollOut(m.old, m.waive, m.ring))
			second := newBoundary(t, secondRollOut(m.old, m.waive, m.ring))
			done := newBoundary(t, tripseal.Config{Keys: m.ring})
			old, native := seal(t, first, "", "flow asked"), seal(t, second, "", "flow asked")
			forged := native[:60] + "AAAA" + native[64:]
			m.underLoad(t, func(finished <-chan struct{}) {
				for i, to := range []*tripseal.Boundary{first, second} {
					if err := m.roll(t.Context(), behind(to), finished); err != nil {
						t.Errorf("roll-out %d: %v (%s)", i+1, err, reasonOf(err))
					}
					rejects(t, to, forged, tripseal.ReasonForged)
					rejects(t, to, native[:len(native)-4], tripseal.ReasonForged)
					opens(t, to, old, "flow asked")
					opens(t, to, native, "flow asked")
				}
			})
			// All flows of the old format have ended, so another roll-out drops that format.
			m.underLoad(t, func(finished <-chan struct{}) {
				if err := m.roll(t.Context(), behind(done), finished); err != nil {
					t.Errorf("dropping the old format: %v (%s)", err, reasonOf(err))
				}
			})
			rejects(t, done, old, tripseal.ReasonMalformed)
			opens(t, done, native, "flow asked")
		})
	}
}

// TestOneRollOutLosesFlows skips the first roll-out, and shows that the test above can fail.
func TestOneRollOutLosesFlows(t *testing.T) {
	for name, m := range movers(t) {
		t.Run(name, func(t *testing.T) {
			finished := make(chan struct{})
			close(finished)
			hasty := behind(newBoundary(t, secondRollOut(m.old, m.waive, m.ring)))
			if err := m.roll(t.Context(), hasty, finished); err == nil {
				t.Error("replicas that do not open native tokens yet were not noticed")
			}
		})
	}
}
