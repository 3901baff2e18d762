package redisreplay_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
)

// openedWith opens a fresh token, and returns the log and the error of Open.
func openedWith(t *testing.T, store tripseal.ReplayStore, timeout time.Duration) (string, error) {
	t.Helper()
	book := &logbook{}
	boundary := newBoundary(t, tripseal.GenerateKey().Reveal(), store, timeout, book.logger())
	_, err := boundary.Open(context.Background(), request, sealToken(t, boundary))
	return book.String(), err
}

// replying returns a client of a server that gives every use the same reply.
func replying(t *testing.T, reply string) *redis.Client {
	t.Helper()
	return servedBy(t, func(args []string) (string, bool) {
		if args[0] == "evalsha" && strings.HasSuffix(args[3], ".1") {
			return reply, true
		}
		return actAsRedis(args), true
	})
}

const (
	redisID   = "0123456789abcdef0123456789abcdef01234567"
	redisInfo = "redis_version:7.0\r\nrole:master\r\nmaster_replid:" + redisID +
		"\r\nevicted_keys:0\r\nmaxmemory_policy:noeviction\r\n"
)

// actAsRedis returns the answer to a command from a server that has had an epoch for a long time.
func actAsRedis(args []string) string {
	switch args[0] {
	case "info":
		return bulk(redisInfo)
	case "time":
		return fmt.Sprintf("*2\r\n$10\r\n%d\r\n$1\r\n0\r\n", time.Now().Unix())
	case "evalsha":
		return "*1\r\n:1\r\n"
	}
	return "-ERR unknown command\r\n"
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// servedBy starts a server and returns a client of it. For each command, the server calls handle
// and sends the text that handle returns. If handle returns false, the server hangs up.
func servedBy(t *testing.T, handle func(args []string) (string, bool)) *redis.Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for in := bufio.NewReader(conn); ; {
					args, err := readCommand(in)
					if err != nil {
						return
					}
					reply, ok := handle(args)
					if !ok {
						return
					}
					io.WriteString(conn, reply)
				}
			}()
		}
	}()
	client := redis.NewClient(&redis.Options{Addr: listener.Addr().String(), ContextTimeoutEnabled: true, DisableIdentity: true, Protocol: 2, MaxRetries: -1})
	t.Cleanup(func() { client.Close() })
	return client
}

// readCommand returns a command and its arguments, all in lower case.
func readCommand(in *bufio.Reader) (args []string, err error) {
	line := func() (n int) {
		text, e := in.ReadString('\n')
		err = errors.Join(err, e)
		if len(text) > 1 {
			n, _ = strconv.Atoi(strings.TrimSpace(text[1:]))
		}
		return n
	}
	for range line() {
		arg := make([]byte, line()+2)
		if _, e := io.ReadFull(in, arg); e != nil {
			return nil, e
		}
		args = append(args, strings.ToLower(string(arg[:len(arg)-2])))
	}
	if err == nil && len(args) == 0 {
		err = io.ErrUnexpectedEOF
	}
	return args, err
}

func TestWhatAServerRepliesIsNotLogged(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		"-MISCONF hush\r\n":     "Redis cannot write to its disk",
		"-LOADING hush\r\n":     "Redis is still loading its data",
		"-TRYAGAIN hush\r\n":    "the Redis cluster is moving keys",
		"-CLUSTERDOWN hush\r\n": "the Redis cluster is down",
		"-MOVED 1 hush:1\r\n":   "this Redis is part of a cluster: use redis.NewClusterClient",
		"-ASK 1 hush:1\r\n":     "this Redis is part of a cluster: use redis.NewClusterClient",
		"-MASTERDOWN hush\r\n":  "Redis refused the command",
		"-NOREPLICAS hush\r\n":  "Redis has too few replicas",
		"-OOM hush\r\n":         "Redis is out of memory",
		"-NOAUTH hush\r\n":      "Redis refused the user or password",
		"-ERR hush\r\n":         "Redis refused the command",
		"-HUSH\r\n":             "Redis refused the command",
		"!hush\r\n":             "Redis ",
		"*1\r\n$4\r\nhush\r\n":  "Redis ",
		":0\r\n":                "Redis answered in a way that it should not",
		":3\r\n":                "Redis answered in a way that it should not",
		":7\r\n":                "Redis answered in a way that it should not",
		":-9\r\n":               "Redis answered in a way that it should not",
		":-1\r\n":               "this Redis is a replica",
		"*1\r\n:1\r\n":          "Redis may have forgotten",
		"*0\r\n":                "Redis may have forgotten",
		"$-1\r\n":               "Redis ",
		"+ok\r\n":               "Redis answered in a way that it should not",
	} {
		store := newStore(t, replying(t, reply))
		log, err := openedWith(t, store, 300*time.Millisecond)
		if strings.Contains(strings.ToLower(log), "hush") {
			t.Errorf("%q: the log repeats it: %s", reply, log)
		}
		if err == nil {
			t.Errorf("%q opens a token", reply)
			continue
		}
		if !strings.Contains(log, "cause=\""+want) {
			t.Errorf("%q: the log does not say %q: %s", reply, want, log)
		}
	}
}

func TestTheErrorOfTheClientCanStillBeReached(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	store := newStore(t, s.client(t))
	s.kill()
	openedWith(t, store, 0)
	_, err := openedWith(t, store, 0)
	var rejected *tripseal.RejectError
	if !errors.As(err, &rejected) || !errors.Is(rejected.Cause(), syscall.ECONNREFUSED) {
		t.Errorf("the cause is not %v", syscall.ECONNREFUSED)
	}
}
