package gosdk_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/replay"
)

// newerMeta is what a client of revision 2026-07-28 sends with every request.
const newerMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`

// Every rejected token gets the same status, headers and body, so that nobody can tell how many
// checks a token has passed. The log has neither tokens nor names.
func TestEveryRejectionIsTheSameAnswerOverHTTP(t *testing.T) {
	store, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b, keys := &book{}, tripseal.Ephemeral()
	replica := func(ttl time.Duration) http.Handler {
		server := newServer()
		protected := gosdk.Protect(server, boundary(t, b, func(c *tripseal.Config) { c.Keys, c.Replay, c.TTL = keys, store, ttl }), &gosdk.Options{Logger: b.logger()})
		addSteps(server, "steps", 2)
		addSteps(server, "other", 2)
		verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
			return &auth.TokenInfo{UserID: strings.TrimPrefix(token, "nameless"), Expiration: time.Now().Add(time.Hour)}, nil
		}
		return auth.RequireBearerToken(verify, nil)(protected.Handler(nil))
	}
	send := func(handler http.Handler, user, tool, arguments, state string) string {
		if state != "" {
			state = `,"requestState":` + state + `,"inputResponses":{"q1":{"action":"accept","content":{"value":"x"}}}`
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(
			`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+arguments+`,`+newerMeta+state+`}}`))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + user,
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
		} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return describe(w)
	}
	const arguments = `{"a":1}`
	mint := func(handler http.Handler) string {
		answer := send(handler, "alice", "steps", arguments, "")
		_, token, found := strings.Cut(answer, `requestState\":\"`)
		token, _, _ = strings.Cut(token, `\"`)
		if !found {
			t.Fatal(answer)
		}
		return token
	}
	lasting, brief := replica(time.Hour), replica(time.Millisecond)
	token, spent, expired := mint(lasting), mint(lasting), mint(brief)
	time.Sleep(20 * time.Millisecond) // until the third token has expired
	if answer := send(lasting, "alice", "steps", arguments, strconv.Quote(spent)); !strings.Contains(answer, "q2") {
		t.Fatal(answer)
	}
	want := send(lasting, "alice", "steps", arguments, `"garbage"`)
	if !strings.Contains(want, "invalid_request_state") {
		t.Fatal(want)
	}
	for name, c := range map[string]struct{ user, tool, arguments, state string }{
		"forged":                     {"alice", "steps", arguments, strconv.Quote(forged(token))},
		"a line feed more":           {"alice", "steps", arguments, strconv.Quote(token + "\n")},
		"too long":                   {"alice", "steps", arguments, strconv.Quote(strings.Repeat("A", 70_000))},
		"a NUL":                      {"alice", "steps", arguments, `"\u0000"`},
		"half a surrogate":           {"alice", "steps", arguments, `"\ud800"`},
		"another user":               {"bob", "steps", arguments, strconv.Quote(token)},
		"a user without a name":      {"nameless", "steps", arguments, strconv.Quote(token)},
		"another tool":               {"alice", "other", arguments, strconv.Quote(token)},
		"no tool":                    {"alice", "none", arguments, strconv.Quote(token)},
		"other arguments":            {"alice", "steps", `{"a":2}`, strconv.Quote(token)},
		"a member twice":             {"alice", "steps", `{"a":1,"a":1}`, strconv.Quote(token)},
		"a member twice, and forged": {"alice", "steps", `{"a":1,"a":1}`, `"ms1.AAAA"`},
		"arguments in a list":        {"alice", "steps", `[1]`, strconv.Quote(token)},
		"expired":                    {"alice", "steps", arguments, strconv.Quote(expired)},
		"spent":                      {"alice", "steps", arguments, strconv.Quote(spent)},
	} {
		if got := send(lasting, c.user, c.tool, c.arguments, c.state); got != want {
			t.Errorf("%s: %.600s\nwant %s", name, got, want)
		}
	}
	if answer := send(lasting, "alice", "steps", arguments, strconv.Quote(token)); !strings.Contains(answer, "q2") {
		t.Errorf("the token was good: %s", answer)
	}
	for _, secret := range []string{"alice", "bob", token, spent, expired, "step="} {
		if strings.Contains(b.String(), secret) {
			t.Errorf("the log has %q", fmt.Sprintf("%.20s", secret))
		}
	}
}
