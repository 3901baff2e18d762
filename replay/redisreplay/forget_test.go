package redisreplay_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

// forgetEnv is the name of an environment variable. It says how long the test uses tokens before it
// makes Redis forget them, for example "2s", and makes the test try all ways. Without it, the time is
// short, and the test tries the ways that are marked as often.
const forgetEnv = "TRIPSEAL_FORGET"

// ways has all ways in which a Redis can forget used tokens, in the order of the table.
var ways = []struct {
	name  string
	often bool // true if the test tries it without the variable too
	some  bool // true if, in every run and on any machine, at least one token works again without the epoch
	setUp func(*testing.T) scene
}{
	{"killed and restarted, no persistence", true, true, restart("--save", "")},
	{"killed and restarted, `save 60 1`", false, true, restart("--save", "60 1")},
	{"killed and restarted, `appendfsync everysec`", false, false, restart("--appendonly", "yes", "--appendfsync", "everysec")},
	{"power lost, `appendfsync everysec` (the file lost its end)", false, true, powerLoss},
	{"killed and restarted, `appendfsync always`", false, false, restart("--appendonly", "yes", "--appendfsync", "always")},
	{"killed and restarted behind a proxy that keeps its clients' connections", false, true, behindProxy},
	{"`FLUSHALL`", true, true, flush},
	{"eviction switched on later, with too little memory", false, true, evict},
	{"a replica 50 ms behind is promoted", false, true, promote(50*time.Millisecond, false)},
	{"a replica 1 s behind is promoted", true, true, promote(time.Second, false)},
	{"the same with `min-replicas-to-write 1`", false, true, promote(time.Second, false, "--min-replicas-to-write", "1")},
	{"`WAIT 1` after each use; the second replica, 1 s behind, is promoted", false, true, promote(time.Second, true)},
	{"Sentinel fails over to a replica 1 s behind", false, true, sentinel(false)},
	{"the same, and the master only stood still, and comes back", false, true, sentinel(true)},
	{"a cluster fails over to a replica that lost its link", false, true, clusterFailover},
}

// scene is a Redis, and a way to make it forget.
type scene struct {
	client  func(*testing.T) redis.UniversalClient
	wait    bool   // true if each use waits until a replica has it
	halts   bool   // true if no new store can start after scene.forget was called
	lags    bool   // true if Redis forgets only tokens that are used after the call of scene.prepare; the test then uses more tokens after this call
	prepare func() // called while tokens are used, if it is not nil
	forget  func() // makes Redis forget; called after the last use
}

// TestWhatRedisForgetsIsRefused prints the table of the operations page. It uses each
// token in the store and with a bare SET NX. Then Redis forgets, and the test presents each token to
// both again. The bare SET NX is the control: it must accept some of them.
func TestWhatRedisForgetsIsRefused(t *testing.T) {
	t.Parallel()
	load, all := 200*time.Millisecond, false
	if text := os.Getenv(forgetEnv); text != "" {
		var err error
		if load, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		all = true
	}
	rows := make([]string, len(ways))
	t.Cleanup(func() {
		t.Logf("\n| Redis | tokens used | worked again, with a bare `SET NX` | with the store |\n|---|---|---|---|%s", strings.Join(rows, ""))
	})
	for i, way := range ways {
		if !all && !way.often {
			continue
		}
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			used, unguarded, guarded := way.setUp(t).play(t, load)
			if way.some && unguarded == 0 {
				t.Error("Redis forgot nothing: the test shows nothing")
			}
			if guarded > 0 {
				t.Errorf("of %d used tokens %d worked again", used, guarded)
			}
			rows[i] = fmt.Sprintf("\n| %s | %d | %d | %d |", way.name, used, unguarded, guarded)
		})
	}
}

// bareSetNX is a store that believes every answer of Redis.
type bareSetNX struct{ client redis.UniversalClient }

func (b bareSetNX) Spend(ctx context.Context, use tripseal.Use) (bool, error) {
	return b.client.SetNX(ctx, fmt.Sprintf("bare:%x.%d", use.Flow, use.Round), 1, time.Until(use.Until)).Result()
}

// pair has two stores on one client.
type pair struct {
	bare   bareSetNX
	store  *redisreplay.Store
	client redis.UniversalClient
}

func newPair(t *testing.T, client redis.UniversalClient) pair {
	t.Helper()
	store, err := redisreplay.New(context.Background(), client, redisreplay.Config{Skew: skew, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return pair{bareSetNX{client}, store, client}
}

// skew is long enough for the clocks of one machine, and so short that half of the tokens that a
// test shows again are not refused for it alone.
const skew = 50 * time.Millisecond

// This method uses tokens, lets Redis forget, and presents the used tokens again. It
// returns these counts:
//   - used: the tokens that were used
//   - unguarded: the tokens that worked again with a bare SET NX
//   - guarded: the tokens that worked again with the store
func (s scene) play(t *testing.T, load time.Duration) (used, unguarded, guarded int) {
	t.Helper()
	ctx := context.Background()
	p := newPair(t, s.client(t))

	// 1. Use tokens, also while s.prepare runs.
	const workers = 8
	var mu sync.Mutex
	var spent []tripseal.Use
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(spent) }
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range workers {
		mine := p
		if s.wait { // WAIT waits for the writes of its own connection, so each worker needs a client
			mine = newPair(t, s.client(t))
		}
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				use := newUse()
				use.Until = use.Issued.Add(12 * time.Minute)
				first, err := mine.bare.Spend(ctx, use)
				also, err2 := mine.store.Spend(ctx, use)
				if err != nil || err2 != nil || !first || !also {
					t.Errorf("a fresh token: %v, %v, %v, %v", first, err, also, err2)
					return
				}
				if s.wait {
					if n, err := mine.client.(*redis.Client).Wait(ctx, 1, 10*time.Second).Result(); n < 1 || err != nil {
						t.Errorf("WAIT = %d, %v", n, err)
						return
					}
				}
				mu.Lock()
				spent = append(spent, use)
				mu.Unlock()
			}
		})
	}
	time.Sleep(load)
	if s.prepare != nil {
		s.prepare()
	}
	if s.lags {
		time.Sleep(load / 2)
	}
	for mark := count(); count() < mark+100 && !t.Failed(); time.Sleep(time.Millisecond) {
	}
	close(stop)
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}

	// 2. Let Redis forget.
	s.forget()

	// 3. Present the tokens again, half of them to stores that start only now.
	started := p
	if !s.halts {
		started = newPair(t, s.client(t))
	}
	for half := range 2 {
		for g := range workers {
			group.Go(func() {
				for i := half*workers + g; i < len(spent); i += 2 * workers {
					mine := p
					if i/(2*workers)%2 == 0 {
						mine = started
					}
					worksUnguarded := decided(t, mine.bare, spent[i])
					worksGuarded := decided(t, mine.store, spent[i])
					mu.Lock()
					if worksUnguarded {
						unguarded++
					}
					if worksGuarded {
						guarded++
					}
					mu.Unlock()
				}
			})
		}
		group.Wait()
	}
	return len(spent), unguarded, guarded
}

// This function uses a token until the store decides, and reports whether the token worked.
// The token did not work if the error says that Redis may have forgotten it. After any other error, the function tries again: connections to a server that
// is gone fail at first.
func decided(t *testing.T, store tripseal.ReplayStore, use tripseal.Use) bool {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		first, err := store.Spend(ctx, use)
		cancel()
		if err == nil {
			return first
		}
		if strings.Contains(err.Error(), "Redis may have forgotten") {
			return false
		}
		if time.Now().After(deadline) {
			t.Errorf("no decision: %v", err)
			return false
		}
	}
}

// season creates the epoch of the store in a server, and sets its date to an hour ago. So the
// store accepts fresh tokens at once.
func season(t *testing.T, s *server) {
	t.Helper()
	client := s.client(t)
	newPair(t, client)
	ageEpochs(t, client)
}

func (s *server) clients(t *testing.T) redis.UniversalClient {
	return s.client(t, func(o *redis.Options) { o.PoolSize = 16 })
}

func restart(args ...string) func(*testing.T) scene {
	return func(t *testing.T) scene {
		s := startServer(t, args...)
		season(t, s)
		return scene{client: s.clients, forget: func() { s.kill(); s.start(t) }}
	}
}

// powerLoss cuts off the end of the append-only file, as if the machine had not written it
// to its disk yet.
func powerLoss(t *testing.T) scene {
	s := startServer(t, "--appendonly", "yes", "--appendfsync", "everysec")
	season(t, s)
	var file string
	var size int64
	return scene{
		client: s.clients,
		lags:   true,
		prepare: func() {
			files, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
			if err != nil || len(files) != 1 {
				t.Fatalf("files %q, %v", files, err)
			}
			info, err := os.Stat(files[0])
			if err != nil {
				t.Fatal(err)
			}
			file, size = files[0], info.Size()
		},
		forget: func() {
			s.kill()
			if err := os.Truncate(file, size); err != nil {
				t.Fatal(err)
			}
			s.start(t)
		},
	}
}

func behindProxy(t *testing.T) scene {
	s := startServer(t)
	season(t, s)
	proxy := newRelay(t, s.addr)
	proxy.keeps = true
	return scene{
		client: func(t *testing.T) redis.UniversalClient {
			return s.client(t, func(o *redis.Options) { o.Addr, o.PoolSize = proxy.addr, 16 })
		},
		forget: func() { s.kill(); s.start(t) },
	}
}

func flush(t *testing.T) scene {
	s := startServer(t)
	season(t, s)
	return scene{client: s.clients, forget: func() { s.admin(t, "flushall") }}
}

func evict(t *testing.T) scene {
	s := startServer(t)
	season(t, s)
	return scene{client: s.clients, halts: true, forget: func() {
		s.admin(t, "config", "set", "maxmemory-policy", "allkeys-random")
		s.admin(t, "config", "set", "maxmemory", "1mb")
		s.client(t).Set(context.Background(), "other", "1", 0) // this write makes Redis evict keys
		s.admin(t, "config", "set", "maxmemory", "0")
	}}
}

// follow makes s a replica of the master, and waits until s gets all writes of the master.
// The replica s reaches the master at addr.
func (s *server) follow(t *testing.T, addr string, master *server) {
	t.Helper()
	host, port, _ := strings.Cut(addr, ":")
	s.admin(t, "replicaof", host, port)
	_, port, _ = strings.Cut(s.addr, ":")
	s.await(t, "master_link_status:up")
	master.await(t, "port="+port+",state=online")
}

// await waits until the answer to INFO has the given text.
func (s *server) await(t *testing.T, line string) {
	t.Helper()
	client := s.client(t)
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		info := client.Info(context.Background()).Val()
		if strings.Contains(info, line) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %q in\n%s", line, info)
		}
	}
}

// awaitCluster waits until the answer to CLUSTER INFO has all given texts.
func (s *server) awaitCluster(t *testing.T, lines ...string) {
	t.Helper()
	client := s.client(t)
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		info := client.ClusterInfo(context.Background()).Val()
		missing := slices.ContainsFunc(lines, func(line string) bool { return !strings.Contains(info, line) })
		if !missing {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not %q in\n%s", lines, info)
		}
	}
}

// promote kills a master, and leads its clients to a replica that is behind the master by
// the given time. If wait is true, there is a second replica, which is not behind, and each
// use waits for it. The parameter args has settings of the master.
func promote(behind time.Duration, wait bool, args ...string) func(*testing.T) scene {
	return func(t *testing.T) scene {
		master, replica := startServer(t), startServer(t)
		link := newRelay(t, master.addr)
		replica.follow(t, link.addr, master)
		if wait {
			startServer(t).follow(t, master.addr, master)
		}
		for i := 0; i < len(args); i += 2 {
			master.admin(t, "config", "set", strings.TrimPrefix(args[i], "--"), args[i+1])
		}
		season(t, master)
		link.slow(behind)
		front := newRelay(t, master.addr)
		return scene{
			wait: wait,
			client: func(t *testing.T) redis.UniversalClient {
				return master.client(t, func(o *redis.Options) {
					o.Addr, o.PoolSize = front.addr, 16
					if wait {
						o.PoolSize = 1
					}
				})
			},
			prepare: link.hold,
			forget: func() {
				master.kill()
				replica.admin(t, "replicaof", "no", "one")
				front.lead(replica.addr)
			},
		}
	}
}

// sentinel lets a Sentinel promote a replica, because the master is gone or stands still for a while.
func sentinel(paused bool) func(*testing.T) scene {
	return func(t *testing.T) scene { return failover(t, paused) }
}

func failover(t *testing.T, paused bool) scene {
	master, replica := startServer(t), startServer(t)
	link := newRelay(t, master.addr)
	replica.follow(t, link.addr, master)
	season(t, master)
	host, port, _ := strings.Cut(master.addr, ":")
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor main %s %s 1\nsentinel down-after-milliseconds main 500\nsentinel failover-timeout main 5000\n", host, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	watcher := startSentinel(t, config)
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if strings.Contains(watcher.client(t).Info(context.Background()).Val(), "status=ok") &&
			strings.Contains(watcher.client(t).Info(context.Background()).Val(), "slaves=1") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the sentinel does not find the servers")
		}
	}
	link.slow(time.Second)
	return scene{
		client: func(t *testing.T) redis.UniversalClient {
			client := redis.NewFailoverClient(&redis.FailoverOptions{
				MasterName: "main", SentinelAddrs: []string{watcher.addr}, ContextTimeoutEnabled: true, PoolSize: 16,
			})
			t.Cleanup(func() { client.Close() })
			return client
		},
		prepare: link.hold,
		forget: func() {
			if paused {
				master.pause()
				defer master.resume()
			} else {
				master.kill()
			}
			link.cut()
			replica.await(t, "role:master")
			watcher.await(t, "address="+replica.addr)
		},
	}
}

// clusterFailover gives one of three masters a replica. The replica loses its link to the
// master before the master is killed.
func clusterFailover(t *testing.T) scene {
	ctx := context.Background()
	cluster, nodes := startCluster(t)
	for _, s := range nodes {
		s.admin(t, "config", "set", "cluster-node-timeout", 1000)
	}
	replica, bus := startNode(t)
	replica.admin(t, "config", "set", "cluster-node-timeout", 1000)
	host, port, _ := strings.Cut(replica.addr, ":")
	nodes[0].admin(t, "cluster", "meet", host, port, bus)
	master := nodes[0].client(t).Do(ctx, "cluster", "myid").Val()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := replica.client(t).Do(ctx, "cluster", "replicate", master).Err()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	replica.await(t, "master_link_status:up")
	nodes[0].await(t, "state=online")
	for _, s := range append(nodes, replica) {
		s.awaitCluster(t, "cluster_state:ok", "cluster_known_nodes:4")
	}
	newPair(t, cluster)
	for _, s := range nodes {
		ageEpochs(t, s.client(t))
	}
	for _, s := range append(nodes, replica) {
		s.admin(t, "acl", "setuser", "tester", "on", ">secret", "~*", "&*", "+@all")
	}
	return scene{
		client: func(t *testing.T) redis.UniversalClient {
			options := *cluster.Options()
			options.Username, options.Password, options.PoolSize = "tester", "secret", 16
			client := redis.NewClusterClient(&options)
			t.Cleanup(func() { client.Close() })
			return client
		},
		lags: true,
		prepare: func() {
			// Without the default user, the replica cannot connect again.
			as := nodes[0].client(t, func(o *redis.Options) { o.Username, o.Password = "tester", "secret" })
			if err := as.Do(ctx, "acl", "setuser", "default", "off").Err(); err != nil {
				t.Error(err)
			}
			if err := as.Do(ctx, "client", "kill", "type", "replica").Err(); err != nil {
				t.Error(err)
			}
		},
		forget: func() {
			nodes[0].kill()
			replica.await(t, "role:master")
			for _, s := range []*server{nodes[1], nodes[2], replica} {
				s.awaitCluster(t, "cluster_state:ok")
			}
		},
	}
}
