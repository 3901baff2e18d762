package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
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
	line := fmt.Sprintf("key %s made=%s seals-from=%s opens-until=never secret=%s", key.ID(), from, from, key.Reveal())
	path = filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(path, []byte("tripseal-keys 1\n"+line+"\nend\n"), 0o600))
	return path
}

type as string

func (user as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(user)+"-token")
	return http.DefaultTransport.RoundTrip(r)
}

func dial(ctx context.Context, url string, user as) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			content := map[string]any{"ok": true}
			if req.Params.Message == "In which region?" {
				content = map[string]any{"name": "eu"}
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
	})
	transport := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: user}}
	return client.Connect(ctx, transport, nil)
}

func TestAFlowIsSeenInTheMetrics(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	observer, metrics, err := newTelemetry()
	must(t, err)
	source, err := keys.OpenFile(writeKeys(t), &keys.Options{Observer: observer.ObserveKeys})
	must(t, err)
	defer source.Close()
	store, err := newStore(ctx, "")
	must(t, err)
	server, err := newServer(tripseal.Config{
		Keys: source, Audience: "release.example.com", Replay: observer.Store(store), Observer: observer.Observe,
	})
	must(t, err)
	web, page := httptest.NewServer(newHandler(server)), httptest.NewServer(metrics)
	t.Cleanup(web.Close)
	t.Cleanup(page.Close)
	if _, err := dial(ctx, web.URL, "mallory"); err == nil {
		t.Error("mallory is served")
	}
	session, err := dial(ctx, web.URL, "alice")
	must(t, err)
	defer session.Close()
	params := &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": "frontend", "version": "1.4.2"}}
	result, err := session.CallTool(ctx, params)
	must(t, err)
	if said := result.Content[0].(*mcp.TextContent).Text; said != "deployed frontend 1.4.2 in eu, 10% of traffic" {
		t.Fatal(said)
	}
	params.RequestState = "step=2&traffic=100"
	if _, err := session.CallTool(ctx, params); err == nil {
		t.Fatal("a state that nobody sealed was accepted")
	}

	response, err := http.Get(page.URL)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	const operation = `,mcp_method_name="tools/call",tripseal_operation=`
	for _, want := range []string{
		`tripseal_operations_total{gen_ai_tool_name="deploy"` + operation + `"seal"} 2`,
		`tripseal_operations_total{gen_ai_tool_name="deploy"` + operation + `"open"} 2`,
		`tripseal_operations_total{error_type="malformed"` + operation + `"open"} 1`,
		`tripseal_store_spend_duration_seconds_count{tripseal_store_result="first"} 2`,
		`tripseal_store_held 2`,
		`tripseal_keys_opening 1`,
		`tripseal_keys_unusable 0`,
	} {
		if !strings.Contains(string(text), "\n"+want+"\n") {
			t.Errorf("the metrics lack %s in\n%s", want, text)
		}
	}
}

func TestAServerWithoutItsKeysOrItsRedisDoesNotStart(t *testing.T) {
	listener := httptest.NewServer(http.NotFoundHandler()) // no Redis
	defer listener.Close()
	for name, c := range map[string][2]string{
		"keys":  {filepath.Join(t.TempDir(), "none"), ""},
		"redis": {writeKeys(t), listener.Listener.Addr().String()},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := serve(ctx, "127.0.0.1:0", "127.0.0.1:0", c[0], c[1]); err == nil || ctx.Err() != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, serve(ended, "127.0.0.1:0", "127.0.0.1:0", writeKeys(t), "")) // starts, and ends when it is told
}
