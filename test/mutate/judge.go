package mutate

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// judge checks the replies and the log of the server, and counts the tokens that the server
// accepts. It is also the server's logger.
type judge struct {
	secrets []string

	reached, accepted atomic.Int64 // how many requests reached a handler, and how many had a token that was accepted
	internal          atomic.Int64 // how many JSON-RPC messages were internal errors

	mu       sync.Mutex
	counts   map[int]int // the number of replies for each HTTP status
	failures []string
}

const enoughFailures = 10

func (j *judge) fail(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.failures) < enoughFailures {
		j.failures = append(j.failures, fmt.Sprintf(format, args...))
	}
}

// hopeless reports whether there are so many failures that the attack should stop.
func (j *judge) hopeless() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.failures) >= enoughFailures
}

// reset sets the counters to 0 after the honest calls were recorded, so that only the attack
// is counted.
func (j *judge) reset() {
	j.reached.Store(0)
	j.accepted.Store(0)
}

// acceptance records whether the server accepted the token of one request.
type acceptance struct{ accepted atomic.Bool }

type acceptanceKey struct{}

// watch is the outermost middleware. It counts the requests whose token was accepted, and the
// requests that reached a handler. A request has reached a handler if a tool, a prompt or a
// resource returned a result. An error does not count, even if it comes from a handler.
func (j *judge) watch(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		carried, s := carriesToken(req), new(acceptance)
		result, err := next(context.WithValue(ctx, acceptanceKey{}, s), method, req)
		if carried && s.accepted.Load() {
			j.accepted.Add(1)
		}
		if err == nil && fromHandler(result) {
			j.reached.Add(1)
		}
		return result, err
	}
}

// observe is the boundary's observer. It records that a token was accepted. The token that came
// with the request is checked first, and if it is rejected, the request ends. So if any token is
// accepted, the token that came with the request was accepted too.
func (j *judge) observe(ctx context.Context, e tripseal.Event) {
	if s, ok := ctx.Value(acceptanceKey{}).(*acceptance); ok && (e.Op == tripseal.OpOpen || e.Op == cursor.OpOpen) && e.Reason == "" && e.TokenBytes > 0 {
		s.accepted.Store(true)
	}
}

func carriesToken(req mcp.Request) bool {
	switch r := req.(type) {
	case *mcp.CallToolRequest:
		if r.Params == nil {
			return false
		}
		var arguments struct{ Cursor string }
		json.Unmarshal(r.Params.Arguments, &arguments)
		return r.Params.RequestState != "" || arguments.Cursor != ""
	case *mcp.GetPromptRequest:
		return r.Params != nil && r.Params.RequestState != ""
	case *mcp.ReadResourceRequest:
		return r.Params != nil && r.Params.RequestState != ""
	case *mcp.ListToolsRequest:
		return r.Params != nil && r.Params.Cursor != ""
	}
	return false
}

func fromHandler(result mcp.Result) bool {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		return r != nil && !r.IsError
	case *mcp.GetPromptResult:
		return r != nil
	case *mcp.ReadResourceResult:
		return r != nil
	}
	return false
}

// Enabled, Handle, WithAttrs and WithGroup make the judge a slog.Handler.
func (j *judge) Enabled(context.Context, slog.Level) bool { return true }

func (j *judge) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	if strings.Contains(text, "panic") {
		j.fail("the log tells of a panic: %.2000s", text)
	}
	j.checkSecrets("the log", text)
	return nil
}

func (j *judge) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		j.checkSecrets("the log", a.String())
	}
	return j
}

func (j *judge) WithGroup(string) slog.Handler { return j }

// checkSecrets records a failure if the text contains a secret. The parameter source says where the
// text was found, such as "the log".
func (j *judge) checkSecrets(source, text string) {
	for _, secret := range j.secrets {
		if strings.Contains(text, secret) {
			j.fail("%s shows %q: %.300q", source, secret, text)
		}
	}
}

// checkReply checks the server's reply to a request. If the request was honest, the reply must
// be a result.
func (j *judge) checkReply(what string, honest bool, r reply) {
	j.mu.Lock()
	j.counts[r.status]++
	j.mu.Unlock()
	bad := func(format string, args ...any) {
		j.fail("%s: %s, in %d %.500s", what, fmt.Sprintf(format, args...), r.status, r.body)
	}
	answered := false
	for _, text := range r.messages {
		result, err := j.checkMessage(text)
		if err != nil {
			bad("not JSON-RPC: %v", err)
		}
		answered = answered || result
	}
	j.checkSecrets("an answer", string(r.body))
	switch {
	case r.status >= 500:
		bad("the server failed")
	case r.status == 200 && len(r.messages) == 0:
		bad("no answer")
	case r.status == 202 && len(r.body) > 0:
		bad("an answer to no question")
	case honest && (r.status != 200 || !answered):
		bad("an honest request was refused")
	}
}

// checkMessage checks one JSON-RPC message, and reports whether it is a result.
func (j *judge) checkMessage(text json.RawMessage) (isResult bool, err error) {
	var m struct {
		Version       string          `json:"jsonrpc"`
		ID            json.RawMessage `json:"id"`
		Method        *string         `json:"method"`
		Result, Error json.RawMessage
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return false, err
	}
	if m.Version != "2.0" || m.Method == nil && (m.Result == nil) == (m.Error == nil) || m.Method != nil && (m.Result != nil || m.Error != nil) {
		return false, fmt.Errorf("it is neither a request nor an answer")
	}
	if m.Error != nil {
		var e struct {
			Code    *int64
			Message *string
		}
		if err := json.Unmarshal(m.Error, &e); err != nil || e.Code == nil || e.Message == nil {
			return false, fmt.Errorf("an error without a code or a message")
		}
		if *e.Code == -32603 {
			j.internal.Add(1)
		}
	}
	return m.Result != nil, j.checkTexts("", decode(text))
}

// checkTexts checks every string in a decoded message. A string must not contain a secret, and
// a state or a cursor must be sealed. The parameter member is the name that the value has in its
// object, or "" if the value is not a member of an object.
func (j *judge) checkTexts(member string, value any) error {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			j.checkSecrets("an answer", name)
			if err := j.checkTexts(name, member); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range v {
			if err := j.checkTexts("", element); err != nil {
				return err
			}
		}
	case string:
		j.checkSecrets("an answer", v)
		prefix := map[string]string{"requestState": tripseal.PurposeState.Prefix(), "nextCursor": tripseal.PurposeCursor.Prefix()}[member]
		if prefix == "" {
			return nil
		}
		sealed, ok := strings.CutPrefix(v, prefix)
		payload, err := base64.RawURLEncoding.DecodeString(sealed)
		if !ok || err != nil {
			return fmt.Errorf("the %s %.60q is not sealed", member, v)
		}
		j.checkSecrets("a token", string(payload))
	}
	return nil
}

// decode decodes valid JSON, and keeps its numbers as they are written.
func decode(text json.RawMessage) (value any) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	d.Decode(&value)
	return value
}
