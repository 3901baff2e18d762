package mcpgo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"unicode/utf8"
	"weak"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/exactjson"
)

// A call of a tool has its arguments in two forms: RawArguments is the JSON that the client
// sent, and Arguments is the value that mcp-go decoded from it. A hook, or middleware that was
// added before Protect, may change one form or both, and the handler may read either. The
// adapter changes neither form. It binds the token to what the client sent and to both forms.
// So in every round the client sends the same arguments, and the handler gets the same,
// whichever form it reads.

// boundText returns the text that the token of a call is bound to. If nobody has changed the
// arguments that the client sent, this is RawArguments. Otherwise it is a JSON array with three
// elements: what the client sent, RawArguments, and Arguments. A client that breaks the protocol
// may send an array too. Then wrapArray puts this array into another one, which has only one
// element. So the two kinds of arrays are never equal. No token can be bound to a text that is
// longer than the limit.
func boundText(sent []byte, params *mcp.CallToolParams, limit int) []byte {
	text := []byte(params.RawArguments)
	if len(text) > limit {
		return text // the boundary refuses it for its length
	}
	if len(sent) > limit {
		return sent
	}
	var decoded any
	if len(text) > 0 && json.Unmarshal(text, &decoded) != nil {
		return unbindable()
	}
	if equalJSON(orEmpty(params.Arguments), orEmpty(decoded)) && exactjson.Same(sent, text) {
		return wrapArray(text)
	}
	if len(text) == 0 {
		text = []byte("null") // here a typed handler reads Arguments, so null must not mean the same as {}
	} else if decoded == nil {
		text = []byte("{}") // the boundary treats null as {}, but not a null inside an array
	}
	if len(sent) == 0 || string(bytes.TrimSpace(sent)) == "null" {
		sent = []byte("{}")
	}
	return slices.Concat([]byte("["), sent, []byte(","), text, []byte(","), jsonOf(orEmpty(params.Arguments)), []byte("]"))
}

// orEmpty returns an empty map in place of arguments that are nil or empty.
func orEmpty(arguments any) any {
	if members, ok := arguments.(map[string]any); arguments == nil || ok && len(members) == 0 {
		return map[string]any{}
	}
	return arguments
}

// wrapArray puts a text that is an array into another array, and returns any other text unchanged.
// The outer array has one element. So it never equals the array with three elements that boundText
// makes.
func wrapArray(text []byte) []byte {
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		return text
	}
	return slices.Concat([]byte("["), text, []byte("]"))
}

// arrivals has the arguments of calls as the client sent them. It is used only if a hook or outer
// middleware may change the arguments before our middleware runs. The key is the
// RequestProtocolInfo of the request: mcp-go makes one for every request, and every context of the
// request has it. An entry is removed when its call ends. If the call panics, our hooks may not see
// its end. Then the entry is removed when the RequestProtocolInfo is garbage-collected.
var arrivals sync.Map // maps a weak.Pointer[server.RequestProtocolInfo] to the JSON of the arguments

// recordArrival remembers the arguments of a call before other hooks see them.
func recordArrival(ctx context.Context, _ any, _ mcp.MCPMethod, message any) {
	if req, ok := message.(*mcp.CallToolRequest); ok {
		if i := installed(ctx); i != nil && i.mayChange() {
			remember(ctx, &arrivals, bytes.Clone(req.Params.RawArguments))
		}
	}
}

// remember stores a value for a request. The key is the RequestProtocolInfo of the request, as in
// the map arrivals. If the map has a value for this request already, remember keeps that value,
// because a hook of the server's author may call our hooks again.
func remember(ctx context.Context, values *sync.Map, value any) {
	info := server.RequestProtocolInfoFromContext(ctx)
	if info == nil {
		return
	}
	key := weak.Make(info)
	if _, known := values.LoadOrStore(key, value); !known {
		runtime.AddCleanup(info, func(key weak.Pointer[server.RequestProtocolInfo]) { values.Delete(key) }, key)
	}
}

// remembered returns the value that the map has for a request, or nil if it has none.
func remembered(ctx context.Context, values *sync.Map) any {
	info := server.RequestProtocolInfoFromContext(ctx)
	if info == nil {
		return nil
	}
	value, _ := values.Load(weak.Make(info))
	return value
}

// forgetArrival forgets the arguments of a call that has ended, or that runs as a task. A handler
// may keep the context of its call, and mcp-go keeps the context of a task for any time that the
// client wants. A task cannot ask, so no token is bound to its arguments.
func forgetArrival(ctx context.Context) {
	i := installed(ctx)
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && i != nil && i.mayChange() {
		arrivals.Delete(weak.Make(info))
	}
}

// boundTo returns the text that the token of a call is bound to. Middleware may pass on a context
// that does not tell what the client sent, or call the handler after the call has ended. Then
// boundTo returns an unbindable text, and unknown is true.
func (i *installation) boundTo(ctx context.Context, params *mcp.CallToolParams) (text []byte, unknown bool) {
	if !i.mayChange() {
		return wrapArray(params.RawArguments), false
	}
	sent, ok := remembered(ctx, &arrivals).([]byte)
	switch {
	case ok:
		return boundText(sent, params, i.policy.MaxArguments), false
	case params.Task != nil:
		return boundText(params.RawArguments, params, i.policy.MaxArguments), false // see forgetArrival
	}
	return unbindable(), true
}

// mayChange reports whether a hook of the server's author, or middleware that was added before
// Protect, may change the arguments of a call before our middleware runs. Each of the two lists of
// hooks has one hook of ours, so a second one is the author's.
func (i *installation) mayChange() bool {
	h := i.hooks.Value()
	return i.outer || h != nil && (len(h.OnBeforeAny) > 1 || len(h.OnBeforeCallTool) > 1)
}

// hasMiddleware reports whether a server already has middleware of these kinds. mcp-go has no method
// for this, so hasMiddleware reads private fields. If a later release of mcp-go has no such fields,
// hasMiddleware returns true, which costs only time.
func hasMiddleware(srv *server.MCPServer, kinds ...string) bool {
	for _, kind := range kinds {
		if field := reflect.ValueOf(srv).Elem().FieldByName(kind + "HandlerMiddlewares"); field.Kind() != reflect.Slice || field.Len() > 0 {
			return true
		}
	}
	return false
}

// equalJSON reports whether two values are equal. The second value must be one that encoding/json
// decoded into a variable of type any. equalJSON goes no deeper than the second value does. So it
// returns even if the first value is cyclic: a map or slice that contains itself.
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
		return ok && v == d && math.Signbit(v) == math.Signbit(d)
	case bool:
		v, ok := value.(bool)
		return ok && v == d
	}
	return value == nil && decoded == nil
}

// unbindable returns a text for arguments to which no token can be bound. The text is not JSON, so
// the native format refuses to seal a token for it. A format of the author may accept the text. But
// the text is random, so a token that is bound to it opens in no other call.
func unbindable() []byte { return []byte("!" + rand.Text()) }

// jsonOf returns the JSON of a value. If the value cannot be written as JSON, jsonOf returns an
// unbindable text. It does the same if a text in the value may be invalid UTF-8: encoding/json
// writes U+FFFD for invalid UTF-8, so different values could have the same JSON.
func jsonOf(value any) (text []byte) {
	if tripseal.Guard(func() (err error) {
		var written bytes.Buffer
		encoder := json.NewEncoder(&written)
		encoder.SetEscapeHTML(false) // an escape takes six bytes, which would count against the limit
		err = encoder.Encode(value)
		if text = bytes.TrimSuffix(written.Bytes(), []byte("\n")); err == nil && hasReplacement(text) && !isUTF8(value) {
			err = errors.New("not UTF-8")
		}
		return err
	}) != nil {
		return unbindable()
	}
	return text
}

// hasReplacement reports whether a JSON text contains U+FFFD. Depending on GOEXPERIMENT,
// encoding/json writes the character itself or its escape.
func hasReplacement(text []byte) bool {
	return bytes.ContainsRune(text, utf8.RuneError) || bytes.Contains(text, []byte(`\ufffd`))
}

// isUTF8 reports whether all text in a value is UTF-8. It looks into a string, []string, []any and
// map[string]any. For a part of any other type, isUTF8 returns false if the JSON of the part
// contains U+FFFD. The value is not cyclic, because encoding/json has already written the value.
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
	case []string:
		return !slices.ContainsFunc(v, func(item string) bool { return !utf8.ValidString(item) })
	}
	text, err := json.Marshal(value)
	return err == nil && !hasReplacement(text)
}
