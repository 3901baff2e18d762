package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/test/mutate"
	"github.com/tripseal/tripseal/keys"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // otherwise the server would log the token that it rejects
	os.Exit(m.Run())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writeKeys writes a file with one key.
func writeKeys(t *testing.T) (path string) {
	t.Helper()
	key, from := tripseal.GenerateKey(), time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)
	text := fmt.Sprintf("tripseal-keys 1\nkey %s made=%s seals-from=%s opens-until=never secret=%s\nend\n", key.ID(), from, from, key.Reveal())
	path = filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestAFlowIsSeenInTheMetrics(t *testing.T) {
	observer, metrics, err := newTelemetry()
	must(t, err)
	source, err := keys.OpenFile(writeKeys(t), &keys.Options{Observer: observer.ObserveKeys})
	must(t, err)
	defer source.Close()
	server, err := newServer(tripseal.Config{Keys: source, Audience: "release.example.com"}, observer)
	must(t, err)
	web, page := httptest.NewServer(newHandler(server)), httptest.NewServer(metrics)
	t.Cleanup(web.Close)
	t.Cleanup(page.Close)

	client := mutate.Client{URL: web.URL, Bearer: "alice-token", HTTP: web.Client()}
	call := func(pages int, params map[string]any) mutate.Outcome {
		t.Helper()
		outcome, err := client.Call(t.Context(), mutate.Call{
			Revision: mutate.Newer, Method: "tools/call", Params: params, Pages: pages,
			Answer: func(q mutate.Question) any {
				if q.Message() == "In which region?" {
					return json.RawMessage(`{"action":"accept","content":{"name":"eu"}}`)
				}
				return json.RawMessage(`{"action":"accept","content":{"ok":true}}`)
			},
		})
		must(t, err)
		return outcome
	}
	frontend := map[string]any{"service": "frontend", "version": "1.4.2"}
	if said := call(1, map[string]any{"name": "deploy", "arguments": frontend}).String(); !strings.HasPrefix(said, "deployed frontend") {
		t.Fatal(said)
	}
	if outcome := call(1, map[string]any{"name": "deploy", "arguments": frontend, "requestState": "step=2&traffic=100"}); outcome.Error == nil {
		t.Fatal("a state that nobody sealed was accepted")
	}
	if outcome := call(3, map[string]any{"name": "list_versions", "arguments": map[string]any{"service": "frontend"}}); outcome.Error != nil {
		t.Fatal(outcome.Error)
	}

	response, err := page.Client().Get(page.URL + "/metrics")
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	for _, want := range []string{
		`tripseal_operations_total{gen_ai_tool_name="deploy",mcp_method_name="tools/call",tripseal_operation="seal"} 2`,
		`tripseal_operations_total{gen_ai_tool_name="deploy",mcp_method_name="tools/call",tripseal_operation="open"} 2`,
		`tripseal_operations_total{error_type="malformed",mcp_method_name="tools/call",tripseal_operation="open"} 1`,
		`tripseal_operations_total{gen_ai_tool_name="list_versions",mcp_method_name="tools/call",tripseal_operation="issue_cursor"} 3`,
		`tripseal_operations_total{gen_ai_tool_name="list_versions",mcp_method_name="tools/call",tripseal_operation="open_cursor"} 2`,
		`tripseal_store_spend_duration_seconds_count{tripseal_store_result="first"} 2`,
		`tripseal_store_held 2`,
		`tripseal_keys_opening 1`,
		`tripseal_keys_unusable 0`,
	} {
		if !strings.Contains(string(text), "\n"+want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", text)
	}
}

func TestOthersAreNotServed(t *testing.T) {
	observer, _, err := newTelemetry()
	must(t, err)
	server, err := newServer(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "release.example.com"}, observer)
	must(t, err)
	web := httptest.NewServer(newHandler(server))
	t.Cleanup(web.Close)
	for _, bearer := range []string{"", "mallory-token", "alice"} {
		client := mutate.Client{URL: web.URL, Bearer: bearer, HTTP: web.Client()}
		if outcome, err := client.Call(t.Context(), mutate.Call{Revision: mutate.Newer, Method: "tools/list"}); err == nil && outcome.Error == nil {
			t.Errorf("%q is served: %s", bearer, outcome.Result)
		}
	}
}
