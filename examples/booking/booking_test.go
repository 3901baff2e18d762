package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// answers maps the first word of each question to what a guest answers who wants a room.
func answers() map[string]*mcp.ElicitResult {
	accept := func(content map[string]any) *mcp.ElicitResult {
		return &mcp.ElicitResult{Action: "accept", Content: content}
	}
	return map[string]*mcp.ElicitResult{
		"How":   accept(map[string]any{"nights": 3, "guests": 2}),
		"Which": accept(map[string]any{"kind": "double"}),
		"Shall": accept(map[string]any{"ok": true}),
		"Book":  accept(map[string]any{"ok": true}),
	}
}

// ask calls the tool. It returns what the tool said, and the first words of the questions.
func ask(t *testing.T, url, revision string, answers map[string]*mcp.ElicitResult) (said string, asked []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "guest", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			word, _, _ := strings.Cut(req.Params.Message, " ")
			asked = append(asked, word)
			return answers[word], nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			asked = append(asked, "sample")
			note := &mcp.TextContent{Text: "Looking forward!"}
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: note}, nil
		},
	})
	options := &mcp.ClientSessionOptions{ProtocolVersion: revision}
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, options)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "book", Arguments: Args{"Rome"}})
	if err != nil {
		t.Fatal(err)
	}
	said = result.Content[0].(*mcp.TextContent).Text
	var booking Booking
	if json.Unmarshal([]byte(said), &booking) == nil && booking.Number != "" {
		said = booking.Text + "; " + booking.Note
	}
	return said, asked
}

func TestAGuestGetsWhatTheGuestAgreedTo(t *testing.T) {
	server, err := newServer(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "booking.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(web.Close)
	no := func(action string) *mcp.ElicitResult { return &mcp.ElicitResult{Action: action} }
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		said, asked := ask(t, web.URL, revision, answers())
		if said != "booked a double in Rome, 3 nights for 360; Looking forward!" {
			t.Errorf("%s: %s", revision, said)
		}
		if !slices.Equal(asked, []string{"How", "Which", "Shall", "sample", "Book"}) {
			t.Errorf("%s: asked %s", revision, asked)
		}
		for _, c := range []struct {
			word   string
			answer *mcp.ElicitResult
			want   string
		}{
			{"How", no("cancel"), "the question stay was cancelled"},
			{"How", &mcp.ElicitResult{Action: "accept", Content: map[string]any{"nights": 0, "guests": 2}},
				"a stay has 1 to 30 nights and 1 to 4 guests"},
			{"Which", no("decline"), "the question room was declined"},
			{"Shall", no("decline"), "booked a double in Rome, 3 nights for 360; "},
			{"Book", no("cancel"), "the question confirm was cancelled"},
			{"Book", &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": false}}, "nothing was booked"},
		} {
			changed := answers()
			changed[c.word] = c.answer
			if said, _ := ask(t, web.URL, revision, changed); said != c.want {
				t.Errorf("%s, %s: %s", revision, c.word, said)
			}
		}
	}
}
