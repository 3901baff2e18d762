package redisreplay_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

// server is a Redis that a test has started.
type server struct {
	addr string
	dir  string
	args []string
	cmd  *exec.Cmd
}

var ports atomic.Int64

func init() { ports.Store(mathrand.Int64N(10_000)) }

// freePort returns a port at which nothing listens, and which no other test gets. It lies below the ports
// that a system gives to clients, because one of those could be taken before a server listens.
func freePort() int {
	for {
		port := 10_000 + int(ports.Add(1)%20_000)
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			listener.Close()
			return port
		}
	}
}

// startServer starts a Redis on a free port, in a directory of its own.
func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	port := strconv.Itoa(freePort())
	s := &server{addr: "127.0.0.1:" + port, dir: t.TempDir()}
	s.args = append([]string{"--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--save", "", "--repl-diskless-sync-delay", "0"}, args...)
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

// startSentinel starts a Redis Sentinel. The parameter config is the path of its
// configuration file, which the Sentinel may change.
func startSentinel(t *testing.T, config string) *server {
	t.Helper()
	port := strconv.Itoa(freePort())
	s := &server{addr: "127.0.0.1:" + port}
	s.args = []string{config, "--sentinel", "--bind", "127.0.0.1", "--port", port}
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(binary(t), s.args...)
	var out bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &out, &out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err == nil {
			// Any answer will do, even the error that a password is missing. The exception is
			// the error that the server is still loading its data.
			fmt.Fprint(conn, "PING\r\n")
			conn.SetReadDeadline(time.Now().Add(time.Second))
			answer := make([]byte, 64)
			n, _ := conn.Read(answer)
			conn.Close()
			if n > 0 && !strings.HasPrefix(string(answer), "-LOADING") {
				return
			}
		}
		if time.Now().After(deadline) {
			s.kill()
			t.Fatalf("redis-server does not start: %s", out.String())
		}
	}
}

// kill ends the server at once, so that it has no time to save anything.
func (s *server) kill() {
	if s.cmd != nil {
		goOn(s.cmd.Process)
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *server) pause()  { stop(s.cmd.Process) }
func (s *server) resume() { goOn(s.cmd.Process) }

func binary(t *testing.T) string {
	t.Helper()
	name := os.Getenv("TRIPSEAL_REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "":
		t.Fatalf("CI must run this test, and there is no redis-server: %v", err)
	default:
		t.Skipf("there is no redis-server to test with; install one, or name it in TRIPSEAL_REDIS_SERVER: %v", err)
	}
	return ""
}

func (s *server) client(t *testing.T, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	options := &redis.Options{Addr: s.addr, ContextTimeoutEnabled: true}
	for _, f := range change {
		f(options)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	return client
}

// admin runs one command, as the default user.
func (s *server) admin(t *testing.T, args ...any) {
	t.Helper()
	if err := s.client(t).Do(context.Background(), args...).Err(); err != nil {
		t.Fatal(err)
	}
}

// newStore returns a store that accepts tokens that are issued from now on, even if the
// server is new.
func newStore(t *testing.T, client redis.UniversalClient) *redisreplay.Store {
	t.Helper()
	store, err := redisreplay.New(context.Background(), client, redisreplay.Config{Skew: time.Millisecond, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	settle()
	return store
}

// quiet is for stores that may still check their server just after the test has ended.
var quiet = slog.New(slog.DiscardHandler)

// settle sleeps for longer than the Skew that newStore sets. Stores then accept the tokens that
// are issued after settle.
func settle() { time.Sleep(3 * time.Millisecond) }

func newUse() tripseal.Use {
	use := tripseal.Use{Round: 1, Issued: time.Now(), Until: time.Now().Add(time.Minute)}
	rand.Read(use.Flow[:])
	return use
}

var request = tripseal.Request{Method: "tools/call", Target: "deploy"}

func newBoundary(t testing.TB, key string, store tripseal.ReplayStore, timeout time.Duration, log *slog.Logger) *tripseal.Boundary {
	t.Helper()
	parsed, err := tripseal.ParseKey(key)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := tripseal.NewRing(parsed)
	if err != nil {
		t.Fatal(err)
	}
	boundary, err := tripseal.New(tripseal.Config{
		Keys: ring, Audience: "deploy.example.com", Replay: store, ReplayTimeout: timeout, Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	return boundary
}

func sealToken(t testing.TB, boundary *tripseal.Boundary) string {
	t.Helper()
	ctx := context.Background()
	round, err := boundary.Open(ctx, request, "")
	if err != nil {
		t.Fatal(err)
	}
	state := "step=1"
	token, err := boundary.Seal(ctx, &round, &state)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// logbook is a log that a test reads.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
