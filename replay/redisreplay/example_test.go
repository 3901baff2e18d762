package redisreplay_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

// A fleet of replicas shares a Redis, so that each token works only once in the whole fleet.
// This example is compiled but not run, because it needs a Redis.
func Example() {
	ctx := context.Background()
	source, err := keys.OpenFile("/etc/release/keys", nil)
	if err != nil {
		log.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{
		Addr: "redis.example.com:6379", Username: "tripseal", Password: "…",
		ContextTimeoutEnabled: true, // New refuses a client without it
	})
	store, err := redisreplay.New(ctx, client, redisreplay.Config{})
	if err != nil {
		log.Fatal(err)
	}
	boundary, err := tripseal.New(tripseal.Config{Keys: source, Audience: "release.example.com", Replay: store})
	if err != nil {
		log.Fatal(err)
	}
	_ = boundary
}
