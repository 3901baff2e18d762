// Package redisreplay makes each token work only once across all processes that share a
// Redis or Valkey:
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	store, err := redisreplay.New(ctx, client, redisreplay.Config{})
//	…
//	boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "deploy.example.com", Replay: store})
//
// To record that a token is used, the store sends one SET command with NX and PX. This takes one
// round trip, and the Redis server itself decides whether the token was already used. If this
// server is down or too slow, tokens are rejected. The key in Redis lives at least two minutes
// longer than the token. The clocks of the processes must differ by less than these two minutes: a
// process whose clock is further behind would accept the token again after the key is gone.
//
// A server can forget used tokens: when it is restarted or flushed, when a replica that lacks
// the last writes takes its place, or when it evicts keys. The store notices this, and
// refuses tokens that were issued before that moment or within a minute after it
// ([Config.Skew]). Users must start over, but no token works twice. For this check, the store
// keeps a note in the server, called the epoch. It checks the epoch twice a second and after
// every new connection. Using a token still takes only one command. With a new server, the
// store refuses all tokens for the first minute.
//
// A flush, and a restart that a proxy hides, go unnoticed for up to a second. Users need not start
// over after a restart of the server if it has no replicas and is set to "appendonly yes" and
// "appendfsync always". The clock of the server matters too, because keys expire by that clock.
//
// The command that records a use is sent only once, whatever MaxRetries the client has. If the
// answer to the command is lost, a second try would find that the token is used, and an honest user
// would look like an attacker. So there is no second try: the token is rejected as store_failed,
// although Redis may have recorded that the token is used.
package redisreplay
