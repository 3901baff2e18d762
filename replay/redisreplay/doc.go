// Package redisreplay makes each token work only once across all processes that share a
// Redis or Valkey:
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	store, err := redisreplay.New(ctx, client, redisreplay.Config{})
//	…
//	boundary, err := mcpseal.New(mcpseal.Config{Keys: ring, Audience: "deploy.example.com", Replay: store})
//
// To spend a token, the store sends one SET with NX and PX: one round trip, and the server
// decides. If the server is down or too slow, tokens are rejected. The key outlasts the
// token by two minutes or more. The clocks of the processes must differ by less: a process
// whose clock is further behind opens the token again after the key is gone.
//
// A server can forget used tokens: when it is restarted, flushed, replaced by a replica
// that lacks the last writes, or evicts keys. The store notices, and refuses tokens that
// were issued before that or within a minute after it ([Config.Skew]). Users start
// over, and no token works twice. For this the store keeps an epoch in the server, and
// checks it twice a second and after every new connection. Spending a token is still one
// command. With a new server the store refuses all tokens for the first minute.
//
// A flush, and a restart that a proxy hides, go unnoticed for up to a second. Users
// need not start over after a restart if the server has appendonly yes, appendfsync
// always and no replicas. The clock of the server matters too: keys expire by it.
//
// The command that spends a token is sent only once, whatever MaxRetries the client has. If
// its answer is lost, a second try would find the token used, and take an honest user for
// an attacker. So the token is rejected as store_failed, and may be spent.
package redisreplay
