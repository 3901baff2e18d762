package mcpseal_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/mcpseal/mcpseal"
)

func Example() {
	ctx := context.Background()
	boundary, err := mcpseal.New(mcpseal.Config{Keys: mcpseal.Ephemeral(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	request := mcpseal.Request{Method: "tools/call", Target: "deploy", Principal: mcpseal.User("alice")}

	round, _ := boundary.Open(ctx, request, "") // round 1: no token yet
	state := "step=1"
	token, err := boundary.Seal(ctx, &round, &state)
	if err != nil {
		log.Fatal(err)
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

// All replicas of a service share the keys of its ring. The first key seals, and every key
// opens. To load keys from a file or the environment, use the package keys.
func ExampleNewRing() {
	secret := mcpseal.GenerateKey().Reveal() // keep it where only the service can read it

	key, err := mcpseal.ParseKey(secret)
	if err != nil {
		log.Fatal(err)
	}
	ring, err := mcpseal.NewRing(key)
	if err != nil {
		log.Fatal(err)
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

// A round accepts only answers to questions that the previous round asked.
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

// An observer counts events. It uses only fields that are safe as labels of a metric.
func ExampleEvent() {
	counts := make(map[string]int) // stands for a metric with labels; a server must guard such a map with a lock
	boundary, err := mcpseal.New(mcpseal.Config{
		Keys: mcpseal.Ephemeral(), Audience: "release.example.com", Logger: slog.New(slog.DiscardHandler),
		Observer: func(_ context.Context, e mcpseal.Event) {
			counts[fmt.Sprintf("op=%s reason=%s method=%s target=%s", e.Op, e.Reason, e.Method, e.Target)]++
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	boundary.Open(context.Background(), mcpseal.Request{Method: "tools/call", Target: "made-up-by-the-client"}, "garbage")
	for labels, n := range counts {
		fmt.Println(labels, n)
	}
	// Output: op=open reason=malformed method=tools/call target=unknown 1
}

// An observer counts rejections for each reason, without a library for metrics. The page
// /debug/vars shows the counters. Package otelseal does the same for OpenTelemetry.
func ExampleConfig_observer() {
	rejected := expvar.NewMap("mcpseal_rejected") // safe for concurrent use, as an observer must be
	boundary, err := mcpseal.New(mcpseal.Config{
		Keys: mcpseal.Ephemeral(), Audience: "release.example.com", Logger: slog.New(slog.DiscardHandler),
		Observer: func(_ context.Context, e mcpseal.Event) {
			if e.Op == mcpseal.OpOpen && e.Reason != "" {
				rejected.Add(string(e.Reason), 1)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx, request := context.Background(), mcpseal.Request{Method: "tools/call", Target: "deploy", Principal: mcpseal.User("alice")}
	round, err := boundary.Open(ctx, request, "")
	if err != nil {
		log.Fatal(err)
	}
	token, err := boundary.Seal(ctx, &round, nil)
	if err != nil {
		log.Fatal(err)
	}
	boundary.Open(ctx, request, "made up")
	request.Principal = mcpseal.User("bob")
	boundary.Open(ctx, request, token)
	fmt.Println(rejected)
	// Output: {"malformed": 1, "user": 1}
}

// If the user took too long to confirm, the handler asks again. For every other rejection, Open
// returns an error.
func ExampleAskAgain() {
	boundary, err := mcpseal.New(mcpseal.Config{
		Keys: mcpseal.Ephemeral(), Audience: "release.example.com", Logger: slog.New(slog.DiscardHandler),
		TTL:      time.Millisecond,
		AskAgain: mcpseal.AskAgainIfExpired,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, request := context.Background(), mcpseal.Request{Method: "tools/call", Target: "deploy", Principal: mcpseal.User("alice")}
	round, _ := boundary.Open(ctx, request, "")
	token, err := boundary.Seal(ctx, &round, nil)
	if err != nil {
		log.Fatal(err)
	}
	time.Sleep(5 * time.Millisecond)
	round, err = boundary.Open(ctx, request, token)
	fmt.Println(round.First(), err)
	_, err = boundary.Open(ctx, request, token+"A")
	fmt.Println(err)
	// Output:
	// true <nil>
	// mcpseal: token rejected
}
