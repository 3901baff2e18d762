package mcpgo

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/adapter"
	"github.com/mcpseal/mcpseal/exactjson"
	"github.com/mcpseal/mcpseal/mcpgo/internal/passage"
)

// call has the fields that requests of tools/call, prompts/get and resources/read have in
// common.
type call struct {
	method, target string
	arguments      []byte            // JSON of a tool's arguments; copyArguments also sets it for prompts and resources
	promptArgs     map[string]string // a prompt's arguments, shared with its handler
	others         any               // arguments that came without JSON text, shared with the handler
	token          string
	answers        mcp.InputResponses
	task           bool               // true if the call runs as a task: see decideTask
	arrived        *passage.Arguments // how a tool's arguments arrived; nil if nobody needs to know

	older bool // true if the client's protocol revision has no multi round-trip requests
	// copies is true if the handler must get a copy of the arguments: mcp-go may ask an
	// older client, and then call the handler again with the same arguments.
	copies   bool
	declared adapter.Capabilities // what the client could answer when the call arrived; an older client may declare more during the call
	state    string               // the state in plaintext, for the handler
	kept     mcp.InputResponses   // the answers that the handler may see
}

func callOfTool(r *mcp.CallToolRequest) call {
	c := call{
		method: string(mcp.MethodToolsCall), target: r.Params.Name, arguments: r.Params.RawArguments,
		token: r.Params.RequestState, answers: r.Params.InputResponses, task: r.Params.Task != nil,
	}
	if len(c.arguments) == 0 {
		c.others = r.Params.Arguments
	}
	return c
}

// bindSent sets c.arguments to the text that the token is bound to. If no hook or middleware
// has changed what the arguments mean, this is the text of the arguments (see wrapArray).
// Otherwise it is an array of two texts: the arguments that the client sent, and the changed
// arguments. The protocol allows only objects as arguments, so this array cannot be the
// arguments of another call. Texts longer than the limit are never digested, so bindSent
// compares only their bytes.
func (c *call) bindSent(sent []byte, limit int) {
	text := c.arguments
	if len(text) == 0 && c.others != nil {
		return
	}
	if bytes.Equal(sent, text) || max(len(sent), len(text)) <= limit && exactjson.Same(sent, text) {
		c.arguments = wrapArray(text)
		return
	}
	sent, text = orEmpty(sent), orEmpty(text)
	c.arguments = slices.Concat([]byte("["), sent, []byte(","), text, []byte("]"))
}

// wrapArray returns the text to bind for unchanged arguments. mcp-go accepts an array as
// arguments, although the protocol does not allow it. So wrapArray puts such an array into
// another array. The outer array has only one item, so it differs from the arrays that
// bindSent makes, which have two.
func wrapArray(text []byte) []byte {
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		return text
	}
	return slices.Concat([]byte("["), text, []byte("]"))
}

// orEmpty returns the text of arguments, for the array of bindSent. If the text is empty or
// null, it returns {}. Arguments that are null mean the same as {}, but a null in an array
// does not.
func orEmpty(text []byte) []byte {
	if len(text) == 0 || string(bytes.TrimSpace(text)) == "null" {
		return []byte("{}")
	}
	return text
}

func callOfPrompt(r *mcp.GetPromptRequest) call {
	return call{
		method: string(mcp.MethodPromptsGet), target: r.Params.Name, promptArgs: r.Params.Arguments,
		token: r.Params.RequestState, answers: r.Params.InputResponses,
	}
}

func callOfResource(r *mcp.ReadResourceRequest) call {
	c := call{
		method: string(mcp.MethodResourcesRead), target: r.Params.URI,
		token: r.Params.RequestState, answers: r.Params.InputResponses,
	}
	if len(r.Params.Arguments) > 0 {
		c.others = r.Params.Arguments
	}
	return c
}

// anyCall reads a request that a handler got. The result ok is false if the request is not
// for a tool, prompt or resource.
func anyCall(req any) (c call, ok bool) {
	switch r := req.(type) {
	case mcp.CallToolRequest:
		return callOfTool(&r), true
	case mcp.GetPromptRequest:
		return callOfPrompt(&r), true
	case mcp.ReadResourceRequest:
		return callOfResource(&r), true
	}
	return c, false
}

// handOver puts the opened state and the accepted answers into the params for the handler.
// They replace the token and the answers that the client sent.
func (c *call) handOver(params *mcp.MultiRoundTripParams) {
	params.RequestState, params.InputResponses = c.state, c.kept
}

// copyArguments replaces c.arguments with a copy that the handler cannot change, and
// returns the copy. The copy is valid until it is released. copyArguments returns nil if
// there is no copy to release: the call has no arguments, or their JSON was made just now,
// or their JSON is longer than the limit. JSON over this limit is never digested.
func (c *call) copyArguments(limit int) (kept *adapter.Arguments) {
	switch {
	case len(c.arguments) > limit:
		return nil
	case len(c.arguments) > 0:
		kept = adapter.CopyArguments(c.arguments)
	case len(c.promptArgs) > 0:
		kept = adapter.CopyStrings(c.promptArgs)
	case c.others != nil:
		c.arguments = wrapArray(jsonOf(c.others))
		return nil
	default:
		return nil
	}
	c.arguments = kept.Text()
	return kept
}

// jsonOf returns the JSON of a value. If the value cannot be written as JSON, or has text
// that is not UTF-8, jsonOf returns notJSON, so that the digest of the arguments refuses
// it.
func jsonOf(value any) (text []byte) {
	if mcpseal.Guard(func() (err error) {
		if text, err = json.Marshal(value); err == nil && mayHaveReplaced(text) && !isUTF8(reflect.ValueOf(value)) {
			err = errors.New("not UTF-8")
		}
		return err
	}) != nil {
		return []byte(notJSON)
	}
	return text
}

// mayHaveReplaced reports whether json.Marshal may have replaced text that is not UTF-8, so
// that two different values would get the same JSON. json.Marshal replaces such text with the
// character U+FFFD or with the escape of this character, depending on GOEXPERIMENT.
func mayHaveReplaced(text []byte) bool {
	return bytes.ContainsRune(text, utf8.RuneError) || bytes.Contains(text, []byte(`\ufffd`))
}

// isUTF8 reports whether all text in a value is UTF-8, so that json.Marshal replaces none of
// it. It does not look into a struct, into a type with a method MarshalText, or into a type
// that has a method MarshalJSON only on its pointer: it searches their JSON for U+FFFD. If
// it finds one, it returns false, even if that U+FFFD was in the value and json.Marshal
// replaced nothing.
func isUTF8(v reflect.Value) bool {
	if !v.IsValid() {
		return true
	}
	t := v.Type()
	if t.Implements(jsonMarshaler) {
		return true // json.Marshal replaces nothing in the type's own JSON, and the digest refuses JSON that is not UTF-8
	}
	kind := v.Kind()
	if kind == reflect.Pointer || kind == reflect.Interface {
		return isUTF8(v.Elem()) // for nil, Elem returns an invalid Value, which counts as UTF-8
	}
	if pointer := reflect.PointerTo(t); kind == reflect.Struct || pointer.Implements(jsonMarshaler) || pointer.Implements(textMarshaler) {
		if v.CanAddr() {
			v = v.Addr() // json.Marshal uses the methods of the pointer only if the value is addressable
		}
		text, err := json.Marshal(v.Interface())
		return err == nil && !mayHaveReplaced(text)
	}
	switch kind {
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Map:
		for member := v.MapRange(); member.Next(); {
			name := member.Key()
			if name.Kind() == reflect.String && !utf8.ValidString(name.String()) || !isUTF8(name) || !isUTF8(member.Value()) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !isUTF8(v.Index(i)) {
				return false
			}
		}
	}
	return true
}

// copyJSON returns a deep copy of a value that was decoded from JSON, or that can be
// written as JSON. A value that has its own methods for JSON is not copied: json.Marshal
// did not look into this value, so the value may be cyclic.
func copyJSON(value any) any {
	switch v := value.(type) {
	case map[string]any:
		v = maps.Clone(v)
		for name, member := range v {
			v[name] = copyJSON(member)
		}
		return v
	case []any:
		v = slices.Clone(v)
		for i, item := range v {
			v[i] = copyJSON(item)
		}
		return v
	case json.RawMessage:
		return json.RawMessage(bytes.Clone(v))
	case nil, string, float64, bool:
		return v
	}
	// A hook or middleware of the author may have put other maps and slices into the arguments.
	if t := reflect.PointerTo(reflect.TypeOf(value)); t.Implements(jsonMarshaler) || t.Implements(textMarshaler) {
		return value
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Map:
		if v.IsNil() {
			return value
		}
		copied := reflect.MakeMapWithSize(v.Type(), v.Len())
		for member := v.MapRange(); member.Next(); {
			copied.SetMapIndex(member.Key(), copyValue(member.Value()))
		}
		return copied.Interface()
	case reflect.Slice:
		if v.IsNil() {
			return value
		}
		copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			copied.Index(i).Set(copyValue(v.Index(i)))
		}
		return copied.Interface()
	}
	return value
}

var jsonMarshaler, textMarshaler = reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()

// copyValue returns a deep copy of a member of a map, or of an item of a slice.
func copyValue(v reflect.Value) reflect.Value {
	if copied := copyJSON(v.Interface()); copied != nil {
		return reflect.ValueOf(copied)
	}
	return v
}

// asking holds the state of a result, and whether the result asks questions.
type asking struct {
	state     string
	questions bool // true if the result has questions
	asks      bool // true if mcp-go will send the result as one that needs input
}

// readResult reads the state and the questions of what a handler returned. It returns
// false if a tool or prompt returned nil. The result of a resource has neither state nor
// questions.
func readResult(result any) (a asking, ok bool) {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		if r == nil {
			return a, false
		}
		a = asking{r.RequestState, len(r.InputRequests) > 0, r.NeedsInput()}
	case *mcp.GetPromptResult:
		if r == nil {
			return a, false
		}
		a = asking{r.RequestState, len(r.InputRequests) > 0, r.NeedsInput()}
	}
	return a, true
}

func questionsOf(result any) mcp.InputRequests {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		return r.InputRequests
	case *mcp.GetPromptResult:
		return r.InputRequests
	}
	return nil
}

// checkWritableBeside returns an error if a part of a result other than its questions
// cannot be written as JSON.
func checkWritableBeside(result any) error {
	var meta *mcp.Meta
	switch r := result.(type) {
	case *mcp.CallToolResult:
		if err := adapter.CheckWritable(r.StructuredContent); err != nil {
			return err
		}
		if raw := r.RawStructuredContent; len(raw) > 0 && !json.Valid(raw) {
			return errors.New("RawStructuredContent is not JSON")
		}
		if len(r.Content) > 0 {
			if err := adapter.CheckWritable(r.Content); err != nil {
				return err
			}
		}
		meta = r.Meta
	case *mcp.GetPromptResult:
		if len(r.Messages) > 0 {
			if err := adapter.CheckWritable(r.Messages); err != nil {
				return err
			}
		}
		meta = r.Meta
	}
	if meta == nil {
		return nil
	}
	return adapter.CheckWritable(meta)
}

// withState returns a copy of a result with another state. It does not change the
// original, because the handler may use the original again.
func withState[R any](result R, state string) R {
	switch r := any(result).(type) {
	case *mcp.CallToolResult:
		copied := *r
		copied.RequestState = state
		return any(&copied).(R)
	case *mcp.GetPromptResult:
		copied := *r
		copied.RequestState = state
		return any(&copied).(R)
	}
	return result
}
