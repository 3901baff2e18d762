package leaky

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

const (
	version  = "2026-07-28"
	maxBody  = 1 << 20
	maxDepth = 64

	codeParse, codeRequest, codeMethod, codeParams = -32700, -32600, -32601, -32602
)

// fault is an error that is sent as the answer to a request. The HTTP status 0 means 200.
type fault struct {
	status  int
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// reply is the answer to a request: a result or a fault.
type reply struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // null if it could not be read
	Result  any             `json:"result,omitempty"`
	Fault   *fault          `json:"error,omitempty"`
}

func refusal(id json.RawMessage, status, code int, text string) *reply {
	return &reply{Version: "2.0", ID: id, Fault: &fault{status: status, Code: code, Message: text}}
}

// handle returns the answer to one message, or nil for a notification. header is nil over stdio.
func (s *Server) handle(data []byte, user string, header http.Header) *reply {
	if depth(data) > maxDepth {
		return refusal(nil, 400, codeRequest, "The message is too deep")
	}
	message, err := parse(string(data))
	if err != nil {
		return refusal(nil, 400, codeParse, "Parse error")
	}
	id, method, params := message.get("id"), message.get("method"), message.get("params")
	if message.get("jsonrpc").text != "2.0" || !method.isString() || !slices.Contains([]byte{0, 's', '0'}, id.kind) {
		return refusal(nil, 400, codeRequest, "Invalid request")
	}
	if id.kind == 0 {
		return nil
	}
	same, misspelt := message.repeats()
	if params.kind != '{' || same && !s.hole("first-member") || misspelt && !s.hole("case-blind") ||
		message.replaced() && !s.hole("replaced-utf8") {
		return refusal(json.RawMessage(id.raw), 0, codeParams, "Invalid params")
	}
	answer := &reply{Version: "2.0", ID: json.RawMessage(id.raw)}
	answer.Result, answer.Fault = s.run(method.text, params, user, header)
	return answer
}

// run checks the version and the headers, and runs the method.
func (s *Server) run(method string, params value, user string, header http.Header) (any, *fault) {
	meta := params.first("_meta")
	c := &call{user: user, params: params, state: params.first("requestState"), answers: params.get("inputResponses"),
		capabilities: meta.get("io.modelcontextprotocol/clientCapabilities")}
	claimed := meta.get("io.modelcontextprotocol/protocolVersion").text
	sent := claimed
	if header != nil {
		sent = strings.Join(header.Values("Mcp-Protocol-Version"), ", ")
	}
	if sent != version && s.hole("version-downgrade") {
		c.unchecked, header = true, nil // older protocol revisions have no headers Mcp-Method and Mcp-Name
	} else if sent != version || claimed != version {
		return nil, &fault{status: 400, Code: -32022, Message: "Unsupported protocol version",
			Data: map[string]any{"supported": []string{version}, "requested": sent}}
	}
	naming := map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}[method]
	if header != nil && !s.hole("headers-unchecked") {
		named := naming == "" || headerIs(header, "Mcp-Name", params.first(naming).text)
		if !named || !headerIs(header, "Mcp-Method", method) {
			return nil, &fault{status: 400, Code: -32020, Message: "The headers do not match the message"}
		}
	}
	if s.hole("case-blind") && c.answers.kind == 0 {
		c.answers = params.misspelt("inputResponses")
	}
	if s.hole("any-method") && naming == "" && params.has("name") && c.state.kind != 0 && c.answers.kind != 0 {
		method, naming, c.unchecked = "tools/call", "name", true
	}
	if naming == "" {
		return s.answerStateless(method, user, params.get("cursor"))
	}
	c.checked, c.run = find(method, params.first(naming)), find(method, params.get(naming))
	if c.checked == nil || c.run == nil {
		return nil, &fault{Code: codeParams, Message: "Nothing has this " + naming}
	}
	c.arguments = value{kind: '{', raw: "{}"}
	checked := c.arguments
	if params.has("arguments") {
		c.arguments, checked = params.get("arguments"), params.first("arguments")
	}
	c.digest = s.digest(c.checked, checked)
	return s.do(c)
}

// headerIs reports whether the header of the given name occurs exactly once and has the given
// value, as plain text or in base64.
func headerIs(header http.Header, name, value string) bool {
	values := header.Values(name)
	if len(values) != 1 {
		return false
	}
	if inner, ok := strings.CutPrefix(values[0], "=?base64?"); ok && strings.HasSuffix(inner, "?=") {
		decoded, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
		return err == nil && string(decoded) == value
	}
	return values[0] == value
}
