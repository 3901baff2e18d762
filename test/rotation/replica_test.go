package rotation_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/keys"
)

// The times are short, so that two rotations fit into a test.
const (
	ttl      = 4 * time.Second
	skew     = 500 * time.Millisecond
	audience = "release.example.com"

	keysVariable = "TRIPSEAL_TEST_REPLICA" // names the file of keys; set only in the process of a replica
)

func TestMain(m *testing.M) {
	// Collect garbage less often, to leave more time for the load. There is enough memory, because
	// the heaps are small.
	debug.SetGCPercent(400)
	if path := os.Getenv(keysVariable); path != "" {
		if err := replica(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// replica serves the tools of cmd/tripseal/release until its standard input ends.
func replica(path string) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	source, err := keys.OpenFile(path, &keys.Options{LongestTTL: ttl, Skew: skew, Every: 100 * time.Millisecond, Logger: logger})
	if err != nil {
		return err
	}
	defer source.Close()
	boundary, err := tripseal.New(tripseal.Config{Keys: source, Audience: audience, TTL: ttl, Logger: logger})
	if err != nil {
		return err
	}
	server := release.NewServer()
	protected := gosdk.Protect(server, boundary, &gosdk.Options{Logger: logger})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: auth.RequireBearerToken(verify, nil)(protected.Handler(nil)), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		web.Close()
	}()
	fmt.Printf("serving %s\n", listener.Addr())
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
}

// startReplica starts a replica in a new process. It returns the address of the replica, and a
// function that ends the process and returns its log.
func startReplica(t *testing.T, path string) (host string, stop func() string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), keysVariable+"="+path)
	var log strings.Builder
	cmd.Stderr = &log
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	stopped := false
	stop = func() string {
		if !stopped {
			stopped = true
			stdin.Close()
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("a replica: %v", err)
				}
			case <-time.After(10 * time.Second):
				cmd.Process.Kill()
				<-ended
				t.Error("a replica did not end")
			}
		}
		return log.String()
	}
	t.Cleanup(func() { stop() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "serving ") {
		t.Fatalf("a replica did not start: %v\n%s", err, stop())
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "serving ")), stop
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
