package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // otherwise every server would log that its keys are ephemeral
	os.Exit(m.Run())
}

const (
	newer = "2026-07-28"
	older = "2025-06-18"
)

func onEachSDK(t *testing.T, test func(t *testing.T, url string)) {
	for _, sdk := range []string{"go-sdk", "mcp-go"} {
		t.Run(sdk, func(t *testing.T) {
			handler, err := start(sdk, tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "release.example.com"})
			if err != nil {
				t.Fatal(err)
			}
			web := httptest.NewServer(auth.RequireBearerToken(verify, nil)(handler))
			t.Cleanup(web.Close)
			test(t, web.URL)
		})
	}
}

// as adds a user's access token to every request.
type as string

func (user as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(user)+"-token")
	return http.DefaultTransport.RoundTrip(r)
}

// dial connects a client that answers questions with the function answer.
func dial(t *testing.T, url, revision string, user as, answer func(string) *mcp.ElicitResult) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return answer(req.Params.Message), nil
		},
	})
	transport := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: user}}
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

const (
	confirm = "Really do this to frontend 1.4.2?"
	region  = "In which region?"
)

func yes(message string) *mcp.ElicitResult {
	content := map[string]any{"ok": true}
	if message == region {
		content = map[string]any{"name": "eu"}
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}
}

func call(t *testing.T, session *mcp.ClientSession, tool string) string {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: Args{"frontend", "1.4.2"}})
	if err != nil {
		return err.Error()
	}
	return result.Content[0].(*mcp.TextContent).Text
}

func TestAUserWhoAcceptsBothQuestionsIsServed(t *testing.T) {
	onEachSDK(t, func(t *testing.T, url string) {
		for _, revision := range []string{newer, older} {
			session := dial(t, url, revision, "alice", yes)
			for tool, done := range map[string]string{"deploy": "deployed", "rollback": "restored"} {
				if said := call(t, session, tool); said != done+" frontend 1.4.2 in eu, 10% of traffic" {
					t.Errorf("%s, %s: %s", revision, tool, said)
				}
			}
		}
	})
}

func TestAUserWhoSaysNoIsObeyed(t *testing.T) {
	onEachSDK(t, func(t *testing.T, url string) {
		for _, revision := range []string{newer, older} {
			for _, question := range []string{confirm, region} {
				for _, action := range []string{"decline", "cancel"} {
					session := dial(t, url, revision, "alice", func(message string) *mcp.ElicitResult {
						if message == question {
							return &mcp.ElicitResult{Action: action}
						}
						return yes(message)
					})
					if said := call(t, session, "deploy"); said != "nothing was done" {
						t.Errorf("%s, %s to %q: %s", revision, action, question, said)
					}
				}
			}
		}
	})
}

// TestAWalkIsHeldToItsUserAndItsArguments walks over all pages, with pages of another size in between.
func TestAWalkIsHeldToItsUserAndItsArguments(t *testing.T) {
	onEachSDK(t, func(t *testing.T, url string) {
		for _, revision := range []string{newer, older} {
			list := func(user as, arguments map[string]any) (items []any, next any, err error) {
				t.Helper()
				session := dial(t, url, revision, user, yes)
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_versions", Arguments: arguments})
				if err != nil {
					return nil, nil, err
				}
				if result.IsError {
					return nil, nil, fmt.Errorf("%v", result.Content[0])
				}
				page := result.StructuredContent.(map[string]any)
				return page["items"].([]any), page["nextCursor"], nil
			}
			var seen []any
			cursor := any(nil)
			for page := 0; page == 0 || cursor != nil; page++ {
				if page == 1 {
					for user, service := range map[as]string{"alice": "backend", "bob": "frontend"} {
						if _, _, err := list(user, map[string]any{"service": service, "cursor": cursor}); err == nil {
							t.Errorf("%s: %s used a cursor for %s", revision, user, service)
						}
					}
				}
				arguments := map[string]any{"service": "frontend", "limit": 20 + page, "cursor": cursor}
				if cursor == nil {
					delete(arguments, "cursor")
				}
				items, next, err := list("alice", arguments)
				if err != nil {
					t.Fatal(err)
				}
				seen, cursor = append(seen, items...), next
			}
			for i, item := range seen {
				if item != fmt.Sprintf("frontend 1.%d.0", i) {
					t.Errorf("%s: item %d is %s", revision, i, item)
				}
			}
			if len(seen) != 100 {
				t.Errorf("%s: %d items", revision, len(seen))
			}
		}
	})
}

// TestOnlyTheUserOfASessionMayUseIt opens a session as alice and uses it as bob, in every way that
// the transport has. Without an access token, nothing is served.
func TestOnlyTheUserOfASessionMayUseIt(t *testing.T) {
	onEachSDK(t, func(t *testing.T, url string) {
		send := func(method string, user as, session, body string) (status int, opened string) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel() // ends the stream that a GET opens
			request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Accept", "application/json, text/event-stream")
			if session != "" {
				request.Header.Set("Mcp-Session-Id", session)
				request.Header.Set("Mcp-Protocol-Version", older)
			}
			response, err := user.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			return response.StatusCode, response.Header.Get("Mcp-Session-Id")
		}
		hello := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + older +
			`","capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}}}`
		if status, _ := send("POST", "mallory", "", hello); status != http.StatusUnauthorized {
			t.Errorf("mallory got %d", status)
		}
		status, session := send("POST", "alice", "", hello)
		if status != http.StatusOK || session == "" {
			t.Fatalf("no session: %d", status)
		}
		for _, use := range []struct{ method, body string }{
			{"POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
			{"POST", `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"ok":true}}}`},
			{"GET", ""},
			{"DELETE", ""},
		} {
			status, _ := send(use.method, "bob", session, use.body)
			if status != http.StatusNotFound && status != http.StatusForbidden {
				t.Errorf("%s %s as bob: %d", use.method, use.body, status)
			}
		}
		send("POST", "alice", session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		status, _ = send("POST", "alice", session, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if status != http.StatusOK {
			t.Errorf("as alice: %d", status)
		}
	})
}
