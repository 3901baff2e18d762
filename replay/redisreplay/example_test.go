package redisreplay_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/keys"
	"github.com/mcpseal/mcpseal/replay/redisreplay"
)

// A fleet whose tokens work once.
func Example() {
	ctx := context.Background()
	source, err := keys.OpenFile("/etc/release/keys", nil)
	if err != nil {
		log.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{
		Addr: "redis.example.com:6379", Username: "mcpseal", Password: "…",
		ContextTimeoutEnabled: true, // or New refuses the client
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
