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
	"github.com/tripseal/tripseal/replay/redisreplay"
)

// openedWith opens a fresh token, and returns the log and the error of Open.
func openedWith(t *testing.T, store tripseal.ReplayStore, timeout time.Duration) (string, error) {
	t.Helper()
	book := &logbook{}
	boundary := newBoundary(t, tripseal.GenerateKey().Reveal(), store, timeout, book.logger())
	_, err := boundary.Open(context.Background(), request, sealToken(t, boundary))
	return book.String(), err
}

// failsWith checks that a fresh token is rejected because the store failed, and that the
// log has the given cause.
func failsWith(t *testing.T, store tripseal.ReplayStore, cause string) {
	t.Helper()
	log, err := openedWith(t, store, time.Minute) // the Redis client gives up before a minute has passed
	var rejected *tripseal.RejectError
	if !errors.As(err, &rejected) || rejected.Reason != tripseal.ReasonStoreFailed || !errors.Is(err, tripseal.ErrRejected) {
		t.Fatalf("Open = %v", err)
	}
	if !strings.Contains(log, "reason=store_failed") || !strings.Contains(log, "cause=\""+cause) {
		t.Errorf("the log does not say %q: %s", cause, log)
	}
}

func TestTheLogSaysWhyAUseFailed(t *testing.T) {
	t.Run("away", func(t *testing.T) {
		s := startServer(t)
		store := newStore(t, s.client(t))
		s.kill()
		openedWith(t, store, 0) // this use may fail because the old connection is closed
		failsWith(t, store, "nothing listens at the address of Redis")
	})
	t.Run("silent", func(t *testing.T) {
		s := startServer(t)
		store := newStore(t, s.client(t, func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = 2*time.Second, -1 }))
		s.pause()
		defer s.resume()
		failsWith(t, store, "Redis did not answer in time")
	})
	t.Run("closed", func(t *testing.T) {
		client := startServer(t).client(t)
		store := newStore(t, client)
		client.Close()
		failsWith(t, store, "the Redis client was closed")
	})
	t.Run("busy", func(t *testing.T) {
		s := startServer(t)
		client := s.client(t, func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, 2*time.Second })
		store := newStore(t, client)
		conn := client.Conn()
		defer conn.Close()
		if err := conn.Ping(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		failsWith(t, store, "all connections to Redis are in use")
	})
	t.Run("another password", func(t *testing.T) {
		s := startServer(t)
		password := "first"
		s.admin(t, "acl", "setuser", "store", "on", ">first", "~*", "+@all")
		client := s.client(t, func(o *redis.Options) {
			o.CredentialsProvider = func() (string, string) { return "store", password }
		})
		store := newStore(t, client)
		password = "second"
		s.admin(t, "client", "kill", "user", "store")
		openedWith(t, store, 0)
		failsWith(t, store, "Redis refused the user or password")
	})
	t.Run("no password", func(t *testing.T) {
		s := startServer(t, "--requirepass", "secret")
		refused(t, s.client(t), redisreplay.Config{}, "Redis refused the user or password")
		refused(t, s.client(t, func(o *redis.Options) { o.Password = "guess" }), redisreplay.Config{}, "Redis refused the user or password")
	})
	t.Run("no right", func(t *testing.T) {
		s := startServer(t)
		store := newStore(t, s.as(t, documentedRights...))
		s.as(t, append([]any{"~other:*"}, documentedRights[1:]...)...)
		failsWith(t, store, "the Redis user lacks a right: it needs ~tripseal:used:* (or the prefix), +set, +get, +eval and +info, "+
			"and for a cluster +cluster|slots, +cluster|myid and +asking; a client that routes reads also needs +readonly and +command")
	})
	t.Run("replica", func(t *testing.T) {
		s := startServer(t)
		store := newStore(t, s.client(t))
		s.admin(t, "replicaof", "127.0.0.1", "1")
		failsWith(t, store, "this Redis is a read-only replica")
	})
	t.Run("out of memory", func(t *testing.T) {
		s := startServer(t)
		store := newStore(t, s.client(t))
		s.admin(t, "config", "set", "maxmemory", "1mb")
		failsWith(t, store, "Redis is out of memory")
	})
	t.Run("too few replicas", func(t *testing.T) {
		s := startServer(t)
		store := newStore(t, s.client(t))
		s.admin(t, "config", "set", "min-replicas-to-write", "1")
		failsWith(t, store, "Redis has too few replicas")
	})
	t.Run("cluster without slots", func(t *testing.T) {
		s := startServer(t, "--cluster-enabled", "yes")
		refused(t, s.client(t), redisreplay.Config{}, "a Redis of the cluster has no slots")
	})
}

// replying returns a client of a server that gives every use the same reply.
func replying(t *testing.T, reply string) *redis.Client {
	t.Helper()
	return servedBy(t, func(args []string) (string, bool) {
		if args[0] == "set" && strings.HasSuffix(args[1], ".1") {
			return reply, true
		}
		return actAsRedis(args), true
	})
}

const (
	redisID   = "0123456789abcdef0123456789abcdef01234567"
	redisInfo = "run_id:" + redisID + "\r\nrole:master\r\nmaster_replid:" + redisID + "\r\nmaxmemory_policy:noeviction\r\n"
)

// actAsRedis returns the answer to a command from a server that has had an epoch for a long time.
func actAsRedis(args []string) string {
	switch args[0] {
	case "info":
		return bulk(redisInfo)
	case "get":
		return bulk("tripseal-epoch-1 a 1 " + redisID + " " + redisID + " 0 0")
	case "set":
		return "+OK\r\n"
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
	client := redis.NewClient(&redis.Options{Addr: listener.Addr().String(), ContextTimeoutEnabled: true, DisableIdentity: true, Protocol: 2})
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
	for reply, want := range map[string]string{
		"-MISCONF hush\r\n":     "Redis cannot write to its disk",
		"-LOADING hush\r\n":     "Redis is still loading its data",
		"-TRYAGAIN hush\r\n":    "the Redis cluster is moving keys",
		"-CLUSTERDOWN hush\r\n": "the Redis cluster is down",
		"-MOVED 1 hush:1\r\n":   "this Redis is part of a cluster: use redis.NewClusterClient",
		"-ASK 1 hush:1\r\n":     "this Redis is part of a cluster: use redis.NewClusterClient",
		"-MASTERDOWN hush\r\n":  "the Redis master is down",
		"-NOREPLICAS hush\r\n":  "Redis has too few replicas",
		"-OOM hush\r\n":         "Redis is out of memory",
		"-NOAUTH hush\r\n":      "Redis refused the user or password",
		"-ERR hush\r\n":         "Redis refused the command",
		"-HUSH\r\n":             "Redis refused the command",
		"!hush\r\n":             "Redis ",
		"$4\r\nhush\r\n":        "Redis answered in a way that it should not",
		"*1\r\n$4\r\nhush\r\n":  "Redis ",
		":1\r\n":                "Redis ",
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
