package compat_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/sealtest"
)

var (
	ask     = tripseal.Question{Key: "confirm", Kind: tripseal.KindForm}
	request = tripseal.Request{
		Method: "tools/call", Target: "deploy", Arguments: []byte(`{"region":"eu","replicas":3}`), Principal: tripseal.User("alice"),
	}
)

// lacks returns the claims that a boundary demands by default and the format cannot carry.
func lacks(format tripseal.Format) tripseal.ClaimSet {
	return (tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimUser |
		tripseal.ClaimQuestions | tripseal.ClaimFlow) &^ format.Carries()
}

func newBoundary(t *testing.T, config tripseal.Config) *tripseal.Boundary {
	t.Helper()
	config.Audience, config.Logger = "deploy.example.com", sealtest.Logger(t)
	boundary, err := tripseal.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return boundary
}

func seal(t *testing.T, boundary *tripseal.Boundary, token, state string) string {
	t.Helper()
	round, err := boundary.Open(t.Context(), request, token)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := boundary.Seal(t.Context(), &round, &state, ask)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func opens(t *testing.T, boundary *tripseal.Boundary, token, want string) tripseal.Round {
	t.Helper()
	round, err := boundary.Open(t.Context(), request, token)
	if err != nil {
		t.Fatalf("a token %.4s… is rejected: %v", token, reasonOf(err))
	}
	if state, ok := round.State(); !ok || state != want {
		t.Fatalf("opened as %q, want %q", state, want)
	}
	return round
}

func reasonOf(err error) tripseal.Reason {
	var rejected *tripseal.RejectError
	if errors.As(err, &rejected) {
		return rejected.Reason
	}
	return ""
}

func rejects(t *testing.T, boundary *tripseal.Boundary, token string, want tripseal.Reason) {
	t.Helper()
	_, err := boundary.Open(t.Context(), request, token)
	if reasonOf(err) != want {
		t.Fatalf("rejected as %q, want %q", reasonOf(err), want)
	}
	wire, _ := json.Marshal(tripseal.Wire(err))
	if string(wire) != `{"code":-32602,"message":"Invalid or expired requestState","data":{"reason":"invalid_request_state"}}` {
		t.Fatalf("the client sees %s", wire)
	}
}

// TestMigration takes the steps of docs/migration.md, for every format.
func TestMigration(t *testing.T) {
	for name, peer := range formats(t, secret) {
		t.Run(name, func(t *testing.T) {
			ring, err := tripseal.NewRing(tripseal.GenerateKey())
			if err != nil {
				t.Fatal(err)
			}
			waive := lacks(peer)

			// 1. A mixed fleet: Go seals what the peer opens.
			mixed := newBoundary(t, tripseal.Config{Format: peer, Waive: waive, AlsoOpen: []tripseal.Accepted{{Format: tripseal.NativeFormat(ring)}}})
			old := seal(t, mixed, "", "step=1")
			if !strings.HasPrefix(old, peer.Prefix()) {
				t.Fatalf("a mixed fleet seals %.4s…", old)
			}
			opens(t, mixed, old, "step=1")

			// 2. The switch: new tokens are native, and old tokens still open.
			switched := newBoundary(t, tripseal.Config{Keys: ring, AlsoOpen: []tripseal.Accepted{{Format: peer, Waive: waive}}})
			round := opens(t, switched, old, "step=1")
			if !round.Accepts("any", ask.Kind) {
				t.Error("the questions of a token that cannot carry them count as pinned")
			}
			native := seal(t, switched, old, "step=2")
			if !strings.HasPrefix(native, "ms1.") {
				t.Fatalf("after the switch a token is %.4s…", native)
			}
			round = opens(t, switched, native, "step=2")
			if asked := slices.Collect(round.Asked); round.Accepts("any", ask.Kind) || len(asked) != 1 || asked[0] != ask {
				t.Errorf("the native token pins %v, or nothing", asked)
			}
			opens(t, mixed, native, "step=2") // during the roll-out, old and new replicas open both formats

			// 3. The old format is switched off.
			done := newBoundary(t, tripseal.Config{Keys: ring})
			opens(t, done, native, "step=2")
			rejects(t, done, old, tripseal.ReasonMalformed)
			rejects(t, done, "junk", tripseal.ReasonMalformed)
		})
	}
}

// store is the simplest store that works.
type store struct {
	mu   sync.Mutex
	used map[tripseal.Use]bool
}

func (s *store) Spend(_ context.Context, use tripseal.Use) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := tripseal.Use{Flow: use.Flow, Round: use.Round}
	if s.used[key] {
		return false, nil
	}
	if s.used == nil {
		s.used = map[tripseal.Use]bool{}
	}
	s.used[key] = true
	return true, nil
}
