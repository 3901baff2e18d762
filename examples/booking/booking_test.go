package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

// serve starts the server on the named SDK.
func serve(t *testing.T, sdk string) (d *desk, url string) {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "booking.example.com", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	d = new(desk)
	handler, err := d.handler(sdk, boundary)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	mux.HandleFunc("/pay/{number}", d.pay)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	d.site = web.URL
	return d, web.URL + "/mcp"
}

// fly calls the tool with the published client. It returns what the tool said, and the first words of the questions.
func fly(t *testing.T, url string, opens bool, answer func(word string, q *mcp.ElicitParams) *mcp.ElicitResult) (said string, asked []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	can := &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}
	if opens {
		can.URL = &mcp.URLElicitationCapabilities{}
	}
	rounds := make(chan struct{}, 1) // the client asks all questions of a round at once
	client := mcp.NewClient(&mcp.Implementation{Name: "guest", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: can},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			rounds <- struct{}{}
			defer func() { <-rounds }()
			word, _, _ := strings.Cut(req.Params.Message, " ")
			asked = append(asked, word)
			return answer(word, req.Params), nil
		},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, nil)
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
		said = booking.Text
	}
	slices.Sort(asked[:min(2, len(asked))])
	return said, asked
}

func accept(content map[string]any) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: content}
}

func TestAPassengerGetsWhatThePassengerAgreedTo(t *testing.T) {
	const booked = "booked Ada on flight TS101 to Rome for 180"
	for _, sdk := range []string{"go-sdk", "mcp-go"} {
		_, url := serve(t, sdk)
		usual := map[string]*mcp.ElicitResult{
			"Who": accept(map[string]any{"name": "Ada", "bags": 2}), "Which": accept(map[string]any{"flight": "TS101"}), "Book": accept(map[string]any{"ok": true}),
		}
		pays := 0
		answer := func(word string, q *mcp.ElicitParams) *mcp.ElicitResult {
			if word != "Pay" {
				return usual[word]
			}
			if pays++; pays == 2 { // the first time, the user only agrees to open the page
				response, err := http.Get(q.URL)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
			}
			return accept(nil)
		}
		for _, opens := range []bool{false, true} {
			said, asked := fly(t, url, opens, answer)
			want := map[bool][]string{false: {"Which", "Who", "Book"}, true: {"Which", "Who", "Pay", "Pay"}}[opens]
			if said != booked || !slices.Equal(asked, want) {
				t.Errorf("%s: %s; asked %s", sdk, said, asked)
			}
		}
		for _, c := range []struct {
			word   string
			answer *mcp.ElicitResult
			want   string
		}{
			{"Who", &mcp.ElicitResult{Action: "cancel"}, "the question passenger was cancelled"},
			{"Who", accept(map[string]any{"name": "Ada", "bags": 3}), "a passenger has at most 2 bags"},
			{"Which", &mcp.ElicitResult{Action: "decline"}, "the question flight was declined"},
			{"Book", accept(map[string]any{"ok": false}), "nothing was booked"},
		} {
			said, _ := fly(t, url, false, func(word string, q *mcp.ElicitParams) *mcp.ElicitResult {
				if word == c.word {
					return c.answer
				}
				return answer(word, q)
			})
			if said != c.want {
				t.Errorf("%s, %s: %s", sdk, c.word, said)
			}
		}
	}
}

// typist types the answer to the last prompt of the terminal.
type typist struct{ screen *bytes.Buffer }

func (t typist) Read(p []byte) (int, error) {
	words := strings.Fields(strings.TrimSuffix(t.screen.String(), " (or no): "))
	return copy(p, map[string]string{"name": "Ada", "bags": "1", "flight": "TS205", "ok": "yes"}[words[len(words)-1]]+"\n"), nil
}

func TestTheTerminalAsksThePassenger(t *testing.T) {
	for _, sdk := range []string{"go-sdk", "mcp-go"} {
		d, url := serve(t, sdk)
		d.site = "" // no link
		screen := new(bytes.Buffer)
		if err := call(t.Context(), url, typist{screen}, screen); err != nil {
			t.Fatal(err)
		}
		if got := screen.String(); !strings.Contains(got, "booked Ada on flight TS205 to Rome for 150") || !strings.Contains(got, "TS101  09:10 to Rome") {
			t.Errorf("%s: %s", sdk, got)
		}
	}
}
