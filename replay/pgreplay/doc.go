// Package pgreplay makes each token work only once across all processes that share a PostgreSQL,
// keeps the results of calls, and lets a handler's own writes commit together with its result:
//
//	config, err := pgxpool.ParseConfig("postgres://…")
//	store, err := pgreplay.New(ctx, config, pgreplay.Config{Create: true})
//	…
//	boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "pay.example.com", Replay: store})
//
// Each use is one INSERT, in one statement. A standby that is promoted may lack the last uses. So
// the same statement compares a row of the table, the epoch, with the server's timeline, which every
// promotion and every restored backup changes. If they differ, the store writes a new epoch, and
// refuses tokens that were issued before that moment or within a minute after it ([Config.Skew]).
// Users must start over, but no token works twice. A restart or a crash loses nothing.
//
// The store cannot notice two primaries that both accept writes, and rows that somebody deletes.
// See [Store.InTx] for handlers that write.
package pgreplay
