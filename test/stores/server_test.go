//go:build unix

package stores_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal/replay/pgreplay"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

// database is a store that several processes can open.
type database struct {
	kind, address string
}

func freeAddress(t *testing.T) (address, port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address = listener.Addr().String()
	_, port, _ = net.SplitHostPort(address)
	return address, port
}

// need returns the path of a program, or skips the test if it is not there. In CI, the test fails instead.
func need(t *testing.T, variable, name, pattern string) string {
	t.Helper()
	if found := os.Getenv(variable); found != "" {
		return found
	}
	if found, err := exec.LookPath(name); err == nil && pattern == "" {
		return found
	}
	if found, _ := filepath.Glob(pattern); len(found) > 0 {
		return filepath.Dir(found[len(found)-1])
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("CI must run this test, and there is no %s", name)
	}
	t.Skipf("there is no %s to test with; install one, or name it in %s", name, variable)
	return ""
}

// begin starts a server that ends with the test.
func begin(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt) // so that PostgreSQL leaves no shared memory behind
		timer := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		defer timer.Stop()
		cmd.Wait()
	})
}

func startRedis(t *testing.T) database {
	t.Helper()
	address, port := freeAddress(t)
	begin(t, exec.Command(need(t, "TRIPSEAL_REDIS_SERVER", "redis-server", ""),
		"--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", ""))
	return ready(t, database{"redis", address})
}

func startPostgres(t *testing.T) database {
	t.Helper()
	programs := need(t, "TRIPSEAL_POSTGRES", "postgres", "/usr/lib/postgresql/*/bin/postgres")
	dir, err := os.MkdirTemp("", "tripseal-pg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(programs, name), append([]string{"-D", dir}, args...)...)
		if os.Geteuid() == 0 { // PostgreSQL does not run as root
			nobody, err := user.Lookup("nobody")
			if err != nil {
				t.Fatal(err)
			}
			uid, _ := strconv.Atoi(nobody.Uid)
			gid, _ := strconv.Atoi(nobody.Gid)
			if err := os.Chown(dir, uid, gid); err != nil {
				t.Fatal(err)
			}
			cmd.SysProcAttr, cmd.Dir = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, "/"
		}
		return cmd
	}
	if out, err := command("initdb", "-U", "postgres", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	address, port := freeAddress(t)
	begin(t, command("postgres", "-p", port, "-h", "127.0.0.1", "-k", "", "-c", "shared_buffers=32MB"))
	return ready(t, database{"postgres", "postgres://postgres@" + address + "/postgres?sslmode=disable&pool_max_conns=16"})
}

// ready waits until the database answers, and makes the epoch of its store.
func ready(t *testing.T, d database) database {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		_, done, err := d.open()
		done()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	time.Sleep(10 * time.Millisecond) // longer than the skew
	return d
}

// open opens the store. Call done at the end, also after an error.
func (d database) open() (store sharedStore, done func(), err error) {
	const skew = time.Millisecond
	ctx := context.Background()
	if d.kind == "redis" {
		client := redis.NewClient(&redis.Options{Addr: d.address, ContextTimeoutEnabled: true, PoolSize: 16})
		store, err := redisreplay.New(ctx, client, redisreplay.Config{Skew: skew, Logger: quiet})
		return store, func() { client.Close() }, err
	}
	config, err := pgxpool.ParseConfig(d.address)
	if err != nil {
		return nil, func() {}, err
	}
	pg, err := pgreplay.New(ctx, config, pgreplay.Config{Create: true, Skew: skew, Logger: quiet})
	if err != nil {
		return nil, func() {}, err
	}
	return pg, pg.Close, nil
}
