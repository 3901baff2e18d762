package wire_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// pipeInProcess runs a test of a server in this process, which reads from in and writes to out. When the test returns, no
// goroutine of the door may be left: synctest fails if one is.
func pipeInProcess(t *testing.T, test func(r *pipeRig, client io.WriteCloser, in io.ReadCloser, out io.WriteCloser)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newPipe(t, tripseal.Config{}, wire.Config{})
		input, client := io.Pipe()
		in, out := r.engine.Stdio(input, &r.client, tripseal.User("alice"))
		test(r, client, in, out)
	})
}

func TestTheDoorEndsWhenTheClientsInputEndsAndTheServerHasClosed(t *testing.T) {
	pipeInProcess(t, func(r *pipeRig, client io.WriteCloser, in io.ReadCloser, out io.WriteCloser) {
		var served sync.WaitGroup
		served.Go(func() {
			lines := bufio.NewReader(in)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					if err != io.EOF || line != "" {
						t.Errorf("the server's input ended with %v after %q", err, line)
					}
					break
				}
				if r.through(markIn(t, line)) == nil {
					t.Errorf("a call without a mark: %s", line)
				}
			}
			fmt.Fprintf(out, "%s\n%s\n%s", aside, pipeAsk("1", canary), pipeAsk("2", canary)) // answers after the end
			out.Close()
		})
		r.write(client, []string{pipeCall("1", "deploy", "")})
		io.WriteString(client, pipeCall("2", "deploy", "")) // the last line needs no line feed
		synctest.Wait()
		r.clientGot()
		client.Close()
		served.Wait()
		got := r.client.take()
		if len(got) != 3 || got[0] != aside || r.marks() != 0 {
			t.Fatalf("the client got %q, and %d marks are left", got, r.marks())
		}
		token(t, got[1])
		token(t, got[2])
	})
}

// The server may stop to read before it closes its output, as a server does whose context ends.
func TestAServerThatHasClosedItsOutputDoesNotHoldTheDoor(t *testing.T) {
	for _, line := range []string{pipeCall("2", "deploy", ""), aside} {
		pipeInProcess(t, func(r *pipeRig, client io.WriteCloser, in io.ReadCloser, out io.WriteCloser) {
			lines := bufio.NewReader(in)
			go r.write(client, []string{pipeCall("1", "deploy", "")})
			if _, err := lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			go io.WriteString(client, line+"\n") // nobody reads this
			synctest.Wait()
			out.Close()
			got := r.client.take()
			slices.Sort(got)
			if checkError(t, got[0], "1", -32603); line != aside {
				checkError(t, got[1], "2", -32603)
			}
			if _, err := lines.ReadString('\n'); err != io.EOF {
				t.Errorf("the server's input goes on: %v", err)
			}
			client.Close()
		})
	}
}

func TestAServerThatClosesItsInputFailsRequests(t *testing.T) {
	pipeInProcess(t, func(r *pipeRig, client io.WriteCloser, in io.ReadCloser, out io.WriteCloser) {
		go r.write(client, []string{pipeCall("1", "deploy", "")})
		synctest.Wait()
		in.Close()
		synctest.Wait()
		r.clientGotError("1", -32603)
		r.write(client, []string{pipeCall("2", "deploy", "")})
		synctest.Wait()
		r.clientGotError("2", -32603)
		r.write(out, []string{aside})
		r.clientGot(aside)
		client.Close()
		out.Close()
	})
}

func TestAServerThatReadsNothingCanStillAnswer(t *testing.T) {
	pipeInProcess(t, func(r *pipeRig, client io.WriteCloser, in io.ReadCloser, out io.WriteCloser) {
		lines := bufio.NewReader(in)
		calls := []string{pipeCall("1", "deploy", ""), pipeCall("2", "deploy", ""), pipeCall("3", "deploy", "")}
		go r.write(client, calls)
		for range 2 {
			lines.ReadString('\n')
		}
		synctest.Wait() // now the door waits for the server to read
		r.write(out, []string{pipeAsk("1", canary)})
		r.clientGotToken("1")
		r.write(out, []string{pipeAsk("2", canary)})
		r.clientGotToken("2")
		in.Close()
		out.Close()
		client.Close()
	})
}

func TestAClientThatTakesNoAnswersEndsTheDoor(t *testing.T) {
	pipeInProcess(t, func(r *pipeRig, client io.WriteCloser, in io.ReadCloser, out io.WriteCloser) {
		gone := errors.New("gone")
		r.client.fail(gone)
		go io.WriteString(client, "no message\n")
		if left, err := io.ReadAll(in); len(left) > 0 || err != nil {
			t.Errorf("the server read %q, %v", left, err)
		}
		if _, err := io.WriteString(out, aside+"\n"); !errors.Is(err, gone) {
			t.Error(err)
		}
		out.Close()
	})
}

func TestASlowClientHoldsTheServerBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipe(t, tripseal.Config{}, wire.Config{})
		slow, output := io.Pipe()
		_, out := r.engine.Stdio(strings.NewReader(""), output, tripseal.User("alice"))
		written := 0
		go func() {
			for range 100 {
				n, _ := io.WriteString(out, aside+"\n")
				written += n
			}
		}()
		synctest.Wait()
		if written != 0 {
			t.Errorf("%d bytes were taken from the server, and the client read none", written)
		}
		got := make([]byte, 100*len(aside+"\n"))
		if _, err := io.ReadFull(slow, got); err != nil || strings.Count(string(got), aside+"\n") != 100 {
			t.Error(err)
		}
		out.Close()
	})
}
