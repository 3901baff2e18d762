package leaky

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	yes     = `{"confirm":{"action":"accept","content":{"ok":true}}}`
	seat    = `{"seat":{"action":"accept","content":{"accept":true}}}`
	pay     = `{"pay":{"action":"accept","content":{"amount":12}}}`
	replied = `{"reply":{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m","stopReason":"endTurn"}}`
)

// message is a request that a test writes by hand. The zero value calls the tool deploy.
type message struct {
	method     string // "" means tools/call
	name       string // "" means deploy
	args       string // JSON; "" means {"env":"staging"}, "-" means none
	state      string // JSON; "" means none
	answers    string // JSON; "" means none
	more       string // further members of params, each with a comma at its end
	caps       string // JSON; "" means all capabilities
	bearer     string // the access token; "" means no user
	version    string // the version in the header; "" means the right one, "-" means none
	saysName   string // the header Mcp-Name; "" means the right name
	saysMethod string // the header Mcp-Method; "" means the right method
}

func (m message) body() string {
	method, name, args := or(m.method, "tools/call"), or(m.name, "deploy"), or(m.args, `{"env":"staging"}`)
	var b strings.Builder
	b.WriteString(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + m.more)
	if method == "tools/call" {
		b.WriteString(`"name":"` + name + `",`)
	}
	if args != "-" {
		b.WriteString(`"arguments":` + args + `,`)
	}
	if m.state != "" {
		b.WriteString(`"requestState":` + m.state + `,`)
	}
	if m.answers != "" {
		b.WriteString(`"inputResponses":` + m.answers + `,`)
	}
	b.WriteString(`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":` + or(m.caps, `{"elicitation":{"form":{}}}`) + `}}}`)
	return b.String()
}

func (m message) header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	h.Set("Mcp-Method", or(m.saysMethod, or(m.method, "tools/call")))
	h.Set("Mcp-Name", or(m.saysName, or(m.name, "deploy")))
	if m.version != "-" {
		h.Set("Mcp-Protocol-Version", or(m.version, version))
	}
	if m.bearer != "" {
		h.Set("Authorization", "Bearer "+m.bearer)
	}
	return h
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// outcome is what a server answered.
type outcome struct {
	status int
	text   string
	Result struct {
		ResultType        string
		InputRequests     map[string]any
		RequestState      string
		Content           []struct{ Text string }
		StructuredContent struct {
			Orders     []any
			NextCursor string
		}
		Tools, Prompts, Resources []struct{ Name string }
		NextCursor                string
	}
	Error struct{ Code int }
}

// says returns the text of a tool's complete result, or "".
func (o outcome) says() string {
	if len(o.Result.Content) == 0 {
		return ""
	}
	return o.Result.Content[0].Text
}

// send sends a message to s without a network.
func (m message) send(t *testing.T, s *Server) (o outcome) {
	t.Helper()
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(m.body()))
	r.Header = m.header()
	w := httptest.NewRecorder()
	defer func() {
		if recover() != nil { // the server closed the connection
			o = outcome{}
		}
	}()
	s.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &o); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	o.status, o.text = w.Code, w.Body.String()
	return o
}

// begin sends a message, which the server must answer with questions, and returns the state as
// JSON text.
func (m message) begin(t *testing.T, s *Server) string {
	t.Helper()
	o := m.send(t, s)
	if o.Result.ResultType != "input_required" || len(o.Result.InputRequests) == 0 || o.Result.RequestState == "" {
		t.Fatalf("%s asked nothing: %d %s", or(m.name, "deploy"), o.status, o.text)
	}
	return quote(o.Result.RequestState)
}

func quote(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

func unquote(quoted string) (text string) {
	json.Unmarshal([]byte(quoted), &text)
	return text
}

func newServer(t *testing.T, holes ...string) *Server {
	t.Helper()
	s, err := New(holes...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
