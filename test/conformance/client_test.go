package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"
)

// The protocol revisions that the client speaks. Newer is the first revision without sessions. With
// older, the server asks its questions while a call is running.
const (
	newer = "2026-07-28"
	older = "2025-06-18"
)

const (
	maxReply  = 16 << 20         // how many bytes of a reply are read
	patience  = 30 * time.Second // how long a request may take; after that, the server counts as hung
	maxRounds = 20
)

// everything is the capabilities object of a client that can answer all kinds of questions.
var everything = json.RawMessage(`{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`)

// client speaks the protocol without an SDK, so that a test controls every byte that is sent.
type client struct {
	url, user string // the user, in the header X-User; "" means no header
	// listens makes the client listen with a GET request during a session of the older protocol
	// revision. mcp-go asks for samples and roots only in the response to this GET.
	listens bool
}

// wireCall is one call: all its rounds, and all its pages.
type wireCall struct {
	method string // tools/call, prompts/get, or a list method such as tools/list
	params map[string]any
	answer func(wireQuestion) any // returns the answer to a question, as a value that encoding/json can encode
}

// wireQuestion is a question that the server asks the client.
type wireQuestion struct {
	Method string // elicitation/create, sampling/createMessage or roots/list
	Params json.RawMessage
}

// message returns the text that a form shows to the user, or the method if there is no such text.
func (q wireQuestion) message() string {
	var form struct{ Message string }
	if json.Unmarshal(q.Params, &form); form.Message != "" {
		return form.Message
	}
	return q.Method
}

// outcome is the final result of a call, or its error.
type outcome struct {
	Result struct {
		ResultType, NextCursor string
		RequestState           *string
		InputRequests          map[string]wireQuestion
		StructuredContent      struct{ NextCursor string }
		IsError                bool
		Content                []struct{ Text string }
		Messages               []struct{ Content struct{ Text string } }
	}
	Error *struct {
		Code    int
		Message string
	}
}

// String returns the text of the result or of the error, as a user would read it.
func (o outcome) String() (said string) {
	if o.Error != nil {
		return fmt.Sprint(o.Error.Code, " ", o.Error.Message)
	}
	if o.Result.IsError {
		said = "error: "
	}
	for _, content := range o.Result.Content {
		said += content.Text
	}
	for _, message := range o.Result.Messages {
		said += message.Content.Text
	}
	return said
}

// turnPage changes the params to those for the next page. It returns false if there is none.
func (o outcome) turnPage(params map[string]any) bool {
	if next := o.Result.NextCursor; next != "" {
		params["cursor"] = next
		return true
	}
	if next := o.Result.StructuredContent.NextCursor; next != "" {
		params["arguments"] = withMember(params["arguments"], "cursor", next)
		return true
	}
	return false
}

// callNewer makes a call with the newer protocol revision: one request for each round and for each
// page. It returns the params of all these requests.
func (c *client) callNewer(ctx context.Context, call wireCall) (o outcome, sent []json.RawMessage, err error) {
	params := map[string]any{"_meta": meta(everything)}
	maps.Copy(params, call.params)
	for range maxRounds {
		m := message{revision: newer, id: "1", method: call.method, params: params}
		text, err := json.Marshal(params)
		if err != nil {
			return outcome{}, nil, err
		}
		sent = append(sent, text)
		got, err := c.post(ctx, m.header(), m.body(), nil)
		if err != nil {
			return outcome{}, nil, err
		}
		o = outcome{}
		if err := json.Unmarshal(got.last, &o); err != nil {
			return outcome{}, nil, fmt.Errorf("%d %s: %w", got.status, got.body, err)
		}
		if o.turnPage(params) {
			continue
		}
		if o.Result.ResultType != "input_required" {
			return o, sent, nil
		}
		answers := make(map[string]any)
		for key, question := range o.Result.InputRequests {
			answers[key] = call.answer(question)
		}
		params["inputResponses"] = answers
		if delete(params, "requestState"); o.Result.RequestState != nil {
			params["requestState"] = *o.Result.RequestState
		}
	}
	return outcome{}, nil, fmt.Errorf("the server still asks after %d rounds", maxRounds)
}

// callOlder makes a call with the older protocol revision, in a session of its own: one request for
// each page. It answers questions while a request runs. It returns the params of all these requests,
// and the answers by the message of their question.
func (c *client) callOlder(ctx context.Context, call wireCall) (
	o outcome, sent []json.RawMessage, answered map[string]json.RawMessage, err error,
) {
	hello := initialize(everything)
	opened, err := c.post(ctx, hello.header(), hello.body(), nil)
	if err != nil || opened.session == "" {
		return outcome{}, nil, nil, fmt.Errorf("no session: %d %s, %w", opened.status, opened.body, err)
	}
	defer c.close(ctx, opened.session)
	ready := message{revision: older, session: opened.session, method: "notifications/initialized"}
	if _, err := c.post(ctx, ready.header(), ready.body(), nil); err != nil {
		return outcome{}, nil, nil, err
	}
	stream := c.listen(ctx, opened.session)
	defer stream.stop()
	answered, params := make(map[string]json.RawMessage), maps.Clone(call.params)
	if params == nil {
		params = make(map[string]any)
	}
	for {
		text, err := json.Marshal(params)
		if err != nil {
			return outcome{}, nil, nil, err
		}
		sent = append(sent, text)
		m := message{revision: older, session: opened.session, id: "1", method: call.method, params: params}
		got, err := c.post(ctx, m.header(), m.body(), &answerer{stream, func(id, question json.RawMessage) error {
			var q wireQuestion
			if err := json.Unmarshal(question, &q); err != nil {
				return err
			}
			text, err := json.Marshal(call.answer(q))
			if err != nil {
				return err
			}
			answered[q.message()] = text
			taken, err := c.post(ctx, m.header(), answerText(id, text), nil)
			if err == nil && taken.status != http.StatusAccepted {
				err = fmt.Errorf("an answer got %d %s", taken.status, taken.body)
			}
			return err
		}})
		if err != nil {
			return outcome{}, nil, nil, err
		}
		o = outcome{}
		if err := json.Unmarshal(got.last, &o); err != nil {
			return outcome{}, nil, nil, fmt.Errorf("%d %s: %w", got.status, got.body, err)
		}
		if !o.turnPage(params) {
			return o, sent, answered, nil
		}
	}
}

func initialize(capabilities json.RawMessage) message {
	return message{revision: older, id: "0", method: "initialize", params: map[string]any{
		"protocolVersion": older, "capabilities": capabilities, "clientInfo": map[string]any{"name": "test", "version": "1"},
	}}
}

// close ends a session of the older protocol revision.
func (c *client) close(ctx context.Context, session string) {
	if session != "" {
		header := map[string]string{"Mcp-Session-Id": session, "Mcp-Protocol-Version": older}
		c.do(ctx, http.MethodDelete, header, nil, nil)
	}
}

func meta(capabilities any) map[string]any {
	return map[string]any{
		"io.modelcontextprotocol/protocolVersion":    newer,
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "test", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": capabilities,
	}
}

// withMember returns a copy of an object with one member set.
func withMember(object any, name string, value any) map[string]any {
	copied := map[string]any{name: value}
	members, _ := object.(map[string]any)
	for key, member := range members {
		if key != name {
			copied[key] = member
		}
	}
	return copied
}

func answerText(id, result json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// message is a JSON-RPC message that the client sends.
type message struct {
	revision, session string
	id                string // the id as JSON; "" makes the message a notification
	method            string
	params            any
}

func (m *message) body() []byte {
	var text bytes.Buffer
	text.WriteString(`{"jsonrpc":"2.0",`)
	if m.id != "" {
		fmt.Fprintf(&text, `"id":%s,`, m.id)
	}
	method, _ := json.Marshal(m.method)
	fmt.Fprintf(&text, `"method":%s`, method)
	if m.params != nil {
		params, err := json.Marshal(m.params)
		if err != nil {
			params = []byte(`{}`)
		}
		fmt.Fprintf(&text, `,"params":%s`, params)
	}
	text.WriteByte('}')
	return text.Bytes()
}

// header returns the HTTP headers for the message. In the newer protocol revision, the
// headers must repeat the method, and the name or the URI from the params.
func (m *message) header() map[string]string {
	header := map[string]string{"Mcp-Protocol-Version": m.revision}
	if m.method == "initialize" && m.revision == older {
		delete(header, "Mcp-Protocol-Version")
	}
	if m.session != "" {
		header["Mcp-Session-Id"] = m.session
	}
	if m.revision != newer {
		return header
	}
	header["Mcp-Method"] = headerText(m.method)
	params, _ := m.params.(map[string]any)
	for _, member := range []string{"name", "uri"} {
		if name, ok := params[member].(string); ok {
			header["Mcp-Name"] = headerText(name)
		}
	}
	return header
}

// headerText cuts the text to 1024 bytes, and returns it in the form that the protocol
// prescribes for headers: unchanged, or in base64 if it has characters that are not printable
// ASCII.
func headerText(text string) string {
	if len(text) > 1024 {
		text = text[:1024]
	}
	for _, char := range text {
		if char < ' ' || char > '~' {
			return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
		}
	}
	return text
}

// wireReply is the server's reply to one HTTP request.
type wireReply struct {
	status   int
	session  string
	body     []byte            // the whole body
	messages []json.RawMessage // the JSON-RPC messages in the body
	last     json.RawMessage   // the last of the messages, or the body if there are none
}

func (c *client) post(ctx context.Context, header map[string]string, body []byte, with *answerer) (wireReply, error) {
	ask, end := with.begin()
	defer end()
	return c.do(ctx, http.MethodPost, header, body, ask)
}

// do sends an HTTP request and reads the reply. If the reply is an event stream, the function ask is
// called for each question in it.
func (c *client) do(
	ctx context.Context, method string, header map[string]string, body []byte, ask asking,
) (r wireReply, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.url, bytes.NewReader(body))
	if err != nil {
		return r, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if c.user != "" {
		request.Header.Set("X-User", c.user)
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return r, err
	}
	defer response.Body.Close()
	r = wireReply{status: response.StatusCode, session: response.Header.Get("Mcp-Session-Id")}
	media, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	stream := bufio.NewReader(io.LimitReader(response.Body, maxReply))
	for {
		line, err := stream.ReadBytes('\n')
		r.body = append(r.body, line...)
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && media == "text/event-stream" {
			data = bytes.TrimSpace(data)
			r.messages = append(r.messages, data)
			var question struct{ ID, Method json.RawMessage }
			if json.Unmarshal(data, &question) == nil && question.Method != nil && question.ID != nil && ask != nil {
				if err := ask(question.ID, data); err != nil {
					return r, err
				}
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return r, err
		}
	}
	if media == "application/json" {
		r.messages = append(r.messages, bytes.TrimSpace(r.body))
	}
	if r.last = bytes.TrimSpace(r.body); len(r.messages) > 0 {
		r.last = r.messages[len(r.messages)-1]
	}
	return r, nil
}

// stream is the response to a GET request, on which a server may send questions to a client
// of the older protocol revision. It lasts until the session ends, because mcp-go loses
// questions when a client opens a second stream.
type stream struct {
	stop func()

	mu  sync.Mutex // protects the next field: the stream and the response to a call can have questions at the same time
	ask asking
}

// asking is a function that is called for each question of the server, and answers it.
type asking func(id, question json.RawMessage) error

// listen opens the stream of a session. It opens no stream if c.listens is false or the server has
// no such stream.
func (c *client) listen(ctx context.Context, session string) *stream {
	s := &stream{stop: func() {}}
	if !c.listens {
		return s
	}
	ctx, cancel := context.WithCancel(ctx)
	opened, ended := make(chan struct{}), make(chan struct{})
	trace := &httptrace.ClientTrace{GotFirstResponseByte: sync.OnceFunc(func() { close(opened) })}
	go func() {
		defer close(ended)
		m := message{revision: older, session: session}
		ctx := httptrace.WithClientTrace(ctx, trace)
		c.do(ctx, http.MethodGet, m.header(), nil, func(id, question json.RawMessage) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.ask == nil {
				return nil // the call that asked this question has ended
			}
			return s.ask(id, question)
		})
	}()
	select {
	case <-opened:
	case <-ended:
	}
	s.stop = func() {
		cancel()
		<-ended
	}
	return s
}

// answerer answers the questions of one call.
type answerer struct {
	stream *stream
	ask    asking
}

// begin makes the stream pass each question to a.ask, until the caller calls end. Questions can
// also come in the HTTP response to the call. The caller must pass those questions to askLocked.
// askLocked calls a.ask too, but never while the stream calls a.ask. If the answerer is nil,
// askLocked is nil.
func (a *answerer) begin() (askLocked asking, end func()) {
	if a == nil {
		return nil, func() {}
	}
	set := func(ask asking) {
		a.stream.mu.Lock()
		defer a.stream.mu.Unlock()
		a.stream.ask = ask
	}
	set(a.ask)
	return func(id, question json.RawMessage) error {
		a.stream.mu.Lock()
		defer a.stream.mu.Unlock()
		return a.ask(id, question)
	}, func() { set(nil) }
}
