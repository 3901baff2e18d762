package sealtest_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/sealtest"
)

// All rejections look the same to a client. Events tell a test why a token was rejected. In a
// test, sealtest.BoundaryWith(t, config) makes the boundary.
func ExampleEvents() {
	var events sealtest.Events
	boundary, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: "test", Logger: slog.New(slog.DiscardHandler),
		Observer: events.Observe,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, request := context.Background(), tripseal.Request{Method: "tools/call", Target: "release", Principal: tripseal.User("alice")}
	round, err := boundary.Open(ctx, request, "")
	if err != nil {
		log.Fatal(err)
	}
	token, err := boundary.Seal(ctx, &round, nil)
	if err != nil {
		log.Fatal(err)
	}

	request.Target = "destroy"
	_, err = boundary.Open(ctx, request, token)
	fmt.Println("the client sees:", err)
	_, err = boundary.Open(ctx, request, "made up")
	fmt.Println("the client sees:", err)
	fmt.Println("the test sees:  ", events.Reasons())
	// Output:
	// the client sees: tripseal: token rejected
	// the client sees: tripseal: token rejected
	// the test sees:   [request malformed]
}
