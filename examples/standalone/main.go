// Standalone seals a state, opens it again, and shows what happens to a token
// that another user sends.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/tripseal/tripseal"
)

func main() {
	ctx := context.Background()
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral()}) // Ephemeral keys serve only one process; replicas must share keys
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
	fmt.Println("the client sees ", token)

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
	fmt.Println("mallory gets    ", tripseal.Wire(err).Message)
}
