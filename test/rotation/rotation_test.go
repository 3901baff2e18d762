// Package rotation_test rotates the keys of a fleet under load. Each replica is a process of its
// own, the client is that of the official SDK, and the command tripseal changes the keys.
package rotation_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// load returns how many flows must be completed, and how often the keys are rotated meanwhile. The
// variable TRIPSEAL_FLOWS asks for another number of flows, and for a second rotation.
func load(t *testing.T) (flows, rotations int64) {
	text := os.Getenv("TRIPSEAL_FLOWS")
	if text == "" {
		return 300, 1
	}
	flows, err := strconv.ParseInt(text, 10, 64)
	must(t, err)
	return flows, 2
}

func TestRotationUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a rotation")
	}
	dir := t.TempDir()
	command := filepath.Join(dir, "tripseal")
	path := filepath.Join(dir, "keys")
	if out, err := exec.Command("go", "build", "-o", command, "github.com/tripseal/tripseal/cmd/tripseal").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tripsealKeys := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(command, append([]string{"keys"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("tripseal keys %v: %v\n%s", args, err, out)
		}
	}
	tripsealKeys("new", path)

	var hosts []string
	var stops []func() string
	for range 3 {
		host, stop := startReplica(t, path)
		hosts, stops = append(hosts, host), append(stops, stop)
	}

	// The clients make honest flows until there are enough of them and the rotations are over.
	var done, failed, broken atomic.Int64
	var rotated atomic.Bool
	var clients sync.WaitGroup
	want, rotations := load(t)
	for range 16 {
		session := connect(t, hosts, true)
		clients.Go(func() {
			for (done.Load() < want || !rotated.Load()) && failed.Load() == 0 {
				switch lostConnection, err := session.flow(); {
				case err == nil:
					done.Add(1)
				case !lostConnection:
					t.Errorf("flow %d was lost: %v", done.Load(), err)
					failed.Add(1)
				case broken.Add(1) > want/100:
					t.Errorf("more than one connection in a hundred flows broke, the last with: %v", err)
					failed.Add(1)
				default:
					if again, err := dial(t, hosts, true); err == nil {
						session = again
					}
				}
			}
		})
	}

	// Rotate the keys. Each time, a thief tries a token that was sealed with the stolen old key.
	var thieves sync.WaitGroup
	for part := range rotations {
		for done.Load() < (part+1)*want/(rotations+1) && failed.Load() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		old := sealing(t, path)
		tripsealKeys("rotate", path, "--in", "2s", "--ttl", ttl.String(), "--skew", skew.String())
		end := reread(t, path, old).OpensUntil
		if end.IsZero() {
			t.Fatal("the old key has no end")
		}
		token := steal(t, old)
		for _, host := range hosts {
			session := connect(t, []string{host}, false)
			thieves.Go(func() { try(t, session, token, end) })
		}
		time.Sleep(time.Until(end.Add(-ttl))) // from now on, the new key seals
		if now := sealing(t, path); now.ID == old.ID {
			t.Error("the old key still seals")
		}
	}
	thieves.Wait()
	rotated.Store(true)
	clients.Wait()
	t.Logf("%d flows of three rounds; %d connections broke", done.Load(), broken.Load())

	// Only the tokens of the thief were rejected, and every replica noticed every rotation.
	for i, stop := range stops {
		log := stop()
		if strings.Contains(log, "panic") {
			t.Errorf("replica %d panicked: %s", i, log)
		}
		for _, line := range strings.Split(log, "\n") {
			if strings.Contains(line, "level=WARN") && !strings.Contains(line, "reason=unknown_key") || strings.Contains(line, "level=ERROR") {
				t.Errorf("replica %d: %s", i, line)
			}
		}
		if n := len(regexp.MustCompile(`keys: in use`).FindAllString(log, -1)); n < 1+2*int(rotations) {
			t.Errorf("replica %d saw %d changes", i, n)
		}
	}
}

func reread(t *testing.T, path string, k *keyfile.Key) *keyfile.Key {
	t.Helper()
	d, err := keyfile.Read(path)
	must(t, err)
	return d.Find(k.ID)
}

func sealing(t *testing.T, path string) *keyfile.Key {
	t.Helper()
	d, err := keyfile.Read(path)
	must(t, err)
	return d.Schedule().SealerAt(time.Now())
}

// steal seals a token that lives for an hour, as a thief of the key can. The tokens of the
// replicas expire before their key ends; this token does not.
func steal(t *testing.T, k *keyfile.Key) string {
	t.Helper()
	ctx := context.Background()
	key, err := k.Open(ctx, nil)
	must(t, err)
	ring, err := tripseal.NewRing(key)
	must(t, err)
	boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: audience, TTL: time.Hour})
	must(t, err)
	text, err := json.Marshal(arguments)
	must(t, err)
	alice, err := gosdk.TokenUser(&auth.TokenInfo{UserID: "alice"})
	must(t, err)
	round, err := boundary.Open(ctx, tripseal.Request{Method: "tools/call", Target: "deploy", Arguments: text, Principal: tripseal.User(alice)}, "")
	must(t, err)
	state := "step=2&traffic=10"
	token, err := boundary.Seal(ctx, &round, &state, tripseal.Question{Key: "region", Kind: tripseal.KindForm})
	must(t, err)
	return token
}

// try presents a token to a replica again and again, until the token's key has ended and the replica
// was asked fifty times more.
func try(t *testing.T, session *client, token string, end time.Time) {
	region := mcp.InputResponseMap{"region": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "eu"}}}
	before, after := 0, 0
	for after < 50 && time.Since(end) < time.Minute {
		sent := time.Now()
		broken := session.network.broken.Load()
		_, err := session.CallTool(context.Background(), &mcp.CallToolParams{
			Name: "deploy", Arguments: arguments, RequestState: token, InputResponses: region,
		})
		if session.network.broken.Load() > broken { // the connection broke, so the result says nothing about the token
			if again, err := dial(t, session.network.hosts, false); err == nil {
				session = again
			}
			continue
		}
		switch answered := time.Now(); {
		case !sent.Before(end):
			after++
			if err == nil {
				t.Errorf("a token of a retired key was accepted %v after its end", sent.Sub(end))
			}
		case answered.Before(end):
			before++
			if err != nil {
				t.Errorf("a token was rejected %v before its key's end: %v", end.Sub(answered), err)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	if before == 0 || after == 0 {
		t.Errorf("%d tries before the end, %d after it", before, after)
	}
}
