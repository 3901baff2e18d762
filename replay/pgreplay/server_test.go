package pgreplay_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay/pgreplay"
)

// server is a PostgreSQL that a test has started.
type server struct {
	dir, port string
	cmd       *exec.Cmd
}

// program returns the path of a program of PostgreSQL.
func program(t *testing.T, name string) string {
	t.Helper()
	if dir := os.Getenv("TRIPSEAL_POSTGRES"); dir != "" {
		return filepath.Join(dir, name)
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 {
		return found[len(found)-1]
	}
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "":
		t.Fatalf("CI must run this test, and there is no PostgreSQL: %v", err)
	default:
		t.Skipf("there is no PostgreSQL to test with; install one, or name the folder of its programs in TRIPSEAL_POSTGRES: %v", err)
	}
	return ""
}

// run runs a program of PostgreSQL as an ordinary user.
func run(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(program(t, name), args...)
	asOrdinaryUser(t, cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// folder returns an empty folder for the data of a server.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tripseal-pg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	giveAway(t, dir)
	return dir
}

// template is a fresh database cluster, which the servers of all tests are copies of.
var template = struct {
	sync.Once
	dir string
}{}

// startServer starts a PostgreSQL with its own data. The settings have the form name=value.
func startServer(t *testing.T, settings ...string) *server {
	t.Helper()
	template.Do(func() {
		template.dir, _ = os.MkdirTemp("", "tripseal-pg-")
		giveAway(t, template.dir)
		run(t, "initdb", "-D", filepath.Join(template.dir, "data"), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--no-locale")
	})
	s := &server{dir: filepath.Join(folder(t), "data")}
	cmd := exec.Command("cp", "-r", filepath.Join(template.dir, "data"), s.dir)
	asOrdinaryUser(t, cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.start(t, settings...)
	return s
}

// standby starts a standby of the server.
func (s *server) standby(t *testing.T) *server {
	t.Helper()
	other := &server{dir: filepath.Join(folder(t), "data")}
	run(t, "pg_basebackup", "-D", other.dir, "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", s.url("postgres"))
	other.start(t)
	return other
}

func (s *server) start(t *testing.T, settings ...string) {
	t.Helper()
	if s.port == "" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, s.port, _ = net.SplitHostPort(listener.Addr().String())
		listener.Close()
		t.Cleanup(s.kill)
	}
	args := []string{"-D", s.dir, "-p", s.port, "-h", "127.0.0.1", "-k", "", "-c", "shared_buffers=16MB", "-c", "max_connections=60"}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	s.cmd = exec.Command(program(t, "postgres"), args...)
	asOrdinaryUser(t, s.cmd)
	var out bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &out, &out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgx.Connect(context.Background(), s.url("postgres"))
		if err == nil {
			conn.Close(context.Background())
			return
		}
		if time.Now().After(deadline) {
			s.kill()
			t.Fatalf("postgres does not start: %v\n%s", err, out.String())
		}
	}
}

// kill ends the server at once, so that it saves nothing. With SIGKILL, it would leave shared memory behind.
func (s *server) kill() {
	if s.cmd != nil {
		timer := time.AfterFunc(10*time.Second, func() { s.cmd.Process.Kill() })
		s.cmd.Process.Signal(syscall.SIGQUIT)
		s.cmd.Wait()
		timer.Stop()
		s.cmd = nil
	}
}

func (s *server) url(user string) string {
	return "postgres://" + user + ":secret@127.0.0.1:" + s.port + "/postgres?sslmode=disable"
}

func (s *server) config(t *testing.T, user string) *pgxpool.Config {
	t.Helper()
	config, err := pgxpool.ParseConfig(s.url(user))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 16
	return config
}

// admin runs statements as the superuser.
func (s *server) admin(t *testing.T, sql string) {
	t.Helper()
	conn := s.connect(t)
	if _, err := conn.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

func (s *server) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), s.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// newStore returns a store that accepts tokens that are issued from now on, even if the server is new.
func newStore(t *testing.T, s *server) *pgreplay.Store { return openStore(t, s, pgreplay.Config{}) }

func openStore(t *testing.T, s *server, config pgreplay.Config) *pgreplay.Store {
	t.Helper()
	config.Create, config.Skew = true, time.Millisecond
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	store, err := pgreplay.New(context.Background(), s.config(t, "postgres"), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	time.Sleep(3 * time.Millisecond)
	return store
}

func newUse() tripseal.Use {
	use := tripseal.Use{Round: 1, Issued: time.Now(), Until: time.Now().Add(time.Minute)}
	rand.Read(use.Flow[:])
	return use
}

func newClaim() (c tripseal.Claim) {
	rand.Read(c.Call[:])
	c.Tag[0], c.Lease = 1, time.Minute
	return c
}

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(template.dir)
	os.Exit(code)
}
