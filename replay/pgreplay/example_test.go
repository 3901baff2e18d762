package pgreplay_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/replay/pgreplay"
)

// A fleet of replicas shares a PostgreSQL, so that each token works only once in the whole fleet.
// This example is compiled but not run, because it needs a PostgreSQL.
func Example() {
	ctx := context.Background()
	source, err := keys.OpenFile("/etc/release/keys", nil)
	if err != nil {
		log.Fatal(err)
	}
	config, err := pgxpool.ParseConfig("postgres://tripseal@db.example.com/release")
	if err != nil {
		log.Fatal(err)
	}
	store, err := pgreplay.New(ctx, config, pgreplay.Config{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	boundary, err := tripseal.New(tripseal.Config{Keys: source, Audience: "release.example.com", Replay: store})
	if err != nil {
		log.Fatal(err)
	}
	_ = boundary
}

// A handler moves money. Its writes are committed together with the result of the call.
func ExampleStore_InTx() {
	var store *pgreplay.Store
	handler := func(ctx context.Context, from, to string, sum int) error {
		return store.InTx(ctx, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, "UPDATE account SET balance = balance - $1 WHERE name = $2 AND balance >= $1", sum, from)
			if err == nil && tag.RowsAffected() == 1 {
				tag, err = tx.Exec(ctx, "UPDATE account SET balance = balance + $1 WHERE name = $2", sum, to)
			}
			if err == nil && tag.RowsAffected() != 1 {
				err = fmt.Errorf("there is not enough money, or no such account")
			}
			return err
		})
	}
	_ = handler
}
