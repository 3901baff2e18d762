package elicit_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
	"github.com/tripseal/tripseal/replay"
)

// TestSessionsOfManyUsersNeverMix runs older clients that call at the same time. Before a client
// answers a question, strangers try to answer it. Some clients break off, cancel their call or end
// their session.
// Every handler must see only the answers of its own call, every undisturbed call must complete,
// and no session may be left over.
func TestSessionsOfManyUsersNeverMix(t *testing.T) {
	const users, calls = 4, 4
	store, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b := &book{}
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "test", Logger: b.logger(), Replay: store})
	if err != nil {
		t.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	protected := gosdk.Protect(server, boundary, &gosdk.Options{Logger: b.logger(), Principal: func(_ context.Context, req mcp.Request) (string, error) {
		return req.GetExtra().Header.Get("X-User"), nil
	}})
	elicit.AddTool(protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, in args) (result, error) {
		kept, err := elicit.Once(ask, "dir", func() (string, error) { return in.Dir, nil })
		if err != nil {
			return result{}, err
		}
		for i := range 3 {
			one, two := elicit.Form[value](ask, fmt.Sprint("one", i), in.Dir), elicit.Form[value](ask, fmt.Sprint("two", i), in.Dir)
			for _, answer := range []*elicit.Answer[value]{one, two} {
				got, err := answer.Value()
				if err != nil {
					return result{}, err
				}
				if got.Value != in.Dir || kept != in.Dir {
					t.Errorf("the call for %s got %s and kept %s", in.Dir, got.Value, kept)
				}
			}
		}
		return result{in.Dir}, nil
	})
	web := httptest.NewServer(gosdk.Handler(func(*http.Request) *mcp.Server { return server }, &gosdk.HandlerOptions{
		Logger: b.logger(), MaxSessionsPerUser: 2, Principal: func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil },
	}))
	defer web.Close()
	defer web.CloseClientConnections()
	c := chaos{url: web.URL}

	var group sync.WaitGroup
	var finished atomic.Int32
	for u := range users {
		user, stranger := fmt.Sprint("u", u), fmt.Sprint("u", (u+1)%users)
		for _, disturbed := range []bool{false, true} {
			group.Go(func() {
				id := c.open(t, user)
				var running sync.WaitGroup
				for n := range calls {
					running.Go(func() {
						dir, disturbance := fmt.Sprintf("%s-%v-%d", user, disturbed, n), disturbances[n]
						if !disturbed {
							disturbance = nil
						}
						if c.call(t, user, stranger, id, n+10, dir, disturbance) {
							finished.Add(1)
						} else if !disturbed {
							t.Errorf("the call for %s did not complete", dir)
						}
					})
				}
				running.Wait()
				c.send(t.Context(), http.MethodDelete, user, id, "")
			})
		}
	}
	group.Wait()
	if finished.Load() < users*calls {
		t.Errorf("%d calls completed", finished.Load())
	}
	for u := range users { // there is room again for as many sessions as at first
		for range 2 {
			c.open(t, fmt.Sprint("u", u))
		}
	}
	for session := range server.Sessions() {
		session.Close()
	}
	for _, word := range []string{"panicked", "level=ERROR"} {
		if strings.Contains(b.String(), word) {
			t.Errorf("the log has %s: %s", word, b)
		}
	}
}

// disturbances has what a client does at its third question instead of answering it. Nil means
// that the client answers.
var disturbances = []func(c chaos, user, session string, id int, breakOff func()){
	nil,
	func(_ chaos, _, _ string, _ int, breakOff func()) { breakOff() },
	func(c chaos, user, session string, id int, _ func()) {
		c.send(context.Background(), http.MethodPost, user, session, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
	},
	func(c chaos, user, session string, _ int, breakOff func()) {
		c.send(context.Background(), http.MethodDelete, user, session, "")
		breakOff()
	},
}

// chaos sends the requests of older clients to one server.
type chaos struct{ url string }

func (c chaos) request(ctx context.Context, method, user, session, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("X-User", user)
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	return http.DefaultClient.Do(r)
}

// send sends a request. It returns the status and the session's id from the response, or 0 and
// "" if there is no response.
func (c chaos) send(ctx context.Context, method, user, session, body string) (status int, id string) {
	response, err := c.request(ctx, method, user, session, body)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Header.Get("Mcp-Session-Id")
}

func (c chaos) open(t *testing.T, user string) string {
	t.Helper()
	status, id := c.send(t.Context(), http.MethodPost, user, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",`+
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	if id == "" {
		t.Errorf("no session for %s: %d", user, status)
	}
	c.send(t.Context(), http.MethodPost, user, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return id
}

// call calls the tool and answers its questions. Before each answer, strangers try to answer. It
// reports whether the call completed.
func (c chaos) call(t *testing.T, user, stranger, session string, id int, dir string, disturbance func(chaos, string, string, int, func())) bool {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	response, err := c.request(ctx, http.MethodPost, user, session,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","arguments":{"dir":%q}}}`, id, dir))
	if err != nil {
		return false
	}
	defer response.Body.Close()
	asked := 0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		var message struct {
			ID     json.RawMessage
			Method string
			Params struct{ Message string }
			Result struct{ StructuredContent result }
		}
		if !ok || json.Unmarshal(data, &message) != nil {
			continue
		}
		if message.Method == "" {
			return message.Result.StructuredContent.Done == dir
		}
		answer := `{"jsonrpc":"2.0","id":` + string(message.ID) + `,"result":{"action":"accept","content":{"value":%q}}}`
		for _, thief := range []string{"", "nobody", stranger} {
			if status, _ := c.send(t.Context(), http.MethodPost, thief, session, fmt.Sprintf(answer, "stolen")); status != http.StatusNotFound {
				t.Errorf("%q answers for %s: %d", thief, user, status)
			}
		}
		if asked++; asked == 3 && disturbance != nil {
			disturbance(c, user, session, id, cancel)
			continue
		}
		c.send(t.Context(), http.MethodPost, user, session, fmt.Sprintf(answer, message.Params.Message))
	}
	return false
}
