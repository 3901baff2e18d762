package redisreplay_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

const epochKey = "tripseal:used:epoch"

func mustSpend(t *testing.T, store tripseal.ReplayStore, use tripseal.Use, want bool) {
	t.Helper()
	if first, err := store.Spend(context.Background(), use); err != nil || first != want {
		t.Fatalf("Spend = %v, %v, want %v", first, err, want)
	}
}

// This function checks that the store refuses a token because Redis may have forgotten its
// use. The first tries may fail because a connection is gone.
func forgotten(t *testing.T, store tripseal.ReplayStore, use tripseal.Use) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		first, err := store.Spend(context.Background(), use)
		switch {
		case first:
			t.Fatal("a token that Redis may have forgotten was accepted")
		case err == nil:
			t.Fatal("the token counts as used: the test shows nothing")
		case strings.Contains(err.Error(), "Redis may have forgotten whether this token was used"):
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("Spend = %v", err)
		}
	}
}

// This function uses fresh tokens until the store accepts one.
func works(t *testing.T, store tripseal.ReplayStore) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		first, err := store.Spend(context.Background(), newUse())
		if first {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("fresh tokens are still refused: %v", err)
		}
	}
}

func look(t *testing.T, store *redisreplay.Store) {
	t.Helper()
	if err := store.Look(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// TestWhatWasIssuedBeforeRedisForgotIsRefused flushes a server. Older tokens must be refused by the
// store that notices the flush first, by a store that notices it later, and by a store that starts
// afterwards.
func TestWhatWasIssuedBeforeRedisForgotIsRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	store, other := newStore(t, s.client(t)), newStore(t, s.client(t))
	used, unused, alsoUnused := newUse(), newUse(), newUse()
	mustSpend(t, store, used, true)
	s.admin(t, "flushall")
	look(t, store)
	forgotten(t, store, used)
	look(t, other)
	forgotten(t, other, unused)
	forgotten(t, newStore(t, s.client(t)), alsoUnused)
	for _, store := range []tripseal.ReplayStore{store, other} {
		works(t, store)
	}
}

// TestTokensAreRefusedForTheSkew uses tokens on a new server. The skew is a minute. Tokens
// must be refused if they were issued less than a minute after the epoch was made: the
// clock that dated them may be ahead.
func TestTokensAreRefusedForTheSkew(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	store, err := redisreplay.New(context.Background(), s.client(t), redisreplay.Config{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	use := newUse()
	forgotten(t, store, use)
	ahead := newUse()
	ahead.Issued = time.Now().Add(59 * time.Second)
	forgotten(t, store, ahead)
	ahead = newUse()
	ahead.Issued = time.Now().Add(61 * time.Second)
	mustSpend(t, store, ahead, true)
}

// TestARestartIsSeenBeforeTheFirstUse restarts a server just after the store has checked
// it. The store must notice the restart before it accepts a token.
func TestARestartIsSeenBeforeTheFirstUse(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	client := s.client(t)
	store := newStore(t, client)
	for range 5 {
		used := newUse()
		mustSpend(t, store, used, true)
		look(t, store)
		s.kill()
		s.start(t)
		forgotten(t, store, used)
		works(t, store)
	}
}

// TestProcessesShareAnEpoch starts more stores on a server that has an epoch. They must
// use this epoch, and accept tokens that were issued before they started.
func TestProcessesShareAnEpoch(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	client := s.client(t)
	store := newStore(t, client)
	epoch := client.Get(context.Background(), epochKey).Val()
	unused := newUse()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			other, err := redisreplay.New(context.Background(), s.client(t), redisreplay.Config{Skew: time.Millisecond, Logger: quiet})
			if err != nil {
				t.Error(err)
				return
			}
			use := newUse()
			use.Issued = unused.Issued
			if first, err := other.Spend(context.Background(), use); !first || err != nil {
				t.Errorf("Spend = %v, %v", first, err)
			}
		})
	}
	group.Wait()
	mustSpend(t, store, unused, true)
	if now := client.Get(context.Background(), epochKey).Val(); now != epoch {
		t.Errorf("the epoch is %q, and was %q", now, epoch)
	}
}

// TestOneEpochIsMadeByMany starts many stores at once on a new server. Only one of them
// may make an epoch.
func TestOneEpochIsMadeByMany(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	book := &logbook{}
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			if _, err := redisreplay.New(context.Background(), s.client(t), redisreplay.Config{Logger: book.logger()}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := strings.Count(book.String(), "it holds no epoch"); n != 1 {
		t.Errorf("%d processes made an epoch:\n%s", n, book)
	}
}

// TestARestartThatLosesNothingKeepsFlows restarts servers with different settings. Unused
// tokens from before the restart must work afterwards if the server has shown that it keeps
// every use. Otherwise, the store must refuse them.
func TestARestartThatLosesNothingKeepsFlows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []string
		then  []any // a command for the running server
		keeps bool
	}{
		"appendfsync always":        {[]string{"--appendonly", "yes", "--appendfsync", "always"}, nil, true},
		"appendfsync everysec":      {[]string{"--appendonly", "yes", "--appendfsync", "everysec"}, nil, false},
		"no-appendfsync-on-rewrite": {[]string{"--appendonly", "yes", "--appendfsync", "always", "--no-appendfsync-on-rewrite", "yes"}, nil, false},
		"everysec for a while":      {[]string{"--appendonly", "yes", "--appendfsync", "always"}, []any{"config", "set", "appendfsync", "everysec"}, false},
		"nothing":                   {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, c.args...)
			store := newStore(t, s.client(t))
			used, unused, alsoUnused := newUse(), newUse(), newUse()
			mustSpend(t, store, used, true)
			if c.then != nil {
				s.admin(t, c.then...)
				look(t, store)
			}
			s.kill()
			s.start(t)
			started := newStore(t, s.client(t)) // the old store or this new one may check the server first
			if !c.keeps {
				forgotten(t, store, unused)
				forgotten(t, started, alsoUnused)
				return
			}
			mustSpend(t, started, used, false)
			mustSpend(t, started, unused, true)
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				first, err := store.Spend(context.Background(), alsoUnused)
				if first {
					break
				}
				if err == nil { // a use was recorded, but its answer was lost with the connection
					t.Fatal("an unused token counts as used")
				}
				if time.Now().After(deadline) {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestAServerWithReplicasDoesNotKeepFlows replaces a master with a replica that lacks a
// use. For the store, this looks like a restart of the master. So a master that has replicas
// must not count as a server that keeps every use.
func TestAServerWithReplicasDoesNotKeepFlows(t *testing.T) {
	t.Parallel()
	keeping := []string{"--appendonly", "yes", "--appendfsync", "always"}
	master, replica := startServer(t, keeping...), startServer(t, keeping...)
	link := newRelay(t, master.addr)
	replica.follow(t, link.addr, master)
	front := newRelay(t, master.addr)
	store := newStore(t, master.client(t, func(o *redis.Options) { o.Addr = front.addr }))
	for deadline := time.Now().Add(20 * time.Second); replica.client(t).Exists(context.Background(), epochKey).Val() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the epoch does not reach the replica")
		}
	}
	replica.await(t, "aof_rewrite_in_progress:0") // then the append-only file has the epoch
	replica.await(t, "aof_rewrite_scheduled:0")
	link.hold()
	used := newUse()
	mustSpend(t, store, used, true)
	master.kill()
	replica.admin(t, "replicaof", "no", "one")
	replica.kill()
	replica.start(t) // as a master
	if replica.client(t).Exists(context.Background(), epochKey).Val() == 0 {
		t.Fatal("the epoch is gone: the test shows nothing")
	}
	front.lead(replica.addr)
	forgotten(t, store, used)
}

// TestAPromotionIsSeenOnALivingConnection makes a server a replica of another server,
// and then a master again. The store must notice this, although its connection stays open.
func TestAPromotionIsSeenOnALivingConnection(t *testing.T) {
	t.Parallel()
	s, other := startServer(t), startServer(t)
	store := newStore(t, s.client(t))
	used := newUse()
	mustSpend(t, store, used, true)
	epoch := s.client(t).Get(context.Background(), epochKey).Val()
	other.admin(t, "set", epochKey, epoch) // without this, the store would notice only that the epoch is missing
	s.follow(t, other.addr, other)
	s.admin(t, "replicaof", "no", "one")
	look(t, store)
	forgotten(t, store, used)
}

// TestAReplacedMasterIsNotBelieved replaces a master with a replica that does not know of a use.
// The store then presents the used token to the replica, on a new connection, and the replica
// accepts it. Next, the store checks the epoch, but on an old connection, which leads to the old
// master. The old master refuses writes, so this check must fail, and the store must refuse the
// token.
func TestAReplacedMasterIsNotBelieved(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	master, replica := startServer(t), startServer(t)
	link := newRelay(t, master.addr)
	replica.follow(t, link.addr, master)
	front := newRelay(t, master.addr)
	client := master.client(t, func(o *redis.Options) { o.Addr, o.PoolSize = front.addr, 2 })
	store := newStore(t, client)
	link.hold()
	used := newUse()
	mustSpend(t, store, used, true)

	old := client.Conn() // the only connection so far
	if err := old.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	master.admin(t, "config", "set", "min-replicas-to-write", 2)
	replica.admin(t, "replicaof", "no", "one")
	front.lead(replica.addr)
	idle := func(n uint32) {
		for deadline := time.Now().Add(20 * time.Second); client.PoolStats().IdleConns != n && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		}
	}
	var once sync.Once
	client.AddHook(beforeLook{&counter{}, func() {
		once.Do(func() { // give the old connection back to the pool now: the check takes the one that came back last
			idle(1)
			old.Close()
			idle(2)
		})
	}})
	if first, _ := store.Spend(ctx, used); first {
		t.Error("a used token worked again")
	}
}

// beforeLook is a hook of the client. It calls the function do before each check of a server.
type beforeLook struct {
	*counter
	do func()
}

func (h beforeLook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "info" { // the pipelines that set up a new connection begin with other commands
			h.do()
		}
		return next(ctx, cmds)
	}
}

func TestEvictionRefusesAllAndLeavesAMark(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"allkeys-random", "volatile-random"} {
		s := startServer(t)
		store := newStore(t, s.client(t))
		var used []tripseal.Use
		for range 2000 {
			use := newUse()
			mustSpend(t, store, use, true)
			used = append(used, use)
		}
		s.admin(t, "config", "set", "maxmemory-policy", policy)
		if err := store.Look(context.Background()); err == nil || !strings.Contains(err.Error(), "set its maxmemory-policy to noeviction") {
			t.Fatalf("Look = %v", err)
		}
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			first, err := store.Spend(context.Background(), newUse())
			if !first && strings.Contains(err.Error(), "set its maxmemory-policy to noeviction") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("Spend = %v, %v", first, err)
			}
		}
		s.admin(t, "config", "set", "maxmemory", "1mb")
		s.client(t).Set(context.Background(), "other", "1", 0)
		s.admin(t, "config", "set", "maxmemory", "0")
		s.admin(t, "config", "set", "maxmemory-policy", "noeviction")
		look(t, store)
		again := 0
		for _, use := range used {
			if first, _ := store.Spend(context.Background(), use); first {
				again++
			}
		}
		if again > 0 {
			t.Errorf("%s: %d of %d used tokens worked again", policy, again, len(used))
		}
		works(t, store)
	}
}

// TestAServerThatCannotBeLookedAtIsNotBelieved takes away the right to send INFO. The server still
// records uses, but the store can no longer check the server, and must refuse all tokens.
func TestAServerThatCannotBeLookedAtIsNotBelieved(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	store := newStore(t, s.as(t, documentedRights...))
	mustSpend(t, store, newUse(), true)
	s.admin(t, "acl", "setuser", "store", "-info")
	refusedOnce := false
	for deadline := time.Now().Add(20 * time.Second); !refusedOnce; time.Sleep(10 * time.Millisecond) {
		began := time.Now()
		first, err := store.Spend(context.Background(), newUse())
		refusedOnce = !first && strings.Contains(err.Error(), "lacks a right")
		if began.After(deadline) {
			t.Fatalf("Spend = %v, %v", first, err)
		}
	}
	for range 10 {
		if first, err := store.Spend(context.Background(), newUse()); first || err == nil {
			t.Fatalf("Spend = %v, %v", first, err)
		}
	}
	s.admin(t, "acl", "setuser", "store", "+info")
	works(t, store)
}

// TestTheClockOfWhoMakesAnEpoch replaces an epoch with one from another process, whose clock is two
// hours behind or ahead. A running store must still refuse all tokens that were issued before the
// replacement. When the time of Config.Skew has passed, that store and a new store must accept
// fresh tokens.
func TestTheClockOfWhoMakesAnEpoch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	client := s.client(t)
	store := newStore(t, client)
	unused, alsoUnused := newUse(), newUse()
	replace := func(made time.Time) { // replaces the epoch, as if another process had made it at the given time
		s.admin(t, "del", epochKey)
		newStore(t, s.client(t))
		if err := client.Set(ctx, epochKey, redisreplay.Backdate(client.Get(ctx, epochKey).Val(), made), 0).Err(); err != nil {
			t.Fatal(err)
		}
		look(t, store)
	}
	replace(time.Now().Add(-2 * time.Hour))
	forgotten(t, store, unused)
	replace(time.Now().Add(2 * time.Hour))
	forgotten(t, store, alsoUnused)
	works(t, store)
	works(t, newStore(t, s.client(t)))
}

// TestNonsenseInPlaceOfAnEpochIsReplaced replaces the epoch with invalid texts. The store
// must make a new epoch, as if the server had forgotten its used tokens.
func TestNonsenseInPlaceOfAnEpochIsReplaced(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	store := newStore(t, s.client(t))
	for _, text := range []string{"", "none", "tripseal-epoch-1", "tripseal-epoch-2 a 1 b c 0 0", strings.Repeat("x", 1<<20)} {
		unused := newUse()
		s.admin(t, "set", epochKey, text)
		look(t, store)
		forgotten(t, store, unused)
		works(t, store)
	}
	s.admin(t, "del", epochKey)
	s.admin(t, "lpush", epochKey, "a list")
	if err := store.Look(context.Background()); err == nil {
		t.Error("a list counts as an epoch")
	}
}

// TestALeapOfTheServersClockIsForgetting sets the server's clock ahead. Keys expire by
// this clock, so after a leap of more than a minute the server may have forgotten uses. A
// shorter leap does no harm, because a server keeps a use for two minutes longer than its
// token is valid.
func TestALeapOfTheServersClockIsForgetting(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var ahead time.Duration
	var epoch string
	client := servedBy(t, func(args []string) (string, bool) {
		mu.Lock()
		defer mu.Unlock()
		switch args[0] {
		case "info":
			return bulk(fmt.Sprintf("%sserver_time_usec:%d\r\n", redisInfo, time.Now().Add(ahead).UnixMicro())), true
		case "get":
			return bulk(epoch), true
		case "eval":
			epoch = strings.ToUpper(args[5]) // readCommand returns lower case, but the id of an epoch is in upper case
			epoch = strings.ReplaceAll(strings.ReplaceAll(epoch, strings.ToUpper(redisID), redisID), "TRIPSEAL-EPOCH", "tripseal-epoch")
			return ":1\r\n", true
		}
		return actAsRedis(args), true
	})
	store := newStore(t, client)
	unused, alsoUnused := newUse(), newUse()
	leap := func(d time.Duration) {
		mu.Lock()
		ahead += d
		mu.Unlock()
		look(t, store)
	}
	leap(50 * time.Second)
	mustSpend(t, store, unused, true)
	leap(-time.Hour)
	mustSpend(t, store, newUse(), true)
	leap(70 * time.Second)
	forgotten(t, store, alsoUnused)
	settle()
	mustSpend(t, store, newUse(), true)
}

// TestEachMasterHasItsEpoch flushes one of three masters. Only the tokens in its slots
// must be refused.
func TestEachMasterHasItsEpoch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client, nodes := startCluster(t)
	store := newStore(t, restricted(t, client, nodes))
	var uses []tripseal.Use
	for range 60 {
		uses = append(uses, newUse())
	}
	nodes[1].admin(t, "flushall")
	look(t, store)
	refused := 0
	for _, use := range uses {
		first, err := store.Spend(ctx, use)
		slot := client.ClusterKeySlot(ctx, key(use.Flow)).Val()
		if here := slot >= 5461 && slot < 10922; here == first || here != (err != nil) {
			t.Errorf("slot %d: Spend = %v, %v", slot, first, err)
		}
		if err != nil {
			refused++
		}
	}
	if refused == 0 || refused == len(uses) {
		t.Errorf("%d of %d refused", refused, len(uses))
	}
}

// TestASlotThatMovesTakesNoEpochAlong moves the slot that holds the epoch of a master to
// another master. Checks must succeed during the move, and fresh tokens must work after it.
func TestASlotThatMovesTakesNoEpochAlong(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client, nodes := startCluster(t)
	store := newStore(t, restricted(t, client, nodes))
	from, to := nodes[0].client(t), nodes[1].client(t)
	fromID, toID := from.Do(ctx, "cluster", "myid").Val(), to.Do(ctx, "cluster", "myid").Val()
	keys := from.Keys(ctx, "tripseal:used:epoch*").Val()
	if len(keys) != 1 || client.ClusterKeySlot(ctx, keys[0]).Val() != 0 {
		t.Fatalf("the first node has %q", keys)
	}
	nodes[1].admin(t, "cluster", "setslot", 0, "importing", fromID)
	nodes[0].admin(t, "cluster", "setslot", 0, "migrating", toID)
	look(t, store)
	_, port, _ := net.SplitHostPort(nodes[1].addr)
	if err := from.Do(ctx, "migrate", "127.0.0.1", port, keys[0], 0, 5000).Err(); err != nil {
		t.Fatal(err)
	}
	look(t, store)
	for _, s := range []*server{nodes[1], nodes[0], nodes[2]} {
		s.admin(t, "cluster", "setslot", 0, "node", toID)
	}
	look(t, store)
	started := newStore(t, restricted(t, client, nodes))
	for range 30 {
		for _, store := range []tripseal.ReplayStore{store, started} {
			works(t, store)
		}
	}
}

func TestTheWatchEndsWithTheClient(t *testing.T) {
	s := startServer(t)
	before := runtime.NumGoroutine()
	for range 20 {
		client := s.client(t)
		newStore(t, client)
		client.Close()
	}
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// TestTwoStoresOfOneClientKeepApart uses two stores with different prefixes. If the epoch
// of one store is deleted, the other store must still accept its tokens.
func TestTwoStoresOfOneClientKeepApart(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	client := s.client(t)
	one := newStore(t, client)
	two, err := redisreplay.New(context.Background(), client, redisreplay.Config{Prefix: "two:", Skew: time.Millisecond, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	settle()
	unused, alsoUnused := newUse(), newUse()
	s.admin(t, "del", epochKey)
	look(t, one)
	look(t, two)
	forgotten(t, one, unused)
	mustSpend(t, two, alsoUnused, true)
}

// TestSingleUseIsSwitchedOnReplicaByReplica does what the operations page says. Some
// replicas of the service have no store yet. A token that such a replica has opened works
// once more at a replica with a store, until the epoch is deleted.
func TestSingleUseIsSwitchedOnReplicaByReplica(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	secret := tripseal.GenerateKey().Reveal()
	store := newStore(t, s.client(t))
	old := newBoundary(t, secret, nil, 0, quiet)
	switched := newBoundary(t, secret, store, 0, quiet)
	open := func(boundary *tripseal.Boundary, token string) bool {
		_, err := boundary.Open(ctx, request, token)
		return err == nil
	}
	first, second := sealToken(t, old), sealToken(t, old)
	if !open(old, first) || !open(old, second) || !open(switched, first) || open(switched, first) {
		t.Fatal("a token that an old replica opened does not work once more")
	}
	s.admin(t, "del", epochKey)
	look(t, store)
	if open(switched, second) {
		t.Error("it works although the epoch was deleted")
	}
	settle()
	if !open(switched, sealToken(t, switched)) {
		t.Error("a fresh token does not work")
	}
}
