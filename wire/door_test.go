package wire_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

func TestSmoke(t *testing.T) {
	r := newRig(t, tripseal.Config{}, wire.Config{})
	server := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		t.Logf("server: %s %s %v", q.Method, body, q.Header)
		if strings.Contains(string(body), "initialize") {
			w.Header().Set("Mcp-Session-Id", "plain-session")
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":7,"result":{}}`)
			return
		}
		w.Header().Set("Mcp-Session-Id", q.Header.Get("Mcp-Session-Id"))
		if strings.Contains(q.Header.Get("X-Events"), "1") {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			fmt.Fprintf(w, "data: %s\n\n", asking(`"`+canary+`"`, `{"q":`+form+`}`))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, asking(`"`+canary+`"`, `{"q":`+form+`}`))
	})
	h := httptest.NewServer(r.engine.Handler(server, wire.Options{User: func(q *http.Request) (string, error) { return q.Header.Get("X-User"), nil }}))
	defer h.Close()
	do := func(method, body string, headers ...string) (*http.Response, string) {
		q, _ := http.NewRequest(method, h.URL+"/mcp", strings.NewReader(body))
		if body == "" {
			q.Body = nil
			q.ContentLength = 0
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("X-User", "alice")
		for i := 0; i < len(headers); i += 2 {
			q.Header.Set(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		out, _ := io.ReadAll(res.Body)
		t.Logf("%d %v %s", res.StatusCode, res.Header, out)
		return res, string(out)
	}
	_, out := do("POST", carriers[0].call(""))
	t.Log(r.log.String())
	given := token(t, out)
	do("POST", carriers[0].call(state(given)+`,"inputResponses":{"q":`+accept+`}`))
	do("POST", carriers[0].call(state(given)+`,"inputResponses":{"q":`+accept+`}`), "X-User", "bob")
	do("POST", carriers[0].call(state(given)), "X-Events", "1")
	res, _ := do("POST", `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}`)
	sid := res.Header.Get("Mcp-Session-Id")
	do("POST", carriers[0].call(""), "Mcp-Session-Id", sid)
	do("GET", "", "Mcp-Session-Id", sid)
	do("GET", "", "Mcp-Session-Id", sid, "X-User", "bob")
	do("DELETE", "", "Mcp-Session-Id", "plain-session")
	t.Log(r.log.String())
}
