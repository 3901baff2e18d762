package proxycmd

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal/sealtest"
	"github.com/tripseal/tripseal/wire"
)

// The record of a request is made after the client has its answer: here, it waits for the client.
func TestTheRecordDescribesTheRequestAndTheClientDoesNotWaitForIt(t *testing.T) {
	const done = `{"jsonrpc":"2.0","id":1,"result":{}}`
	message := func(method, more string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + more + `}}`
	}
	for _, s := range []struct {
		method, message, target string
		status, sent            int
	}{
		{"tools/call", message("tools/call", `"name":"deploy"`), "deploy", 200, len(done)},
		{"prompts/get", message("prompts/get", `"name":"write"`), "write", 200, len(done)},
		{"resources/read", message("resources/read", `"uri":"file:///secret"`), "", 200, len(done)}, // a URI can hold secrets
		{"ping", message("ping", ""), "", 200, len(done)},
		{"", "", "", 202, 0},
		{"", "{", "", 400, -1},
	} {
		engine, err := wire.New(wire.Config{Boundary: sealtest.Boundary(t)})
		if err != nil {
			t.Fatal(err)
		}
		door := engine.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.sent == 0 {
				w.WriteHeader(202)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, done)
		}), wire.Options{AllowAnonymous: true, Opened: opened})
		got, ended := make(chan bool), make(chan record, 1)
		web := httptest.NewServer(recorded(door, func(_ context.Context, e record) {
			select {
			case <-got:
			case <-time.After(time.Minute):
				t.Error("the client waits for the record")
			}
			ended <- e
		}))
		way := http.MethodPost
		if s.message == "" {
			way = http.MethodGet
		}
		r, err := http.NewRequest(way, web.URL, strings.NewReader(s.message))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		close(got)
		e := <-ended
		if e.HTTPMethod != way || e.Status != s.status || e.Received != len(s.message) || e.Sent != len(text) ||
			s.sent >= 0 && e.Sent != s.sent || e.Method != s.method || e.Target != s.target ||
			!strings.HasPrefix(e.Peer, "127.0.0.1:") || e.Duration <= 0 {
			t.Errorf("%+v", e)
		}
		web.Close()
	}
}
