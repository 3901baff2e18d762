package mutate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// The protocol revisions that the client speaks. Newer is the first revision without
// sessions. With Older, the server asks its questions while a call is running.
const (
	Newer = "2026-07-28"
	Older = "2025-06-18"
)

const (
	maxReply  = 16 << 20         // how many bytes of a reply are read
	patience  = 30 * time.Second // how long a request may take; after that, the server counts as hung
	maxRounds = 20
)

// Everything is the capabilities object of a client that can answer all kinds of questions.
var Everything = json.RawMessage(`{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`)

// Client speaks the protocol without an SDK, so that a test controls every byte that is sent.
type Client struct {
	URL    string
	Bearer string // the access token; "" means that no token is sent
	HTTP   *http.Client
	// Listens makes the client listen with a GET request during a session of the older
	// protocol revision. mcp-go asks for samples and roots only in the response to this GET.
	Listens bool
}

// Call describes one call: all its rounds, and all its pages.
type Call struct {
	Revision string
	Method   string // tools/call, prompts/get, resources/read, or a list method such as tools/list
	Params   map[string]any
	Answer   func(Question) any // returns the answer to a question, as a value that encoding/json can encode
	Pages    int                // how many pages of a paged tool to fetch; 0 means one
}

// Question is a question that the server asks the client.
type Question struct {
	Method string // elicitation/create, sampling/createMessage or roots/list
	Params json.RawMessage
}

// Message returns the text that a form shows to the user. If the question has no such text,
// it returns the method.
func (q Question) Message() string {
	var form struct{ Message string }
	if json.Unmarshal(q.Params, &form); form.Message != "" {
		return form.Message
	}
	return q.Method
}

// Outcome is the final result of a call, or its error.
type Outcome struct {
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

// String returns the text of the result or of the error, as a user would read it.
func (o Outcome) String() string {
	if o.Error != nil {
		return fmt.Sprint(o.Error.Code, " ", o.Error.Message)
	}
	type text struct{ Text string }
	var result struct {
		IsError  bool
		Content  []text
		Messages []struct{ Content text }
	}
	if err := json.Unmarshal(o.Result, &result); err != nil {
		return err.Error()
	}
	said := ""
	if result.IsError {
		said = "error: "
	}
	for _, content := range result.Content {
		said += content.Text
	}
	for _, message := range result.Messages {
		said += message.Content.Text
	}
	return said
}

// Call makes a call, and answers the server's questions until the call ends.
func (c *Client) Call(ctx context.Context, call Call) (Outcome, error) {
	if call.Revision >= Newer {
		outcome, _, err := c.callNewer(ctx, call)
		return outcome, err
	}
	outcome, _, _, err := c.callOlder(ctx, call)
	return outcome, err
}

// callNewer makes a call with the newer protocol revision: one request for each round and for
// each page. sentParams has the params of all these requests.
func (c *Client) callNewer(ctx context.Context, call Call) (outcome Outcome, sentParams []json.RawMessage, err error) {
	params := map[string]any{"_meta": meta(Everything)}
	for name, value := range call.Params {
		params[name] = value
	}
	pages := max(call.Pages, 1)
	for range maxRounds {
		text, err := json.Marshal(params)
		if err != nil {
			return Outcome{}, nil, err
		}
		m := message{revision: Newer, id: "1", method: call.Method, params: params}
		reply, err := c.post(ctx, m.header(), m.body(), nil)
		if err != nil {
			return Outcome{}, nil, err
		}
		sentParams = append(sentParams, text)
		outcome = Outcome{}
		if err := json.Unmarshal(reply.last, &outcome); err != nil {
			return Outcome{}, nil, fmt.Errorf("%d %s: %w", reply.status, reply.body, err)
		}
		var result struct {
			ResultType        string
			RequestState      *string
			InputRequests     map[string]Question
			StructuredContent struct{ NextCursor string }
		}
		json.Unmarshal(outcome.Result, &result)
		if next := result.StructuredContent.NextCursor; next != "" && pages > 1 {
			pages--
			params["arguments"] = withMember(params["arguments"], "cursor", next)
			continue
		}
		if result.ResultType != "input_required" {
			return outcome, sentParams, nil
		}
		answers := make(map[string]any)
		for key, question := range result.InputRequests {
			answers[key] = call.Answer(question)
		}
		params["inputResponses"] = answers
		if delete(params, "requestState"); result.RequestState != nil {
			params["requestState"] = *result.RequestState
		}
	}
	return Outcome{}, nil, fmt.Errorf("the server still asks after %d rounds", maxRounds)
}

// callOlder makes a call with the older protocol revision: one request for each page, in a session
// of its own. It answers questions while a request runs. sentParams has the params of all these
// requests. answersSent maps the message of each question to the answer that was sent.
func (c *Client) callOlder(ctx context.Context, call Call) (outcome Outcome, sentParams []json.RawMessage, answersSent map[string]json.RawMessage, err error) {
	session, err := c.open(ctx, Everything)
	if err != nil {
		return Outcome{}, nil, nil, err
	}
	defer c.close(ctx, session)
	stream := c.listen(ctx, session)
	defer stream.stop()
	answersSent = make(map[string]json.RawMessage)
	params := make(map[string]any)
	for name, value := range call.Params {
		params[name] = value
	}
	for range max(call.Pages, 1) {
		text, err := json.Marshal(params)
		if err != nil {
			return Outcome{}, nil, nil, err
		}
		sentParams = append(sentParams, text)
		m := message{revision: Older, session: session, id: "1", method: call.Method, params: params}
		reply, err := c.post(ctx, m.header(), m.body(), &answerer{stream, func(id, question json.RawMessage) error {
			var q Question
			if err := json.Unmarshal(question, &q); err != nil {
				return err
			}
			answer, err := json.Marshal(call.Answer(q))
			if err != nil {
				return err
			}
			answersSent[q.Message()] = answer
			answered, err := c.post(ctx, m.header(), answerText(id, answer), nil)
			if err == nil && answered.status != http.StatusAccepted {
				err = fmt.Errorf("an answer got %d %s", answered.status, answered.body)
			}
			return err
		}})
		if err != nil {
			return Outcome{}, nil, nil, err
		}
		outcome = Outcome{}
		if err := json.Unmarshal(reply.last, &outcome); err != nil {
			return Outcome{}, nil, nil, fmt.Errorf("%d %s: %w", reply.status, reply.body, err)
		}
		var result struct{ StructuredContent struct{ NextCursor string } }
		json.Unmarshal(outcome.Result, &result)
		if result.StructuredContent.NextCursor == "" {
			break
		}
		params["arguments"] = withMember(params["arguments"], "cursor", result.StructuredContent.NextCursor)
	}
	return outcome, sentParams, answersSent, nil
}

// open begins a session of the older protocol revision, and returns its id.
func (c *Client) open(ctx context.Context, capabilities json.RawMessage) (session string, err error) {
	hello := initialize(capabilities)
	reply, err := c.post(ctx, hello.header(), hello.body(), nil)
	if err != nil {
		return "", err
	}
	if reply.session == "" {
		return "", fmt.Errorf("no session: %d %s", reply.status, reply.body)
	}
	ready := message{revision: Older, session: reply.session, method: "notifications/initialized"}
	_, err = c.post(ctx, ready.header(), ready.body(), nil)
	return reply.session, err
}

func initialize(capabilities json.RawMessage) message {
	return message{revision: Older, id: "0", method: "initialize", params: map[string]any{
		"protocolVersion": Older, "capabilities": capabilities, "clientInfo": map[string]any{"name": "mutate", "version": "1"},
	}}
}

func (c *Client) close(ctx context.Context, session string) error {
	if session == "" {
		return nil
	}
	_, err := c.do(ctx, http.MethodDelete, map[string]string{"Mcp-Session-Id": session, "Mcp-Protocol-Version": Older}, nil, nil)
	return err
}

func meta(capabilities any) map[string]any {
	return map[string]any{
		"io.modelcontextprotocol/protocolVersion":    Newer,
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "mutate", "version": "1"},
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
	if m.method == "initialize" && m.revision == Older {
		delete(header, "Mcp-Protocol-Version")
	}
	if m.session != "" {
		header["Mcp-Session-Id"] = m.session
	}
	if m.revision != Newer {
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

// reply is the server's reply to one HTTP request.
type reply struct {
	status   int
	media    string
	session  string
	body     []byte            // the whole body
	messages []json.RawMessage // the JSON-RPC messages in the body
	last     json.RawMessage   // the last of the messages, or the body if there are none
}

func (c *Client) post(ctx context.Context, header map[string]string, body []byte, with *answerer) (reply, error) {
	ask, end := with.begin()
	defer end()
	return c.do(ctx, http.MethodPost, header, body, ask)
}

// do sends an HTTP request and reads the reply. If the reply is an event stream, the function
// ask is called for each question in it.
func (c *Client) do(ctx context.Context, method string, header map[string]string, body []byte, ask asking) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.URL, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if c.Bearer != "" {
		request.Header.Set("Authorization", "Bearer "+c.Bearer)
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	r := reply{status: response.StatusCode, session: response.Header.Get("Mcp-Session-Id")}
	r.media, _, _ = strings.Cut(response.Header.Get("Content-Type"), ";")
	stream := bufio.NewReader(io.LimitReader(response.Body, maxReply))
	for {
		line, err := stream.ReadBytes('\n')
		r.body = append(r.body, line...)
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && r.media == "text/event-stream" {
			data = bytes.TrimSpace(data)
			r.messages = append(r.messages, data)
			var question struct{ ID, Method json.RawMessage }
			if json.Unmarshal(data, &question) == nil && question.Method != nil && question.ID != nil && ask != nil {
				if err := ask(question.ID, data); err != nil {
					return reply{}, err
				}
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return reply{}, err
		}
	}
	if r.media == "application/json" {
		r.messages = append(r.messages, bytes.TrimSpace(r.body))
	}
	if r.last = bytes.TrimSpace(r.body); len(r.messages) > 0 {
		r.last = r.messages[len(r.messages)-1]
	}
	return r, nil
}
