package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// reply is the server's answer to one message.
type reply struct {
	status int                 // the HTTP status; 0 over stdio
	raw    []byte              // the body, or the line
	lost   error               // why there is no answer; nil if there is one
	hide   func(string) string // hides access tokens; nil if there are none

	message rpcReply
}

type rpcReply struct {
	ID     json.RawMessage
	Result *result
	Error  *rpcError
}

type rpcError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// result has those members of a result that the probe reads. It is used for all methods.
type result struct {
	ResultType        string
	IsError           bool
	RequestState      *string
	InputRequests     map[string]question
	Content           json.RawMessage
	StructuredContent json.RawMessage
	Messages          json.RawMessage
	Contents          json.RawMessage
	NextCursor        *string
	CacheScope        string
	Tools             []listed
	Prompts           json.RawMessage
	Resources         json.RawMessage
	ResourceTemplates json.RawMessage
	ServerInfo        struct{ Name, Version string }
}

type listed struct {
	Name        string
	InputSchema json.RawMessage
}

// question is one entry of inputRequests.
type question struct {
	Method string
	Params json.RawMessage
}

// outcome is what a reply means for an attack.
type outcome int

const (
	lost     outcome = iota // there was no JSON-RPC answer
	early                   // the server refused the request before it looked at the state
	rejected                // a JSON-RPC error
	failed                  // a tool's result that is an error
	asked                   // questions
	complete                // a complete result
)

func (o outcome) String() string {
	return [...]string{"no answer", "refused before the check", "rejected", "a tool's error", "asked", "completed"}[o]
}

// earlyCodes has the codes of errors that say nothing about the state, because the server
// refused the request before it looked at the state.
var earlyCodes = []int{
	-32700, // parse error
	-32600, // invalid request
	-32601, // method not found
	-32020, // header and body differ
	-32021, // a capability of the client is missing
	-32022, // the version is not supported
}

// earlyStatus has the HTTP statuses that say nothing about the state, whatever the body says.
var earlyStatus = []int{401, 403, 404, 405, 406, 408, 411, 413, 414, 415, 421, 429, 431, 501, 502, 503, 504}

func (r *reply) outcome() outcome {
	switch m := &r.message; {
	case r.lost != nil:
		return lost
	case slices.Contains(earlyStatus, r.status):
		return early
	case m.Error != nil && slices.Contains(earlyCodes, m.Error.Code):
		return early
	case m.Error != nil:
		return rejected
	case m.Result == nil && r.status >= 400:
		return early
	case m.Result == nil:
		return lost
	case m.Result.ResultType == "input_required":
		return asked
	case m.Result.IsError:
		return failed
	}
	return complete
}

// state returns the state that the reply carries, and whether there is one.
func (r *reply) state() (string, bool) {
	if r.message.Result == nil || r.message.Result.RequestState == nil {
		return "", false
	}
	return *r.message.Result.RequestState, true
}

// shown returns what a result shows to the client, in one text.
func (r *reply) shown() string {
	if r.message.Result == nil {
		return ""
	}
	result := r.message.Result
	var all bytes.Buffer
	for _, part := range []json.RawMessage{result.Content, result.StructuredContent, result.Messages, result.Contents} {
		if len(part) > 0 && json.Compact(&all, part) == nil {
			all.WriteByte('\n')
		}
	}
	return all.String()
}

// form returns a text with everything by which a client can tell two refusals apart.
func (r *reply) form() string {
	if e := r.message.Error; e != nil {
		return fmt.Sprintf("HTTP %d, error %d, message %q, data %s", r.status, e.Code, e.Message, e.Data)
	}
	return fmt.Sprintf("HTTP %d, a tool's error %s", r.status, r.shown())
}

// String says in a few words what the server answered.
func (r *reply) String() string {
	switch {
	case r.lost != nil:
		return r.brief(r.lost.Error(), 240)
	case r.message.Error != nil:
		return strings.TrimPrefix(fmt.Sprintf("HTTP %d, error %d %q", r.status, r.message.Error.Code, r.brief(r.message.Error.Message, 120)), "HTTP 0, ")
	case r.outcome() == asked:
		return "questions: " + r.brief(strings.Join(r.keys(), ", "), 160)
	case r.message.Result != nil:
		return r.outcome().String() + ": " + r.brief(strings.TrimSpace(r.shown()), 160)
	}
	return fmt.Sprintf("HTTP %d", r.status)
}

// brief hides the access tokens in a text, and then shortens the text to n bytes. In the other
// order, r.hide does not recognise a token that was cut.
func (r *reply) brief(text string, n int) string {
	if r.hide != nil {
		text = r.hide(text)
	}
	return clip(text, n)
}

// keys returns the keys of the questions, sorted.
func (r *reply) keys() (keys []string) {
	if r.message.Result != nil {
		for key := range r.message.Result.InputRequests {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// read decodes a JSON-RPC answer. If the text is not such an answer, it sets r.lost, unless the
// HTTP status is an error.
func (r *reply) read(text []byte) {
	r.message = rpcReply{}
	if err := json.Unmarshal(text, &r.message); err != nil {
		if r.status < 400 {
			r.lost = errors.New("the answer is not JSON-RPC")
		}
		r.message = rpcReply{}
		return
	}
	if r.message.Result == nil && r.message.Error == nil && r.status < 400 {
		r.lost = errors.New("the answer has neither a result nor an error")
	}
}

// These limit the memory for the refusals that the probe keeps in order to compare them.
const (
	maxKept     = 64 << 10 // a refusal is kept only if its body has at most this many bytes
	maxCompared = 8 << 10  // a refusal is kept only if the state in the refused request has at most this many bytes
)

// clip shortens a text that is longer than n bytes, and marks the cut with "…". It does not cut
// inside a character.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
