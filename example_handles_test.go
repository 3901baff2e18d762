package tripseal_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/tripseal/tripseal"
)

// The client of a job gets a handle in place of the job's id.
func ExampleHandles() {
	ctx := context.Background()
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	jobs, err := tripseal.NewHandles(boundary, "job", 0) // 0 means 24 hours
	if err != nil {
		log.Fatal(err)
	}

	// Alice starts a job.
	handle, err := jobs.Seal(ctx, tripseal.User("alice"), "job-17")
	if err != nil {
		log.Fatal(err)
	}

	// Alice asks for its result.
	id, err := jobs.Open(ctx, tripseal.User("alice"), handle)
	fmt.Println("alice asks for", id, err)

	// Mallory sends Alice's handle.
	id, err = jobs.Open(ctx, tripseal.User("mallory"), handle)
	fmt.Printf("mallory asks for %q: %v\n", id, err)
	// Output:
	// alice asks for job-17 <nil>
	// mallory asks for "": tripseal: token rejected
}
