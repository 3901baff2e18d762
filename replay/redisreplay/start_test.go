package redisreplay_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpseal/mcpseal/replay/redisreplay"
	"github.com/mcpseal/mcpseal/sealtest"
)

func TestOneServerPassesTheSuite(t *testing.T) {
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
	nowhere := &redis.Options{Addr: "127.0.0.1:1"}
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}, ContextTimeoutEnabled: true})
	deaf := redis.NewClient(nowhere)
	deafCluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	deafSentinel := redis.NewUniversalClient(&redis.UniversalOptions{MasterName: "m", Addrs: []string{"127.0.0.1:1"}})
	deafer := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, ReadTimeout: -2})
	deaferCluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: true, WriteTimeout: -2})
	pipeliner, err := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true}).AutoPipeline()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		client redis.UniversalClient
		want   string
	}{
		{nil, "the client is nil"},
		{(*redis.Client)(nil), "the client is nil"},
		{(*redis.ClusterClient)(nil), "the client is nil"},
		{ring, "a *redis.Ring, which moves keys"},
		{(*redis.Ring)(nil), "a *redis.Ring, which moves keys"},
		{deaf, "set ContextTimeoutEnabled: true"},
		{deafCluster, "set ContextTimeoutEnabled: true"},
		{deafSentinel, "set ContextTimeoutEnabled: true"},
		{deafer, "is -2"},
		{deaferCluster, "is -2"},
		{pipeliner, "whose options cannot be seen"},
		{struct{ *redis.Client }{deaf}, "whose options cannot be seen"},
	} {
		refused(t, c.client, redisreplay.Config{}, c.want)
		if c.client != nil && c.want != "the client is nil" && c.client != redis.UniversalClient((*redis.Ring)(nil)) {
			c.client.Close()
		}
	}
}

func TestPrefixesThatMakeNoSenseAreRefused(t *testing.T) {
	client := startServer(t).client(t)
	for _, prefix := range []string{"a b", "a\n", "\x00", "{app}:", "a}", "ü", "\xff", strings.Repeat("x", 129)} {
		refused(t, client, redisreplay.Config{Prefix: prefix}, "Config.Prefix")
	}
}

func TestEvictingServersAreRefused(t *testing.T) {
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
	for _, readOnly := range []string{"yes", "no"} {
		s := startServer(t, "--replica-read-only", readOnly)
		s.admin(t, "replicaof", "127.0.0.1", "1")
		refused(t, s.client(t), redisreplay.Config{}, "this Redis is a replica: connect to the master")
		refused(t, s.as(t, "~mcpseal:used:*", "+set", "+ping", "+info"), redisreplay.Config{}, "this Redis is a replica")
		newStore(t, s.as(t, "~mcpseal:used:*", "+set", "+ping")) // nobody can see it
	}
}

func TestAClusterWithoutMastersIsRefused(t *testing.T) {
	s := startServer(t, "--cluster-enabled", "yes")
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.addr}, ContextTimeoutEnabled: true})
	defer client.Close()
	refused(t, client, redisreplay.Config{}, "the cluster has no master")
}

// TestAServerThatGoesAwayWhileItIsLookedAtIsRefused closes the connection at the
// commands that may be forbidden, which is not the same.
func TestAServerThatGoesAwayWhileItIsLookedAtIsRefused(t *testing.T) {
	for _, command := range []string{"replication", "maxmemory-policy", "memory"} {
		client := servedBy(t, func(text string) (string, bool) {
			switch {
			case strings.Contains(text, "\r\n"+command+"\r\n"):
				return "", false
			case strings.Contains(text, "ping"):
				return "+PONG\r\n", true
			}
			return "-NOPERM no\r\n", true
		})
		refused(t, client, redisreplay.Config{}, "Redis closed the connection")
	}
}

// as connects as a user with these rules.
func (s *server) as(t *testing.T, rules ...any) *redis.Client {
	t.Helper()
	s.admin(t, append([]any{"acl", "setuser", "store", "reset", "on", ">secret"}, rules...)...)
	return s.client(t, func(o *redis.Options) { o.Username, o.Password = "store", "secret" })
}

func TestAPolicyThatNobodyCanReadIsAWarning(t *testing.T) {
	s := startServer(t, "--maxmemory-policy", "allkeys-lru")
	book := &logbook{}
	store, err := redisreplay.New(context.Background(), s.as(t, "~mcpseal:used:*", "+set", "+ping"), redisreplay.Config{Logger: book.logger()})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(book.String(), "level=WARN") || !strings.Contains(book.String(), "make sure that its maxmemory-policy is noeviction") {
		t.Errorf("no warning, but %q", book.String())
	}
	sealtest.TestReplayStore(t, store)
}

func TestInfoDecidesWhereConfigIsForbidden(t *testing.T) {
	s := startServer(t)
	rules := []any{"~mcpseal:used:*", "+set", "+ping", "+info"}
	book := &logbook{}
	if _, err := redisreplay.New(context.Background(), s.as(t, rules...), redisreplay.Config{Logger: book.logger()}); err != nil || book.String() != "" {
		t.Errorf("New = %v, and the log says %q", err, book.String())
	}
	s.admin(t, "config", "set", "maxmemory-policy", "volatile-ttl")
	refused(t, s.as(t, rules...), redisreplay.Config{}, "set its maxmemory-policy to noeviction")
}

// TestTheDocumentedRightsAreEnough uses the rule of the operations page.
func TestTheDocumentedRightsAreEnough(t *testing.T) {
	book := &logbook{}
	client := startServer(t).as(t, "~mcpseal:used:*", "+set", "+ping", "+config|get", "+info")
	store, err := redisreplay.New(context.Background(), client, redisreplay.Config{Logger: book.logger()})
	if err != nil || book.String() != "" {
		t.Fatalf("New = %v, and the log says %q", err, book.String())
	}
	sealtest.TestReplayStore(t, store)
}
