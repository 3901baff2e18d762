package replay_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay"
)

// This server runs in a single process, and must not run a payment twice.
func ExampleNewSingleProcess() {
	store, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		log.Fatal(err)
	}
	boundary, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: "pay.example.com", Logger: slog.New(slog.DiscardHandler),
		Replay: store, ReplayTools: []string{"pay"},
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx, request := context.Background(), tripseal.Request{Method: "tools/call", Target: "pay", Principal: tripseal.User("alice")}
	round, err := boundary.Open(ctx, request, "")
	if err != nil {
		log.Fatal(err)
	}
	token, err := boundary.Seal(ctx, &round, nil)
	if err != nil {
		log.Fatal(err)
	}
	_, err = boundary.Open(ctx, request, token)
	fmt.Println("once: ", err)
	_, err = boundary.Open(ctx, request, token)
	fmt.Println("twice:", err)
	fmt.Println("used tokens in the store:", store.Level().Held)
	// Output:
	// once:  <nil>
	// twice: tripseal: token rejected
	// used tokens in the store: 1
}
