package httpcarrier

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/identity"
	"github.com/tripseal/tripseal/sealtest"
	"github.com/tripseal/tripseal/wire"
)

// canary is in every state that a test's server writes. No client may see it.
const canary = "canary-7f3a91"

const callMessage = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy","arguments":{"to":"web"}}}`

// askingMessage asks the user a question. Its state is plaintext.
const askingMessage = `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"` + canary + `","inputRequests":{"ok":{"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}}}}`

const failedMessage = `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}`

// front is a carrier under test, in front of a server.
type front struct {
	t       *testing.T
	handler *Handler
	url     string // the address of the carrier, with the path
	log     *lockedBuffer
}

// lockedBuffer is a buffer that several goroutines may use.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
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

func newFront(t *testing.T, server http.HandlerFunc, change ...func(*Config)) *front {
	t.Helper()
	upstream := httptest.NewServer(server)
	t.Cleanup(upstream.Close)
	return frontOf(t, upstream.URL+"/mcp", change...)
}

func frontOf(t *testing.T, upstream string, change ...func(*Config)) *front {
	t.Helper()
	log := &lockedBuffer{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	boundary := sealtest.BoundaryWith(t, tripseal.Config{Logger: logger})
	engine, err := wire.New(wire.Config{Boundary: boundary, Proxied: true, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Engine: engine, Upstream: address, Identity: identity.Anonymous(), Logger: logger}
	for _, f := range change {
		f(&config)
	}
	handler, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.Close() // waits for every request
		if strings.Contains(log.String(), canary) {
			t.Errorf("the log has a state:\n%s", log)
		}
	})
	return &front{t, handler, server.URL + "/mcp", log}
}

// answered is what a client gets.
type answered struct {
	status  int
	header  http.Header
	body    string
	trailer http.Header
	err     error // the error of reading the body
}

// allText returns the status, the headers, the body and the trailers as one text.
func (a answered) allText() string { return fmt.Sprint(a.status, a.header, a.body, a.trailer) }

var direct = &http.Client{
	Transport:     &http.Transport{DisableCompression: true, DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (f *front) request(method, body string, headers ...string) *http.Request {
	f.t.Helper()
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, f.url, from)
	if err != nil {
		f.t.Fatal(err)
	}
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header[headers[i]] = append(r.Header[headers[i]], headers[i+1])
	}
	return r
}

func (f *front) send(r *http.Request) (a answered) {
	f.t.Helper()
	res, err := direct.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answered{res.StatusCode, res.Header, string(body), res.Trailer, err}
}

func (f *front) do(method, body string, headers ...string) answered {
	f.t.Helper()
	return f.send(f.request(method, body, headers...))
}

// writes(status, contentType, body) returns a server that always sends this answer.
func writes(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// unused(t) returns a server that must not get any request.
func unused(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the server got %s %s", r.Method, r.URL)
	}
}

// named returns a function that changes the Config: the user comes from the header X-User, but only
// in requests from trusted addresses.
func named(t *testing.T, trusted string) func(*Config) {
	id, err := identity.FromHeader("X-User", []netip.Prefix{netip.MustParsePrefix(trusted)})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *Config) { c.Identity = id }
}

func TestARequestWithoutAKnownUserIs401(t *testing.T) {
	f := newFront(t, unused(t), named(t, "127.0.0.1/32"))
	spoofed := newFront(t, unused(t), named(t, "192.0.2.0/24"))
	for _, method := range []string{"POST", "GET", "DELETE"} {
		body := ""
		if method == "POST" {
			body = callMessage
		}
		for name, a := range map[string]answered{
			"absent":      f.do(method, body),
			"empty":       f.do(method, body, "X-User", ""),
			"repeated":    f.do(method, body, "X-User", "alice", "X-User", "bob"),
			"other cases": f.do(method, body, "X-User", "alice", "x-user", "bob"),
			"underscore":  f.do(method, body, "X_User", "alice"),
			"spoofed":     spoofed.do(method, body, "X-User", "alice"),
		} {
			if a.status != 401 {
				t.Errorf("%s, %s: %+v", method, name, a)
			}
		}
	}
}

func TestAStateIsForTheUserWhoGotIt(t *testing.T) {
	calls := 0
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		writes(200, "application/json", askingMessage)(w, r)
	}, named(t, "127.0.0.1/32"))
	a := f.do("POST", callMessage, "X-User", "alice")
	_, after, _ := strings.Cut(a.body, `"requestState":"`)
	token, _, _ := strings.Cut(after, `"`)
	retry := strings.Replace(callMessage, `"arguments"`, `"requestState":"`+token+`","arguments"`, 1)
	if a := f.do("POST", retry, "X-User", "bob"); !strings.Contains(a.body, `"error"`) || calls != 1 {
		t.Errorf("bob continues what alice began: %+v", a)
	}
	if a := f.do("POST", retry, "X-User", "alice"); strings.Contains(a.body, `"error"`) || calls != 2 {
		t.Errorf("%+v", a)
	}
}

func TestTheServerDoesNotGetTheIdentityUnlessToldSo(t *testing.T) {
	var got http.Header
	server := func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.WriteHeader(202)
	}
	spoof := []string{"X-User", "alice", "X_User", "mallory", "x_USER", "mallory", "Connection", "X-User"}
	f := newFront(t, server, named(t, "127.0.0.1/32"))
	f.do("POST", callMessage, spoof...)
	for name, values := range got {
		if strings.Contains(fmt.Sprint(values), "alice") || strings.Contains(fmt.Sprint(values), "mallory") {
			t.Errorf("the server gets %s: %v", name, values)
		}
	}
	f = newFront(t, server, named(t, "127.0.0.1/32"), func(c *Config) { c.ForwardIdentity = true })
	f.do("POST", callMessage, spoof...)
	for name, values := range got {
		if strings.Contains(fmt.Sprint(values), "mallory") {
			t.Errorf("the server gets %s: %v", name, values)
		}
	}
	if values := got["X-User"]; len(values) != 1 || values[0] != "alice" {
		t.Errorf("the server gets X-User: %v", values)
	}
	got = nil
	f.url = strings.TrimSuffix(f.url, "/mcp") + metadataPath
	if f.do("GET", "", "X-User", "mallory"); got == nil || got["X-User"] != nil {
		t.Errorf("an identity that nobody checked: %v", got)
	}
}

// TestOnlyAllowedPagesSendRequests checks that a web page can send requests only if its origin is
// in Config.AllowOrigins. If that list is empty, the origin must be the carrier itself.
func TestOnlyAllowedPagesSendRequests(t *testing.T) {
	own := newFront(t, writes(202, "", ""))
	address := strings.TrimSuffix(own.url, "/mcp")
	port := address[strings.LastIndex(address, ":"):]
	for _, s := range []struct {
		host    string // the host that the request names; "" means the carrier's address
		origins []string
		good    bool
	}{
		{"", nil, true},
		{"", []string{address}, true},
		{"", []string{strings.ToUpper(address)}, true},
		{"localhost" + port, []string{"http://localhost" + port}, true},
		{"[::1]" + port, []string{"http://[::1]" + port}, true},
		{"", []string{"null"}, false},
		{"", []string{""}, false},
		{"", []string{"http://127.0.0.1"}, false},
		{"", []string{"http://localhost" + port}, false},
		{"", []string{"http://evil.example"}, false},
		{"evil.example" + port, []string{"http://evil.example" + port}, false}, // such a name can resolve to this machine
		{"", []string{address, address}, false},
		{"", []string{address + "/"}, false},
		{"", []string{address + "@evil.example"}, false},
		{"", []string{"file://"}, false},
	} {
		r := own.request("POST", callMessage)
		if s.host != "" {
			r.Host = s.host
		}
		if s.origins != nil {
			r.Header["Origin"] = s.origins
		}
		if a := own.send(r); a.status == 202 != s.good || !s.good && a.status != 403 {
			t.Errorf("%s %v: %+v", s.host, s.origins, a)
		}
	}
	listed := newFront(t, writes(202, "", ""), func(c *Config) {
		c.AllowOrigins = []string{"https://App.example.com", "http://localhost:3000", "https://port.example.com:443"}
	})
	for origin, good := range map[string]bool{
		"https://app.example.com": true, "http://localhost:3000": true, "https://app.example.com:443": true, "https://port.example.com": true,
		"http://app.example.com": false, "https://app.example.com:8443": false, "https://app.example.com.evil.example": false,
		"https://evil.example": false, "null": false, strings.TrimSuffix(listed.url, "/mcp"): false,
	} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			body := ""
			if method == "POST" {
				body = callMessage
			}
			if a := listed.do(method, body, "Origin", origin); a.status == 202 != good || !good && a.status != 403 {
				t.Errorf("%s %s: %+v", method, origin, a)
			}
		}
	}
}

func TestMetadataOfTheServerPasses(t *testing.T) {
	for _, path := range []string{metadataPath, metadataPath + "/", metadataPath + "/mcp"} {
		var got string
		const document = `{ "resource" : "https://example.com/mcp", "requestState":"fine" }`
		f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
			got = r.URL.String()
			if r.Header.Get("Cookie") != "" || r.Header.Get("X-Role") != "" {
				t.Error("headers of somebody who is not known reached the server")
			}
			writes(200, "application/json", document)(w, r)
		}, named(t, "192.0.2.0/24")) // a client looks for the metadata before it has a user
		f.url = strings.TrimSuffix(f.url, "/mcp") + path + "?x=1"
		if a := f.do("GET", "", "Cookie", "a=b", "X-Role", "admin"); a.status != 200 || a.body != document || got != path {
			t.Errorf("%s: %s %+v", path, got, a)
		}
	}
	for _, path := range []string{"/other", "/mcp/../other", "/%6dcp", "x"} {
		f := newFront(t, unused(t))
		f.url = strings.TrimSuffix(f.url, "/mcp") + metadataPath + path
		if a := f.do("GET", ""); a.status == 200 {
			t.Errorf("%s: %+v", path, a)
		}
	}
	// If the server sends messages at every path, the path of the metadata must not become another
	// way to get them.
	f := newFront(t, writes(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\ndata: "+askingMessage+"\n\n"))
	f.url = strings.TrimSuffix(f.url, "/mcp") + metadataPath
	if a := f.do("GET", "", "Accept", "text/event-stream"); a.status != 200 || a.body != "" {
		t.Errorf("%+v", a)
	}
}

func TestAServerThatCannotBeReachedIs502(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	f := frontOf(t, closed.URL+"/mcp")
	if a := f.do("POST", callMessage); a.status != 502 || a.body != failedMessage || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v", a)
	}
	if a := f.do("POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`); a.status != 502 || strings.Contains(a.body, "jsonrpc") {
		t.Errorf("%+v", a)
	}
	if a := f.do("GET", ""); a.status != 502 {
		t.Errorf("%+v", a)
	}
}

func TestAServerThatIsTooSlowIs502(t *testing.T) {
	for _, begin := range []bool{false, true} {
		f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if begin {
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, "{")
				http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}, func(c *Config) { c.Timeout = 50 * time.Millisecond })
		if a := f.do("POST", callMessage); a.status != 502 || a.body != failedMessage {
			t.Errorf("%+v", a)
		}
	}
}

func TestTheServerLearnsThatTheClientIsGone(t *testing.T) {
	for name, contentType := range map[string]string{"before the answer": "", "in a stream": "text/event-stream", "in a JSON answer": "application/json"} {
		t.Run(name, func(t *testing.T) {
			arrived, gone := make(chan bool), make(chan bool)
			f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if contentType != "" {
					w.Header().Set("Content-Type", contentType)
					http.NewResponseController(w).Flush()
				}
				close(arrived)
				<-r.Context().Done()
				close(gone)
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-arrived
				cancel()
			}()
			res, err := direct.Do(f.request("POST", callMessage).WithContext(ctx))
			if err == nil {
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			<-gone
		})
	}
}

// TestTheServerIsNotAskedForAnswersThatCannotBeSealed checks that the carrier removes the headers
// with which a client could ask for an answer that cannot be sealed. Such an answer is compressed
// or partial, for example.
func TestTheServerIsNotAskedForAnswersThatCannotBeSealed(t *testing.T) {
	var got *http.Request
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.WriteHeader(202)
	})
	f.url += "?a=1"
	r := f.request("POST", callMessage)
	for _, name := range []string{"Accept-Encoding", "Last-Event-ID", "Digest", "Content-Digest", "Repr-Digest", "Want-Digest", "Want-Content-Digest", "Want-Repr-Digest", "Range", "Te"} {
		r.Header.Set(name, "x")
	}
	r.Header.Set("Te", "trailers")
	r.ContentLength, r.Trailer = -1, http.Header{"X-Late": {"x"}}
	r.Header.Set("Authorization", "Bearer abc")
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	f.send(r)
	for name := range got.Header {
		switch name {
		case "Content-Type", "Content-Length", "Accept", "Authorization", "User-Agent":
		default:
			t.Errorf("the server gets %s: %v", name, got.Header[name])
		}
	}
	if len(got.Trailer) > 0 || got.ContentLength != int64(len(callMessage)) {
		t.Errorf("%v, %d bytes", got.Trailer, got.ContentLength)
	}
	if len(got.Header) < 5 || got.URL.String() != "/mcp?a=1" {
		t.Errorf("%v %v", got.URL, got.Header)
	}
}

func TestTheServerCannotSwitchToAnotherProtocol(t *testing.T) {
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"+askingMessage)
		conn.Close()
	})
	for _, method := range []string{"GET", "DELETE"} {
		if a := f.do(method, ""); a.status != 502 || strings.Contains(a.allText(), canary) || a.header.Get("Upgrade") != "" {
			t.Errorf("%s: %+v", method, a)
		}
	}
}

func TestRequestsThatCannotBeCarriedAreRefused(t *testing.T) {
	f := newFront(t, unused(t))
	root := strings.TrimSuffix(f.url, "/mcp")
	at := func(path string) func(*http.Request) {
		return func(r *http.Request) {
			u, err := url.Parse(root + path)
			if err != nil {
				t.Fatal(err)
			}
			r.URL = u
		}
	}
	set := func(name string, values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = values }
	}
	for _, s := range []struct {
		name, method, body string
		change             func(*http.Request)
		status             int
	}{
		{"another path", "POST", callMessage, at("/other"), 404},
		{"a path below", "POST", callMessage, at("/mcp/x"), 404},
		{"a path with a slash", "POST", callMessage, at("/mcp/"), 404},
		{"the root", "GET", "", at("/"), 404},
		{"two slashes", "POST", callMessage, at("//mcp"), 404},
		{"other metadata", "GET", "", at("/.well-known/oauth-authorization-server"), 404},
		{"like metadata", "GET", "", at(metadataPath + "-not"), 404},
		{"out of the metadata", "GET", "", at(metadataPath + "/../../mcp"), 404},
		{"out of the metadata, encoded", "GET", "", at(metadataPath + "/%2e%2e/%2e%2e/mcp"), 404},
		{"out of the metadata, encoded slash", "GET", "", at(metadataPath + "/..%2f..%2fmcp"), 404},
		{"out of the metadata, backslash", "GET", "", at(metadataPath + `/..%5C..%5Cmcp`), 404},
		{"metadata with an encoded slash", "GET", "", at(metadataPath + "/a%2fb"), 404},
		{"metadata, POST", "POST", callMessage, at(metadataPath), 405},
		{"PUT", "PUT", callMessage, nil, 405},
		{"HEAD", "HEAD", "", nil, 405},
		{"OPTIONS", "OPTIONS", "", nil, 405},
		{"PATCH", "PATCH", callMessage, nil, 405},
		{"a method like one", "ET", "", nil, 405},
		{"upgrade", "GET", "", func(r *http.Request) { set("Connection", "Upgrade")(r); set("Upgrade", "websocket")(r) }, 400},
		{"GET with a body", "GET", callMessage, nil, 400},
	} {
		r := f.request(s.method, s.body)
		if s.change != nil {
			s.change(r)
		}
		a := f.send(r)
		if a.status != s.status {
			t.Errorf("%s: %+v, not %d", s.name, a, s.status)
		}
		if a.status == 405 && a.header.Get("Allow") == "" {
			t.Errorf("%s: without Allow", s.name)
		}
	}
}

func TestWrongConfigsAreRefused(t *testing.T) {
	f := newFront(t, unused(t))
	for name, change := range map[string]func(*Config){
		"no engine":   func(c *Config) { c.Engine = nil },
		"no identity": func(c *Config) { c.Identity = nil },
		"no upstream": func(c *Config) { c.Upstream = nil },
		"scheme":      func(c *Config) { c.Upstream = &url.URL{Scheme: "ftp", Host: "a", Path: "/mcp"} },
		"no host":     func(c *Config) { c.Upstream = &url.URL{Scheme: "http", Path: "/mcp"} },
		"password":    func(c *Config) { c.Upstream = &url.URL{Scheme: "http", Host: "a", User: url.UserPassword("a", "b")} },
		"origin":      func(c *Config) { c.AllowOrigins = []string{"*"} },
		"negative":    func(c *Config) { c.Door.MaxRequest = -1 },
		"too short":   func(c *Config) { c.Door.MaxAnswer = 100 },
		"too long":    func(c *Config) { c.Door.MaxAnswer = 1<<30 + 1 },
		"no time":     func(c *Config) { c.Timeout = -1 },
		"no patience": func(c *Config) { c.Door.ClientTimeout = -1 },
		"budget":      func(c *Config) { c.Door.Budget = 1000 },
	} {
		config := f.handler.config
		change(&config)
		if _, err := New(config); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestEventsLeaveWhileTheStreamIsOpen(t *testing.T) {
	next := make(chan string)
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		flush := http.NewResponseController(w)
		flush.Flush()
		for text := range next {
			io.WriteString(w, text)
			flush.Flush()
		}
	})
	res, err := direct.Do(f.request("POST", callMessage)) // returns although the server has sent no event yet
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for _, text := range []string{":\n", ": ping\n\n", "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n", ":\n"} {
		next <- text
		got := make([]byte, len(text))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != text {
			t.Fatalf("%q, %v", got, err)
		}
	}
	next <- "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"
	close(next)
	if rest, err := io.ReadAll(res.Body); !strings.HasSuffix(string(rest), "\"result\":{}}\n\n") || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}

// What a reverse proxy does with an answer must not open a way around the door.
func TestNoStateReachesTheClientWhateverTheServerSends(t *testing.T) {
	raw := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			io.WriteString(conn, text)
			conn.Close()
		}
	}
	chunk := func(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }
	event := "data: " + askingMessage + "\n\n"
	const json, events = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	const chunked = "Transfer-Encoding: chunked\r\n"
	for name, c := range map[string]struct {
		server http.HandlerFunc
		status int
		body   string // what the client gets; "" means a token
	}{
		"JSON":                {writes(200, "application/json", askingMessage), 200, ""},
		"events":              {writes(200, "text/event-stream", event), 200, ""},
		"text":                {writes(200, "text/plain", askingMessage), 502, failedMessage},
		"JSON cut short":      {raw(json + "Content-Length: 5000\r\n\r\n" + askingMessage), 502, failedMessage},
		"chunked, cut short":  {raw(json + chunked + "\r\n" + chunk(askingMessage)), 502, failedMessage},
		"chunked":             {raw(json + chunked + "\r\n" + chunk(askingMessage[:60]) + chunk(askingMessage[60:]) + "0\r\n\r\n"), 200, ""},
		"events cut short":    {raw(events + chunked + "\r\n" + chunk(event[:len(event)-5])), 200, "data: " + failedMessage + "\n\n"},
		"trailers":            {raw(events + chunked + "Trailer: X-State\r\n\r\n" + chunk(event) + "0\r\nX-State: " + canary + "\r\n\r\n"), 200, ""},
		"trailers after JSON": {raw(json + chunked + "Trailer: X-State\r\n\r\n" + chunk(askingMessage) + "0\r\nX-State: " + canary + "\r\n\r\n"), 200, ""},
		"unannounced trailer": {raw(json + chunked + "\r\n" + chunk(askingMessage) + "0\r\nX-State: " + canary + "\r\n\r\n"), 200, ""},
		"early hints":         {raw("HTTP/1.1 103 Early Hints\r\nLink: " + canary + "\r\n\r\n" + json + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(askingMessage)) + askingMessage), 200, ""},
		"another protocol":    {raw("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + askingMessage), 502, failedMessage},
		"no protocol":         {raw("HTTP/1.1 101 Switching Protocols\r\n\r\n" + askingMessage), 502, failedMessage},
		"no HTTP":             {raw(askingMessage), 502, failedMessage},
		"nothing":             {raw(""), 502, failedMessage},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/"+canary, http.StatusTemporaryRedirect)
		}, 307, "Temporary Redirect\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := newFront(t, c.server).do("POST", callMessage)
			if got.err != nil || strings.Contains(got.allText(), canary) {
				t.Errorf("%+v", got)
			}
			if got.status != c.status || c.body != "" && got.body != c.body || c.body == "" && !strings.Contains(got.body, `tate":"ms1.`) {
				t.Errorf("%d %q, not %d %q", got.status, got.body, c.status, c.body)
			}
		})
	}
}

func TestOfARefusedRequestOnlyLittleIsReadAndForAShortTime(t *testing.T) {
	f := newFront(t, unused(t), named(t, "192.0.2.0/24"))
	for status, change := range map[int]func(r *http.Request){
		http.StatusUnauthorized:     func(*http.Request) {},
		http.StatusForbidden:        func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		http.StatusNotFound:         func(r *http.Request) { r.URL.Path = "/other" },
		http.StatusMethodNotAllowed: func(r *http.Request) { r.Method = http.MethodPut },
	} {
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(callMessage))
		change(r)
		w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
		f.handler.ServeHTTP(w, r)
		if w.Code != status || w.read.IsZero() || time.Until(w.read) > time.Minute {
			t.Errorf("%d, want %d; the deadline is %v", w.Code, status, w.read)
		}
	}
}

// deadlineRecorder records the read deadline that a handler sets.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	read time.Time
}

func (w *deadlineRecorder) SetReadDeadline(t time.Time) error {
	w.read = t
	return nil
}

func TestAClientThatIsGoneIsNoWarning(t *testing.T) {
	for name, contentType := range map[string]string{"before the answer": "", "in a stream": "text/event-stream", "in a JSON answer": "application/json"} {
		t.Run(name, func(t *testing.T) {
			arrived := make(chan bool)
			f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if contentType != "" {
					w.Header().Set("Content-Type", contentType)
					http.NewResponseController(w).Flush()
				}
				close(arrived)
				<-r.Context().Done()
			})
			web := httptest.NewServer(f.handler)
			f.url = web.URL + "/mcp"
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-arrived
				cancel()
			}()
			if res, err := direct.Do(f.request("POST", callMessage).WithContext(ctx)); err == nil {
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			web.Close() // waits for the request
			if f.log.String() != "" {
				t.Errorf("%s", f.log)
			}
		})
	}
}

func TestOrdinaryEndsOfSessionsAndStreamsAreNoWarnings(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"deleted":             writes(200, "", ""),
		"no content":          writes(204, "", ""),
		"text":                writes(200, "text/plain", "Session terminated"),
		"a stream's end":      writes(200, "text/event-stream", ": bye\n\n"),
		"a priming event":     writes(200, "text/event-stream", "id: 1\nretry: 10\ndata:\n\n"),
		"messages on its own": writes(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n"),
	} {
		for _, method := range []string{"GET", "DELETE"} {
			f := newFront(t, answer)
			if a := f.do(method, ""); a.status >= 300 || f.log.String() != "" {
				t.Errorf("%s, %s: %+v\n%s", method, name, a, f.log)
			}
		}
	}
}

// Short header lines take much more memory than their length.
func TestStreamsWithManyHeadersAreRefused(t *testing.T) {
	f := newFront(t, unused(t))
	var lines strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&lines, "A%d: 1\r\n", i)
	}
	var conns []net.Conn
	for range 100 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(strings.TrimSuffix(f.url, "/mcp"), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Minute))
		conns = append(conns, conn)
		go fmt.Fprintf(conn, "GET /mcp HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n%s\r\n", &lines)
	}
	for _, conn := range conns {
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Fatalf("%v, %v", res, err)
		}
	}
}
