package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/probe"
)

// proxied is a proxy that runs in this process.
type proxied struct {
	address string // the address for clients, as the proxy prints it
	admin   string // the address for operators, as the proxy prints it
	log     *lockedBuffer
	stop    func() error // ends the proxy as a signal does
}

// lockedBuffer is a buffer that one goroutine may write to while another reads it.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func startProxy(t *testing.T, args ...string) *proxied {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	p := &proxied{log: &lockedBuffer{}}
	root := newRoot()
	root.SetArgs(append([]string{"proxy", "--audience", "test"}, args...))
	root.SetOut(in)
	root.SetErr(p.log)
	ended := make(chan error, 1)
	go func() {
		err := root.ExecuteContext(ctx)
		in.Close()
		ended <- err
	}()
	p.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	lines := bufio.NewReader(out)
	for p.address == "" {
		line, err := lines.ReadString('\n')
		switch address, ok := strings.CutPrefix(strings.TrimSpace(line), "serving "); {
		case !ok:
			t.Fatalf("%q, %v\n%s", line, err, p.log)
		case strings.Contains(address, " for operators"):
			p.admin, _, _ = strings.Cut(address, " ")
		default:
			p.address = address
		}
	}
	return p
}

// leaky starts a server without any protection, with the tools of release.NewServer(). It returns
// the server's address.
func leaky(t *testing.T) string {
	t.Helper()
	server := release.NewServer()
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(web.Close)
	return web.URL + "/mcp"
}

func deployment() probe.Target {
	return probe.Target{Method: "tools/call", Name: "deploy", Arguments: `{"service":"web","version":"1"}`}
}

// probeAt runs the probe, and returns its report, as a value and as text.
func probeAt(t *testing.T, address string, options probe.Options) (*probe.Report, string) {
	t.Helper()
	server, err := probe.HTTP(address)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	options.Targets = []probe.Target{deployment(), {Method: "tools/call", Name: "rollback", Arguments: `{"service":"web","version":"1"}`}}
	report, err := probe.Run(t.Context(), server, options)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := report.Write(&text, "text", false); err != nil {
		t.Fatal(err)
	}
	return report, text.String()
}

func TestNothingGetsThroughTheProxy(t *testing.T) {
	t.Parallel()
	upstream := leaky(t)
	if report, text := probeAt(t, upstream, probe.Options{Only: []string{"stripped", "changed-character"}}); report.Exit == probe.ExitNothing {
		t.Fatalf("the server is not leaky:\n%s", text)
	}
	p := startProxy(t, "--upstream", upstream, "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous", "--single-use")
	if !strings.HasPrefix(p.address, "http://127.0.0.1:") || !strings.HasSuffix(p.address, "/mcp") {
		t.Errorf("serving %s", p.address)
	}
	report, text := probeAt(t, p.address, probe.Options{SingleUse: true, Require: []string{"used-again", "header-mismatch"}})
	if report.Exit != probe.ExitNothing {
		t.Errorf("%s", text)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	for _, warning := range []string{"--ephemeral", "--identity anonymous"} {
		if !strings.Contains(p.log.String(), warning) {
			t.Errorf("no warning about %s", warning)
		}
	}
	if strings.Contains(p.log.String(), "step=1") || strings.Contains(text, "step=1") {
		t.Error("a state is in the log or in the report")
	}
}

func TestUsersAreKeptApartOverAUnixSocket(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs Unix sockets")
	}
	socket := filepath.Join(t.TempDir(), "s")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close() // leaves the socket behind, as a process that was killed does
	p := startProxy(t, "--upstream", leaky(t), "--listen", "unix:"+socket, "--ephemeral", "--identity", "header", "--header", "X-User")
	if p.address != "unix:"+socket+" at /mcp" {
		t.Errorf("serving %s", p.address)
	}
	// In front of the proxy is a gateway, which knows the users by their access tokens.
	gateway := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "proxy"
			r.Out.Header.Del("X-User")
			if user := strings.TrimPrefix(r.In.Header.Get("Authorization"), "Bearer "); user != "" {
				r.Out.Header.Set("X-User", user)
			}
		},
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}},
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without this, a plain reverse proxy sometimes cuts an answer off, because the server
		// closes a request's body while the transport still reads it.
		http.NewResponseController(w).EnableFullDuplex()
		gateway.ServeHTTP(w, r)
	}))
	defer front.Close()
	report, text := probeAt(t, front.URL+"/mcp", probe.Options{Bearer: "alice-token", OtherBearer: "bob-token", Only: []string{"other-user", "cursor-other-user"}})
	if report.Exit != probe.ExitNothing {
		t.Errorf("%s", text)
	}
	res, err := http.Post(front.URL+"/mcp", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a user: %s", res.Status)
	}
	var second bytes.Buffer
	if code := run([]string{"proxy", "--audience", "test", "--upstream", "http://127.0.0.1:1/mcp", "--listen", "unix:" + socket, "--ephemeral", "--identity", "anonymous"}, strings.NewReader(""), io.Discard, &second); code != cli.ExitFailed {
		t.Errorf("a socket that is in use: exit code %d, %s", code, &second)
	}
}

func TestTheSDKsClientWorksThroughTheProxy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "keys")
	if code := run([]string{"keys", "new", keyFile}, strings.NewReader(""), io.Discard, io.Discard); code != 0 {
		t.Fatal("no keys")
	}
	p := startProxy(t, "--upstream", leaky(t), "--listen", "127.0.0.1:0", "--keys", keyFile, "--identity", "anonymous", "--rejected-text", "start-over", "--unsolicited", "none")
	var states []string
	sdk := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			content := map[string]any{"ok": true}
			if strings.Contains(r.Params.Message, "region") {
				content = map[string]any{"name": "eu"}
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
	})
	session, err := sdk.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: p.address, HTTPClient: &http.Client{Transport: watchedTransport{&states}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if tools, err := session.ListTools(t.Context(), nil); err != nil || len(tools.Tools) != 2 {
		t.Errorf("%v, %v", tools, err)
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": "web", "version": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := result.Content[0].(*mcp.TextContent).Text; text != "deployed web 1 in eu, 10% of traffic" {
		t.Errorf("%q", text)
	}
	all := strings.Join(states, "\n")
	if !strings.Contains(all, "ms1.") || strings.Contains(all, "step=") {
		t.Errorf("the client got\n%s", all)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
}

// watchedTransport is a client's HTTP transport. It records the body of each answer to a POST.
type watchedTransport struct{ got *[]string }

func (w watchedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost {
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		res.Body = io.NopCloser(bytes.NewReader(body))
		*w.got = append(*w.got, string(body))
	}
	return res, err
}

// After a signal, the proxy waits until open requests end. A request that does not end within the
// time of --drain gets an error that the client can read.
func TestASignalEndsOpenRequestsWithAnAnswer(t *testing.T) {
	t.Parallel()
	arrived := make(chan bool)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		http.NewResponseController(w).Flush()
		close(arrived)
		<-r.Context().Done()
	}))
	defer upstream.Close()
	p := startProxy(t, "--upstream", upstream.URL+"/mcp", "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous", "--drain", "1s")
	res, err := http.Post(p.address, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	<-arrived
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if body, err := io.ReadAll(res.Body); err != nil || !strings.HasPrefix(string(body), `data: {"jsonrpc":"2.0","id":1,"error":`) {
		t.Errorf("%q, %v", body, err)
	}
	if _, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(p.address, "http://"), "/mcp")); err == nil {
		t.Error("it still listens")
	}
}

func TestUsedTokensAreRememberedInRedis(t *testing.T) {
	server := startRedis(t)
	address := server.address
	t.Setenv("TEST_REDIS", address)
	for _, flags := range [][]string{{"--redis", address}, {"--redis-env", "TEST_REDIS"}} {
		p := startProxy(t, append(flags, "--single-use", "--upstream", leaky(t), "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous")...)
		// A new Redis server may have forgotten used tokens, so the store refuses all tokens for a
		// minute. The log must say that the store refused them.
		report, text := probeAt(t, p.address, probe.Options{Only: []string{"used-again"}})
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		if report.Exit == probe.ExitFinding || !strings.Contains(p.log.String(), "store") {
			t.Errorf("%s\n%s", text, p.log)
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	}
	// A server on stdio inherits the environment, and may have a tool that shows it.
	var errs lockedBuffer
	code := run([]string{"proxy", "--audience", "test", "--single-use", "--redis-env", "TEST_REDIS", "--ephemeral", "--",
		"sh", "-c", "echo the variable is \"$TEST_REDIS\" >&2"}, strings.NewReader(""), io.Discard, &errs)
	if text := errs.String(); code != 0 || !strings.Contains(text, "the variable is \n") {
		t.Errorf("exit code %d, %s", code, text)
	}
	server.kill()
	code = run([]string{"proxy", "--audience", "test", "--single-use", "--redis", address, "--upstream", "http://127.0.0.1:1/mcp", "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "anonymous"}, strings.NewReader(""), io.Discard, &errs)
	if code != cli.ExitFailed || !strings.Contains(errs.String(), "--redis") {
		t.Errorf("a Redis that is away: exit code %d, %s", code, &errs)
	}
}
