package otelseal_test

import (
	"log"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/otelseal"
	"github.com/tripseal/tripseal/replay"
)

// An Observer can observe a boundary, its keys and its store. This example shows all three.
func ExampleNew() {
	observer, err := otelseal.New(otelseal.Config{}) // metrics go to OpenTelemetry's global provider
	if err != nil {
		log.Fatal(err)
	}
	source, err := keys.OpenFile("/etc/release/keys", &keys.Options{Observer: observer.ObserveKeys})
	if err != nil {
		log.Fatal(err)
	}
	store, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		log.Fatal(err)
	}
	boundary, err := tripseal.New(tripseal.Config{
		Keys: source, Audience: "release.example.com",
		Replay: observer.Store(store), Observer: observer.Observe,
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = boundary
}

// A server that has many tools, or tools with long names, lists the tools that metrics may name.
func ExampleConfig_targets() {
	observer, err := otelseal.New(otelseal.Config{Targets: []string{"deploy", "rollback"}})
	if err != nil {
		log.Fatal(err)
	}
	_ = observer
}
