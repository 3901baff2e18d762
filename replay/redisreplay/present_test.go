package redisreplay_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
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

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

const (
	presentEnv = "REDISREPLAY_PRESENT" // the address of the server
	numberEnv  = "REDISREPLAY_NUMBER"  // the number of the process
	keyEnv     = "REDISREPLAY_KEY"
	usesEnv    = "TRIPSEAL_USES"

	processes  = 4
	goroutines = 64
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(presentEnv); addr != "" {
		if err := present(addr, os.Getenv(keyEnv), os.Getenv(numberEnv), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	flag.Set("test.parallel", "8") // the tests wait for servers
	os.Exit(m.Run())
}

// present reads tokens, and presents those that this process owns (see ownerOf). When all
// processes have done so, the test closes their inputs. Then each process presents every
// token from every goroutine, and writes the numbers of the tokens that opened.
func present(addr, key, number string, in io.Reader, out io.Writer) error {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, PoolSize: goroutines})
	defer client.Close()
	store, err := redisreplay.New(context.Background(), client, redisreplay.Config{Skew: time.Millisecond, Logger: quiet})
	if err != nil {
		return err
	}
	parsed, err := tripseal.ParseKey(key)
	if err != nil {
		return err
	}
	ring, err := tripseal.NewRing(parsed)
	if err != nil {
		return err
	}
	boundary, err := tripseal.New(tripseal.Config{
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
	won := make([][]int, goroutines)
	failed := make([]error, goroutines)
	open := func(g, i int) {
		_, err := boundary.Open(context.Background(), request, tokens[i])
		var rejected *tripseal.RejectError
		switch {
		case err == nil:
			won[g] = append(won[g], i)
		case !errors.As(err, &rejected) || rejected.Reason != tripseal.ReasonReplayed:
			failed[g] = fmt.Errorf("token %d: %w, %v", i, err, rejected)
		}
	}
	for i := range tokens {
		if strconv.Itoa(ownerOf(i)) == number {
			open(0, i)
		}
	}
	fmt.Fprintln(out, "ready")
	if lines.Scan() {
		return errors.New("more input than expected")
	}
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for i := range tokens {
				open(g, i)
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

// ownerOf returns the number of the process that uses the token before all goroutines compete for
// it. For half of the tokens, no process has the returned number, so none uses them early.
func ownerOf(token int) int { return token % (2 * processes) }

// TestEveryTokenOpensOnceAmongManyProcesses starts 4 processes with 64 goroutines each. Every
// goroutine presents every token. Half of the tokens were used before, each by the process that
// owns it. For the other half, all goroutines compete.
func TestEveryTokenOpensOnceAmongManyProcesses(t *testing.T) {
	t.Parallel()
	count := 300
	if text := os.Getenv(usesEnv); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil || count < 2*processes {
			t.Fatalf("%s=%q is not a number of tokens, at least %d", usesEnv, text, 2*processes)
		}
	}
	s := startServer(t)
	newStore(t, s.client(t)) // makes an epoch that is older than the tokens
	key := tripseal.GenerateKey().Reveal()
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
	for number := range processes {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), presentEnv+"="+s.addr, keyEnv+"="+key, numberEnv+"="+strconv.Itoa(number))
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
	winners := make([][]int, count)
	for number, p := range all {
		for p.out.Scan() {
			i, err := strconv.Atoi(p.out.Text())
			if err != nil {
				t.Fatal(err)
			}
			winners[i] = append(winners[i], number)
		}
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	for i, won := range winners {
		if len(won) != 1 {
			t.Fatalf("token %d opened %d times", i, len(won))
		}
		if owner := ownerOf(i); owner < processes && won[0] != owner {
			t.Fatalf("token %d opened for process %d, after process %d had used it", i, won[0], owner)
		}
	}
	t.Logf("%d uses of %d tokens in %v", count*processes*goroutines, count, time.Since(start).Round(time.Millisecond))
}
