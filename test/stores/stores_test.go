//go:build unix

// Package stores_test tests the stores that a fleet shares, with real servers, several processes, and
// processes that are killed.
package stores_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay/pgreplay"
)

type sharedStore = tripseal.ResultStore

var quiet = slog.New(slog.DiscardHandler)

// number returns the number in an environment variable, or a smaller one for CI.
func number(t *testing.T, variable string, small int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return small
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is not a positive number", variable, text)
	}
	return n
}

// job is what a worker process does. It travels in the environment.
type job struct {
	kind, address, folder string
	tokens                int
	issued                time.Time
	money                 bool
}

const jobEnv = "STORES_JOB"

func (j job) String() string {
	return fmt.Sprintf("%s %s %s %d %d %t", j.kind, j.address, j.folder, j.tokens, j.issued.UnixNano(), j.money)
}

func TestMain(m *testing.M) {
	text := os.Getenv(jobEnv)
	if text == "" {
		os.Exit(m.Run())
	}
	var j job
	var issued int64
	if _, err := fmt.Sscanf(text, "%s %s %s %d %d %t", &j.kind, &j.address, &j.folder, &j.tokens, &issued, &j.money); err != nil {
		panic(err)
	}
	j.issued = time.Unix(0, issued)
	if err := j.work(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (j job) use(token int) tripseal.Use {
	sum := sha256.Sum256(fmt.Appendf(nil, "token %d", token))
	return tripseal.Use{Flow: [16]byte(sum[:]), Round: 1, Issued: j.issued, Until: j.issued.Add(time.Hour)}
}

// callers is how many callers a process has.
const callers = 4

// work presents each token from several callers at once, and notes every run of the handler and every
// answer in files that only grow, so that a kill loses nothing.
func (j job) work() error {
	store, done, err := database{j.kind, j.address}.open()
	defer done()
	if err != nil {
		return err
	}
	note, err := os.OpenFile(filepath.Join(j.folder, "notes"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	var group sync.WaitGroup
	failed := make([]error, callers)
	for c := range callers {
		group.Go(func() {
			for token := range j.tokens {
				if failed[c] = j.call(store, note, token); failed[c] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	fmt.Println("finished")
	return nil
}

const lease = 500 * time.Millisecond

// call presents a token until it knows what became of it.
func (j job) call(store sharedStore, note *os.File, token int) error {
	ctx, use := context.Background(), j.use(token)
	claim := tripseal.Claim{Lease: lease, Repeat: j.money}
	rand.Read(claim.Call[:])
	for {
		begun, err := store.Begin(ctx, use, claim)
		if err != nil {
			return err
		}
		switch begun.State {
		case tripseal.CallRunning:
			time.Sleep(2 * time.Millisecond)
			continue
		case tripseal.CallFirst:
			result := hex.EncodeToString(claim.Call[:])
			if j.money {
				err = j.transfer(ctx, store.(*pgreplay.Store), use, claim, token)
			} else {
				_, err = fmt.Fprintf(note, "ran %d %s\n", token, result)
			}
			if err != nil {
				return err
			}
			if err := store.End(ctx, use, claim, tripseal.End{Result: []byte(result), Keep: time.Hour}); err != nil {
				fmt.Fprintf(note, "late %d %s\n", token, result) // the machine was slower than the lease
				continue
			}
			fmt.Fprintf(note, "got %d %s\n", token, result)
		case tripseal.CallDone:
			fmt.Fprintf(note, "got %d %s\n", token, begun.Result)
		case tripseal.CallLost:
			fmt.Fprintf(note, "lost %d -\n", token)
		default:
			return fmt.Errorf("token %d: state %d", token, begun.State)
		}
		return nil
	}
}

// transfer moves 1 from one account to another, in the transaction of the call.
func (j job) transfer(ctx context.Context, store *pgreplay.Store, use tripseal.Use, claim tripseal.Claim, token int) error {
	return store.InTx(tripseal.WithCall(ctx, use, claim), func(tx pgx.Tx) error {
		for _, sql := range []string{
			"UPDATE account SET balance = balance - 1 WHERE name = 'alice'",
			"UPDATE account SET balance = balance + 1 WHERE name = 'bob'",
			"INSERT INTO transfer VALUES (" + strconv.Itoa(token) + ")",
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}

// worker is a process that does the job.
type worker struct {
	cmd *exec.Cmd
	out *bufio.Scanner
}

func (j job) start(t *testing.T) *worker {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), jobEnv+"="+j.String()), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &worker{cmd, bufio.NewScanner(out)}
	if !w.out.Scan() || w.out.Text() != "ready" {
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatalf("a process is not ready: %q", w.out.Text())
	}
	return w
}

func (w *worker) kill() {
	w.cmd.Process.Kill()
	w.cmd.Wait()
}

// wait waits until the process has finished.
func (w *worker) wait(t *testing.T) {
	t.Helper()
	finished := w.out.Scan() && w.out.Text() == "finished"
	if err := w.cmd.Wait(); err != nil || !finished {
		t.Fatalf("a process did not finish: %v", err)
	}
}

// TestAHandlerRunsOnceInAFleetWithCrashes presents each token from eight callers in two processes at once, and
// kills processes on the way. The handler must run at most once for each token, and each caller must get the
// one result, or hear that the call is lost. With a process that is not killed, everybody gets an answer.
func TestAHandlerRunsOnceInAFleetWithCrashes(t *testing.T) {
	for name, start := range map[string]func(*testing.T) database{"redis": startRedis, "postgres": startPostgres} {
		t.Run(name, func(t *testing.T) {
			d := start(t)
			j := job{kind: d.kind, address: d.address, folder: t.TempDir(), tokens: number(t, "TRIPSEAL_TOKENS", 1000), issued: time.Now()}
			kills := max(4, j.tokens/250)
			begun := time.Now()
			steady := j.start(t)
			for range kills {
				other := j.start(t)
				time.Sleep(time.Duration(mathrand.IntN(200)) * time.Millisecond)
				other.kill()
			}
			last := j.start(t)
			steady.wait(t)
			last.wait(t)

			text, err := os.ReadFile(filepath.Join(j.folder, "notes"))
			if err != nil {
				t.Fatal(err)
			}
			ran, got, counts := make(map[string]string), make(map[string]string), make(map[string]int)
			for line := range strings.Lines(string(text)) {
				word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				token, result, _ := strings.Cut(rest, " ")
				counts[word]++
				switch {
				case word == "ran" && ran[token] != "":
					t.Errorf("the handler ran twice for token %s", token)
				case word == "ran":
					ran[token] = result
				case word == "got" && got[token] != "" && got[token] != result:
					t.Errorf("token %s has two results", token)
				case word == "got":
					got[token] = result
				}
			}
			for token, result := range got {
				if ran[token] != result {
					t.Errorf("token %s has a result of a call that did not run", token)
				}
			}
			answers := counts["got"] + counts["lost"]
			if answers < 2*callers*j.tokens || len(ran)+counts["lost"] < j.tokens {
				t.Errorf("%d answers for %d tokens and %d callers", answers, j.tokens, 2*callers)
			}
			t.Logf("%d tokens, %d callers at once, %d kills: the handler ran %d times, %d recorded results, %d lost, in %v",
				j.tokens, 2*callers, kills, counts["ran"], counts["got"], counts["lost"], time.Since(begun).Round(time.Millisecond))
		})
	}
}

// TestMoneyMovesOnceThoughProcessesDie moves 1 for each token, with effect and result in one transaction, and kills
// the process again and again. Each transfer must happen exactly once.
func TestMoneyMovesOnceThoughProcessesDie(t *testing.T) {
	d := startPostgres(t)
	ctx := context.Background()
	conn := d.connect(t)
	if _, err := conn.Exec(ctx, "CREATE TABLE account (name text, balance int); CREATE TABLE transfer (token int);"+
		"INSERT INTO account VALUES ('alice', 0), ('bob', 0)"); err != nil {
		t.Fatal(err)
	}
	kills := number(t, "TRIPSEAL_KILLS", 20)
	j := job{kind: d.kind, address: d.address, folder: t.TempDir(), tokens: 20 * kills, issued: time.Now(), money: true}
	for range kills {
		w := j.start(t)
		time.Sleep(time.Duration(mathrand.IntN(250)) * time.Millisecond)
		w.kill()
	}
	var before int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM transfer").Scan(&before); err != nil {
		t.Fatal(err)
	}
	j.start(t).wait(t)
	var alice, bob, transfers, tokens int
	err := conn.QueryRow(ctx, `SELECT (SELECT balance FROM account WHERE name = 'alice'), (SELECT balance FROM account WHERE name = 'bob'),
		(SELECT count(*) FROM transfer), (SELECT count(DISTINCT token) FROM transfer)`).Scan(&alice, &bob, &transfers, &tokens)
	if err != nil || alice != -j.tokens || bob != j.tokens || transfers != j.tokens || tokens != j.tokens {
		t.Errorf("of %d transfers, %d happened, %d of them different: alice has %d, bob %d, %v", j.tokens, transfers, tokens, alice, bob, err)
	}
	t.Logf("%d transfers, %d of them before the last of %d kills", transfers, before, kills)
}
