package compat_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
)

// A service that was written in Python moves to Go, flow by flow.
func Example() {
	pythonSecret := []byte("what the Python servers have as their first key")
	ring, err := tripseal.NewRing(tripseal.GenerateKey())
	if err != nil {
		panic(err)
	}

	python, err := compat.Python([][]byte{pythonSecret}, compat.PythonOptions{})
	if err != nil {
		panic(err)
	}
	cannot := tripseal.ClaimQuestions | tripseal.ClaimFlow // what a Python token cannot carry

	// While Python and Go both serve: seal tokens that Python opens.
	mixed, err := tripseal.New(tripseal.Config{
		Format:   python,
		Waive:    cannot,
		AlsoOpen: []tripseal.Accepted{{Format: tripseal.NativeFormat(ring)}},
		Audience: "deploy.example.com",
	})
	if err != nil {
		panic(err)
	}

	// When only Go serves: seal native tokens, and also open the Python tokens that clients hold.
	switched, err := tripseal.New(tripseal.Config{
		Keys:     ring,
		AlsoOpen: []tripseal.Accepted{{Format: python, Waive: cannot}},
		Audience: "deploy.example.com",
	})
	if err != nil {
		panic(err)
	}

	ctx, request := context.Background(), tripseal.Request{Method: "tools/call", Target: "deploy"}
	round, _ := mixed.Open(ctx, request, "")
	state := "step=1"
	token, _ := mixed.Seal(ctx, &round, &state)
	fmt.Println("before:", strings.SplitAfter(token, ".")[0])

	round, err = switched.Open(ctx, request, token)
	if err != nil {
		panic(err)
	}
	state, _ = round.State()
	fmt.Println("opened:", state)
	token, _ = switched.Seal(ctx, &round, &state)
	fmt.Println("after: ", strings.SplitAfter(token, ".")[0])
	// Output:
	// before: v1.
	// opened: step=1
	// after:  ms1.
}

// A user must have the same name in Python and in Go.
func ExamplePythonUser() {
	user, _ := compat.PythonUser("cli", "https://issuer.example.com", "alice")
	fmt.Println(user)
	// Output: ["cli","https://issuer.example.com","alice"]
}

// A fleet that does not yet seal its states begins to seal them, in two roll-outs.
func ExamplePlaintext() {
	ring, err := tripseal.NewRing(tripseal.GenerateKey())
	if err != nil {
		panic(err)
	}
	until := time.Now().Add(2 * time.Hour) // in a service: a date, the same for all replicas

	plaintext, err := compat.Plaintext([]string{"deploy"}, until)
	if err != nil {
		panic(err)
	}
	everything := tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimUser |
		tripseal.ClaimQuestions | tripseal.ClaimFlow | tripseal.ClaimSingleUse | tripseal.ClaimElicit

	// Roll-out 1: open both formats. Leave states unsealed: some replicas cannot open native tokens yet.
	first, err := tripseal.New(tripseal.Config{
		Format:   plaintext,
		Waive:    everything,
		AlsoOpen: []tripseal.Accepted{{Format: tripseal.NativeFormat(ring)}},
		Audience: "deploy.example.com",
	})
	if err != nil {
		panic(err)
	}

	// Roll-out 2: open both formats, seal native tokens.
	second, err := tripseal.New(tripseal.Config{
		Keys:     ring,
		AlsoOpen: []tripseal.Accepted{{Format: plaintext, Waive: everything}},
		Audience: "deploy.example.com",
	})
	if err != nil {
		panic(err)
	}

	ctx, request := context.Background(), tripseal.Request{Method: "tools/call", Target: "deploy"}
	round, _ := first.Open(ctx, request, "")
	state := "step=1"
	token, _ := first.Seal(ctx, &round, &state)
	fmt.Println("before:", token)
	round, err = second.Open(ctx, request, token)
	if err != nil {
		panic(err)
	}
	token, _ = second.Seal(ctx, &round, &state)
	fmt.Println("after: ", strings.SplitAfter(token, ".")[0])
	// Output:
	// before: step=1
	// after:  ms1.
}
