package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// secretState stands for a secret, such as the state of a server. The proxy must not show it to a
// client or write it to the log.
const secretState = "sesame"

// startUpstream starts a server, and returns its address. The server answers server/discover with
// 400, because the proxy sends that only to see whether the server is there. The handler answers
// all other requests.
func startUpstream(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "server/discover") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		handler(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL + "/mcp"
}

// hijack returns a handler that takes over the connection, writes a text and closes the connection.
func hijack(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		io.WriteString(conn, text)
		conn.Close()
	}
}

func TestFaultsOfTheServerLeakNothingAndAreLogged(t *testing.T) {
	t.Parallel()
	asking := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"` + secretState + `","inputRequests":{}}}`
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	for name, c := range map[string]struct {
		upstream string
		log      string
	}{
		"slow": {startUpstream(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), "it took too long"},
		"slow in the middle": {startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, asking[:len(asking)-5])
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}), "took too long"},
		"dead": {dead.URL + "/mcp", "connection refused"},
		"cut": {startUpstream(t, hijack("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"+asking)),
			"the server's answer was cut off"},
		"cut in the middle of an event": {startUpstream(t, hijack("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000\r\n\r\ndata: "+asking)),
			"the stream ended before the answer"},
		"gone without an answer": {startUpstream(t, hijack("")), "the server closed the connection"},
		"not HTTP":               {startUpstream(t, hijack(secretState+"\r\n\r\n")), "what the server sent is not HTTP"},
		"a page": {startUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<p>"+secretState)
		}), "neither JSON nor a stream of events"},
		"not JSON": {startUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, secretState+asking)
		}), "an answer of the server was refused"},
		"the answer to another call": {startUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, strings.Replace(asking, `"id":1`, `"id":2`, 1))
		}), "wire: "},
		"headers without end": {startUpstream(t, hijack("HTTP/1.1 200 OK\r\n"+strings.Repeat("X-A: "+secretState+"\r\n", 100_000))), "proxy: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProxy(t, "--upstream", c.upstream, "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous", "--timeout", "300ms", "--drain", "5s")
			client := &rawClient{Client: http.Client{Timeout: time.Minute}, address: p.address}
			got := client.mustDeploy(t, "", 0)
			if strings.Contains(got.body, secretState) || strings.Contains(fmt.Sprint(got.header), secretState) || got.state != "" {
				t.Errorf("%d %s", got.status, got.body)
			}
			if !strings.HasPrefix(got.body, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603`) {
				t.Errorf("the client gets %d %s", got.status, got.body)
			}
			if err := p.stop(); err != nil {
				t.Error(err)
			}
			if text := p.log.String(); !strings.Contains(text, c.log) || strings.Contains(text, secretState) {
				t.Errorf("log: %s", text)
			}
		})
	}
}

func TestReadinessFollowsWhatTheProxyNeeds(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	upstream := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) })}
	go upstream.Serve(listener)
	p := startProxy(t, "--upstream", "http://"+listener.Addr().String()+"/mcp", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous")
	if status, body := get(t, p.admin+"/healthz"); status != http.StatusOK || body != "ok\n" {
		t.Errorf("healthz: %d %s", status, body)
	}
	if status, body := get(t, p.admin+"/readyz"); status != http.StatusOK || body != "keys: ok\nupstream: ok\n" {
		t.Errorf("readyz: %d %s", status, body)
	}
	upstream.Close()
	eventually(t, "the proxy is not ready, because the server does not listen", func() bool {
		status, body := get(t, p.admin+"/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "connection refused")
	})
	if status, _ := get(t, p.admin+"/healthz"); status != http.StatusOK {
		t.Errorf("healthz without the server: %d", status)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if status, _ := get(t, strings.TrimSuffix(p.address, "/mcp")+path); status != http.StatusNotFound {
			t.Errorf("clients get %s: %d", path, status)
		}
	}
}

func TestATerminatedProxyIsNotReadyAndThenEndsItsRequests(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs signals")
	}
	t.Parallel()
	arrived, answer := make(chan bool, 1), make(chan bool)
	upstream := startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-answer
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	})
	p := startProcess(t, "--upstream", upstream, "--ephemeral", "--identity", "anonymous", "--drain-delay", "2s", "--drain", "1m")
	answered := make(chan reply, 1)
	go func() {
		got, _ := (&rawClient{address: p.address}).deploy("", 0)
		answered <- got
	}()
	<-arrived
	p.cmd.Process.Signal(os.Interrupt)
	eventually(t, "the proxy is not ready", func() bool {
		status, body := get(t, p.admin+"/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "about to end")
	})
	res, err := http.Get(strings.TrimSuffix(p.address, "/mcp") + "/other") // the proxy still listens, but tells clients to close their connections
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if !res.Close {
		t.Error("the client may keep its connection")
	}
	eventually(t, "the proxy does not listen", func() bool {
		conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(p.address, "http://"), "/mcp"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	close(answer)
	if got := <-answered; got.status != http.StatusOK {
		t.Errorf("a request that was open got %d %s", got.status, got.body)
	}
	if err := <-p.ended; err != nil {
		t.Errorf("%v\n%s", err, p.log)
	}
}

func TestAClientThatSendsAByteAtATimeIsRefused(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "--upstream", leaky(t), "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous", "--client-timeout", "300ms")
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(p.address, "http://"), "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: proxy\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
	ended := make(chan bool)
	defer func() { <-ended }()
	go func() {
		defer close(ended)
		for range 1000 {
			if _, err := conn.Write([]byte(" ")); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	answer, err := io.ReadAll(conn) // until the proxy closes the connection
	if !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
		t.Errorf("%q, %v", answer, err)
	}
	conn.Close()
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if text := p.log.String(); !strings.Contains(text, "the body did not come in time") {
		t.Errorf("log: %s", text)
	}
}

func TestWithoutRedisNoTokenIsAccepted(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	p := startProxy(t, "--upstream", leaky(t), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous", "--single-use", "--redis", redis.address)
	client := &rawClient{Client: http.Client{Timeout: time.Minute}, address: p.address}
	token := client.mustDeploy(t, "", 0).state
	redis.kill()
	if got := client.mustDeploy(t, token, 1); got.state != "" || got.status != http.StatusOK || !strings.Contains(got.body, "Invalid or expired requestState") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if status, body := get(t, p.admin+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "store of used tokens: it does not answer") {
		t.Errorf("readyz: %d %s", status, body)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if text := p.log.String(); !strings.Contains(text, "reason=") {
		t.Errorf("log: %s", text)
	}
}

func TestABrokenKeyFileStopsNothing(t *testing.T) {
	t.Parallel()
	keyFile := filepath.Join(t.TempDir(), "keys")
	if out, err := exec.Command("tripseal", "keys", "new", keyFile).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := startProxy(t, "--upstream", leaky(t), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--keys", keyFile, "--identity", "anonymous")
	if err := os.WriteFile(keyFile, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log says that the file is broken", func() bool {
		return strings.Contains(p.log.String(), "the file cannot be used, the last good one stays in use")
	})
	if err := (&rawClient{address: p.address}).flow(); err != nil {
		t.Error(err)
	}
	if status, body := get(t, p.admin+"/readyz"); status != http.StatusOK {
		t.Errorf("readyz: %d %s", status, body)
	}
}

// startLogging starts a proxy in a process of its own, which writes its log to the given file. It
// returns a client of the proxy.
func startLogging(t *testing.T, log *os.File) *rawClient {
	t.Helper()
	cmd := exec.Command("tripseal", "proxy", "--audience", "test", "--upstream", leaky(t), "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous", "--access-log")
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return &rawClient{address: strings.TrimSpace(strings.TrimPrefix(line, "serving "))}
}

func TestTheAccessLogHasNoSecrets(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "--upstream", leaky(t), "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "header", "--header", "X-User", "--trust", "127.0.0.1/32", "--access-log", "--log-format", "json")
	client := &rawClient{address: p.address + "?key=" + secretState, header: http.Header{"X-User": {"alice"}, "Authorization": {"Bearer " + secretState}}}
	if err := client.flow(); err != nil {
		t.Fatal(err)
	}
	token := client.mustDeploy(t, "", 0).state
	if _, err := client.send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///` + secretState + `"}}`); err != nil {
		t.Fatal(err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	text := p.log.String()
	for _, secret := range []string{secretState, "alice", token[:12], "step="} {
		if strings.Contains(text, secret) {
			t.Errorf("the log has %q: %s", secret, text)
		}
	}
	if n := strings.Count(text, `"msg":"proxy: a request has ended"`); n != 5 || !strings.Contains(text, `"status":200`) ||
		!strings.Contains(text, `"method":"tools/call","target":"deploy"`) {
		t.Errorf("%d records: %s", n, text)
	}
}

func TestTheServerMayNeedTLSAndACertificate(t *testing.T) {
	t.Parallel()
	authority := newAuthority(t)
	cert, key, ca := authority.Files(t, leaf{DNS: []string{"127.0.0.1"}})
	backend := startProxy(t, "--upstream", leaky(t), "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous", "--tls-cert", cert, "--tls-key", key, "--client-ca", ca)
	if !strings.HasPrefix(backend.address, "https://") {
		t.Fatal(backend.address)
	}
	front := startProxy(t, "--upstream", backend.address, "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous",
		"--upstream-ca", ca, "--upstream-cert", cert, "--upstream-key", key)
	if err := (&rawClient{address: front.address}).flow(); err != nil {
		t.Errorf("%v\n%s", err, front.log)
	}
	for name, flags := range map[string][]string{
		"no certificate":    {"--upstream-ca", ca},
		"another authority": {"--upstream-cert", cert, "--upstream-key", key},
	} {
		p := startProxy(t, append(flags, "--upstream", backend.address, "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous")...)
		if got := (&rawClient{address: p.address}).mustDeploy(t, "", 0); got.status != http.StatusBadGateway {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// If the server acts and then loses the connection, the proxy must not send the call again, because
// the client's token was for one call. The headers of this test would make Go's HTTP transport send
// the call again.
func TestACallReachesTheServerAtMostOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		var acted atomic.Int64
		var waiting sync.WaitGroup
		upstream := startUpstream(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Warm") == "" {
				if r.Header.Get(name) == "" {
					t.Errorf("the server did not get %s", name)
				}
				acted.Add(1)
				panic(http.ErrAbortHandler)
			}
			waiting.Done()
			waiting.Wait() // so that each request has a connection of its own
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
		})
		p := startProxy(t, "--upstream", upstream, "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous")
		const connections = 5
		waiting.Add(connections)
		var warm sync.WaitGroup
		for range connections {
			warm.Go(func() { (&rawClient{address: p.address, header: http.Header{"X-Warm": {"1"}}}).deploy("", 0) })
		}
		warm.Wait()
		(&rawClient{address: p.address, header: http.Header{name: {"x"}}}).deploy("", 0)
		if n := acted.Load(); n != 1 {
			t.Errorf("%s: the server got the call %d times", name, n)
		}
	}
}

func TestTheProxyOutlivesTheReaderAndTheDiskOfItsLog(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs pipes that break with a signal")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	clients := []*rawClient{startLogging(t, w)}
	w.Close()
	r.Close()
	if full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil { // only some systems have one
		defer full.Close()
		clients = append(clients, startLogging(t, full))
	}
	for i := range 3 * len(clients) {
		if err := clients[i%len(clients)].flow(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsNotAnMCPServerIsNotReady(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"a page":       func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
		"another path": http.NotFound,
		"no POST":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) },
		"broken":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"elsewhere":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) },
	} {
		web := httptest.NewServer(answer)
		p := startProxy(t, "--upstream", web.URL+"/mcp", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous")
		if status, body := get(t, p.admin+"/readyz"); status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s", name, status, body)
		}
		web.Close()
	}
}

// Without HTTP/2, a connection has only one request at a time, so the limits on connections and
// bytes hold.
func TestClientsDoNotGetHTTP2(t *testing.T) {
	t.Parallel()
	authority := newAuthority(t)
	cert, key, _ := authority.Files(t, leaf{DNS: []string{"127.0.0.1"}})
	p := startProxy(t, "--upstream", leaky(t), "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous", "--tls-cert", cert, "--tls-key", key)
	conn, err := tls.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(p.address, "https://"), "/mcp"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if protocol := conn.ConnectionState().NegotiatedProtocol; protocol != "http/1.1" {
		t.Error(protocol)
	}
}
