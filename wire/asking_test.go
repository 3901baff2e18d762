package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
	"github.com/tripseal/tripseal/wire"
)

// TestOnlyTheCallItselfGetsWhatArrivedForElicit runs a handler of package elicit with the context of a call, but as
// another call: some SDKs give all calls of a session the context of the first.
func TestOnlyTheCallItselfGetsWhatArrivedForElicit(t *testing.T) {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := wire.New(wire.Config{Boundary: boundary, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, meta map[string]any) *elicit.Pending {
		pending, err := elicit.Run(ctx, elicit.Call{Method: "tools/call", Target: "t", Meta: meta}, func(_ context.Context, ask *elicit.Asker) error {
			_, err := elicit.Form[struct{ OK bool }](ask, "ok", "Sure?").Value()
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return pending
	}
	var marked atomic.Value
	var stream bool
	var post func(more string) string
	var repeated atomic.Bool
	web := httptest.NewServer(engine.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			Params struct {
				Meta           map[string]any `json:"_meta"`
				RequestState   *string
				InputResponses map[string]any
			}
		}
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &m); err != nil || m.Params.RequestState != nil || m.Params.InputResponses != nil {
			t.Errorf("the server got %s, %v", text, err)
		}
		w.Header().Set("Content-Type", "application/json")
		if pending := run(r.Context(), m.Params.Meta); pending != nil {
			result, _ := json.Marshal(map[string]any{"resultType": "input_required", "inputRequests": pending.Questions, "requestState": pending.State})
			io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":`+string(result)+`}`)
			return
		}
		if run(r.Context(), nil) == nil {
			t.Error("another call in this context got the answer")
		}
		if mark, _ := m.Params.Meta[wire.MarkName].(string); repeated.CompareAndSwap(false, true) {
			if text := post(`,"_meta":{"` + wire.MarkName + `":"` + mark + `","a":1}`); mark == "" || !strings.Contains(text, "requestState") {
				t.Errorf("another call with the mark %q got %s", mark, text)
			}
		}
		// The handler repeats the mark of the call. A client could use it on a transport that has no door.
		mark, _ := json.Marshal(m.Params.Meta)
		if marked.Store(string(mark)); stream {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, `data: {"jsonrpc":"2.0","method":"x","params":{"_meta":%s}}`+"\n\ndata: ", mark)
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[],"_meta":%s}}`+"\n\n", mark)
	}), wire.Options{AllowAnonymous: true}))
	t.Cleanup(web.Close)
	post = func(more string) string {
		response, err := http.Post(web.URL, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"`+more+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return string(text)
	}
	var asked struct{ Result struct{ RequestState string } }
	if text := post(""); json.Unmarshal([]byte(text), &asked) != nil || !strings.HasPrefix(asked.Result.RequestState, "ms1.") {
		t.Fatal(text)
	}
	answered := `,"requestState":"` + asked.Result.RequestState + `","inputResponses":{"ok":{"action":"accept","content":{"OK":true}},"ghost":{"action":"accept"}}`
	for _, stream = range []bool{false, true} {
		text := post(answered)
		var meta map[string]string
		if err := json.Unmarshal([]byte(marked.Load().(string)), &meta); err != nil || meta[wire.MarkName] == "" {
			t.Errorf("the server got the _meta %s", marked.Load())
		}
		if !strings.Contains(text, `"content":[]`) || strings.Contains(text, meta[wire.MarkName]) {
			t.Errorf("the client got %s", text)
		}
	}
	web.Close() // waits for all calls to end
	if n := wire.Marks(engine); n != 0 {
		t.Errorf("%d marks are left", n)
	}
}
