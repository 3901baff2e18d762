package tripseal_test

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/tripseal/tripseal"
)

func Example() {
	ctx := context.Background()
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	request := tripseal.Request{Method: "tools/call", Target: "deploy", Principal: tripseal.User("alice")}

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
	// tripseal: token rejected
}

// All replicas of a service share the keys of its ring. The first key seals, and every key
// opens. To load keys from a file or the environment, use the package keys.
func ExampleNewRing() {
	secret := tripseal.GenerateKey().Reveal() // keep it where only the service can read it

	key, err := tripseal.ParseKey(secret)
	if err != nil {
		log.Fatal(err)
	}
	ring, err := tripseal.NewRing(key)
	if err != nil {
		log.Fatal(err)
	}
	boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "deploy.example.com"})
	fmt.Println(boundary != nil, err)
	// Output: true <nil>
}

// An adapter turns an error into what the client may see.
func ExampleWire() {
	ctx := context.Background()
	boundary, _ := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Logger: slog.New(slog.DiscardHandler)})
	_, err := boundary.Open(ctx, tripseal.Request{Method: "tools/call", Target: "deploy"}, "step=1")

	wire := tripseal.Wire(err)
	fmt.Println(wire.Code, wire.Message, string(wire.Data))

	var rejected *tripseal.RejectError // for the operator
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
	boundary, _ := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Logger: slog.New(slog.DiscardHandler)})
	request := tripseal.Request{Method: "tools/call", Target: "deploy"}
	round, _ := boundary.Open(ctx, request, "")
	token, _ := boundary.Seal(ctx, &round, nil, tripseal.Question{Key: "confirm", Kind: tripseal.KindForm})

	round, _ = boundary.Open(ctx, request, token)
	fmt.Println("a form for confirm:", round.Accepts("confirm", tripseal.KindForm))
	fmt.Println("a sample for confirm:", round.Accepts("confirm", tripseal.KindSampling))
	fmt.Println("a form for region:", round.Accepts("region", tripseal.KindForm))
	// Output:
	// a form for confirm: true
	// a sample for confirm: false
	// a form for region: false
}

// An observer counts events. It uses only fields that are safe as labels of a metric.
func ExampleEvent() {
	counts := make(map[string]int) // stands for a metric with labels; a server must guard such a map with a lock
	boundary, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: "release.example.com", Logger: slog.New(slog.DiscardHandler),
		Observer: func(_ context.Context, e tripseal.Event) {
			counts[fmt.Sprintf("op=%s reason=%s method=%s target=%s", e.Op, e.Reason, e.Method, e.Target)]++
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	boundary.Open(context.Background(), tripseal.Request{Method: "tools/call", Target: "made-up-by-the-client"}, "garbage")
	for labels, n := range counts {
		fmt.Println(labels, n)
	}
	// Output: op=open reason=malformed method=tools/call target=unknown 1
}

// An observer counts rejections for each reason, without a library for metrics. The page
// /debug/vars shows the counters. Package otelseal does the same for OpenTelemetry.
func ExampleConfig_observer() {
	rejected := expvar.NewMap("tripseal_rejected") // safe for concurrent use, as an observer must be
	boundary, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: "release.example.com", Logger: slog.New(slog.DiscardHandler),
		Observer: func(_ context.Context, e tripseal.Event) {
			if e.Op == tripseal.OpOpen && e.Reason != "" {
				rejected.Add(string(e.Reason), 1)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx, request := context.Background(), tripseal.Request{Method: "tools/call", Target: "deploy", Principal: tripseal.User("alice")}
	round, err := boundary.Open(ctx, request, "")
	if err != nil {
		log.Fatal(err)
	}
	token, err := boundary.Seal(ctx, &round, nil)
	if err != nil {
		log.Fatal(err)
	}
	boundary.Open(ctx, request, "made up")
	request.Principal = tripseal.User("bob")
	boundary.Open(ctx, request, token)
	fmt.Println(rejected)
	// Output: {"malformed": 1, "user": 1}
}

// If the user took too long to confirm, the handler asks again. For every other rejection, Open
// returns an error.
func ExampleAskAgain() {
	boundary, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: "release.example.com", Logger: slog.New(slog.DiscardHandler),
		TTL:      time.Millisecond,
		AskAgain: tripseal.AskAgainIfExpired,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, request := context.Background(), tripseal.Request{Method: "tools/call", Target: "deploy", Principal: tripseal.User("alice")}
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
	// tripseal: token rejected
}
