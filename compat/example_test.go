package compat_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/compat"
)

// A service that was written in Python moves to Go, flow by flow.
func Example() {
	pythonSecret := []byte("what the Python servers have as their first key")
	ring, err := mcpseal.NewRing(mcpseal.GenerateKey())
	if err != nil {
		panic(err)
	}

	python, err := compat.Python([][]byte{pythonSecret}, compat.PythonOptions{})
	if err != nil {
		panic(err)
	}
	cannot := mcpseal.ClaimQuestions | mcpseal.ClaimFlow // what a Python token cannot carry

	// While Python and Go both serve: seal tokens that Python opens.
	mixed, err := mcpseal.New(mcpseal.Config{
		Format:   python,
		Waive:    cannot,
		AlsoOpen: []mcpseal.Accepted{{Format: mcpseal.NativeFormat(ring)}},
		Audience: "deploy.example.com",
	})
	if err != nil {
		panic(err)
	}

	// When only Go serves: seal native tokens, and also open the Python tokens that clients hold.
	switched, err := mcpseal.New(mcpseal.Config{
		Keys:     ring,
		AlsoOpen: []mcpseal.Accepted{{Format: python, Waive: cannot}},
		Audience: "deploy.example.com",
	})
	if err != nil {
		panic(err)
	}

	ctx, request := context.Background(), mcpseal.Request{Method: "tools/call", Target: "deploy"}
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
	ring, err := mcpseal.NewRing(mcpseal.GenerateKey())
	if err != nil {
		panic(err)
	}
	until := time.Now().Add(2 * time.Hour) // in a service: a date, the same for all replicas

	plaintext, err := compat.Plaintext([]string{"deploy"}, until)
	if err != nil {
		panic(err)
	}
	everything := mcpseal.ClaimRequest | mcpseal.ClaimArguments | mcpseal.ClaimAudience | mcpseal.ClaimUser |
		mcpseal.ClaimQuestions | mcpseal.ClaimFlow | mcpseal.ClaimSingleUse | mcpseal.ClaimWording

	// Roll-out 1: open both formats. Leave states unsealed: some replicas cannot open native tokens yet.
	first, err := mcpseal.New(mcpseal.Config{
		Format:   plaintext,
		Waive:    everything,
		AlsoOpen: []mcpseal.Accepted{{Format: mcpseal.NativeFormat(ring)}},
		Audience: "deploy.example.com",
	})
	if err != nil {
		panic(err)
	}

	// Roll-out 2: open both formats, seal native tokens.
	second, err := mcpseal.New(mcpseal.Config{
		Keys:     ring,
		AlsoOpen: []mcpseal.Accepted{{Format: plaintext, Waive: everything}},
		Audience: "deploy.example.com",
	})
	if err != nil {
		panic(err)
	}

	ctx, request := context.Background(), mcpseal.Request{Method: "tools/call", Target: "deploy"}
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
