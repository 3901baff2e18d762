package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// proxyProcess is a proxy in a process of its own.
type proxyProcess struct {
	cmd     *exec.Cmd
	address string // the address for clients
	admin   string // the address for operators
	log     *lockedBuffer
	ended   chan error
}

// startProcess starts a proxy in a process of its own. At the end of the test, the process is killed
// if it still runs.
func startProcess(t *testing.T, args ...string) *proxyProcess {
	t.Helper()
	p := &proxyProcess{log: new(lockedBuffer), ended: make(chan error, 1)}
	p.cmd = exec.Command("tripseal", append([]string{"proxy", "--audience", "test", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)...)
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill() })
	lines := bufio.NewReader(out)
	for _, served := range []*string{&p.admin, &p.address} {
		line, err := lines.ReadString('\n')
		if address, ok := strings.CutPrefix(line, "serving "); ok {
			*served, _, _ = strings.Cut(strings.TrimSpace(address), " ")
		} else {
			t.Fatalf("%q, %v\n%s", line, err, p.log)
		}
	}
	go func() { io.Copy(io.Discard, out); p.ended <- p.cmd.Wait() }()
	return p
}

// terminate ends the process with SIGTERM, as a scheduler does, and waits until it has ended.
func (p *proxyProcess) terminate(t *testing.T) {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("the proxy ended with %v\n%s", err, p.log)
		}
	case <-time.After(time.Minute):
		t.Errorf("the proxy does not end\n%s", p.log)
	}
}

// get returns the status and the body of a page. If there is no answer, it returns 0 and the error.
func get(t *testing.T, address string) (int, string) {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(body)
}

// redisProcess is a Redis server that listens on a Unix socket.
type redisProcess struct {
	address string // the value for --redis
	name    string
	dir     string
	cmd     *exec.Cmd
}

func startRedis(t *testing.T) *redisProcess {
	t.Helper()
	name := os.Getenv("TRIPSEAL_REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI must have a redis-server")
		}
		t.Skip("there is no redis-server; install one, or name it in TRIPSEAL_REDIS_SERVER")
	}
	dir, err := os.MkdirTemp("", "") // a short path, because the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "r")
	r := &redisProcess{address: (&url.URL{Scheme: "unix", Path: socket}).String(), name: name, dir: dir}
	r.cmd = exec.Command(name, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.kill()
		os.RemoveAll(dir)
	})
	eventually(t, "Redis listens", func() bool {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return r
}

func (r *redisProcess) kill() {
	r.cmd.Process.Kill()
	r.cmd.Wait()
}
