// Package redisreplay makes tokens work once across all processes that share a
// Redis or Valkey:
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	store, err := redisreplay.New(ctx, client, redisreplay.Config{})
//	…
//	boundary, err := mcpseal.New(mcpseal.Config{Keys: ring, Audience: "deploy.example.com", Replay: store})
//
// A claim is one SET with NX and PX: one round trip, decided by the server. When
// the server is away or too slow, tokens are rejected. The key outlasts the token
// by two minutes or more. The clocks of the processes must agree within that: one
// that is further behind opens the token again when the key is gone.
//
// What the server forgets can be used again. It must not evict keys, which [New]
// checks, and it must keep what it acknowledged: appendonly yes with appendfsync
// always survives a crash, everything less can lose the last claims; a failover to a
// replica loses what had not reached it yet. Its clock counts too: keys expire by
// it.
//
// A claim is sent once, whatever MaxRetries the client has. If the answer is lost,
// a second try would find the first and take an honest user for an attacker; so
// the token is rejected as store_failed, and may be spent.
package redisreplay
