package redisreplay_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/keys"
	"github.com/mcpseal/mcpseal/replay/redisreplay"
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
		Addr: "redis.example.com:6379", Username: "mcpseal", Password: "…",
		ContextTimeoutEnabled: true, // New refuses a client without it
	})
	store, err := redisreplay.New(ctx, client, redisreplay.Config{})
	if err != nil {
		log.Fatal(err)
	}
	boundary, err := mcpseal.New(mcpseal.Config{Keys: source, Audience: "release.example.com", Replay: store})
	if err != nil {
		log.Fatal(err)
	}
	_ = boundary
}
