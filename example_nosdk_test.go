package tripseal_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/tripseal/tripseal"
)

// Without an adapter for an SDK, call the boundary for every request.
func Example_withoutAnSDK() {
	ctx := context.Background()
	// Ephemeral keys serve only one process; replicas must share keys.
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	alice := tripseal.Request{
		Method: "tools/call", Target: "deploy", Arguments: []byte(`{"region":"eu"}`),
		Principal: tripseal.User("alice"),
	}

	// Round 1: no token yet. The handler asks, and remembers where it was.
	round, _ := boundary.Open(ctx, alice, "")
	state := "step=1"
	token, err := boundary.Seal(ctx, &round, &state, tripseal.Question{Key: "confirm", Kind: tripseal.KindForm})
	if err != nil {
		log.Fatal(err)
	}

	// Round 2: the token comes back with the answer.
	round, err = boundary.Open(ctx, alice, token)
	if err != nil {
		log.Fatal(err)
	}
	state, _ = round.State()
	fmt.Println("the handler sees", state)

	// Mallory sends Alice's token.
	mallory := alice
	mallory.Principal = tripseal.User("mallory")
	_, err = boundary.Open(ctx, mallory, token)
	fmt.Println("mallory gets", tripseal.Wire(err).Message)
	// Output:
	// the handler sees step=1
	// mallory gets Invalid or expired requestState
}
