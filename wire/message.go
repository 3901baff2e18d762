package wire

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/strictjson"
)

// kind says what the engine must seal or open in the messages of a method.
type kind int

const (
	plain kind = iota // no state, and no cursor
	call              // a state, questions and answers
	list              // a cursor
)

// kinds has the kind of each method that carries a state or a cursor. Other methods have the kind plain.
var kinds = map[string]kind{
	"tools/call": call, "prompts/get": call, "resources/read": call,
	"tools/list": list, "prompts/list": list, "resources/list": list, "resources/templates/list": list,
	"tasks/list":  list,                                   // a method of protocol revision 2025-11-25
	"skills/list": list, "resources/directory/read": list, // SEP-2640
}

// directory is the one list whose cursor is bound to more than the method: to the URI of the directory.
const directory = "resources/directory/read"

// The names of the members that the engine reads. There is one list for each kind of JSON object. If an object has a
// name of its list in another spelling, the engine refuses the object. For example, the params of tools/call must not
// have a member Name. Names that are not in the list may have any spelling. For example, the params of a custom method
// may have a member Name.
var (
	envelopeNames = namesOf("jsonrpc", "id", "method", "params", "result", "error")
	callNames     = namesOf("name", "uri", "arguments", "requestState", "inputResponses", "_meta")
	listNames     = namesOf("cursor", "requestState", "uri")
	plainNames    = namesOf("requestState")
	answerNames   = namesOf("action", "role", "roots", "content", "model", "stopReason", "resultType", "_meta")
	askingNames   = namesOf("resultType", "requestState", "inputRequests")
	pageNames     = namesOf("nextCursor", "requestState", "ttlMs", "cacheScope")
	questionNames = namesOf("method", "params")
	modeNames     = namesOf("mode", "tools", "toolChoice")

	metaNames       = namesOf("io.modelcontextprotocol/clientCapabilities")
	capabilityNames = namesOf("elicitation", "sampling", "roots")
	optionNames     = namesOf("form", "url", "tools")

	cancelNames = namesOf("requestId")
)

// resultNames returns the names of the members that the engine reads in the result of a method of this kind.
func (k kind) resultNames() *names { return [...]*names{plainNames, askingNames, pageNames}[k] }

// envelope is a JSON-RPC message.
type envelope struct {
	text           string
	id             string // JSON text; "" if there is none
	sameID         string // the same text for all spellings of the id: see field.sameID
	method         string
	params, result field
	isError        bool

	// These fields have what readEnvelope has already read from the result; inResult uses them. They are not set if the
	// result is not an object.
	inside   []field
	clear    bool
	insideOf *names
}

// A message that is neither a notification nor an answer is a request.
func (m *envelope) isNotification() bool { return m.method != "" && m.id == "" }
func (m *envelope) isAnswer() bool       { return m.method == "" }

// inResult reads the members with the given names from the result, in the same way as [names.read]. If readEnvelope has
// already read these names, inResult does not read the text again.
func (m *envelope) inResult(n *names) (fields []field, ok bool) {
	if n == m.insideOf {
		return m.inside, m.clear
	}
	return n.read(m.result.Raw)
}

// readEnvelope reads a message. The parameter resultNames has the names that the caller will read in the message's
// result. It is nil if the caller does not know them yet. If the message must be refused, reason says why. Otherwise
// reason is "".
func readEnvelope(text string, resultNames *names) (m envelope, reason string) {
	m.text = text
	members := strictjson.ReadMembers(text)
	if resultNames != nil {
		members.Object = func(name string, inner *strictjson.Members) {
			if name == "result" {
				m.inside, m.clear = resultNames.readFrom(inner)
				m.insideOf = resultNames
			}
		}
	}
	o, ok := envelopeNames.readFrom(&members)
	if !ok {
		return m, "not exactly one JSON object in UTF-8, or an object that two parsers read differently"
	}
	id, method, params, result, problem := &o[1], &o[2], &o[3], &o[4], &o[5]
	m.id, m.sameID = id.Raw, id.sameID()
	m.params, m.result, m.isError = *params, *result, problem.present
	switch {
	case id.present && !id.isString() && !id.IsNumber() && (id.Raw != "null" || method.present):
		return m, "an id that is neither a string nor a number"
	case method.present && (result.present || problem.present):
		return m, "both a request and an answer"
	case result.present && problem.present:
		return m, "both a result and an error"
	case method.present && (!method.isString() || method.Text == "" || strings.Contains(method.Text, "\x00")):
		return m, "a method that is not a text, or that some parsers read only in part"
	case !method.present && !result.present && !problem.present:
		return m, "neither a request nor an answer"
	case !method.present && params.present:
		return m, "an answer with params"
	case !method.present && m.id == "":
		return m, "an answer without an id"
	}
	m.method = method.Text
	return m, ""
}

// fitsRequest reports whether an id is one that a server cannot confuse with another: a string, or an integer that
// every parser reads exactly. A server might answer 1.0 with the id 1, or a longer integer with a rounded one.
func fitsRequest(id string) bool {
	if strings.HasPrefix(id, `"`) {
		return true
	}
	n, err := strconv.ParseInt(id, 10, 64)
	return err == nil && id != "-0" && -maxInteger <= n && n <= maxInteger
}

// maxInteger is the greatest integer below which a float64 holds every integer.
const maxInteger = 1<<53 - 1

// The JSON-RPC errors that the engine itself sends.
var (
	invalidRequest = tripseal.WireError{Code: -32600, Message: "Invalid Request"}
	invalidParams  = tripseal.WireError{Code: -32602, Message: "Invalid params"}
	internalError  = tripseal.WireError{Code: -32603, Message: "Internal error"}
	headerMismatch = tripseal.WireError{Code: -32020, Message: "Header mismatch"} // of the protocol
)

// errorMessage returns a JSON-RPC answer with an error. The parameter id is the JSON text of the request's id; "" means
// null.
func errorMessage(id string, e tripseal.WireError) string {
	if id == "" {
		id = "null"
	}
	text, _ := json.Marshal(e) // cannot fail: this project made e, and e.Data is nil or valid JSON
	return `{"jsonrpc":"2.0","id":` + id + `,"error":` + string(text) + `}`
}

// resultMessage returns a JSON-RPC answer whose result is a tool's error with this text. The parameter id is the JSON
// text of the request's id.
func resultMessage(id, text string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"complete","content":[{"type":"text","text":` +
		strictjson.Quote(text) + `}],"isError":true}}`
}
