package wire_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

const (
	doneMessage   = `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`
	failedMessage = `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error"}}`
	progress      = `{"jsonrpc":"2.0","method":"notifications/progress"}`
	jsonType      = "application/json"
	eventType     = "text/event-stream"
)

var (
	callMessage   = carriers[0].call("")
	askingMessage = asking(`"`+canary+`"`, `{"q":`+form+`}`)
)

// setup is what a test may change before a door is made.
type setup struct {
	policy  tripseal.Config
	config  wire.Config
	options wire.Options
	http2   bool
	proxied bool // true if the server is behind a reverse proxy, on a connection of its own
	outside func(http.Handler) http.Handler
	connect func(net.Conn) // called for each connection of a client
}

func overHTTP2(s *setup)  { s.http2 = true }
func overAProxy(s *setup) { s.proxied, s.config.Proxied = true, true }

// eachWay has the ways in which a server can be behind a door.
var eachWay = map[string]func(*setup){"in process": func(*setup) {}, "HTTP/2": overHTTP2, "proxied": overAProxy}

// front is a door under test, in front of a server. The client is alice, unless the header X-User names another.
type front struct {
	t       testing.TB
	engine  *wire.Engine
	handler http.Handler
	url     string
	client  *http.Client
	log     *safeLog
}

// safeLog is the log of a door and of its net/http server.
type safeLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newFront(t testing.TB, server http.HandlerFunc, change ...func(*setup)) *front {
	t.Helper()
	f := &front{t: t, log: new(safeLog)}
	logger := slog.New(slog.NewTextHandler(f.log, nil))
	s := setup{
		policy:  tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "test", Logger: logger},
		config:  wire.Config{Logger: logger},
		options: wire.Options{User: func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }},
		outside: func(h http.Handler) http.Handler { return h },
		connect: func(net.Conn) {},
	}
	for _, change := range change {
		change(&s)
	}
	var err error
	if s.config.Boundary, err = tripseal.New(s.policy); err != nil {
		t.Fatal(err)
	}
	if f.engine, err = wire.New(s.config); err != nil {
		t.Fatal(err)
	}
	var inner http.Handler = server
	if s.proxied {
		upstream := httptest.NewServer(server)
		t.Cleanup(upstream.Close)
		inner = proxyTo(t, upstream.URL)
	}
	f.handler = f.engine.Handler(inner, s.options)
	front := httptest.NewUnstartedServer(s.outside(f.handler))
	front.Config.ErrorLog = log.New(f.log, "net/http: ", 0)
	front.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		s.connect(c)
		return ctx
	}
	if front.EnableHTTP2 = s.http2; s.http2 {
		front.StartTLS()
	} else {
		front.Start()
	}
	f.url, f.client = front.URL+"/mcp", front.Client()
	f.client.Transport.(*http.Transport).DisableCompression = true
	f.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(func() {
		f.client.CloseIdleConnections()
		front.Close() // over HTTP/2 it does not wait for requests whose clients are gone
		await(t, "the budget is whole again", func() bool { return wire.BudgetUsed(f.handler) == 0 })
		text := f.log.String()
		if strings.Contains(text, canary) || strings.Contains(text, "superfluous") || strings.Contains(text,
			"panic serving") {
			t.Errorf("the log has a state, or a complaint of net/http: %s", text)
		}
	})
	return f
}

// proxyTo returns a reverse proxy to a server.
func proxyTo(t testing.TB, address string) *httputil.ReverseProxy {
	target, err := neturl.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorLog:      log.New(io.Discard, "", 0),
		FlushInterval: -1,
		Transport:     &http.Transport{DisableCompression: true},
	}
}

// answered is what a client gets.
type answered struct {
	status  int
	header  http.Header
	body    string
	trailer http.Header
	err     error // the error of reading the body
}

// all returns everything that the client gets as one text.
func (a answered) all() string { return fmt.Sprint(a.status, a.header, a.body, a.trailer) }

// request makes a request of alice. The headers are names and values in turn.
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
	r.Header.Set("X-User", "alice")
	if method == "POST" {
		r.Header.Set("Content-Type", jsonType)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "X-User" {
			r.Header.Del("X-User")
		}
		r.Header[headers[i]] = append(r.Header[headers[i]], headers[i+1])
	}
	return r
}

func (f *front) send(r *http.Request) (a answered) {
	f.t.Helper()
	res, err := f.client.Do(r)
	if err != nil {
		f.t.Fatalf("%v\n%s", err, f.log)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answered{res.StatusCode, res.Header, string(body), res.Trailer, err}
}

func (f *front) do(method, body string, headers ...string) answered {
	f.t.Helper()
	return f.send(f.request(method, body, headers...))
}

// logged checks that the log has a text.
func (f *front) logged(text string) {
	f.t.Helper()
	if !strings.Contains(f.log.String(), text) {
		f.t.Errorf("not logged: %s\n%s", text, f.log)
	}
}

// writes(status, contentType, body) returns a server that always sends this answer. The headers are names and values.
func writes(status int, contentType, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		for i := 0; i < len(headers); i += 2 {
			w.Header().Add(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// unused(t) returns a server that must not get any request.
func unused(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { t.Errorf("the server got %s %s", r.Method, r.URL) }
}

// raw returns a server that sends bytes that need not be HTTP.
func raw(text string) http.HandlerFunc {
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

func event(message string) string { return "data: " + message + "\n\n" }

// await waits until a condition holds. It gives up after a long time.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

func TestAFlowPassesTheDoorSealed(t *testing.T) {
	for way, change := range eachWay {
		for _, contentType := range []string{jsonType, "application/json; charset=utf-8", eventType} {
			t.Run(way+" "+contentType, func(t *testing.T) {
				var got []string
				f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					if int64(len(body)) != r.ContentLength {
						t.Errorf("%d bytes are announced, and %d come", r.ContentLength, len(body))
					}
					got = append(got, string(body))
					answer := doneMessage
					if !strings.Contains(string(body), canary) {
						answer = askingMessage
					}
					if contentType == eventType {
						answer = ": hi\n\ndata: " + progress + "\r\n\r\nid: 1\ndata: " + answer + "\r\r"
					}
					writes(200, contentType, answer)(w, r)
				}, change)
				first := f.do("POST", callMessage)
				message := strings.TrimSpace(first.body[strings.LastIndex(first.body, "{\"jsonrpc"):])
				if first.status != 200 || strings.Contains(first.all(), canary) {
					t.Fatalf("%+v", first)
				}
				given := token(t, message)
				retry := carriers[0].call(state(given) + `,"inputResponses":{"q":` + accept + `,"other":` + accept + `}`)
				if a := f.do("POST", retry, "X-User", "bob"); a.status != 200 || !strings.Contains(a.body,
					"invalid_request_state") {
					t.Errorf("bob got %+v", a)
				}
				if a := f.do("POST", strings.Replace(retry, given, canary, 1)); !strings.Contains(a.body, "invalid_request_state") {
					t.Errorf("a forged state: %+v", a)
				}
				if a := f.do("POST", retry); a.status != 200 || !strings.Contains(a.body, doneMessage) {
					t.Errorf("%+v", a)
				}
				want := carriers[0].call(state(canary) + `,"inputResponses":{"q":` + accept + `}`)
				if len(got) != 2 || got[1] != want {
					t.Errorf("the server got %q", got)
				}
			})
		}
	}
}

func TestNoStateReachesTheClientWhateverTheServerDoes(t *testing.T) {
	long, half := event(askingMessage), len(askingMessage)/2
	chunk := func(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }
	chunked := func(kind, rest string) http.HandlerFunc {
		return raw("HTTP/1.1 200 OK\r\nContent-Type: " + kind +
			"\r\nTransfer-Encoding: chunked\r\nTrailer: X-State\r\n\r\n" + rest)
	}
	const end, trailers = "0\r\n\r\n", "0\r\nX-State: " + canary + "\r\n\r\n"
	encoded := func(kind, body string) http.HandlerFunc { return writes(200, kind, body, "Content-Encoding", "gzip") }
	switched := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + askingMessage
	short := "HTTP/1.1 200 OK\r\nContent-Type: " + jsonType + "\r\nContent-Length: 5000\r\n\r\n" + askingMessage
	const sealed = "a token"
	both, over := "in process, proxied", "proxied"
	for name, s := range map[string]struct {
		ways   string
		server http.HandlerFunc
		status int
		body   string // what the client gets; sealed means an answer with a token
	}{
		"JSON": {both, writes(200, jsonType, askingMessage), 200, sealed},
		"LF":   {both, writes(200, eventType, long), 200, sealed},
		"CR":   {both, writes(200, eventType, strings.ReplaceAll(long, "\n", "\r")), 200, sealed},
		"CRLF": {both, writes(200, "Text/Event-Stream; charset=utf-8", strings.ReplaceAll(long, "\n",
			"\r\n")), 200, sealed},
		"no empty line":    {both, writes(200, eventType, strings.TrimSuffix(long, "\n")), 200, event(failedMessage)},
		"CR at the end":    {both, writes(200, eventType, "data: "+askingMessage+"\r"), 200, event(failedMessage)},
		"no stream at all": {both, writes(200, eventType, askingMessage), 200, event(failedMessage)},
		"encoded":          {both, encoded(jsonType, askingMessage), 502, failedMessage},
		"encoded events":   {both, encoded(eventType, long), 502, failedMessage},
		"two messages":     {both, writes(200, jsonType, askingMessage+askingMessage), 200, failedMessage},
		"batch":            {both, writes(200, jsonType, "["+askingMessage+"]"), 200, failedMessage},
		"UTF-16":           {both, writes(200, jsonType+"; charset=utf-16", askingMessage), 502, failedMessage},
		"text":             {both, writes(200, "text/plain", askingMessage), 502, failedMessage},
		"no type":          {"in process", writes(200, "", askingMessage), 502, failedMessage},
		"two types":        {both, writes(200, jsonType, askingMessage, "Content-Type", "text/html"), 502, failedMessage},
		"silence":          {"in process", func(http.ResponseWriter, *http.Request) {}, 502, failedMessage},
		"201":              {both, writes(201, jsonType, askingMessage), 502, failedMessage},
		"202":              {both, writes(202, jsonType, askingMessage), 202, ""},
		"204":              {both, writes(204, jsonType, ""), 204, ""},
		"206":              {both, writes(206, jsonType, askingMessage), 502, failedMessage},
		"400 as JSON":      {both, writes(400, jsonType, askingMessage), 400, sealed},
		"400 as text":      {both, writes(400, "text/plain", askingMessage), 400, "Bad Request\n"},
		"400 as events":    {both, writes(400, eventType, long), 400, "Bad Request\n"},
		"304":              {both, writes(304, "", ""), 304, ""},
		"307":              {both, writes(307, "", "", "Location", "/"+canary), 307, "Temporary Redirect\n"},
		"another id":       {both, writes(200, jsonType, strings.Replace(askingMessage, "7", "8", 1)), 502, failedMessage},
		"another event":    {both, writes(200, eventType, "event: x\n"+long), 200, event(failedMessage)},
		"unknown field":    {both, writes(200, eventType, "state: "+canary+"\n"+long), 200, sealed},
		"JSON cut short":   {over, raw(short), 502, failedMessage},
		"chunks cut short": {over, chunked(jsonType, chunk(askingMessage)), 502, failedMessage},
		"chunks": {over, chunked(jsonType, chunk(askingMessage[:half])+chunk(askingMessage[half:])+end), 200,
			sealed},
		"chunks of events":  {over, chunked(eventType, chunk(long[:half])+chunk(long[half:])+end), 200, sealed},
		"events cut short":  {over, chunked(eventType, chunk(long[:len(long)-5])), 200, event(failedMessage)},
		"trailers":          {over, chunked(eventType, chunk(long)+trailers), 200, sealed},
		"trailers of JSON":  {over, chunked(jsonType, chunk(askingMessage)+trailers), 200, sealed},
		"another protocol":  {over, raw(switched), 502, failedMessage},
		"no HTTP":           {over, raw(askingMessage), 502, failedMessage},
		"nothing":           {over, raw(""), 502, failedMessage},
		"escaped by others": {over, writes(200, jsonType, strings.Replace(askingMessage, "tS", `t\u0053`, 1)), 200, sealed},
		"misspelt, not asking": {over, writes(200, jsonType, strings.Replace(doneMessage, "content", "requeststate", 1)),
			200, failedMessage},
		"misspelt by others": {over, writes(200, jsonType, strings.Replace(askingMessage, "tS", "tſ", 1)), 200,
			failedMessage},
	} {
		for way := range strings.SplitSeq(s.ways, ", ") {
			t.Run(name+" "+way, func(t *testing.T) {
				f := newFront(t, s.server, eachWay[way])
				a := f.do("POST", callMessage)
				if a.err != nil || strings.Contains(a.all(), canary) || a.status != s.status {
					t.Fatalf("%+v", a)
				}
				if s.body == sealed && !strings.Contains(a.body, `tate":"ms1.`) || s.body != sealed && a.body != s.body {
					t.Errorf("%q, not %q", a.body, s.body)
				}
				if strings.Contains(a.body, failedMessage) && strings.Count(f.log.String(), "level=") == 0 {
					t.Error("an answer was replaced, and nothing was logged")
				}
			})
		}
	}
}

func TestMessagesWithoutStateStayAsTheyAre(t *testing.T) {
	for _, message := range []string{
		"{ \"jsonrpc\" :\t\"2.0\",\r\n\"id\": 123456789012345, \"method\":\"tools/call\", \"params\" : " +
			"{\"name\":\"a\",\"arguments\":{\"n\":1.0,\"big\":12345678901234567890},\"com.example/ext\":1 } }\n",
		`{"jsonrpc":"2.0","id":"é\u00e9","method":"example/own","params":{"Name":1,"name":2}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}`,
	} {
		var got []byte
		f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
			got, _ = io.ReadAll(r.Body)
			w.WriteHeader(202)
		})
		if a := f.do("POST", message); a.status != 202 || a.body != "" || string(got) != message {
			t.Errorf("%q becomes %q (%d)", message, got, a.status)
		}
	}
	headers := []string{"Content-Digest", "sha-256=:AAAA:", "X-Own", "1", "X-Own", "2", "Set-Cookie", "a=1"}
	for _, message := range []string{
		"\n{ \"jsonrpc\" :\"2.0\", \"id\":7 ,\"result\":{\"content\":[], \"com.example/ext\":1.0}}\n\n",
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"\u0041","data":[1.0]}}`, doneMessage,
	} {
		for _, status := range []int{200, 400, 404} {
			a := newFront(t, writes(status, jsonType, message, headers...)).do("POST", callMessage)
			if a.body != message || a.status != status || a.header.Get("Content-Length") != fmt.Sprint(len(message)) {
				t.Errorf("%q becomes %+v", message, a)
			}
			if a.header.Get("Content-Digest") == "" || len(a.header["X-Own"]) != 2 || a.header.Get("Set-Cookie") != "a=1" {
				t.Errorf("headers are lost: %v", a.header)
			}
		}
	}
	stream := "\ufeff: hi\r\n\r\nid: 1\r\ndata: { \"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\r\n" +
		"data:  \"params\":{} }\r\n\r\n:\r\nretry: 5\rdata:\r\revent: message\ndata:" + doneMessage + "\n\n"
	same := ": hi\n\nid: 1\ndata: { \"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\n" +
		"data:  \"params\":{} }\n\n:\nretry: 5\ndata: \n\nevent: message\ndata: " + doneMessage + "\n\n"
	if a := newFront(t, writes(200, eventType, stream)).do("POST", callMessage); a.body != same {
		t.Errorf("%q becomes %q", stream, a.body)
	}
}

func TestAChangedAnswerHasItsOwnLengthAndNoDigest(t *testing.T) {
	for kind, body := range map[string]string{jsonType: askingMessage, eventType: event(askingMessage)} {
		f := newFront(t, writes(200, kind, body, "Content-Length", fmt.Sprint(len(body)), "Digest", "x", "Content-Digest",
			"x",
			"Repr-Digest", "x", "Content-Md5", "x", "Etag", "x"))
		a := f.do("POST", callMessage)
		if a.err != nil || !strings.Contains(a.body, `"requestState":"ms1.`) {
			t.Errorf("%+v", a)
		}
		for name, values := range a.header {
			if values[0] == "x" || name == "Content-Length" && values[0] != fmt.Sprint(len(a.body)) {
				t.Errorf("%s: %s for a body of %d bytes", name, values, len(a.body))
			}
		}
	}
}

func TestEventsLeaveWhileTheStreamIsOpen(t *testing.T) {
	for way, change := range eachWay {
		t.Run(way, func(t *testing.T) {
			next := make(chan string)
			f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", eventType)
				flush := http.NewResponseController(w)
				flush.Flush()
				for text := range next {
					io.WriteString(w, text)
					flush.Flush()
				}
			}, change)
			res, err := f.client.Do(f.request("POST", callMessage)) // returns although the server has sent no event yet
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			for _, text := range []string{":\n", ": ping\n\n", event(progress), ":\n", "retry: 5\ndata: \n\n"} {
				next <- text
				got := make([]byte, len(text))
				if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != text {
					t.Fatalf("%q, %v", got, err)
				}
			}
			next <- event(doneMessage)
			close(next)
			if rest, err := io.ReadAll(res.Body); string(rest) != event(doneMessage) || err != nil {
				t.Errorf("%q, %v", rest, err)
			}
		})
	}
}

func TestAServerThatCannotBeReachedIs502(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	f := newFront(t, proxyTo(t, closed.URL).ServeHTTP, func(s *setup) { s.config.Proxied = true })
	if a := f.do("POST", callMessage); a.status != 502 || a.body != failedMessage ||
		a.header.Get("Content-Type") != jsonType {
		t.Errorf("%+v", a)
	}
	if a := f.do("POST", progress); a.status != 502 || strings.Contains(a.body, "jsonrpc") {
		t.Errorf("%+v", a)
	}
	if a := f.do("GET", ""); a.status != 502 {
		t.Errorf("%+v", a)
	}
}

func TestARequestThatIsTooLongIs413(t *testing.T) {
	reached := 0
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		reached++
		writes(200, jsonType, doneMessage)(w, r)
	}, func(s *setup) { s.options.MaxRequest = 2000 })
	pad := func(n int) string { return callMessage + strings.Repeat(" ", n-len(callMessage)) }
	if a := f.do("POST", pad(2000)); a.status != 200 || reached != 1 {
		t.Errorf("%+v", a)
	}
	for _, n := range []int{2001, 100_000} {
		chunked := f.request("POST", "")
		chunked.Body, chunked.ContentLength = io.NopCloser(strings.NewReader(pad(n))), -1
		for _, a := range []answered{f.do("POST", pad(n)), f.send(chunked)} {
			if a.status != 413 || reached != 1 {
				t.Errorf("%+v", a)
			}
		}
	}
}

func TestAnAnswerThatIsTooLongIsRefused(t *testing.T) {
	limit := func(s *setup) { s.options.MaxAnswer = 2000 }
	pad := func(n int) string {
		return strings.Replace(doneMessage, "[", "["+strings.Repeat(" ", n-len(doneMessage)), 1)
	}
	for _, s := range []struct {
		kind, body string
		status     int
		want       string // "" means the body itself
	}{
		{jsonType, pad(2000), 200, ""}, {jsonType, pad(2001), 502, failedMessage}, {jsonType, pad(1 << 20), 502,
			failedMessage},
		{eventType, event(pad(2001)), 200, event(failedMessage)},
		{eventType, strings.Repeat(event(progress), 100) + event(doneMessage), 200, ""}, // the limit is for each message
	} {
		f := newFront(t, writes(200, s.kind, s.body), limit)
		if a := f.do("POST", callMessage); a.status != s.status || a.body != s.want && (s.want != "" || a.body != s.body) {
			t.Errorf("%.100q: %+v", s.body, a)
		}
		if s.want != "" {
			f.logged("too long")
		}
	}
}

func TestBytesBeyondTheBudgetAre503(t *testing.T) {
	arrived, release := make(chan bool), make(chan bool)
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-release
		writes(200, jsonType, doneMessage)(w, r)
	}, func(s *setup) { s.options.MaxRequest, s.options.MaxAnswer, s.options.Budget = 100_000, 20_000, 500_000 })
	long := callMessage + strings.Repeat(" ", 99_000-len(callMessage))
	statuses := make(chan int)
	for range 2 {
		go func() {
			res, err := f.client.Do(f.request("POST", long))
			if err != nil {
				statuses <- 0
				return
			}
			res.Body.Close()
			statuses <- res.StatusCode
		}()
		<-arrived
	}
	if a := f.do("POST", long); a.status != 503 || a.header.Get("Retry-After") == "" || strings.Contains(a.body, "bytes") {
		t.Errorf("%+v", a)
	}
	close(release)
	for range 2 {
		if status := <-statuses; status != 200 {
			t.Errorf("a request within the budget: %d", status)
		}
	}
	go func() { <-arrived }()
	if a := f.do("POST", long); a.status != 200 {
		t.Errorf("after that: %+v", a)
	}
}

func TestRequestsThatCannotBeCarriedAreRefused(t *testing.T) {
	f := newFront(t, unused(t))
	set := func(name string, values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = values }
	}
	lines := func(n int) func(*http.Request) { // some lines of the request are there anyway
		return func(r *http.Request) {
			for i := range n {
				r.Header.Add(fmt.Sprint("X-", i%9), "x")
			}
		}
	}
	for _, s := range []struct {
		name, method, body string
		change             func(*http.Request)
		status             int
	}{
		{"PUT", "PUT", callMessage, nil, 405},
		{"HEAD", "HEAD", "", nil, 405},
		{"PATCH", "PATCH", callMessage, nil, 405},
		{"a method like one", "ET", "", nil, 405},
		{"upgrade", "GET", "", func(r *http.Request) { set("Connection", "Upgrade")(r); set("Upgrade", "websocket")(r) },
			400},
		{"upgrade of a POST", "POST", callMessage, set("Upgrade", "h2c"), 400},
		{"GET with a body", "GET", callMessage, nil, 400},
		{"DELETE with a body", "DELETE", callMessage, nil, 400},
		{"OPTIONS with a body", "OPTIONS", callMessage, nil, 400},
		{"many headers", "POST", callMessage, lines(201), 431},
		{"many headers of a GET", "GET", "", lines(201), 431},
		{"text", "POST", callMessage, set("Content-Type", "text/plain"), 415},
		{"no type", "POST", callMessage, set("Content-Type"), 415},
		{"two types", "POST", callMessage, set("Content-Type", jsonType, jsonType), 415},
		{"UTF-16", "POST", callMessage, set("Content-Type", jsonType+"; charset=utf-16"), 415},
		{"two charsets", "POST", callMessage, set("Content-Type", jsonType+"; charset=utf-8; charset=utf-7"), 415},
		{"like JSON", "POST", callMessage, set("Content-Type", "application/json-rpc"), 415},
		{"compressed", "POST", callMessage, set("Content-Encoding", "gzip"), 415},
		{"compressed and not", "POST", callMessage, set("Content-Encoding", "identity", "br"), 415},
		{"two methods", "POST", callMessage, set("Mcp-Method", "tools/call", "tools/call"), 400},
		{"two names", "POST", callMessage, set("Mcp-Name", "deploy", "deploy"), 400},
		{"no JSON", "POST", "{", nil, 400},
		{"nothing", "POST", " ", nil, 400},
		{"batch", "POST", "[" + callMessage + "]", nil, 400},
		{"byte order mark", "POST", "\ufeff" + callMessage, nil, 400},
		{"a call that is a notification", "POST", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}`, nil, 400},
		{"a fraction as id", "POST", strings.Replace(callMessage, "7", "7.0", 1), nil, 400},
	} {
		r := f.request(s.method, s.body)
		if s.change != nil {
			s.change(r)
		}
		before := len(f.log.String())
		a := f.send(r)
		if a.status != s.status || a.status == 405 != (a.header.Get("Allow") != "") {
			t.Errorf("%s: %+v, not %d", s.name, a, s.status)
		}
		if !strings.Contains(f.log.String()[before:], "was refused") {
			t.Errorf("%s: nothing was logged", s.name)
		}
	}
	f = newFront(t, writes(202, "", ""))
	r := f.request("POST", callMessage)
	if lines(180)(r); f.send(r).status != 202 {
		t.Error("180 headers are too many")
	}
	for _, kind := range []string{"Application/JSON", "application/json; charset=utf-8",
		`application/json;charset="UTF-8"`, "application/json; profile=x"} {
		r := f.request("POST", callMessage)
		if r.Header.Set("Content-Type", kind); f.send(r).status != 202 {
			t.Errorf("%s is refused", kind)
		}
	}
}

func TestHeadersMustSayWhatACallSays(t *testing.T) {
	encoded := func(text string) string { return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?=" }
	message := func(method, member, target string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{"` + member + `":"` + target + `"}}`
	}
	tool := message("tools/call", "name", "deploy")
	for _, s := range []struct {
		body    string
		headers []string
		good    bool
	}{
		{tool, nil, true},
		{tool, []string{"Mcp-Method", "tools/call", "Mcp-Name", "deploy"}, true},
		{tool, []string{"Mcp-Name", encoded("deploy")}, true},
		{message("tools/call", "name", "日本"), []string{"Mcp-Name", encoded("日本")}, true},
		{message("prompts/get", "name", "p"), []string{"Mcp-Method", "prompts/get", "Mcp-Name", "p"}, true},
		{message("resources/read", "uri", "file:///a"), []string{"Mcp-Method", "resources/read", "Mcp-Name", "file:///a"},
			true},
		{message("server/discover", "name", "a"), []string{"Mcp-Method", "tools/call", "Mcp-Name", "b"}, true},
		{tool, []string{"Mcp-Param-Region", "x"}, true},
		{tool, []string{"Mcp-Method", "tools/list"}, false},
		{tool, []string{"Mcp-Method", "Tools/Call"}, false},
		{tool, []string{"Mcp-Method", ""}, false},
		{tool, []string{"Mcp-Name", "rollback"}, false},
		{tool, []string{"Mcp-Name", ""}, false},
		{tool, []string{"Mcp-Name", encoded("rollback")}, false},
		{tool, []string{"Mcp-Name", "=?base64?ZGVwbG95*?="}, false},
		{tool, []string{"Mcp-Name", "=?base64?ZGVwbG95"}, false},
		{tool, []string{"Mcp-Method", encoded("tools/call")}, false},
		{message("resources/read", "uri", "file:///a"), []string{"Mcp-Name", "file:///b"}, false},
	} {
		reached := false
		f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
			reached = true
			for i := 0; i < len(s.headers); i += 2 {
				if r.Header.Get(s.headers[i]) != s.headers[i+1] {
					t.Errorf("%v: the server gets %v", s.headers, r.Header)
				}
			}
			w.WriteHeader(202)
		})
		const mismatch = `{"jsonrpc":"2.0","id":7,"error":{"code":-32020,"message":"Header mismatch"}}`
		if a := f.do("POST", s.body, s.headers...); reached != s.good || !s.good && (a.status != 400 || a.body != mismatch) {
			t.Errorf("%s %v: %+v", s.body, s.headers, a)
		}
	}
}

func TestTheServerIsNotAskedForAnswersThatCannotBeSealed(t *testing.T) {
	for _, change := range []func(*setup){func(*setup) {}, overAProxy} {
		var got *http.Request
		f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
			got = r
			w.WriteHeader(202)
		}, change)
		f.url += "?a=1"
		r := f.request("POST", callMessage, "Authorization", "Bearer abc", "Mcp-Param-X", "x", "Expect", "100-continue",
			"X_Mcp", "x", "Te", "trailers", "Range", "bytes=1-")
		for _, name := range []string{"Accept-Encoding", "Last-Event-ID", "last_event_id", "Digest", "Content-Digest",
			"Repr-Digest",
			"Content-MD5", "Want-Digest", "Want-Content-Digest", "If-Range", "If-None-Match", "If-Modified-Since",
			"Mcp_Session_Id"} {
			r.Header[name] = []string{"x"}
		}
		r.Header["Content-Encoding"] = []string{"identity"}
		r.ContentLength, r.Trailer = -1, http.Header{"X-Late": {"x"}}
		f.send(r)
		direct := httptest.NewRequest("POST", "/", strings.NewReader(callMessage))
		direct.Header = http.Header{"Content-Type": {jsonType}, "Trailer": {"X-Late"}} // package http removes it, mostly
		first := got
		if f.handler.ServeHTTP(httptest.NewRecorder(), direct); got == first || got.Header["Trailer"] != nil {
			t.Errorf("the server gets %v", got.Header)
		}
		got = first
		want := map[string]bool{"Content-Type": true, "X-User": true, "User-Agent": true, "Authorization": true,
			"Mcp-Param-X": true, "X_mcp": true}
		for name := range got.Header {
			if !want[name] && name != "Content-Length" {
				t.Errorf("the server gets %s: %v", name, got.Header[name])
			}
			delete(want, name)
		}
		if len(want) > 0 || len(got.Trailer) > 0 || got.ContentLength != int64(len(callMessage)) ||
			got.URL.String() != "/mcp?a=1" {
			t.Errorf("%v %v %v, %d bytes; lost: %v", got.URL, got.Header, got.Trailer, got.ContentLength, want)
		}
	}
}

func TestRefusalsOfTheServerKeepWhatTheClientNeeds(t *testing.T) {
	f := newFront(t, writes(401, "text/html", askingMessage, "Www-Authenticate", `Bearer resource_metadata="x"`,
		"Retry-After", "7", "Allow", "POST", "X-Own", "1", "X-Own", canary))
	for method, body := range map[string]string{"POST": callMessage, "GET": "", "DELETE": ""} {
		a := f.do(method, body)
		if a.status != 401 || a.header.Get("Www-Authenticate") == "" || a.header.Get("Retry-After") != "7" ||
			a.header.Get("Allow") != "POST" || a.header.Get("X-Own") != "" || strings.Contains(a.all(), canary) {
			t.Errorf("%s: %+v", method, a)
		}
	}
	a := newFront(t, writes(200, "text/html", "", "Retry-After", "7")).do("POST", callMessage)
	if a.status != 502 || a.header.Get("Retry-After") != "" {
		t.Errorf("a header of another status is kept: %+v", a)
	}
}

func TestMessagesThatTheServerSendsOnItsOwnPass(t *testing.T) {
	const stream = ":\n\nid: 3\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n" +
		"data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"elicitation/create\",\"params\":{\"message\":\"?\"}}\n\n"
	f := newFront(t, writes(200, eventType, stream+event(askingMessage)+event(canary)))
	if a := f.do("GET", ""); a.status != 200 || a.body != stream+event(failedMessage) {
		t.Errorf("%+v", a)
	}
	if a := newFront(t, writes(200, eventType, stream)).do("GET", ""); a.body != stream {
		t.Errorf("a stream without an answer: %+v", a)
	}
	for _, server := range []http.HandlerFunc{
		writes(200, jsonType, askingMessage), writes(200, "text/plain", canary), writes(405, "text/plain", canary),
		writes(204, "", ""),
	} {
		f := newFront(t, server)
		for _, method := range []string{"GET", "DELETE"} {
			if a := f.do(method, ""); strings.Contains(a.all(), canary) {
				t.Errorf("%s: %+v", method, a)
			}
		}
	}
	if a := newFront(t, writes(204, "", "")).do("DELETE", ""); a.status != 204 {
		t.Errorf("%+v", a)
	}
}

func TestAnAnswerOnAResumedStreamIsAnErrorIfItMustBeSealed(t *testing.T) {
	page := func(result string) string { return `{"jsonrpc":"2.0","id":"l","result":` + result + `}` }
	for in, out := range map[string]string{
		page(`{"tools":[],"nextCursor":"` + canary + `"}`): strings.Replace(failedMessage, "7", `"l"`, 1),
		page(`{"tools":[]}`): page(`{"tools":[]}`),
		askingMessage:        failedMessage,
	} {
		if a := newFront(t, writes(200, eventType, "id: 1\n"+event(in))).do("GET", ""); a.body != "id: 1\n"+event(out) {
			t.Errorf("%s becomes %+v", in, a)
		}
	}
}

func TestAPreflightReachesTheServerAndItsAnswerHasNoBody(t *testing.T) {
	f := newFront(t, writes(200, "text/plain", canary, "Access-Control-Allow-Origin", "https://a.example"))
	if a := f.do("OPTIONS", "", "Origin", "https://a.example"); a.status != 200 || a.body != "" ||
		a.header.Get("Access-Control-Allow-Origin") != "https://a.example" || a.header.Get("Content-Type") != "" {
		t.Errorf("%+v", a)
	}
	if a := newFront(t, func(http.ResponseWriter, *http.Request) {}).do("OPTIONS", ""); a.status != 200 {
		t.Errorf("%+v", a)
	}
}

func TestNotificationsGetNoAnswer(t *testing.T) {
	for _, s := range []struct {
		server http.HandlerFunc
		status int
	}{
		{writes(202, "", ""), 202}, {writes(202, "text/plain", "Accepted"), 202}, {writes(204, "", ""), 204}, {writes(200,
			"", ""), 200},
		{writes(200, jsonType, ""), 200}, {writes(200, jsonType, "null"), 202}, {writes(200, jsonType, askingMessage), 202},
		{writes(500, "text/plain", canary), 500}, {writes(200, eventType, ": hi\n\n"), 200},
		{func(http.ResponseWriter, *http.Request) {}, 200},
		{func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", jsonType) }, 200},
	} {
		a := newFront(t, s.server).do("POST", progress)
		if a.status != s.status || strings.Contains(a.all(), canary) || strings.Contains(a.body, "jsonrpc") {
			t.Errorf("%+v, not %d", a, s.status)
		}
	}
}

func TestAClientThatCutsItsRequestShortIsRefused(t *testing.T) {
	f := newFront(t, unused(t))
	conn, err := net.Dial("tcp", strings.TrimPrefix(strings.TrimSuffix(f.url, "/mcp"), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", jsonType,
		len(callMessage)+1, callMessage)
	conn.(*net.TCPConn).CloseWrite()
	if text, _ := io.ReadAll(conn); !strings.HasPrefix(string(text), "HTTP/1.1 400 ") {
		t.Errorf("%q", text)
	}
}

func TestADoorThatCannotWorkPanicsWhenItIsMade(t *testing.T) {
	anybody := wire.Options{AllowAnonymous: true}
	engine := plainRig(t).engine
	for name, s := range map[string]struct {
		server http.Handler
		change func(*wire.Options)
	}{
		"no server":     {nil, func(*wire.Options) {}},
		"nobody":        {unused(t), func(o *wire.Options) { o.AllowAnonymous = false }},
		"requests":      {unused(t), func(o *wire.Options) { o.MaxRequest = -1 }},
		"tiny requests": {unused(t), func(o *wire.Options) { o.MaxRequest = 1023 }},
		"huge answers":  {unused(t), func(o *wire.Options) { o.MaxAnswer, o.Budget = 1<<30+1, 1<<40 }},
		"budget": {unused(t),
			func(o *wire.Options) { o.Budget = 2*(wire.DefaultMaxRequest+wire.DefaultMaxAnswer) - 1 }},
		"timeout": {unused(t), func(o *wire.Options) { o.ClientTimeout = -1 }},
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "wire: ") {
					t.Errorf("%s: %s", name, text)
				}
			}()
			options := anybody
			s.change(&options)
			engine.Handler(s.server, options)
		}()
	}
	engine.Handler(unused(t), anybody)
}
