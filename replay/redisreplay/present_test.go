package redisreplay_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/replay/redisreplay"
)

const (
	presentEnv = "REDISREPLAY_PRESENT" // the address of the server
	keyEnv     = "REDISREPLAY_KEY"
	claimsEnv  = "MCPSEAL_CLAIMS"

	processes  = 4
	goroutines = 64
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(presentEnv); addr != "" {
		if err := present(addr, os.Getenv(keyEnv), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// present reads tokens, says that it is ready, waits for the end of its input,
// and presents every token from every goroutine. It writes the numbers of those
// that opened.
func present(addr, key string, in io.Reader, out io.Writer) error {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, PoolSize: goroutines})
	defer client.Close()
	store, err := redisreplay.New(context.Background(), client, redisreplay.Config{})
	if err != nil {
		return err
	}
	parsed, err := mcpseal.ParseKey(key)
	if err != nil {
		return err
	}
	ring, err := mcpseal.NewRing(parsed)
	if err != nil {
		return err
	}
	boundary, err := mcpseal.New(mcpseal.Config{
		Keys: ring, Audience: "deploy.example.com", Replay: store, ReplayTimeout: time.Minute, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	var tokens []string
	for lines.Scan() && lines.Text() != "" {
		tokens = append(tokens, lines.Text())
	}
	fmt.Fprintln(out, "ready")
	if lines.Scan() {
		return errors.New("more input than expected")
	}

	won := make([][]int, goroutines)
	failed := make([]error, goroutines)
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for i, token := range tokens {
				_, err := boundary.Open(context.Background(), request, token)
				var rejected *mcpseal.RejectError
				switch {
				case err == nil:
					won[g] = append(won[g], i)
				case !errors.As(err, &rejected) || rejected.Reason != mcpseal.ReasonReplayed:
					failed[g] = fmt.Errorf("token %d: %w, %v", i, err, rejected)
				}
			}
		})
	}
	group.Wait()
	w := bufio.NewWriter(out)
	for _, mine := range won {
		for _, i := range mine {
			fmt.Fprintln(w, i)
		}
	}
	return errors.Join(append(failed, w.Flush())...)
}

// TestEveryTokenOpensOnceAmongManyProcesses presents every token from 64
// goroutines of 4 processes.
func TestEveryTokenOpensOnceAmongManyProcesses(t *testing.T) {
	count := 300
	if text := os.Getenv(claimsEnv); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil || count < 1 {
			t.Fatalf("%s=%q is not a number of tokens", claimsEnv, text)
		}
	}
	s := startServer(t)
	key := mcpseal.GenerateKey().Reveal()
	sealer := newBoundary(t, key, nil, 0, nil)
	tokens := make([]string, count)
	for i := range tokens {
		tokens[i] = sealToken(t, sealer)
	}
	input := strings.Join(tokens, "\n") + "\n\n"

	type presenter struct {
		*exec.Cmd
		in  io.WriteCloser
		out *bufio.Scanner
	}
	var all []presenter
	for range processes {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), presentEnv+"="+s.addr, keyEnv+"="+key)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		p := presenter{cmd, in, bufio.NewScanner(out)}
		io.WriteString(in, input)
		if !p.out.Scan() || p.out.Text() != "ready" {
			t.Fatalf("a process is not ready: %q", p.out.Text())
		}
		all = append(all, p)
	}
	start := time.Now()
	for _, p := range all {
		p.in.Close()
	}
	wins, winners := make([]int, count), 0
	for _, p := range all {
		mine := 0
		for p.out.Scan() {
			i, err := strconv.Atoi(p.out.Text())
			if err != nil {
				t.Fatal(err)
			}
			wins[i]++
			mine++
		}
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
		if mine > 0 {
			winners++
		}
	}
	for i, n := range wins {
		if n != 1 {
			t.Fatalf("token %d opened %d times", i, n)
		}
	}
	if winners < 2 {
		t.Errorf("%d processes won tokens: they did not compete", winners)
	}
	t.Logf("%d claims of %d tokens in %v", count*processes*goroutines, count, time.Since(start).Round(time.Millisecond))
}
