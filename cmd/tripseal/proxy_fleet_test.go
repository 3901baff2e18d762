package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// balancer is a load balancer in front of a fleet. It sends each request to the next replica that is
// ready.
type balancer struct {
	mu       sync.Mutex
	replicas map[*proxyProcess]bool // true if the replica was ready when it was last asked
	order    []*proxyProcess
	next     int
	down     bool
}

func (b *balancer) add(p *proxyProcess) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.order = append(b.order, p)
}

// watch asks every replica, again and again, whether it is ready.
func (b *balancer) watch(t *testing.T) {
	for {
		b.mu.Lock()
		order, down := append([]*proxyProcess(nil), b.order...), b.down
		b.mu.Unlock()
		if down {
			return
		}
		for _, p := range order {
			status, _ := get(t, p.admin+"/readyz")
			b.mu.Lock()
			b.replicas[p] = status == http.StatusOK
			b.mu.Unlock()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (b *balancer) ready() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ready := range b.replicas {
		if ready {
			n++
		}
	}
	return n
}

// RoundTrip implements http.RoundTripper.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	for range b.order {
		b.next = (b.next + 1) % len(b.order)
		if b.replicas[b.order[b.next]] {
			break
		}
	}
	to := b.order[b.next]
	b.mu.Unlock()
	r.URL.Host = strings.TrimSuffix(strings.TrimPrefix(to.address, "http://"), "/mcp")
	return http.DefaultTransport.RoundTrip(r)
}

// flows returns how many flows TRIPSEAL_FLOWS asks for. Without the variable it skips the test, because the
// tests of a fleet wait for rotations and for a new Redis.
func flows(t *testing.T) int64 {
	text := os.Getenv("TRIPSEAL_FLOWS")
	if text == "" || raceEnabled || runtime.GOOS == "windows" {
		t.Skip("takes a minute, needs signals, and runs without the race detector: make fleet")
	}
	t.Parallel()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNoFlowFailsWhileKeysRotateAndReplicasEnd(t *testing.T) {
	want := flows(t)
	keyFile := filepath.Join(t.TempDir(), "keys")
	keys := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("tripseal", append([]string{"keys"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("keys %v: %v\n%s", args, err, out)
		}
	}
	keys("new", keyFile)
	upstream := leaky(t)
	start := func() *proxyProcess {
		return startProcess(t, "--upstream", upstream, "--keys", keyFile, "--identity", "anonymous", "--drain-delay", "3s", "--drain", "30s")
	}
	b := &balancer{replicas: make(map[*proxyProcess]bool)}
	var fleet []*proxyProcess
	for range 3 {
		fleet = append(fleet, start())
		b.add(fleet[len(fleet)-1])
	}
	var watching, load sync.WaitGroup
	watching.Go(func() { b.watch(t) })
	eventually(t, "three replicas are ready", func() bool { return b.ready() == 3 })

	var done, failed atomic.Int64
	var over atomic.Bool
	for range 4 {
		load.Go(func() {
			client := &rawClient{Client: http.Client{Transport: b}, address: "http://fleet/mcp"}
			for (done.Load() < want || !over.Load()) && failed.Load() == 0 {
				if err := client.flow(); err != nil {
					t.Errorf("flow %d failed: %v", done.Load(), err)
					failed.Add(1)
				}
				done.Add(1)
			}
		})
	}
	keys("rotate", keyFile, "--in", "10s")
	second := time.Now().Add(12 * time.Second)
	for i, replica := range fleet {
		if i == 2 {
			time.Sleep(time.Until(second))
			keys("rotate", keyFile, "--in", "10s")
			second = time.Now().Add(12 * time.Second)
		}
		ready := b.ready()
		replica.terminate(t)
		b.add(start())
		eventually(t, "the new replica is ready", func() bool { return b.ready() >= ready })
	}
	time.Sleep(time.Until(second)) // until the replicas seal with the third key
	over.Store(true)
	load.Wait()
	b.mu.Lock()
	b.down = true
	last := b.order[3:]
	b.mu.Unlock()
	watching.Wait()
	t.Logf("%d flows, %d failed", done.Load(), failed.Load())
	for _, replica := range last {
		replica.terminate(t)
		if text := replica.log.String(); strings.Contains(text, "token rejected") {
			t.Errorf("a token was rejected:\n%s", text)
		}
	}
}

func TestOneTokenWorksOnceInAFleet(t *testing.T) {
	flows(t)
	redis := startRedis(t)
	keyFile := filepath.Join(t.TempDir(), "keys")
	if out, err := exec.Command("tripseal", "keys", "new", keyFile).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	upstream := leaky(t)
	var clients []*rawClient
	for range 3 {
		p := startProcess(t, "--upstream", upstream, "--keys", keyFile, "--identity", "anonymous", "--single-use", "--redis", redis.address)
		clients = append(clients, &rawClient{address: p.address})
	}
	// With a new Redis, the store refuses every token that was issued in the first minute. So wait
	// until a flow succeeds.
	var token string
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Second) {
		if clients[0].flow() == nil {
			token = clients[0].mustDeploy(t, "", 0).state
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("Redis refuses every token")
		}
	}
	var accepted, refused atomic.Int64
	var group sync.WaitGroup
	begin := make(chan struct{})
	for i := range 50 {
		group.Go(func() {
			<-begin
			for range 20 {
				switch got, err := clients[i%3].deploy(token, 1); {
				case err != nil:
					t.Error(err)
				case got.state != "":
					accepted.Add(1)
				case strings.Contains(got.body, "Invalid or expired requestState"):
					refused.Add(1)
				default:
					t.Errorf("%d %s", got.status, got.body)
				}
			}
		})
	}
	close(begin)
	group.Wait()
	if accepted.Load() != 1 || refused.Load() != 999 {
		t.Errorf("accepted %d times, refused %d times", accepted.Load(), refused.Load())
	}
}
