// Package redisreplay makes each token work only once across all processes that share a
// Redis or Valkey, and can keep the results of calls:
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	store, err := redisreplay.New(ctx, client, redisreplay.Config{})
//	…
//	boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "deploy.example.com", Replay: store})
//
// Each use is one script, in one round trip. A server can forget used tokens: when it is restarted
// or flushed, when a replica that lacks the last writes takes its place, or when it evicts keys. So
// the script also compares a note in the server, the epoch, with the server itself. If the note is
// gone or is another server's, the script makes a new one, and the store refuses tokens that were
// issued before that moment or within a minute after it ([Config.Skew]). Users must start over, but
// no token works twice. The first minute of a new server is such a minute.
//
// The store cannot notice two masters that both accept writes, files or snapshots of an earlier day,
// single keys that somebody deletes, and a clock of the server that leaps ahead: a key lives at
// least two minutes longer than its token, by that clock.
package redisreplay
