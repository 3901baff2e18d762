package tripseal_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/whose"
)

func TestAStateOfElicitReachesNoHandler(t *testing.T) {
	s := newService(t, tripseal.Config{})
	round := s.accept(t, deploy(), s.first(t, deploy(), whose.Sign("its state"), confirm))
	if state, ok := round.State(); ok || state != "" {
		t.Errorf("a handler gets the state %q", state)
	}
	if round.Accepts("confirm", tripseal.KindForm) {
		t.Error("a handler gets an answer")
	}
	if state, ok := round.Elicit(); !ok || state != "its state" {
		t.Errorf("package elicit gets %q, %v", state, ok)
	}
	if round.First() {
		t.Error("the round counts as the first")
	}
}

// TestNoTextOfAClientCountsAsAStateOfElicit lets a handler keep what a client may send.
func TestNoTextOfAClientCountsAsAStateOfElicit(t *testing.T) {
	s := newService(t, tripseal.Config{})
	signed := whose.Sign("its state")
	for _, text := range []string{
		"its state", "", whose.Mark, whose.Mark + "its state", signed + " ", signed[:len(signed)-1], " " + signed,
		strings.ToUpper(signed[:len(whose.Mark)+1]) + signed[len(whose.Mark)+1:], whose.Mark + strings.Repeat("A", 43) + "its state",
	} {
		round := s.accept(t, deploy(), s.first(t, deploy(), text, confirm))
		if state, ok := round.Elicit(); ok || state != "" {
			t.Errorf("%q counts as the state %q of package elicit", text, state)
		}
		if state, ok := round.State(); !ok || state != text {
			t.Errorf("%q came back to the handler as %q", text, state)
		}
	}
}

// TestAFormatThatCannotSayWhoseStateItHoldsNeedsAWaiver uses a format that holds a state, and no claim.
func TestAFormatThatCannotSayWhoseStateItHoldsNeedsAWaiver(t *testing.T) {
	others := allClaims &^ tripseal.ClaimElicit
	request := deploy()
	strict := newService(t, tripseal.Config{Format: readable{}, Waive: others})
	round, err := strict.Open(t.Context(), request, "")
	if err != nil {
		t.Fatal(err)
	}
	state := whose.Sign("its state")
	if _, err := strict.Seal(t.Context(), &round, &state, confirm); err == nil {
		t.Error("a state of package elicit was sealed")
	}
	if round = strict.accept(t, request, "plain."+whose.Mark+"its state"); !hasOnly(&round, whose.Mark+"its state", "") {
		t.Error("without a waiver, a state counts as one of package elicit")
	}

	waived := newService(t, tripseal.Config{Format: readable{}, Waive: allClaims})
	round = waived.accept(t, request, waived.first(t, request, state, confirm))
	if !hasOnly(&round, "", "its state") {
		t.Error("with a waiver, package elicit does not get its state back")
	}
	round = waived.accept(t, request, waived.first(t, request, "step=1", confirm))
	if !hasOnly(&round, "step=1", "") {
		t.Error("with a waiver, a handler does not get its state back")
	}
}

// hasOnly reports whether a round has this state for a handler, and this one for package elicit; "" means none.
func hasOnly(round *tripseal.Round, handler, elicit string) bool {
	state, has := round.State()
	its, elicited := round.Elicit()
	return state == handler && has == (handler != "") && its == elicit && elicited == (elicit != "")
}

// pretending is a format that carries no claims, and says that package elicit wrote each state.
type pretending struct{ readable }

func (f pretending) Open(ctx context.Context, b *tripseal.Binding, token string) (tripseal.Claims, error) {
	claims, err := f.readable.Open(ctx, b, token)
	claims.Elicit = true
	return claims, err
}

func TestAFormatThatCannotSayWhoseStateItHoldsIsNotBelieved(t *testing.T) {
	for _, waived := range []tripseal.ClaimSet{allClaims, allClaims &^ tripseal.ClaimElicit} {
		s := newService(t, tripseal.Config{Format: pretending{}, Waive: waived})
		if round := s.accept(t, deploy(), "plain.step=1"); !hasOnly(&round, "step=1", "") {
			t.Errorf("a state counts as one of package elicit, with the waiver of %s", waived)
		}
	}
}
