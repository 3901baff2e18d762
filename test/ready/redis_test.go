package ready_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	seal "github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

// The type warnings is a log handler that keeps the messages of warnings and errors.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w *warnings) WithGroup(string) slog.Handler                    { return w }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, r.Message)
	return nil
}

func (w *warnings) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.all...)
}

// redisProcess is a Redis with the settings of a manifest.
type redisProcess struct {
	server, file string
	url          string // with the password of the user tripseal
	port         string
	cmd          *exec.Cmd
}

// startRedis starts a Redis with the settings and the users of redis.yaml. Only the folders and the
// address are different: this Redis uses a temporary folder and a free local port.
func startRedis(t *testing.T, server, text string) *redisProcess {
	t.Helper()
	m := readManifest(text, "StatefulSet")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	must(t, err)
	listener.Close()
	dir := t.TempDir()
	secret := m.secret(rand.Text())
	must(t, os.WriteFile(filepath.Join(dir, "users.acl"), []byte(secret.acl), 0o600))
	settings := m.settings()
	for old, new := range map[string]string{"port 6379": "port " + port + "\nbind 127.0.0.1", "dir /data": "dir " + dir, "aclfile /etc/redis/users/": "aclfile " + dir + "/"} {
		settings = replaced(t, settings, old, new)
	}
	r := &redisProcess{server: server, file: filepath.Join(dir, "redis.conf"), port: port}
	r.url = replaced(t, secret.url, "@release-redis:6379", "@127.0.0.1:"+port)
	must(t, os.WriteFile(r.file, []byte(settings), 0o600))
	r.start(t)
	t.Cleanup(r.kill)
	return r
}

func (r *redisProcess) start(t *testing.T) {
	t.Helper()
	r.cmd = exec.Command(r.server, r.file)
	var out strings.Builder
	r.cmd.Stdout, r.cmd.Stderr = &out, &out
	must(t, r.cmd.Start())
	client := r.client(t)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := client.Ping(t.Context()).Err()
		if err == nil || strings.HasPrefix(err.Error(), "NOPERM") {
			return
		}
		if time.Now().After(deadline) {
			r.kill()
			t.Fatalf("Redis does not start: %v\n%s", err, out.String())
		}
	}
}

func (r *redisProcess) kill() {
	r.cmd.Process.Kill()
	r.cmd.Wait()
}

// This method connects as server.yaml says.
func (r *redisProcess) client(t *testing.T) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(r.url)
	must(t, err)
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	return client
}

// open opens the store twice, as two processes would, and returns the second store and its
// warnings. With a new Redis, the first process gets one more warning, because that Redis knows no
// tokens yet.
func (r *redisProcess) open(t *testing.T) (store *redisreplay.Store, log *warnings, err error) {
	t.Helper()
	for range 2 {
		log = new(warnings)
		if store, err = redisreplay.New(t.Context(), r.client(t), redisreplay.Config{Skew: time.Millisecond, Logger: slog.New(log)}); err != nil {
			break
		}
	}
	return store, log, err
}

// redisServers returns the servers to test with: a Redis, and a Valkey if there is one.
func redisServers(t *testing.T) []string {
	t.Helper()
	all := []string{tool(t, "TRIPSEAL_REDIS_SERVER", "redis-server")}
	if valkey := os.Getenv("TRIPSEAL_VALKEY_SERVER"); valkey != "" {
		all = append(all, valkey)
	}
	return all
}

func TestTheStoreAcceptsTheRedisOfTheManifestWithoutAWarning(t *testing.T) {
	text := deployed(t, "kubernetes/redis.yaml")
	for _, server := range redisServers(t) {
		r := startRedis(t, server, text)
		if _, log, err := r.open(t); err != nil || len(log.list()) > 0 {
			t.Errorf("%s: %v, %q", server, err, log.list())
		}
	}
	// Each of these settings and rights is needed: without it, the store returns an error or warns.
	for _, c := range []struct{ old, new, refused, warned string }{
		{"maxmemory-policy noeviction", "maxmemory-policy allkeys-lru", "evicts keys", ""},
		{"appendonly yes", "appendonly no", "", "may forget used tokens"},
		{"appendfsync always", "appendfsync everysec", "", "may forget used tokens"},
		{"no-appendfsync-on-rewrite no", "no-appendfsync-on-rewrite yes", "", "may forget used tokens"},
		{" +config|get", "", "", "may forget used tokens"},
		{" +info", "", "lacks a right", ""},
		{" +eval", "", "lacks a right", ""},
		{" +get", "", "lacks a right", ""},
		{" +set", "", "lacks a right", ""},
	} {
		r := startRedis(t, redisServers(t)[0], replaced(t, text, c.old, c.new))
		_, log, err := r.open(t)
		if refused := err != nil && strings.Contains(err.Error(), c.refused); refused != (c.refused != "") {
			t.Errorf("%q: %v", c.new, err)
		}
		if warned := strings.Contains(strings.Join(log.list(), "\n"), "may forget used tokens"); warned != (c.warned != "") {
			t.Errorf("%q: %q", c.new, log.list())
		}
		r.kill()
	}
}

func TestARestartOfTheRedisOfTheManifestForgetsNothing(t *testing.T) {
	for _, server := range redisServers(t) {
		r := startRedis(t, server, deployed(t, "kubernetes/redis.yaml"))
		store, _, err := r.open(t)
		must(t, err)
		time.Sleep(20 * time.Millisecond) // a token must be issued at least a millisecond (Skew) after the store first saw this Redis
		use := func(flow byte) seal.Use {
			now := time.Now()
			return seal.Use{Flow: [16]byte{flow}, Round: 1, Issued: now, Until: now.Add(10 * time.Minute)}
		}
		before, unused := use(1), use(2)
		if first, err := store.Spend(t.Context(), before); err != nil || !first {
			t.Fatalf("%s: a new token: %v, %v", server, first, err)
		}
		r.kill()
		r.start(t)
		log := new(warnings)
		store, err = redisreplay.New(t.Context(), r.client(t), redisreplay.Config{Skew: time.Millisecond, Logger: slog.New(log)})
		if err != nil || len(log.list()) > 0 {
			t.Errorf("%s, after a restart: %v, %q", server, err, log.list())
			continue
		}
		if first, err := store.Spend(t.Context(), before); err != nil || first {
			t.Errorf("%s: a used token after a restart: %v, %v", server, first, err)
		}
		if first, err := store.Spend(t.Context(), unused); err != nil || !first {
			t.Errorf("%s: a token that was not used before the restart: %v, %v", server, first, err)
		}
	}
}

// TestAServerWithTheseManifestsHasKeysAndSingleUse opens the keys and the store as the comment in
// server.yaml says. A boundary with these keys and this store must accept a token only once.
func TestAServerWithTheseManifestsHasKeysAndSingleUse(t *testing.T) {
	r := startRedis(t, redisServers(t)[0], deployed(t, "kubernetes/redis.yaml"))
	store, log, err := r.open(t)
	must(t, err)
	time.Sleep(20 * time.Millisecond) // a token must be issued at least a millisecond (Skew) after the store first saw this Redis
	// Write a secret as the kubelet mounts it: the file is a link that leads through ..data, which
	// is a link to a folder.
	m := readManifest(deployed(t, "kubernetes/server.yaml"), "Deployment")
	file := filepath.Join(t.TempDir(), filepath.FromSlash(m.container.named("env", "KEYS_FILE").text("value")))
	folder, version := filepath.Dir(file), "..2026_11_16"
	must(t, os.MkdirAll(filepath.Join(folder, version), 0o755))
	newKeys(t, filepath.Join(folder, version, "keys"))
	must(t, os.Chmod(filepath.Join(folder, version, "keys"), os.FileMode(m.pod.number("volumes.0.secret.defaultMode"))))
	must(t, os.Symlink(version, filepath.Join(folder, "..data")))
	must(t, os.Symlink(filepath.Join("..data", "keys"), file))

	source, err := keys.OpenFile(file, &keys.Options{Logger: slog.New(log)})
	must(t, err)
	defer source.Close()
	if len(log.list()) > 0 {
		t.Errorf("there are warnings: %q", log.list())
	}
	boundary, err := seal.New(seal.Config{Keys: source, Audience: "release.example.com", Replay: store, Logger: slog.New(log)})
	must(t, err)
	request := seal.Request{Method: "tools/call", Target: "deploy"}
	round, err := boundary.Open(t.Context(), request, "")
	must(t, err)
	state := "step=2"
	token, err := boundary.Seal(t.Context(), &round, &state)
	must(t, err)
	if _, err := boundary.Open(t.Context(), request, token); err != nil {
		t.Errorf("the first use: %v, %q", err, log.list())
	}
	if _, err := boundary.Open(t.Context(), request, token); err == nil {
		t.Error("a token works twice")
	}
}

func TestTheProxyAcceptsTheRedisOfTheManifest(t *testing.T) {
	text, upstream := deployed(t, "kubernetes/redis.yaml"), newUpstream(t)
	for change, want := range map[string]bool{"": true, " +ping": false} {
		r := startRedis(t, redisServers(t)[0], strings.Replace(text, change, "", 1))
		file := filepath.Join(t.TempDir(), "proxy.yaml")
		must(t, os.WriteFile(file, []byte("single-use: true\nredis-env: REDIS_URL\nephemeral: true\naudience: try\nidentity: anonymous\nlisten: 127.0.0.1:0\nupstream: "+upstream+"/mcp\n"), 0o600))
		cmd := tripseal(t, "proxy", "check", file)
		cmd.Env = append(os.Environ(), "REDIS_URL="+r.url)
		if out, err := cmd.CombinedOutput(); (err == nil) != want || !want && !strings.Contains(string(out), "its user lacks the right +ping") {
			t.Errorf("without %q: %v\n%s", change, err, out)
		}
	}
}
