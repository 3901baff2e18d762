// Package redisreplay makes tokens work once across all processes that share a
// Redis or Valkey:
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	store, err := redisreplay.New(ctx, client, redisreplay.Config{})
//	…
//	boundary, err := mcpseal.New(mcpseal.Config{Keys: ring, Audience: "deploy.example.com", Replay: store})
//
// A use is one SET with NX and PX: one round trip, decided by the server. When
// the server is away or too slow, tokens are rejected. The key outlasts the token
// by two minutes or more. The clocks of the processes must agree within that: one
// that is further behind opens the token again when the key is gone.
//
// A server can forget uses: when it is restarted, flushed, replaced by a replica
// that lacks the last writes, or evicts keys. The store notices, and refuses the tokens
// that were issued before that and a minute after, [Config.Skew]: users start over,
// and no token works twice. It keeps an epoch in the server for that, and looks at it twice a
// second and after every new connection. A use stays one command. For a minute
// after its first start with a new server the store refuses all tokens.
//
// A flush, and a restart that a proxy hides, go unnoticed for up to a second. A restart
// keeps the tokens of users if the server has appendonly yes, appendfsync always and
// no replicas. The clock of the server counts too: keys expire by it.
//
// A use is sent once, whatever MaxRetries the client has. If the answer is lost,
// a second try would find the first and take an honest user for an attacker; so
// the token is rejected as store_failed, and may be spent.
package redisreplay
