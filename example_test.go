package mcpseal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mcpseal/mcpseal"
)

func Example() {
	ctx := context.Background()
	boundary, err := mcpseal.New(mcpseal.Config{Keys: mcpseal.Ephemeral(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	request := mcpseal.Request{Method: "tools/call", Target: "deploy", Principal: mcpseal.User("alice")}

	round, _ := boundary.Open(ctx, request, "") // round 1: no token yet
	state := "step=1"
	token, err := boundary.Seal(ctx, &round, &state)
	if err != nil {
		panic(err)
	}

	round, err = boundary.Open(ctx, request, token) // round 2
	fmt.Println(round.State())
	fmt.Println(err)

	request.Target = "destroy"
	_, err = boundary.Open(ctx, request, token)
	fmt.Println(err)
	// Output:
	// step=1 true
	// <nil>
	// mcpseal: token rejected
}

// Keys that all replicas share: the first seals, every one opens. The package
// keys has rings that come from a file or the environment.
func ExampleNewRing() {
	secret := mcpseal.GenerateKey().Reveal() // kept where only the service can read it

	key, err := mcpseal.ParseKey(secret)
	if err != nil {
		panic(err)
	}
	ring, err := mcpseal.NewRing(key)
	if err != nil {
		panic(err)
	}
	boundary, err := mcpseal.New(mcpseal.Config{Keys: ring, Audience: "deploy.example.com"})
	fmt.Println(boundary != nil, err)
	// Output: true <nil>
}

// An adapter turns an error into what the client may see.
func ExampleWire() {
	ctx := context.Background()
	boundary, _ := mcpseal.New(mcpseal.Config{Keys: mcpseal.Ephemeral(), Logger: slog.New(slog.DiscardHandler)})
	_, err := boundary.Open(ctx, mcpseal.Request{Method: "tools/call", Target: "deploy"}, "step=1")

	wire := mcpseal.Wire(err)
	fmt.Println(wire.Code, wire.Message, string(wire.Data))

	var rejected *mcpseal.RejectError // for the operator
	if errors.As(err, &rejected) {
		fmt.Println(rejected.Reason)
	}
	// Output:
	// -32602 Invalid or expired requestState {"reason":"invalid_request_state"}
	// malformed
}

// Answers count only for questions that were asked in the round before.
func ExampleRound_Accepts() {
	ctx := context.Background()
	boundary, _ := mcpseal.New(mcpseal.Config{Keys: mcpseal.Ephemeral(), Logger: slog.New(slog.DiscardHandler)})
	request := mcpseal.Request{Method: "tools/call", Target: "deploy"}
	round, _ := boundary.Open(ctx, request, "")
	token, _ := boundary.Seal(ctx, &round, nil, mcpseal.Question{Key: "confirm", Kind: mcpseal.KindForm})

	round, _ = boundary.Open(ctx, request, token)
	fmt.Println("a form for confirm:", round.Accepts("confirm", mcpseal.KindForm))
	fmt.Println("a sample for confirm:", round.Accepts("confirm", mcpseal.KindSampling))
	fmt.Println("a form for region:", round.Accepts("region", mcpseal.KindForm))
	// Output:
	// a form for confirm: true
	// a sample for confirm: false
	// a form for region: false
}
