package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// judge checks the replies and the log of the server. It is the server's logger and observer.
type judge struct {
	accepted atomic.Int64 // how many tokens the server accepted
	results  atomic.Int64 // how many replies were results, and not errors

	mu       sync.Mutex
	failures map[string]string // the first failure of each kind
}

func (j *judge) fail(kind, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failures == nil {
		j.failures = make(map[string]string)
	}
	if j.failures[kind] == "" {
		j.failures[kind] = fmt.Sprintf(format, args...)
	}
}

// hopeless reports whether the attack should stop, because the server does not answer.
func (j *judge) hopeless() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failures["a request failed"] != ""
}

func (j *judge) observe(_ context.Context, e tripseal.Event) {
	if (e.Op == tripseal.OpOpen || e.Op == cursor.OpOpen) && e.Reason == "" && e.TokenBytes > 0 {
		j.accepted.Add(1)
	}
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
		j.fail("a panic", "the log has %.2000s", text)
	}
	j.checkSecrets("the log", text)
	return nil
}

func (j *judge) WithAttrs(attrs []slog.Attr) slog.Handler {
	j.checkSecrets("the log", fmt.Sprint(attrs))
	return j
}

func (j *judge) WithGroup(string) slog.Handler { return j }

// secrets are parts of the states and positions that the server writes.
var secrets = []string{`"asked"`, "all three", "step 1", "written for"}

// checkSecrets records a failure if the text contains a secret. The source says where it was found.
func (j *judge) checkSecrets(source, text string) {
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			j.fail("a secret in "+source, "%q in %.300q", secret, text)
		}
	}
}

// checkReply checks the server's reply to a request. If the request was honest, the reply must be a
// result.
func (j *judge) checkReply(what string, honest bool, r wireReply) {
	bad := func(kind string, err any) { j.fail(kind, "%s: %v, in %d %.500s", what, err, r.status, r.body) }
	answered := false
	for _, text := range r.messages {
		result, err := j.checkMessage(text)
		if err != nil {
			bad("a bad message", err)
		}
		answered = answered || result
	}
	if answered {
		j.results.Add(1)
	}
	j.checkSecrets("an answer", string(r.body))
	switch {
	case r.status >= 500:
		bad("an outage", "the server failed")
	case r.status == 200 && len(r.messages) == 0:
		bad("no answer", "no message")
	case honest && (r.status != 200 || !answered):
		bad("an honest request was refused", "no result")
	}
}

// checkMessage checks one JSON-RPC message, and reports whether it is a result.
func (j *judge) checkMessage(text json.RawMessage) (isResult bool, err error) {
	var m struct {
		Version string  `json:"jsonrpc"`
		Method  *string `json:"method"`
		Result  json.RawMessage
		Error   *struct {
			Code    *int64
			Message *string
		}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return false, err
	}
	members := 0
	isError := m.Error != nil && m.Error.Code != nil && m.Error.Message != nil
	for _, has := range []bool{m.Method != nil, m.Result != nil, isError} {
		if has {
			members++
		}
	}
	if m.Version != "2.0" || members != 1 {
		return false, fmt.Errorf("it is neither a request nor an answer")
	}
	for _, token := range token.FindAllSubmatch(text, -1) {
		prefix := tripseal.PurposeState.Prefix()
		if string(token[1]) == "nextCursor" {
			prefix = tripseal.PurposeCursor.Prefix()
		}
		sealed, ok := strings.CutPrefix(string(token[2]), prefix)
		payload, err := base64.RawURLEncoding.DecodeString(sealed)
		if !ok || err != nil {
			return false, fmt.Errorf("%.60q is not sealed", token[0])
		}
		j.checkSecrets("a token", string(payload))
	}
	return m.Result != nil, nil
}

var token = regexp.MustCompile(`"(requestState|nextCursor)":"([^"]*)"`)

// decode decodes valid JSON, and keeps its numbers as they are written.
func decode(text json.RawMessage) (value any) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	d.Decode(&value)
	return value
}
