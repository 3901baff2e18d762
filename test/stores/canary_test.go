//go:build unix

package stores_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay"
)

// TestWhoReadsTheStoreLearnsNothing uses a token and keeps a sealed result. A canary is in the user's name, the tool,
// the arguments, the state and the result. It must not be in any file of the database, nor in what the store in memory is told.
func TestWhoReadsTheStoreLearnsNothing(t *testing.T) {
	const canary = "CanaryBird"
	spellings := [][]byte{[]byte(canary), []byte(hex.EncodeToString([]byte(canary)))}
	use := func(t *testing.T, store tripseal.ResultStore) {
		ctx := context.Background()
		boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: canary, Replay: store, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		request := tripseal.Request{
			Method: "tools/call", Target: canary, Arguments: fmt.Appendf(nil, `{"name":%q}`, canary), Principal: tripseal.User(canary),
		}
		round, err := boundary.Open(ctx, request, "")
		if err != nil {
			t.Fatal(err)
		}
		state := canary
		token, err := boundary.Seal(ctx, &round, &state)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := boundary.Open(ctx, request, token); err != nil {
			t.Fatal(err)
		}
		sealed, err := boundary.Codec(tripseal.PurposeCursor).Seal(ctx, nil, []byte(canary))
		if err != nil {
			t.Fatal(err)
		}
		j, claim := job{issued: time.Now()}, tripseal.Claim{Call: [16]byte{1}, Lease: time.Minute}
		begun, err := store.Begin(ctx, j.use(0), claim)
		if err != nil || begun.State != tripseal.CallFirst {
			t.Fatal(begun, err)
		}
		marker := append(sealed, "TheResultIsHere"...)
		if err := store.End(ctx, j.use(0), claim, tripseal.End{Result: marker, Keep: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	search := func(t *testing.T, dump []byte) (result bool) {
		for _, spelling := range spellings {
			if bytes.Contains(dump, spelling) {
				t.Errorf("the canary is in the dump, as %q", spelling)
			}
		}
		return bytes.Contains(dump, []byte("TheResultIsHere"))
	}
	for name, start := range map[string]func(*testing.T) database{"redis": startRedis, "postgres": startPostgres} {
		t.Run(name, func(t *testing.T) {
			d := start(t)
			store, done, err := d.open()
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			use(t, store)
			dir := d.save(t)
			found := false
			err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
				if err != nil || !entry.Type().IsRegular() {
					return nil
				}
				if content, err := os.ReadFile(path); err == nil && search(t, content) {
					found = true
				}
				return nil
			})
			if err != nil || !found {
				t.Errorf("the result is in no file of the database: the test shows nothing (%v)", err)
			}
		})
	}
	t.Run("memory", func(t *testing.T) {
		store, err := replay.NewSingleProcess(replay.Config{})
		if err != nil {
			t.Fatal(err)
		}
		told := &listener{SingleProcess: store}
		use(t, told)
		if !search(t, told.all) {
			t.Error("the result is not in what the store was told: the test shows nothing")
		}
	})
}

// listener is the store in memory, and notes all that it is told.
type listener struct {
	*replay.SingleProcess
	all []byte
}

func (l *listener) note(use tripseal.Use, more ...any) {
	l.all = fmt.Appendf(l.all, "%s %s %+v %s", use.Flow[:], use.Owner[:], use, more)
}

func (l *listener) Spend(ctx context.Context, use tripseal.Use) (bool, error) {
	l.note(use)
	return l.SingleProcess.Spend(ctx, use)
}

func (l *listener) Begin(ctx context.Context, use tripseal.Use, claim tripseal.Claim) (tripseal.Begun, error) {
	l.note(use, claim.Tag[:])
	return l.SingleProcess.Begin(ctx, use, claim)
}

func (l *listener) End(ctx context.Context, use tripseal.Use, claim tripseal.Claim, end tripseal.End) error {
	l.note(use, end.Result)
	return l.SingleProcess.End(ctx, use, claim, end)
}

// save makes a database write everything to its files, and returns their folder.
func (d database) save(t *testing.T) (dir string) {
	t.Helper()
	ctx := context.Background()
	if d.kind == "redis" {
		client := redis.NewClient(&redis.Options{Addr: d.address})
		defer client.Close()
		client.ConfigSet(ctx, "rdbcompression", "no")
		if err := client.Save(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		return client.ConfigGet(ctx, "dir").Val()["dir"]
	}
	conn := d.connect(t)
	if _, err := conn.Exec(ctx, "CHECKPOINT"); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(ctx, "SHOW data_directory").Scan(&dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// connect opens a connection to PostgreSQL.
func (d database) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(d.address)
	if err != nil {
		t.Fatal(err)
	}
	delete(config.RuntimeParams, "pool_max_conns")
	conn, err := pgx.ConnectConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}
