package redisreplay_test

import (
	"context"
	"net"
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

// startCluster starts a cluster of three masters, each with a third of the slots.
func startCluster(t *testing.T) (*redis.ClusterClient, []*server) {
	t.Helper()
	ctx := context.Background()
	const slots = 16384
	var nodes []*server
	var addrs []string
	for i := range 3 {
		s, busPort := startNode(t)
		nodes, addrs = append(nodes, s), append(addrs, s.addr)
		s.admin(t, "cluster", "addslotsrange", i*slots/3, (i+1)*slots/3-1)
		host, port, _ := net.SplitHostPort(s.addr)
		nodes[0].admin(t, "cluster", "meet", host, port, busPort)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	deadline := time.Now().Add(60 * time.Second)
	for _, s := range nodes {
		for node := s.client(t); ; time.Sleep(50 * time.Millisecond) {
			info, _ := node.ClusterInfo(ctx).Result()
			shards, _ := node.ClusterShards(ctx).Result()
			if strings.Contains(info, "cluster_state:ok") && len(shards) == 3 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the cluster does not come up:\n%s", info)
			}
		}
	}
	return client, nodes
}

// startNode starts a server for a cluster. It also returns the port at which other nodes
// reach the server. By default, this is the server's own port plus 10000, which may be
// higher than 65535.
func startNode(t *testing.T) (*server, int) {
	t.Helper()
	port := freePort()
	return startServer(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(port)), port
}

// restricted returns a client that connects as a user with only the documented rights.
func restricted(t *testing.T, client *redis.ClusterClient, nodes []*server) *redis.ClusterClient {
	t.Helper()
	for _, s := range nodes {
		s.as(t, append(slices.Clone(documentedRights), "+cluster|slots", "+asking", "+command")...)
	}
	options := *client.Options()
	options.Username, options.Password = "store", "secret"
	other := redis.NewClusterClient(&options)
	t.Cleanup(func() { other.Close() })
	return other
}

func TestAClusterPassesTheSuite(t *testing.T) {
	t.Parallel()
	client, nodes := startCluster(t)
	sealtest.TestReplayStore(t, newStore(t, client))
	for _, s := range nodes {
		if n := s.client(t).DBSize(context.Background()).Val(); n < 500 {
			t.Errorf("a node has %d of the uses: they are not spread", n)
		}
	}
	// If one node evicts keys, the whole cluster is refused.
	nodes[2].admin(t, "config", "set", "maxmemory-policy", "allkeys-lru")
	refused(t, client, redisreplay.Config{}, "set its maxmemory-policy to noeviction")
	nodes[2].admin(t, "config", "set", "maxmemory-policy", "noeviction")
	store := newStore(t, client)

	// The documented rights are enough.
	if _, err := newStore(t, restricted(t, client, nodes)).Spend(context.Background(), newUse()); err != nil {
		t.Errorf("with the documented rights: %v", err)
	}

	// While a node is down, the tokens in its slots are rejected.
	nodes[1].kill()
	won, failed := 0, 0
	for range 60 {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		first, err := store.Spend(ctx, newUse())
		cancel()
		switch {
		case first:
			won++
		case err != nil:
			failed++
		default:
			t.Fatal("a fresh token counts as used")
		}
	}
	if failed == 0 {
		t.Error("no use failed with a node away")
	}
	t.Logf("%d uses won, %d failed with a node away", won, failed)
}

// TestAFlushOfOneMasterIsSeenWithEveryTag flushes one master of three. Tokens of its slots are refused;
// the first refusal makes the epochs of all its tags, so users do not start over once for each.
func TestAFlushOfOneMasterIsSeenWithEveryTag(t *testing.T) {
	t.Parallel()
	client, nodes := startCluster(t)
	store := newStore(t, client)
	before := client.DBSize(t.Context()).Val()
	if before != 64 {
		t.Fatalf("there are %d epochs", before)
	}
	var uses []tripseal.Use
	for range 300 {
		uses = append(uses, newUse())
		mustSpend(t, store, uses[len(uses)-1], true)
	}
	nodes[0].admin(t, "flushall")
	refused := 0
	for _, use := range uses {
		first, err := store.Spend(t.Context(), use)
		if first {
			t.Fatal("a used token works again")
		}
		if err != nil {
			refused++
		}
	}
	if refused < 30 || refused > 200 {
		t.Errorf("%d of 300 tokens were refused, where a third was forgotten", refused)
	}
	for deadline := time.Now().Add(10 * time.Second); client.DBSize(t.Context()).Val() < 300-int64(refused)+64; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the epochs of the other tags are not made")
		}
	}
}
