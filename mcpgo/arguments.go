package mcpgo

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpseal/mcpseal"
)

// A call of a tool has its arguments in two forms: RawArguments is the JSON that the client
// sent, and Arguments is the value that mcp-go decoded from it. A hook, or middleware that was
// added before Protect, may change one form or both, and the handler may read either. The
// adapter changes neither form. It binds the token to both, so in every round the handler gets
// the same arguments, whichever form it reads.

// boundText returns the text that the token of a call is bound to. If Arguments is what
// RawArguments decodes to, this is RawArguments. Otherwise it is an array of both forms. The
// protocol allows only objects as arguments, and wrapArray changes an array that a client
// sends all the same, so no other arguments have the text of this array.
func boundText(params *mcp.CallToolParams) []byte {
	text := params.RawArguments
	var decoded any
	if len(text) > 0 && json.Unmarshal(text, &decoded) != nil {
		return []byte(notJSON)
	}
	if equalJSON(params.Arguments, decoded) {
		return wrapArray(text)
	}
	// No arguments mean the same as {}, but null or nothing in an array does not.
	other := []byte("{}")
	if decoded == nil {
		text = other
	}
	if params.Arguments != nil {
		other = jsonOf(params.Arguments)
	}
	return slices.Concat([]byte("["), text, []byte(","), other, []byte("]"))
}

// wrapArray puts a text that is an array into another array, and returns any other text
// unchanged. The outer array has one item, and the array that boundText makes has two.
func wrapArray(text []byte) []byte {
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		return text
	}
	return slices.Concat([]byte("["), text, []byte("]"))
}

// mayChange reports whether a hook of the author, or middleware that was added before Protect,
// may have changed the arguments of a call. Our middleware then compares the two forms. Ours is
// one of the hooks that run before a call, so a second one is the author's.
func (i *installation) mayChange() bool {
	h := i.hooks.Value()
	return i.outer || h != nil && (len(h.OnBeforeAny) > 0 || len(h.OnBeforeCallTool) > 1)
}

// hasMiddleware reports whether a server already has middleware for tools. mcp-go has no
// method for this, so hasMiddleware reads a private field. If a later release of mcp-go
// has no such field, hasMiddleware returns true, which costs only time.
func hasMiddleware(srv *server.MCPServer) bool {
	field := reflect.ValueOf(srv).Elem().FieldByName("toolHandlerMiddlewares")
	return field.Kind() != reflect.Slice || field.Len() > 0
}

// equalJSON reports whether a value equals another value, which encoding/json decoded into an
// any. It goes no deeper than the decoded value does, so it returns even if the first value
// is cyclic: a map or slice that contains itself.
func equalJSON(value, decoded any) bool {
	switch d := decoded.(type) {
	case map[string]any:
		v, ok := value.(map[string]any)
		if !ok || v == nil || len(v) != len(d) {
			return false
		}
		for name, member := range d {
			if found, ok := v[name]; !ok || !equalJSON(found, member) {
				return false
			}
		}
		return true
	case []any:
		v, ok := value.([]any)
		return ok && v != nil && slices.EqualFunc(v, d, equalJSON)
	case string:
		v, ok := value.(string)
		return ok && v == d
	case float64:
		v, ok := value.(float64)
		return ok && v == d
	case bool:
		v, ok := value.(bool)
		return ok && v == d
	}
	return value == nil && decoded == nil
}

// notJSON stands for arguments that cannot be written as JSON. It is not JSON itself, so a
// client cannot send it, and no token can be sealed for it.
const notJSON = "!"

// jsonOf returns the JSON of a value. It returns notJSON if the value cannot be written as
// JSON, or if two different values could have this JSON, because json.Marshal replaces text
// that is not UTF-8 with U+FFFD.
func jsonOf(value any) (text []byte) {
	if mcpseal.Guard(func() (err error) {
		text, err = json.Marshal(value)
		return err
	}) != nil || hasReplacement(text) && !isUTF8(value) {
		return []byte(notJSON)
	}
	return text
}

// hasReplacement reports whether a JSON text contains U+FFFD. Depending on GOEXPERIMENT,
// json.Marshal writes the character itself or its escape.
func hasReplacement(text []byte) bool {
	return bytes.ContainsRune(text, utf8.RuneError) || bytes.Contains(text, []byte(`\ufffd`))
}

// isUTF8 reports whether all text in a value is UTF-8. In a type that encoding/json does not
// decode into an any, it cannot tell: then it returns false if the JSON of this part contains
// U+FFFD. The value is not cyclic, because json.Marshal has written it.
func isUTF8(value any) bool {
	switch v := value.(type) {
	case string:
		return utf8.ValidString(v)
	case map[string]any:
		for name, member := range v {
			if !utf8.ValidString(name) || !isUTF8(member) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !isUTF8(item) })
	}
	text, err := json.Marshal(value)
	return err == nil && !hasReplacement(text)
}
