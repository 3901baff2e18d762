package wire_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// canary is part of every plaintext state and cursor of these tests. No client may see it.
const canary = "canary-5d1f"

// rig is a proxy between a test's client and a test's server.
type rig struct {
	t      testing.TB
	engine *wire.Engine
	log    bytes.Buffer
}

func newRig(t testing.TB, policy tripseal.Config, config wire.Config) *rig {
	t.Helper()
	r := &rig{t: t}
	logger := slog.New(slog.NewTextHandler(&r.log, nil))
	if policy.Keys == nil && policy.Format == nil {
		policy.Keys = tripseal.Ephemeral()
	}
	policy.Audience = "test"
	if policy.Logger == nil {
		policy.Logger = logger
	}
	boundary, err := tripseal.New(policy)
	if err != nil {
		t.Fatal(err)
	}
	config.Boundary, config.Proxied = boundary, true
	if config.Logger == nil {
		config.Logger = logger
	}
	if r.engine, err = wire.New(config); err != nil {
		t.Fatal(err)
	}
	return r
}

func plainRig(t testing.TB) *rig { return newRig(t, tripseal.Config{}, wire.Config{}) }

func (r *rig) open(message string) *wire.Exchange { return r.openAs("alice", message) }

func (r *rig) openAs(user, message string) *wire.Exchange {
	return r.engine.Open(context.Background(), message, tripseal.User(user))
}

// forwarded returns what the server gets for a message that must reach it.
func (r *rig) forwarded(message string) (*wire.Exchange, string) {
	r.t.Helper()
	e := r.open(message)
	if e.Forward == "" || e.Reply != "" || e.Malformed {
		r.t.Fatalf("%s\nwas not forwarded: %s\n%s", message, e.Reply, &r.log)
	}
	return e, string(e.Forward)
}

// sealed returns what the client gets for an answer that must reach it.
func (r *rig) sealed(e *wire.Exchange, answer string) string {
	r.t.Helper()
	out := e.Seal(context.Background(), answer)
	if out == "" || strings.Contains(string(out), `"error"`) {
		r.t.Fatalf("%s\nwas not sent: %s\n%s", answer, out, &r.log)
	}
	if strings.Contains(string(out), canary) {
		r.t.Fatalf("a plaintext reached the client: %s", out)
	}
	return string(out)
}

// refused opens a malformed message of the client. The proxy must refuse the message, and log this.
func (r *rig) refused(message string) {
	r.t.Helper()
	r.log.Reset()
	e := r.open(message)
	if e.Forward != "" || !e.Malformed {
		r.t.Errorf("%q\nwas not refused: %s", message, e.Forward)
	}
	if !strings.Contains(r.log.String(), "was refused") {
		r.t.Errorf("%q: nothing was logged: %s", message, &r.log)
	}
	if e.Reply != "" {
		checkError(r.t, e.Reply, e.ID, -32600, -32602)
	}
}

// rejected opens a message of the client. The proxy must reject the token in it. The server must
// not get the message, and the client must get an error.
func (r *rig) rejected(user, message string) {
	r.t.Helper()
	r.log.Reset()
	e := r.openAs(user, message)
	if e.Forward != "" || e.Malformed {
		r.t.Errorf("%s\nwas not rejected: %s", message, e.Forward)
	}
	if r.log.Len() == 0 {
		r.t.Errorf("%s: nothing was logged", message)
	}
	checkError(r.t, e.Reply, e.ID, -32602)
}

// withheld seals an answer of the server. The client must get an internal error instead.
func (r *rig) withheld(e *wire.Exchange, answer string) {
	r.t.Helper()
	r.log.Reset()
	checkError(r.t, e.Seal(context.Background(), answer), e.ID, -32603)
	if !strings.Contains(r.log.String(), "was refused") {
		r.t.Errorf("%s: nothing was logged: %s", answer, &r.log)
	}
}

// dropped gives a message of the server to Pass and to Seal. Both must drop it: the client must not
// get it.
func (r *rig) dropped(message string) {
	r.t.Helper()
	e, _ := r.forwarded(`{"jsonrpc":"2.0","id":"other","method":"tools/call","params":{"name":"deploy"}}`)
	for name, out := range map[string]string{
		"Pass": r.engine.Pass(context.Background(), message),
		"Seal": e.Seal(context.Background(), message),
	} {
		if out != "" {
			r.t.Errorf("%s: %s\nwas not dropped: %s", name, message, out)
		}
	}
	if strings.Count(r.log.String(), "was dropped") < 2 {
		r.t.Errorf("%s: it was not logged", message)
	}
	r.log.Reset()
}

// passed gives a message of the server to Pass and to Seal. The message must reach the client
// unchanged.
func (r *rig) passed(message string) {
	r.t.Helper()
	e, _ := r.forwarded(`{"jsonrpc":"2.0","id":"other","method":"tools/call","params":{"name":"deploy"}}`)
	if out := r.engine.Pass(context.Background(), message); string(out) != message {
		r.t.Errorf("Pass: %s\nbecame %s\n%s", message, out, &r.log)
	}
	if out := e.Seal(context.Background(), message); string(out) != message {
		r.t.Errorf("Seal: %s\nbecame %s\n%s", message, out, &r.log)
	}
}

// checkError checks that an answer is an error with one of the codes, and with one of the few
// texts that a client may see.
func checkError(t testing.TB, answer string, id string, codes ...int64) {
	t.Helper()
	var m struct {
		JSONRPC string
		ID      json.RawMessage
		Error   *tripseal.WireError
	}
	if err := json.Unmarshal([]byte(answer), &m); err != nil || m.Error == nil || m.JSONRPC != "2.0" {
		t.Errorf("not an error: %s (%v)", answer, err)
		return
	}
	if id == "" {
		id = "null"
	}
	if string(m.ID) != id {
		t.Errorf("the error has the id %s, not %s", m.ID, id)
	}
	text := m.Error.Message + string(m.Error.Data)
	switch text {
	case "Invalid Request", "Invalid params", "Internal error",
		`Invalid or expired requestState{"reason":"invalid_request_state"}`,
		`Invalid cursor{"reason":"invalid_cursor"}`, `Expired cursor{"reason":"expired_cursor"}`:
	default:
		t.Errorf("an error says more than a client may know: %s", text)
	}
	for _, code := range codes {
		if m.Error.Code == code {
			return
		}
	}
	t.Errorf("the error has the code %d: %s", m.Error.Code, answer)
}

// member returns the value at a path in a message, or nil.
func member(t testing.TB, message string, path ...string) json.RawMessage {
	t.Helper()
	value := json.RawMessage(message)
	for _, name := range path {
		var o map[string]json.RawMessage
		if err := json.Unmarshal(value, &o); err != nil {
			t.Fatalf("%s in %s: %v", name, message, err)
		}
		if value = o[name]; value == nil {
			return nil
		}
	}
	return value
}

// token returns the sealed state in a result that a client got.
func token(t testing.TB, answer string) string {
	t.Helper()
	var text string
	if json.Unmarshal(member(t, answer, "result", "requestState"), &text) != nil || !strings.HasPrefix(text, "ms1.") {
		t.Fatalf("no token in %s", answer)
	}
	return text
}

// carrier is a method whose messages can carry a state, and the member of its params that names
// the target.
type carrier struct{ method, target string }

var carriers = []carrier{
	{"tools/call", `"name":"deploy"`}, {"prompts/get", `"name":"deploy"`}, {"resources/read", `"uri":"file:///deploy"`},
}

// call returns a request. The parameter members is JSON text that is added at the end of the
// params. It begins with a comma, or is empty.
func (c carrier) call(members string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"` + c.method + `","params":{` + c.target + members + `}}`
}

const (
	form     = `{"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object"}}}`
	url      = `{"method":"elicitation/create","params":{"mode":"url","message":"Sure?","url":"https://example.com"}}`
	sampling = `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":9}}`
	roots    = `{"method":"roots/list"}`

	accept  = `{"action":"accept","content":{"sure":true}}`
	sampled = `{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}`
	rooted  = `{"roots":[{"uri":"file:///x"}]}`
)

// asking returns a server's answer with the result type input_required. Both parameters are JSON
// text. If a parameter is "", the answer does not have its member.
func asking(state, questions string) string {
	if state != "" {
		state = `,"requestState":` + state
	}
	if questions != "" {
		questions = `,"inputRequests":` + questions
	}
	return `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required"` + state + questions + `}}`
}

// begin makes the first round of a flow, in which the server asks, and returns the token that the
// client gets.
func (r *rig) begin(c carrier, members, state, questions string) string {
	r.t.Helper()
	e, _ := r.forwarded(c.call(members))
	return token(r.t, r.sealed(e, asking(state, questions)))
}

func state(token string) string { return `,"requestState":"` + token + `"` }
