package pgreplay_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay/pgreplay"
	"github.com/tripseal/tripseal/sealtest"
)

func mustSpend(t *testing.T, store tripseal.ReplayStore, use tripseal.Use, want bool) {
	t.Helper()
	if first, err := store.Spend(context.Background(), use); err != nil || first != want {
		t.Fatalf("Spend = %v, %v, want %v", first, err, want)
	}
}

func refused(t *testing.T, s *server, user string, config pgreplay.Config, want string) {
	t.Helper()
	store, err := pgreplay.New(t.Context(), s.config(t, user), config)
	if err == nil {
		store.Close()
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("New = %v, want %q", err, want)
	}
}

func TestTheStorePassesTheSuite(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	sealtest.TestReplayStore(t, newStore(t, s))

	// In another schema, with the documented rights alone, and as a pooler without prepared statements needs it.
	s.admin(t, "CREATE SCHEMA seals; CREATE USER store; GRANT USAGE ON SCHEMA seals TO store;"+pgreplay.Schema("seals.used")+
		"GRANT SELECT, INSERT, UPDATE, DELETE ON seals.used TO store")
	config := s.config(t, "store")
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	store, err := pgreplay.New(t.Context(), config, pgreplay.Config{Table: "seals.used", Skew: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	time.Sleep(3 * time.Millisecond)
	sealtest.TestReplayStore(t, store)
}

func TestServersThatCannotKeepThePromiseAreRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	refused(t, s, "postgres", pgreplay.Config{}, "there is no table of used tokens")
	refused(t, s, "nobody", pgreplay.Config{}, "PostgreSQL refused the user")
	refused(t, s, "postgres", pgreplay.Config{Table: "a;b"}, "is not a name in lower case")
	refused(t, s, "postgres", pgreplay.Config{SynchronousCommit: "off"}, "not on, remote_apply")
	refused(t, s.standby(t), "postgres", pgreplay.Config{Create: true}, "is a standby: connect to the primary")
	s.admin(t, pgreplay.Schema("")+"CREATE USER store")
	refused(t, s, "store", pgreplay.Config{}, "lacks a right")
	s.admin(t, "GRANT ALL ON tripseal_used TO store; REVOKE EXECUTE ON FUNCTION pg_walfile_name FROM PUBLIC")
	refused(t, s, "store", pgreplay.Config{}, "EXECUTE on pg_current_wal_lsn and pg_walfile_name")
	s.admin(t, "ALTER FUNCTION pg_walfile_name RENAME TO gone") // as in a service that does not have it
	refused(t, s, "store", pgreplay.Config{}, "this service does not have")
	s.kill()
	s.start(t, "fsync=off")
	refused(t, s, "postgres", pgreplay.Config{}, "set fsync on")
	s.kill()
	refused(t, s, "postgres", pgreplay.Config{}, "PostgreSQL cannot be reached")
}

func TestTokensAreRefusedForTheSkew(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	store, err := pgreplay.New(t.Context(), s.config(t, "postgres"), pgreplay.Config{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	use := newUse()
	use.Until = use.Until.Add(time.Hour)
	for _, ahead := range []time.Duration{0, 59 * time.Second, 61 * time.Second} {
		use.Issued = time.Now().Add(ahead)
		works := ahead > time.Minute
		if first, err := store.Spend(t.Context(), use); first != works || works != (err == nil) {
			t.Errorf("a token that is dated %v ahead: Spend = %v, %v", ahead, first, err)
		}
	}
}

// TestACrashForgetsNothing kills the server, and a flush of the table is noticed.
func TestACrashForgetsNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	store := newStore(t, s)
	used, unused := newUse(), newUse()
	mustSpend(t, store, used, true)
	s.kill()
	s.start(t)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if first, err := store.Spend(t.Context(), used); err == nil && !first {
			break
		} else if first || time.Now().After(deadline) {
			t.Fatalf("Spend = %v, %v", first, err)
		}
	}
	mustSpend(t, store, unused, true)
	s.admin(t, "TRUNCATE tripseal_used")
	if first, err := store.Spend(t.Context(), used); first || err == nil || !strings.Contains(err.Error(), "may have forgotten") {
		t.Errorf("after TRUNCATE, Spend = %v, %v", first, err)
	}
	time.Sleep(3 * time.Millisecond)
	mustSpend(t, store, newUse(), true)
}

// TestAPromotionForgetsNothing uses tokens that a standby does not get, kills the primary and promotes the
// standby. A bare INSERT is the control: with it, the tokens work again.
func TestAPromotionForgetsNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	primary := startServer(t)
	newStore(t, primary)
	primary.admin(t, "CREATE TABLE bare (id bytea PRIMARY KEY)")
	standby := primary.standby(t)
	config, err := pgxpool.ParseConfig("postgres://postgres@127.0.0.1:" + primary.port + ",127.0.0.1:" + standby.port +
		"/postgres?sslmode=disable&target_session_attrs=read-write")
	if err != nil {
		t.Fatal(err)
	}
	store, err := pgreplay.New(ctx, config, pgreplay.Config{Skew: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	bare := func(s *server, use tripseal.Use) bool {
		tag, err := s.connect(t).Exec(ctx, "INSERT INTO bare VALUES ($1) ON CONFLICT DO NOTHING", use.Flow[:])
		if err != nil {
			t.Fatal(err)
		}
		return tag.RowsAffected() == 1
	}
	const tokens = 40
	var uses []tripseal.Use
	for i := range tokens {
		if i == tokens/2 {
			standby.admin(t, "ALTER SYSTEM SET primary_conninfo = ''")
			standby.admin(t, "SELECT pg_reload_conf()")
			standby.await(t, "SELECT count(*) = 0 FROM pg_stat_wal_receiver")
		}
		use := newUse()
		uses = append(uses, use)
		mustSpend(t, store, use, true)
		if !bare(primary, use) {
			t.Fatal("the control refuses a fresh token")
		}
	}
	primary.kill()
	standby.admin(t, "SELECT pg_promote()")
	standby.await(t, "SELECT NOT pg_is_in_recovery()")
	// The store that was there before sees the promotion in its first use.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		first, err := store.Spend(ctx, uses[tokens-1])
		if err != nil && strings.Contains(err.Error(), "may have forgotten") {
			break
		}
		if first || time.Now().After(deadline) {
			t.Fatalf("the last use, again: Spend = %v, %v", first, err)
		}
	}
	after := newStore(t, standby)
	again := 0
	for _, use := range uses {
		if first, _ := after.Spend(ctx, use); first {
			t.Error("a used token works again after a promotion")
		}
		if bare(standby, use) {
			again++
		}
	}
	if again == 0 {
		t.Error("the standby has all uses: the test shows nothing")
	}
	t.Logf("%d of %d tokens worked again with a bare INSERT", again, tokens)
	mustSpend(t, after, newUse(), true)
}

// await waits until the query returns true.
func (s *server) await(t *testing.T, query string) {
	t.Helper()
	conn := s.connect(t)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var yes bool
		if err := conn.QueryRow(context.Background(), query).Scan(&yes); err == nil && yes {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("%s: %v, %v", query, yes, err)
		}
	}
}

// TestACommitOnOneDiskIsNoSuccess makes the primary wait for a standby that does not exist, and cancels the
// wait. PostgreSQL then commits with a warning. The context ends the wait too.
func TestACommitOnOneDiskIsNoSuccess(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	store := newStore(t, s)
	mustSpend(t, store, newUse(), true)
	s.admin(t, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	s.admin(t, "SELECT pg_reload_conf()")
	s.await(t, "SELECT current_setting('synchronous_standby_names') = 'nobody'")
	done := make(chan error)
	go func() {
		first, err := store.Spend(t.Context(), newUse())
		if first {
			err = errors.New("won")
		}
		done <- err
	}()
	s.await(t, "SELECT count(pg_cancel_backend(pid)) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	if err := <-done; err == nil || !strings.Contains(err.Error(), "committed only on its own disk") {
		t.Errorf("Spend = %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if first, err := store.Spend(ctx, newUse()); first || err == nil {
		t.Errorf("while the standby is away, Spend = %v, %v", first, err)
	}
}

// TestExpiredRowsLeave uses many tokens that expire soon.
func TestExpiredRowsLeave(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	store := newStore(t, s)
	for range 300 {
		use := newUse()
		use.Until = time.Now().Add(300 * time.Millisecond)
		store.Spend(t.Context(), use)
	}
	use, claim := newUse(), newClaim()
	_, err := store.Begin(t.Context(), use, claim)
	err2 := store.End(t.Context(), use, claim, tripseal.End{Result: []byte("x"), Keep: time.Millisecond})
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	time.Sleep(400 * time.Millisecond)
	conn := s.connect(t)
	for deadline := time.Now().Add(30 * time.Second); ; {
		for range 100 {
			mustSpend(t, store, newUse(), true)
		}
		var old int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM tripseal_used WHERE until < clock_timestamp() OR result IS NOT NULL").Scan(&old); err != nil {
			t.Fatal(err)
		}
		if old == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d rows are left", old)
		}
	}
}

// transfer begins a call and moves money in its transaction.
func transfer(t *testing.T, store *pgreplay.Store, use tripseal.Use, claim tripseal.Claim, sum int) error {
	t.Helper()
	begun, err := store.Begin(t.Context(), use, claim)
	if err != nil || begun.State != tripseal.CallFirst {
		t.Fatalf("Begin = state %d, %v", begun.State, err)
	}
	return store.InTx(tripseal.WithCall(t.Context(), use, claim), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "UPDATE account SET balance = balance + $1", sum)
		return err
	})
}

func TestEffectAndResultCommitTogether(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := startServer(t)
	store := newStore(t, s)
	s.admin(t, "CREATE TABLE account (balance int); INSERT INTO account VALUES (0)")
	balance := func(want int) {
		t.Helper()
		var got int
		if err := s.connect(t).QueryRow(ctx, "SELECT balance FROM account").Scan(&got); err != nil || got != want {
			t.Fatalf("the balance is %d, want %d, %v", got, want, err)
		}
	}
	result := tripseal.End{Result: []byte("moved"), Keep: time.Minute}
	t.Run("with the end of the call", func(t *testing.T) {
		use, claim := newUse(), newClaim()
		if err := transfer(t, store, use, claim, 1); err != nil {
			t.Fatal(err)
		}
		balance(0)
		if err := store.End(ctx, use, claim, result); err != nil {
			t.Fatal(err)
		}
		balance(1)
		if err := store.InTx(tripseal.WithCall(ctx, use, claim), func(pgx.Tx) error { return nil }); err == nil {
			t.Error("after the end of the call, InTx works")
		}
	})
	t.Run("not if the call is given back", func(t *testing.T) {
		use, claim := newUse(), newClaim()
		transfer(t, store, use, claim, 10)
		if err := store.End(ctx, use, claim, tripseal.End{GiveBack: true}); err != nil {
			t.Fatal(err)
		}
		balance(1)
		mustSpend(t, store, use, true)
	})
	t.Run("not if the lease is lost", func(t *testing.T) {
		use, claim, second := newUse(), newClaim(), newClaim()
		claim.Lease, second.Repeat = 300*time.Millisecond, true
		if err := transfer(t, store, use, claim, 100); err != nil {
			t.Fatal(err)
		}
		time.Sleep(400 * time.Millisecond)
		begun, err := store.Begin(ctx, use, second)
		if err != nil || begun.State != tripseal.CallFirst {
			t.Fatalf("Begin = state %d, %v", begun.State, err)
		}
		if err := store.End(ctx, use, claim, result); err == nil {
			t.Error("a call without its lease has ended")
		}
		balance(1)
		if err := store.End(ctx, use, second, result); err != nil {
			t.Error(err)
		}
	})
	t.Run("not what f undoes", func(t *testing.T) {
		use, claim := newUse(), newClaim()
		transfer(t, store, use, claim, 1)
		inCall := tripseal.WithCall(ctx, use, claim)
		for _, f := range []func() error{func() error { return errors.New("no") }, func() error { panic("no") }} {
			func() {
				defer func() { recover() }()
				store.InTx(inCall, func(tx pgx.Tx) error {
					tx.Exec(ctx, "UPDATE account SET balance = 1000")
					return f()
				})
			}()
		}
		if err := store.End(ctx, use, claim, result); err != nil {
			t.Fatal(err)
		}
		balance(2)
	})
	t.Run("not without a call", func(t *testing.T) {
		if err := store.InTx(ctx, func(pgx.Tx) error { return nil }); err == nil {
			t.Error("without a call, InTx works")
		}
	})
	t.Run("with many calls at once", func(t *testing.T) {
		var group sync.WaitGroup
		for range 40 {
			group.Go(func() {
				use, claim := newUse(), newClaim()
				if err := transfer(t, store, use, claim, 1); err != nil {
					t.Error(err)
				}
				if err := store.End(ctx, use, claim, result); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		balance(42)
	})
}

func TestGarbageInPlaceOfAUseOpensNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	store := newStore(t, s)
	for _, columns := range []string{"NULL, NULL, NULL", "'', '', NULL", "'', NULL, '1970-01-01'", `'\x00', '\x01', 'infinity'`} {
		use := newUse()
		s.admin(t, fmt.Sprintf(`INSERT INTO tripseal_used (id, until, call, tag, lease) VALUES ('\x%x0001', 'infinity', %s)`, use.Flow, columns))
		mustSpend(t, store, use, false)
		claim := newClaim()
		claim.Repeat = true
		if begun, err := store.Begin(t.Context(), use, claim); err != nil || begun.State != tripseal.CallOther {
			t.Errorf("with %s, Begin = state %d, %v", columns, begun.State, err)
		}
	}
}
