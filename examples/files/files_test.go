package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // otherwise every server would log that its keys are ephemeral
	os.Exit(m.Run())
}

// start serves a new folder, and returns it.
func start(t *testing.T) (dir, url string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "alice", "notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"report.txt", "notes/today.txt", "notes/tomorrow.txt"} {
		if err := os.WriteFile(filepath.Join(dir, "alice", name), []byte("the report"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	config := tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "files.example.com"}
	handler, err := newService(files, config, tripseal.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return dir, web.URL
}

type authorization string

func (a authorization) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", string(a))
	return http.DefaultTransport.RoundTrip(r)
}

// use calls a tool as alice, and says yes to the given questions.
func use(t *testing.T, url, revision, tool, path string, agrees ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if slices.Contains(agrees, req.Params.Message) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
			}
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
	})
	transport := &mcp.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: authorization("Bearer token-of-alice")},
	}
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"path": path}})
	if err != nil {
		return err.Error()
	}
	return result.Content[0].(*mcp.TextContent).Text
}

func TestOnlyWhatTheUserAgreedToIsDone(t *testing.T) {
	const (
		folder = "Delete alice/notes?"
		both   = "Delete also today.txt, tomorrow.txt?"
	)
	for _, revision := range []string{"2026-07-28", "2025-06-18"} {
		dir, url := start(t)
		for _, c := range []struct {
			tool, path string
			agrees     []string
			want, gone string
		}{
			{"read_file", "report.txt", nil, "the report", ""},
			{"read_file", "none", nil, "There is no such file.", ""},
			{"read_file", "../alice/report.txt", nil, "There is no such path.", ""},
			{"delete_file", "report.txt", nil, "Nothing was changed.", ""},
			{"delete_file", "notes", []string{folder}, "Nothing was changed.", ""},
			{"delete_file", "notes", []string{both}, "Nothing was changed.", ""},
			{"delete_file", "notes", []string{folder, both}, "Deleted.", "notes"},
			{"archive_file", "report.txt", []string{"Archive alice/report.txt?"}, "Archived.", "report.txt"},
		} {
			said := use(t, url, revision, c.tool, c.path, c.agrees...)
			_, err := os.Stat(filepath.Join(dir, "alice", c.path))
			if said != c.want || c.gone != "" && err == nil || c.want == "Nothing was changed." && err != nil {
				t.Errorf("%s, %s %s: %s, %v", revision, c.tool, c.path, said, err)
			}
		}
	}
}

func TestInventedTokensAreRefused(t *testing.T) {
	_, url := start(t)
	for _, header := range []authorization{"", "Bearer token-of-mallory", "token-of-alice"} {
		client := http.Client{Transport: header}
		response, err := client.Post(url, "application/json", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %s", header, response.Status)
		}
	}
}
