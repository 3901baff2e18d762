package otelseal_test

import (
	"log"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/keys"
	"github.com/mcpseal/mcpseal/otelseal"
	"github.com/mcpseal/mcpseal/replay"
)

// Everything that an Observer can observe.
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
	boundary, err := mcpseal.New(mcpseal.Config{
		Keys: source, Audience: "release.example.com",
		Replay: observer.Store(store), Observer: observer.Observe,
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = boundary
}

// A server whose tools are many or have long names lists those that metrics may name.
func ExampleConfig_targets() {
	observer, err := otelseal.New(otelseal.Config{Targets: []string{"deploy", "rollback"}})
	if err != nil {
		log.Fatal(err)
	}
	_ = observer
}
