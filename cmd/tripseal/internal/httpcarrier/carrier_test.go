package httpcarrier

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
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
	"github.com/tripseal/tripseal/proxy"
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
}

func newFront(t *testing.T, server http.HandlerFunc, change ...func(*Config)) *front {
	t.Helper()
	upstream := httptest.NewServer(server)
	t.Cleanup(upstream.Close)
	return frontOf(t, upstream.URL+"/mcp", change...)
}

func frontOf(t *testing.T, upstream string, change ...func(*Config)) *front {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "test", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	core, err := proxy.New(proxy.Config{Boundary: boundary, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Proxy: core, Upstream: address, Identity: identity.Anonymous(), Logger: quiet}
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
		if used := handler.budget.used.Load(); used != 0 {
			t.Errorf("%d bytes of the budget are lost", used)
		}
	})
	return &front{t, handler, server.URL + "/mcp"}
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

func compressed(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

func TestTheServerGetsItsStateAndTheClientDoesNot(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, message string){
		"JSON": func(w http.ResponseWriter, message string) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			io.WriteString(w, message)
		},
		"events": func(w http.ResponseWriter, message string) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, ": hello\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\r\n\r\nid: 1\ndata: "+message+"\r\r")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var states []string
			f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
				var m struct {
					Params struct {
						RequestState   *string
						InputResponses map[string]any
					}
				}
				body, _ := io.ReadAll(r.Body)
				if err := json.Unmarshal(body, &m); err != nil {
					t.Error(err)
				}
				if int64(len(body)) != r.ContentLength {
					t.Errorf("%d bytes are announced, and %d come", r.ContentLength, len(body))
				}
				if m.Params.RequestState == nil {
					answer(w, askingMessage)
					return
				}
				states = append(states, *m.Params.RequestState)
				if m.Params.InputResponses["ok"] == nil || m.Params.InputResponses["other"] != nil {
					t.Errorf("answers: %v", m.Params.InputResponses)
				}
				answer(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
			})
			first := f.do("POST", callMessage)
			_, after, found := strings.Cut(first.body, `"requestState":"`)
			token, _, _ := strings.Cut(after, `"`)
			if !found || token == "" || first.status != 200 || strings.Contains(first.allText(), canary) {
				t.Fatalf("%+v", first)
			}
			retry := strings.Replace(callMessage, `"arguments"`, `"requestState":"`+token+`","inputResponses":{"ok":{"action":"accept","content":{}},"other":{"action":"accept"}},"arguments"`, 1)
			if second := f.do("POST", retry); second.status != 200 || !strings.Contains(second.body, `"content":[]`) {
				t.Errorf("%+v", second)
			}
			if len(states) != 1 || states[0] != canary {
				t.Errorf("the server got the states %q", states)
			}
			forged := strings.Replace(retry, token, canary, 1)
			if third := f.do("POST", forged); third.status != 200 || !strings.Contains(third.body, `"error"`) || len(states) != 1 {
				t.Errorf("a forged state: %+v", third)
			}
		})
	}
}

// noCanary is the output of a log that must not contain a state.
type noCanary struct{ t *testing.T }

func (n noCanary) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(canary)) {
		n.t.Errorf("the log gets a state: %s", p)
	}
	return len(p), nil
}

func TestNoStateReachesTheClientWhateverTheServerDoes(t *testing.T) {
	hijack := func(raw string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			io.WriteString(conn, raw)
			conn.Close()
		}
	}
	encoded := func(contentType string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			writes(200, contentType, compressed(askingMessage))(w, r)
		}
	}
	event := "data: " + askingMessage + "\n\n"
	chunk := func(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }
	half := len(event) / 2
	servers := map[string]struct {
		server http.HandlerFunc
		status int
		body   string // what the client gets; "" allows any body, but the body of a 200 must have a token
	}{
		"JSON":               {writes(200, "application/json", askingMessage), 200, ""},
		"LF":                 {writes(200, "text/event-stream", event), 200, ""},
		"CR":                 {writes(200, "text/event-stream", strings.ReplaceAll(event, "\n", "\r")), 200, ""},
		"CRLF":               {writes(200, "text/event-stream; charset=utf-8", strings.ReplaceAll(event, "\n", "\r\n")), 200, ""},
		"without its end":    {writes(200, "text/event-stream", strings.TrimSuffix(event, "\n")), 200, "data: " + failedMessage + "\n\n"},
		"CR without its end": {writes(200, "text/event-stream", "data: "+askingMessage+"\r"), 200, "data: " + failedMessage + "\n\n"},
		"no stream at all":   {writes(200, "text/event-stream", askingMessage), 200, "data: " + failedMessage + "\n\n"},
		"compressed":         {encoded("application/json"), 502, failedMessage},
		"compressed events":  {encoded("text/event-stream"), 502, failedMessage},
		"two messages":       {writes(200, "application/json", askingMessage+askingMessage), 200, failedMessage},
		"batch":              {writes(200, "application/json", "["+askingMessage+"]"), 200, failedMessage},
		"UTF-16":             {writes(200, "application/json; charset=utf-16", askingMessage), 502, failedMessage},
		"text":               {writes(200, "text/plain", askingMessage), 502, failedMessage},
		"no type":            {writes(200, "", askingMessage), 502, failedMessage},
		"two types": {func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = []string{"application/json", "text/html"}
			io.WriteString(w, askingMessage)
		}, 502, failedMessage},
		"201":           {writes(201, "application/json", askingMessage), 502, failedMessage},
		"202":           {writes(202, "application/json", askingMessage), 202, ""},
		"206":           {writes(206, "application/json", askingMessage), 502, failedMessage},
		"400 as JSON":   {writes(400, "application/json", askingMessage), 400, ""},
		"400 as text":   {writes(400, "text/plain", askingMessage), 400, "The server answered 400.\n"},
		"400 as events": {writes(400, "text/event-stream", event), 400, "The server answered 400.\n"},
		"500 as HTML":   {writes(500, "text/html", askingMessage), 500, "The server answered 500.\n"},
		"307": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/"+canary, http.StatusTemporaryRedirect)
		}, 307, "The server answered 307.\n"},
		"JSON cut short":      {hijack("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n" + askingMessage), 502, failedMessage},
		"chunked, cut short":  {hijack("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(askingMessage)), 502, failedMessage},
		"chunked":             {hijack("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(askingMessage[:60]) + chunk(askingMessage[60:]) + "0\r\n\r\n"), 200, ""},
		"chunked events":      {hijack("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(event[:half]) + chunk(event[half:]) + "0\r\n\r\n"), 200, ""},
		"events cut short":    {hijack("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(event[:len(event)-5])), 200, "data: " + failedMessage + "\n\n"},
		"trailers":            {hijack("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nTrailer: X-State\r\n\r\n" + chunk(event) + "0\r\nX-State: " + canary + "\r\n\r\n"), 200, ""},
		"trailers after JSON": {hijack("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nTrailer: X-State\r\n\r\n" + chunk(askingMessage) + "0\r\nX-State: " + canary + "\r\n\r\n"), 200, ""},
		"another protocol":    {hijack("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + askingMessage), 502, ""},
		"no HTTP":             {hijack(askingMessage), 502, failedMessage},
		"nothing":             {hijack(""), 502, failedMessage},
		"unknown field":       {writes(200, "text/event-stream", "state: "+canary+"\n"+event), 200, ""},
		"another event":       {writes(200, "text/event-stream", "event: state\n"+event), 200, "data: " + failedMessage + "\n\n"},
		"another id":          {writes(200, "application/json", strings.Replace(askingMessage, `"id":1`, `"id":2`, 1)), 502, failedMessage},
		"escaped":             {writes(200, "application/json", strings.Replace(askingMessage, `"requestState"`, `"request\u0053tate"`, 1)), 200, ""},
		"misspelt":            {writes(200, "application/json", strings.Replace(askingMessage, `"requestState"`, `"requeſtState"`, 1)), 200, failedMessage},
	}
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			f := newFront(t, s.server, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(noCanary{t}, nil)) })
			got := f.do("POST", callMessage)
			if got.err != nil || strings.Contains(got.allText(), canary) {
				t.Errorf("%+v", got)
			}
			if got.status != s.status || s.body != "" && got.body != s.body {
				t.Errorf("%d %q, not %d %q", got.status, got.body, s.status, s.body)
			}
			if s.status == 200 && s.body == "" && !strings.Contains(got.body, `tate":"`) {
				t.Errorf("no token: %q", got.body)
			}
		})
	}
}

func TestMessagesWithoutStateStayAsTheyAre(t *testing.T) {
	requests := []string{
		"{ \"jsonrpc\" :\t\"2.0\",\r\n\"id\": 12345678901234567890, \"method\":\"tools/call\", \"params\" : {\"name\":\"a\",\"arguments\":{\"n\":1.0,\"big\":12345678901234567890},\"task\":{},\"com.example/ext\":1 } }\n",
		`{"jsonrpc":"2.0","id":"é\u00e9","method":"example/own","params":{"Name":1,"name":2}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}`,
	}
	for _, message := range requests {
		var got []byte
		f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
			got, _ = io.ReadAll(r.Body)
			w.WriteHeader(202)
		})
		if a := f.do("POST", message); a.status != 202 || a.body != "" || string(got) != message {
			t.Errorf("%q becomes %q (%d)", message, got, a.status)
		}
	}
	answers := []string{
		"\n{ \"jsonrpc\" :\"2.0\", \"id\":1 ,\"result\":{\"content\":[], \"com.example/ext\":1.0,\"n\":12345678901234567890}}\n\n",
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"\u0041","data":[1.0]}}`,
	}
	for _, message := range answers {
		for _, status := range []int{200, 400, 404} {
			f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Digest", "sha-256=:AAAA:")
				w.Header()["X-Own"] = []string{"1", "2"}
				w.Header().Set("Mcp-Session-Id", "s")
				w.Header().Add("Set-Cookie", "a=1")
				writes(status, "application/json", message)(w, r)
			})
			a := f.do("POST", callMessage)
			if a.body != message || a.status != status || a.header.Get("Content-Length") != fmt.Sprint(len(message)) {
				t.Errorf("%q becomes %+v", message, a)
			}
			if a.header.Get("Content-Digest") == "" || len(a.header["X-Own"]) != 2 || a.header.Get("Mcp-Session-Id") != "s" || a.header.Get("Set-Cookie") != "a=1" {
				t.Errorf("headers are lost: %v", a.header)
			}
		}
	}
	stream := "\ufeff: hi\r\n\r\nid: 1\r\ndata: { \"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\r\ndata:  \"params\":{} }\r\n\r\n:\r\nretry: 5\rdata:\r\revent: message\ndata:{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"n\":1.0}}\n\n"
	if a := newFront(t, writes(200, "text/event-stream", stream)).do("POST", callMessage); a.body != stream {
		t.Errorf("%q becomes %q", stream, a.body)
	}
}

func TestAChangedAnswerHasItsOwnLengthAndNoDigest(t *testing.T) {
	for _, s := range []struct{ contentType, body string }{{"application/json", askingMessage}, {"text/event-stream", "data: " + askingMessage + "\n\n"}} {
		f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
			for _, name := range []string{"Digest", "Content-Digest", "Repr-Digest", "Content-MD5"} {
				w.Header().Set(name, "sha-256=:AAAA:")
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(s.body)))
			writes(200, s.contentType, s.body)(w, r)
		})
		a := f.do("POST", callMessage)
		if a.err != nil || !strings.Contains(a.body, `"requestState":"`) {
			t.Errorf("%+v", a)
		}
		for name := range a.header {
			if strings.Contains(name, "Digest") || name == "Content-Md5" {
				t.Errorf("%s is still there", name)
			}
		}
		if length := a.header.Get("Content-Length"); length != "" && length != fmt.Sprint(len(a.body)) {
			t.Errorf("%s bytes are announced, and %d come", length, len(a.body))
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
	for _, text := range []string{":\r\n", ": ping\n\n", "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n", ":\n"} {
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

// TestTheClientDoesNotWaitForTheRecord checks that the client gets its answer before Config.Ended
// returns: here, Ended waits until the client has the answer.
func TestTheClientDoesNotWaitForTheRecord(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`
	got, recorded := make(chan struct{}), make(chan Request, 1)
	f := newFront(t, writes(http.StatusOK, "application/json", answer), func(c *Config) {
		c.Ended = func(_ context.Context, r Request) {
			select {
			case <-got:
				recorded <- r
			case <-time.After(time.Minute):
				recorded <- Request{}
			}
		}
	})
	a := f.do("POST", callMessage)
	close(got)
	if r := <-recorded; a.body != answer || r.Sent != len(answer) {
		t.Errorf("the client got %q, and %d bytes are recorded", a.body, r.Sent)
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
		}, func(c *Config) { c.Timeout = 50e6 })
		if a := f.do("POST", callMessage); a.status != 502 || a.body != failedMessage {
			t.Errorf("%+v", a)
		}
	}
}

func TestARequestThatIsTooLongIs413(t *testing.T) {
	reached := 0
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		reached++
		writes(200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`)(w, r)
	}, func(c *Config) { c.MaxRequest = 1000 })
	pad := func(n int) string { return callMessage + strings.Repeat(" ", n-len(callMessage)) }
	if a := f.do("POST", pad(1000)); a.status != 200 || reached != 1 {
		t.Errorf("%+v", a)
	}
	if a := f.do("POST", pad(1001)); a.status != 413 {
		t.Errorf("%+v", a)
	}
	for _, n := range []int{1001, 100_000} {
		chunked := f.request("POST", "")
		chunked.Body = io.NopCloser(strings.NewReader(pad(n)))
		chunked.ContentLength = -1
		if a := f.send(chunked); a.status != 413 || reached != 1 {
			t.Errorf("chunked: %+v", a)
		}
	}
}

func TestAnAnswerThatIsTooLongIsRefused(t *testing.T) {
	limit := func(c *Config) { c.MaxAnswer = 1000 }
	pad := func(n int) string {
		const head, tail = `{"jsonrpc":"2.0","id":1,"result":{"x":"`, `"}}`
		return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
	}
	if a := newFront(t, writes(200, "application/json", pad(1000)), limit).do("POST", callMessage); a.status != 200 || a.body != pad(1000) {
		t.Errorf("%+v", a)
	}
	if a := newFront(t, writes(200, "application/json", pad(1001)), limit).do("POST", callMessage); a.status != 502 || a.body != failedMessage {
		t.Errorf("%+v", a)
	}
	if a := newFront(t, writes(200, "text/event-stream", "data: "+pad(1001)+"\n\n"), limit).do("POST", callMessage); a.status != 200 || a.body != "data: "+failedMessage+"\n\n" {
		t.Errorf("%+v", a)
	}
	// The limit is for each message, not for the whole stream.
	stream := strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n", 100) + "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"
	if a := newFront(t, writes(200, "text/event-stream", stream), limit).do("POST", callMessage); a.body != stream {
		t.Errorf("%+v", a)
	}
}

func TestBytesBeyondTheBudgetAre503(t *testing.T) {
	arrived, release := make(chan bool), make(chan bool)
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived <- true
		<-release
		writes(200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`)(w, r)
	}, func(c *Config) { c.MaxRequest, c.MaxAnswer, c.Budget = 100_000, 20_000, 240_000 })
	long := callMessage + strings.Repeat(" ", 99_000-len(callMessage))
	statuses := make(chan int)
	for range 2 {
		go func() {
			res, err := direct.Do(f.request("POST", long))
			if err != nil {
				statuses <- 0
				return
			}
			res.Body.Close()
			statuses <- res.StatusCode
		}()
		<-arrived
	}
	a := f.do("POST", long)
	if a.status != 503 || a.header.Get("Retry-After") == "" {
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
		{"upgrade without a connection", "GET", "", set("Upgrade", "h2c"), 400},
		{"GET with a body", "GET", callMessage, nil, 400},
		{"DELETE with a body", "DELETE", callMessage, nil, 400},
		{"text", "POST", callMessage, set("Content-Type", "text/plain"), 415},
		{"no type", "POST", callMessage, set("Content-Type"), 415},
		{"two types", "POST", callMessage, set("Content-Type", "application/json", "application/json"), 415},
		{"UTF-16", "POST", callMessage, set("Content-Type", "application/json; charset=utf-16"), 415},
		{"two charsets", "POST", callMessage, set("Content-Type", "application/json; charset=utf-8; charset=utf-7"), 415},
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

func TestJSONMayHaveParameters(t *testing.T) {
	f := newFront(t, writes(202, "", ""))
	for _, contentType := range []string{"application/json", "Application/JSON", "application/json; charset=utf-8", `application/json;charset="UTF-8"`, "application/json; profile=x"} {
		r := f.request("POST", callMessage)
		r.Header.Set("Content-Type", contentType)
		if a := f.send(r); a.status != 202 {
			t.Errorf("%s: %+v", contentType, a)
		}
	}
}

func TestHeadersMustSayWhatACallSays(t *testing.T) {
	encoded := func(text string) string {
		return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
	}
	message := func(method, member, target string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"` + member + `":"` + target + `"}}`
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
		{message("resources/read", "uri", "file:///a"), []string{"Mcp-Method", "resources/read", "Mcp-Name", "file:///a"}, true},
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
		{message("prompts/get", "name", "p"), []string{"Mcp-Name", "q"}, false},
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
		a := f.do("POST", s.body, s.headers...)
		if reached != s.good || !s.good && (a.status != 400 || a.body != `{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch"}}`) {
			t.Errorf("%s %v: %+v", s.body, s.headers, a)
		}
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
	r.Header.Set("Mcp-Session-Id", "s")
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	f.send(r)
	for name := range got.Header {
		switch name {
		case "Content-Type", "Content-Length", "Accept", "Authorization", "Mcp-Session-Id", "User-Agent":
		default:
			t.Errorf("the server gets %s: %v", name, got.Header[name])
		}
	}
	if len(got.Trailer) > 0 || got.ContentLength != int64(len(callMessage)) {
		t.Errorf("%v, %d bytes", got.Trailer, got.ContentLength)
	}
	if len(got.Header) < 6 || got.URL.String() != "/mcp?a=1" {
		t.Errorf("%v %v", got.URL, got.Header)
	}
}

func TestRefusalsOfTheServerKeepWhatTheClientNeeds(t *testing.T) {
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="x"`)
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Allow", "POST")
		w.Header().Set("X-Own", "1")
		writes(401, "text/html", askingMessage)(w, r)
	})
	for _, method := range []string{"POST", "GET", "DELETE"} {
		body := ""
		if method == "POST" {
			body = callMessage
		}
		a := f.do(method, body)
		if a.status != 401 || a.header.Get("Www-Authenticate") == "" || a.header.Get("Retry-After") != "7" || a.header.Get("Allow") != "POST" || a.header.Get("X-Own") != "" || strings.Contains(a.body, canary) {
			t.Errorf("%s: %+v", method, a)
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

func TestMessagesThatTheServerSendsOnItsOwnPass(t *testing.T) {
	const stream = ":\r\n\r\nid: 3\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n" +
		"data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"elicitation/create\",\"params\":{\"message\":\"?\"}}\r\r"
	f := newFront(t, writes(200, "text/event-stream", stream+"data: "+askingMessage+"\n\ndata: "+canary+"\n\n"))
	if a := f.do("GET", "", "Accept", "text/event-stream"); a.status != 200 || a.body != stream {
		t.Errorf("%+v", a)
	}
	for _, s := range []http.HandlerFunc{writes(200, "application/json", askingMessage), writes(200, "text/plain", canary), writes(405, "text/plain", canary), writes(204, "", "")} {
		f := newFront(t, s)
		for _, method := range []string{"GET", "DELETE"} {
			if a := f.do(method, ""); strings.Contains(a.allText(), canary) {
				t.Errorf("%s: %+v", method, a)
			}
		}
	}
	if a := newFront(t, writes(204, "", "")).do("DELETE", ""); a.status != 204 {
		t.Errorf("%+v", a)
	}
}

func TestManyClientsGetTheirOwnAnswers(t *testing.T) {
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Params struct{ RequestState *string }
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		answer := strings.Replace(askingMessage, `"id":1`, `"id":`+string(m.ID), 1)
		answer = strings.Replace(answer, canary, canary+"-of-"+string(m.ID), 1)
		if state := m.Params.RequestState; state != nil {
			answer = `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"got":"` + strings.TrimPrefix(*state, canary) + `"}}`
		}
		if len(m.ID)%2 == 0 {
			writes(200, "application/json", answer)(w, r)
			return
		}
		writes(200, "text/event-stream", ":\r\n\r\ndata: "+answer+"\r\n\r\n")(w, r)
	})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	post := func(message string) string {
		r := f.request("POST", message)
		res, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || strings.Contains(string(body), canary) {
			t.Errorf("%q, %v", body, err)
		}
		return string(body)
	}
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := range 20 {
				id := fmt.Sprint(1 + worker*20 + i)
				message := strings.Replace(callMessage, `"id":1`, `"id":`+id, 1)
				_, after, _ := strings.Cut(post(message), `"requestState":"`)
				token, _, _ := strings.Cut(after, `"`)
				got := post(strings.Replace(message, `"arguments"`, `"requestState":"`+token+`","arguments"`, 1))
				if !strings.Contains(got, `{"got":"-of-`+id+`"}`) {
					t.Errorf("request %s gets %s", id, got)
				}
			}
		})
	}
	wait.Wait()
	client.CloseIdleConnections()
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

func TestNotificationsGetNoAnswer(t *testing.T) {
	const notification = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	for _, s := range []struct {
		server http.HandlerFunc
		status int
	}{
		{writes(202, "", ""), 202}, {writes(202, "text/plain", "Accepted"), 202}, {writes(204, "", ""), 204}, {writes(200, "", ""), 200},
		{writes(200, "application/json", ""), 200}, {writes(200, "application/json", "null"), 202}, {writes(200, "application/json", askingMessage), 202},
		{writes(500, "text/plain", canary), 500},
	} {
		a := newFront(t, s.server).do("POST", notification)
		if a.status != s.status || strings.Contains(a.body, canary) || a.status < 300 && a.body != "" {
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
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(callMessage)+1, callMessage)
	conn.(*net.TCPConn).CloseWrite()
	if text, _ := io.ReadAll(conn); !strings.HasPrefix(string(text), "HTTP/1.1 400 ") {
		t.Errorf("%q", text)
	}
}

func TestWrongConfigsAreRefused(t *testing.T) {
	f := newFront(t, unused(t))
	for name, change := range map[string]func(*Config){
		"no proxy":    func(c *Config) { c.Proxy = nil },
		"no identity": func(c *Config) { c.Identity = nil },
		"no upstream": func(c *Config) { c.Upstream = nil },
		"scheme":      func(c *Config) { c.Upstream = &url.URL{Scheme: "ftp", Host: "a", Path: "/mcp"} },
		"no host":     func(c *Config) { c.Upstream = &url.URL{Scheme: "http", Path: "/mcp"} },
		"password":    func(c *Config) { c.Upstream = &url.URL{Scheme: "http", Host: "a", User: url.UserPassword("a", "b")} },
		"origin":      func(c *Config) { c.AllowOrigins = []string{"*"} },
		"negative":    func(c *Config) { c.MaxRequest = -1 },
		"budget":      func(c *Config) { c.Budget = 1000 },
	} {
		config := f.handler.config
		change(&config)
		if _, err := New(config); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
