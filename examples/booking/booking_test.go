package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// guest returns the answers to the questions of the server. Each key is the beginning of a
// question. A test may change the answers.
func guest() map[string]*mcp.ElicitResult {
	accept := func(content map[string]any) *mcp.ElicitResult {
		return &mcp.ElicitResult{Action: "accept", Content: content}
	}
	return map[string]*mcp.ElicitResult{
		"How long": accept(map[string]any{"nights": 3, "guests": 2}),
		"Which":    accept(map[string]any{"kind": "double"}),
		"Shall":    accept(map[string]any{"ok": true}),
		"Book":     accept(map[string]any{"ok": true}),
	}
}

func (c *client) options(raw bool) *mcp.ClientOptions {
	return &mcp.ClientOptions{
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: raw},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			word, _, _ := strings.Cut(req.Params.Message, " ")
			if word == "How" {
				word = "How long"
			}
			c.asked = append(c.asked, word)
			return c.answers[word], nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			c.asked = append(c.asked, "sample")
			note := &mcp.TextContent{Text: "Looking forward!"}
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: note}, nil
		},
	}
}

type client struct {
	*mcp.ClientSession
	answers map[string]*mcp.ElicitResult
	asked   []string
}

func dial(t *testing.T, url, revision string, raw bool, answers map[string]*mcp.ElicitResult) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	c := &client{answers: answers}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "guest", Version: "1"}, c.options(raw)).
		Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	c.ClientSession = session
	return c
}

func serve(t *testing.T) string {
	t.Helper()
	server, err := newServer(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "booking.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(web.Close)
	return web.URL
}

func (c *client) book(t *testing.T, state string, responses mcp.InputResponseMap) (*mcp.CallToolResult, error) {
	t.Helper()
	params := &mcp.CallToolParams{Name: "book", Arguments: Args{"Rome"}, RequestState: state, InputResponses: responses}
	return c.CallTool(t.Context(), params)
}

func said(result *mcp.CallToolResult, err error) string {
	if err != nil {
		var rpc *jsonrpc.Error
		if errors.As(err, &rpc) {
			return fmt.Sprint(rpc.Code, " ", rpc.Message)
		}
		return err.Error()
	}
	if result.InputRequests != nil {
		for key := range result.InputRequests {
			return "asks " + key
		}
	}
	text := result.Content[0].(*mcp.TextContent).Text
	var booking Booking
	if json.Unmarshal([]byte(text), &booking) == nil && booking.Number != "" {
		return booking.Text + "; " + booking.Note
	}
	return text
}

func TestAGuestBooks(t *testing.T) {
	url := serve(t)
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		c := dial(t, url, revision, false, guest())
		if got := said(c.book(t, "", nil)); got != "booked a double in Rome, 3 nights for 360; Looking forward!" {
			t.Errorf("%s: %s", revision, got)
		}
		if asked := strings.Join(c.asked, ", "); asked != "How long, Which, Shall, sample, Book" {
			t.Errorf("%s: asked %s", revision, asked)
		}
	}
}

func TestAGuestDeclinesAndCancels(t *testing.T) {
	url := serve(t)
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		for word, c := range map[string]struct{ action, want string }{
			"Shall":    {"decline", "booked a double in Rome, 3 nights for 360; "},
			"Book":     {"cancel", "the question confirm was cancelled"},
			"Which":    {"decline", "the question room was declined"},
			"How long": {"cancel", "the question stay was cancelled"},
		} {
			answers := guest()
			answers[word] = &mcp.ElicitResult{Action: c.action}
			if got := said(dial(t, url, revision, false, answers).book(t, "", nil)); got != c.want {
				t.Errorf("%s, %s: %s", revision, word, got)
			}
		}
	}
}

func TestAGuestSendsJunkAndReplays(t *testing.T) {
	c := dial(t, serve(t), "2026-07-28", true, guest())
	first, err := c.book(t, "", mcp.InputResponseMap{"confirm": c.answers["Book"], "stay": c.answers["How long"]})
	if got := said(first, err); got != "asks stay" {
		t.Fatalf("answers before questions: %s", got)
	}
	for name, responses := range map[string]mcp.InputResponseMap{
		"nothing":       nil,
		"another kind":  {"stay": &mcp.ListRootsResult{Roots: []*mcp.Root{}}},
		"not asked for": {"confirm": c.answers["Book"]},
	} {
		if got := said(c.book(t, first.RequestState, responses)); got != "asks stay" {
			t.Errorf("%s: %s", name, got)
		}
	}
	content := map[string]any{"nights": "many", "guests": map[string]any{}}
	junk := mcp.InputResponseMap{"stay": &mcp.ElicitResult{Action: "accept", Content: content}}
	const misfit = "the answer to the question stay does not fit what was asked"
	if got := said(c.book(t, first.RequestState, junk)); got != misfit {
		t.Errorf("junk: %s", got)
	}
	stay := mcp.InputResponseMap{"stay": c.answers["How long"]}
	if got := said(c.book(t, first.RequestState+"x", stay)); got != "-32602 Invalid or expired requestState" {
		t.Errorf("a changed state: %s", got)
	}
	// A round that is replayed within its lifetime has the same result.
	for range 2 {
		second, err := c.book(t, first.RequestState, stay)
		if got := said(second, err); got != "asks room" {
			t.Errorf("replayed: %s", got)
		}
	}
}
