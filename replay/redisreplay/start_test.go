package redisreplay_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay/redisreplay"
	"github.com/tripseal/tripseal/sealtest"
)

func TestOneServerPassesTheSuite(t *testing.T) {
	t.Parallel()
	sealtest.TestReplayStore(t, newStore(t, startServer(t).client(t)))
}

func refused(t *testing.T, client redis.UniversalClient, config redisreplay.Config, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	store, err := redisreplay.New(ctx, client, config)
	if store != nil || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("New = %v, %v, want %q", store, err, want)
	}
}

func TestClientsThatCannotKeepThePromiseAreRefused(t *testing.T) {
	t.Parallel()
	nowhere := &redis.Options{Addr: "127.0.0.1:1"}
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}, ContextTimeoutEnabled: true})
	deaf := redis.NewClient(nowhere)
	deafCluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	deafSentinel := redis.NewUniversalClient(&redis.UniversalOptions{MasterName: "m", Addrs: []string{"127.0.0.1:1"}})
	pipeliner, err := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true}).AutoPipeline()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		client redis.UniversalClient
		want   string
	}{
		{nil, "the client is a <nil>: pass a *redis.Client"},
		{ring, "the client is a *redis.Ring: pass a *redis.Client"},
		{deaf, "set ContextTimeoutEnabled: true"},
		{deafCluster, "set ContextTimeoutEnabled: true"},
		{deafSentinel, "set ContextTimeoutEnabled: true"},
		{pipeliner, "pass a *redis.Client"},
		{struct{ *redis.Client }{deaf}, "pass a *redis.Client"},
	} {
		refused(t, c.client, redisreplay.Config{}, c.want)
		if c.client != nil {
			c.client.Close()
		}
	}
}

func TestEvictingServersAreRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	policies := []string{
		"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl",
	}
	for _, policy := range policies {
		s.admin(t, "config", "set", "maxmemory-policy", policy)
		refused(t, s.client(t), redisreplay.Config{}, "set its maxmemory-policy to noeviction")
	}
	s.admin(t, "config", "set", "maxmemory-policy", "noeviction")
	newStore(t, s.client(t))
}

func TestReplicasAreRefused(t *testing.T) {
	t.Parallel()
	for _, readOnly := range []string{"yes", "no"} {
		s := startServer(t, "--replica-read-only", readOnly)
		store := newStore(t, s.client(t))
		s.admin(t, "replicaof", "127.0.0.1", "1")
		if first, err := store.Spend(t.Context(), newUse()); first || err == nil || !strings.Contains(err.Error(), "this Redis is a replica") {
			t.Errorf("on a server that became a replica, Spend = %v, %v", first, err)
		}
		refused(t, s.client(t), redisreplay.Config{}, "this Redis is a replica: connect to the master")
		refused(t, s.as(t, documentedRights...), redisreplay.Config{}, "this Redis is a replica")
	}
}

func TestAClusterWithoutMastersIsRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--cluster-enabled", "yes")
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.addr}, ContextTimeoutEnabled: true})
	defer client.Close()
	refused(t, client, redisreplay.Config{}, "the cluster has no master")
}

// This method returns a client. The client connects as a user with the given ACL rules.
func (s *server) as(t *testing.T, rules ...any) *redis.Client {
	t.Helper()
	s.admin(t, append([]any{"acl", "setuser", "store", "reset", "on", ">secret"}, rules...)...)
	return s.client(t, func(o *redis.Options) { o.Username, o.Password = "store", "secret" })
}

// TestAServerThatDoesNotSayWhoItIsIsRefused forbids INFO, leaves one line out of the answer
// to INFO, or puts a wrong id into it.
func TestAServerThatDoesNotSayWhoItIsIsRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	refused(t, s.as(t, "~tripseal:used:*", "+set", "+get", "+eval", "+ping", "+time"), redisreplay.Config{}, "the Redis user lacks a right: it needs")
	for old, with := range map[string]string{
		"role:": "x:", "master_replid:": "x:", "maxmemory_policy:": "x:", "evicted_keys:": "x:",
		redisID: strings.Repeat("0", 40), redisID[1:]: "", redisID[2:]: strings.Repeat("g", 38),
	} {
		refused(t, telling(t, "info", bulk(strings.Replace(redisInfo, old, with, 1))), redisreplay.Config{},
			"does not say in INFO which server it is")
	}
	old := bulk(strings.Replace(redisInfo, "redis_version:7", "redis_version:5", 1))
	refused(t, telling(t, "info", old), redisreplay.Config{}, "older than version 6")
	refused(t, telling(t, "time", "*2\r\n$10\r\n1000000000\r\n$1\r\n0\r\n"), redisreplay.Config{}, "the clock of this Redis")
}

// telling returns a client of a server that gives one command another reply.
func telling(t *testing.T, command, reply string) *redis.Client {
	t.Helper()
	return servedBy(t, func(args []string) (string, bool) {
		if args[0] == command {
			return reply, true
		}
		return actAsRedis(args), true
	})
}

// documentedRights has the ACL rules that the operations page recommends.
var documentedRights = []any{
	"~tripseal:used:*", "+eval", "+evalsha", "+get", "+set", "+del", "+pttl", "+info", "+time", "+config|get",
}

func TestTheDocumentedRightsAreEnough(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	sealtest.TestReplayStore(t, newStore(t, s.as(t, documentedRights...)))
	for _, right := range documentedRights[1:] { // and each is needed, but for the last
		s.admin(t, "script", "flush")
		client := s.as(t, append(slices.Clone(documentedRights), "-"+right.(string)[1:])...)
		store, err := redisreplay.New(t.Context(), client, redisreplay.Config{Skew: time.Millisecond, Logger: quiet})
		if err == nil {
			_, err = useAll(t, store)
		}
		if needed := right != "+config|get"; needed != (err != nil) || needed && !strings.Contains(err.Error(), "the Redis user lacks a right") {
			t.Errorf("without %s: %v", right, err)
		}
	}
}

// useAll uses each method of a store.
func useAll(t *testing.T, store *redisreplay.Store) (bool, error) {
	claim, use := tripseal.Claim{Lease: time.Minute}, newUse()
	_, err := store.Begin(t.Context(), use, claim)
	err2 := store.End(t.Context(), use, claim, tripseal.End{GiveBack: true})
	_, err3 := store.Begin(t.Context(), use, claim)
	err4 := store.End(t.Context(), use, claim, tripseal.End{Result: []byte("x"), Keep: time.Minute})
	return true, errors.Join(err, err2, err3, err4)
}

// TestTheRedisOfTheManifestForgetsNothing uses the settings and users of deploy/kubernetes/redis.yaml, in other folders.
// The user needs a password and may PING, the settings are durable, and a restart forgets nothing.
func TestTheRedisOfTheManifestForgetsNothing(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/kubernetes/redis.yaml")
	if err != nil {
		t.Fatal(err)
	}
	settings := regexp.MustCompile(`(?s)redis\.conf: \|\n(.*?)\n---`).FindSubmatch(text)
	users := regexp.MustCompile(`printf '(.*)' "\$PASSWORD" > users\.acl`).FindSubmatch(text)
	dir, port := t.TempDir(), strconv.Itoa(freePort())
	local := strings.NewReplacer("6379", port+"\nbind 127.0.0.1", "/data", dir, "/etc/redis/users", dir, "    ", "")
	acl := strings.NewReplacer(`\n`, "\n", "%s", "secret")
	s := &server{addr: "127.0.0.1:" + port, args: []string{filepath.Join(dir, "redis.conf")}}
	err = os.WriteFile(s.args[0], []byte(local.Replace(string(settings[1]))), 0o600)
	err2 := os.WriteFile(filepath.Join(dir, "users.acl"), []byte(acl.Replace(string(users[1]))), 0o600)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	s.start(t)
	t.Cleanup(s.kill)
	client := s.client(t, func(o *redis.Options) { o.Username, o.Password, o.MaxRetries = "tripseal", "secret", 50 })
	if err := client.Ping(t.Context()).Err(); err != nil || s.client(t).Ping(t.Context()).Err() == nil {
		t.Errorf("the user may not PING, or anybody may: %v", err)
	}
	config := redisreplay.Config{Skew: time.Millisecond, Logger: quiet, Durable: true}
	store, err := redisreplay.New(t.Context(), client, config)
	if err != nil {
		t.Fatal(err)
	}
	settle()
	used, unused := newUse(), newUse()
	mustSpend(t, store, used, true)
	for range 2 {
		client.Ping(t.Context()) // tries again as long as Redis loads its data
		store, err := redisreplay.New(t.Context(), client, config)
		if err != nil {
			t.Fatal(err)
		}
		mustSpend(t, store, used, false)
		s.kill()
		s.start(t)
	}
	client.Ping(t.Context())
	mustSpend(t, store, unused, true)
}
