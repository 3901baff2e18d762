package mcpgo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/mcpgo/internal/passage"
)

// A call of a tool has its arguments in two forms: RawArguments is the JSON that the
// client sent, and Arguments is the value that mcp-go decoded from it. A handler may read
// either form, and a hook or middleware of the author may change either form. The code in
// this file finds the form that was changed, and changes the other form too. So a handler
// gets the change in whichever form it reads. A hook and a handler may still read
// different values from the same form: readings.go refuses arguments for which this is
// possible.

const errDisagree = mcpseal.PlainError("a hook or middleware changed Params.Arguments and Params.RawArguments of a call, and they disagree or are not JSON: " +
	"change one of them, or both in the same way")

const errCleared = mcpseal.PlainError("a hook or middleware passed on a call with Params.RawArguments, but Params.Arguments is nil: " +
	"set both, or set Arguments to an empty map to remove the arguments")

const errCalled = mcpseal.PlainError("a handler called the handler of a paged tool with Params.Arguments and Params.RawArguments that disagree: " +
	"change both, or call it with a new request that has Arguments alone")

const errLost = mcpseal.PlainError("middleware from before Protect passed on a context in which nothing tells how the arguments of the call arrived: " +
	"keep the RequestProtocolInfo of the call, because a hook may have read other arguments than the handler would get")

const errRenamed = mcpseal.PlainError("middleware from before Protect changed Params.Name of a call, after mcp-go chose the handler: " +
	"a token would be bound to another tool than the one that runs: add the middleware after Protect, or change the name in a hook")

const errRepeated = mcpseal.PlainError("middleware from before Protect ran a task a second time, or long after the call: " +
	"its arguments were forgotten, so nothing tells whether hooks and the handler read the same")

// settle brings both forms of the arguments into agreement, and records the result in the
// parameter a. It replaces a form as a whole and never writes into it, because others may
// hold the same memory.
func settle(params *mcp.CallToolParams, a *passage.Arguments) error {
	raw, value := params.RawArguments, params.Arguments
	if isNull(value) {
		value = nil
	}
	sameRaw, sameValue := bytes.Equal(raw, a.Settled), equalJSON(value, a.Decoded())
	if sameRaw && sameValue {
		return nil
	}
	if value == nil && !sameValue && len(raw) > 0 {
		return errCleared // was Arguments cleared, or RawArguments put into a new request?
	}
	if !sameRaw && !sameValue { // whoever copies a request through JSON spells RawArguments in another way
		sameRaw = len(raw) > 0 && meanSame(raw, a.Settled)
	}
	written := bytes.Clone(a.Settled)
	if !sameValue {
		written = write(value, a.Settled) // nil if the value cannot be written as JSON: then the old JSON must not be used either
		sameValue = written != nil && meanSame(written, a.Settled)
	}
	switch {
	case sameRaw && sameValue:
	case sameRaw || len(raw) == 0: // only Arguments was changed; if RawArguments is empty, mcp-go reads Arguments
		if hasLong(written) && hasFragile(a.Settled) {
			return errMoved
		}
		params.RawArguments = written
	case sameValue:
		var anew any
		if json.Unmarshal(raw, &anew) != nil {
			return errDisagree
		}
		params.Arguments = anew
	case !agree(raw, value):
		return errDisagree
	}
	if mayBeRounded(params.RawArguments, a.Settled) || !bytes.Equal(a.Sent, a.Settled) && mayBeRounded(params.RawArguments, a.Sent) {
		return errMoved
	}
	a.Settle(params.RawArguments)
	return nil
}

// isNull reports whether the JSON of a value is null, because the value is a nil of any type.
func isNull(value any) bool {
	if text, ok := value.(json.RawMessage); ok {
		return len(text) == 0 || string(bytes.TrimSpace(text)) == "null"
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Map, reflect.Slice, reflect.Pointer:
		return v.IsNil()
	}
	return false
}

// settleUnknown does the same as settle, for a call whose original arguments are not
// known.
func settleUnknown(params *mcp.CallToolParams) error {
	if len(params.RawArguments) == 0 {
		if err := settle(params, new(passage.Arguments)); err != nil {
			return err
		}
		if hasLong(params.RawArguments) {
			return errMoved
		}
		return nil
	}
	if !agree(params.RawArguments, params.Arguments) {
		return errDisagree
	}
	return nil
}

// equalJSON reports whether a value equals another value, which encoding/json decoded into an
// any. It goes no deeper than the decoded value does, so it returns even if the first value
// is cyclic: a map or slice that contains itself.
func equalJSON(value, other any) bool {
	switch d := other.(type) {
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
	return value == nil && other == nil
}

// agree reports whether a text is the JSON of a value. An empty text agrees with nil.
func agree(text []byte, value any) bool {
	again, ok := textOf(value, text)
	return ok && meanSame(again, text)
}

// meanSame reports whether two texts have the same JSON value. Numbers are the same only
// if they are written in the same way.
func meanSame(text, other []byte) bool {
	if bytes.Equal(text, other) {
		return true
	}
	one, err := readNumbers(text)
	two, otherErr := readNumbers(other)
	return err == nil && otherErr == nil && reflect.DeepEqual(one, two)
}

// textOf returns the JSON of a value. If the value is what the given text decodes to, textOf
// returns a copy of that text. The result ok is false if the value cannot be written as
// JSON.
func textOf(value any, text []byte) (written []byte, ok bool) {
	var was any
	if (len(text) == 0 || json.Unmarshal(text, &was) == nil) && equalJSON(value, was) {
		return bytes.Clone(text), true
	}
	written = write(value, text)
	return written, written != nil
}

// write returns the JSON of a value, or nil if the value cannot be written as JSON. The value
// was decoded from the given text and may have been changed. Numbers that have not changed
// are written as in that text, because a float64 does not hold all their digits.
func write(value any, text []byte) []byte {
	numbers, _ := readNumbers(text)
	written := jsonOf(keepNumbers(value, numbers))
	if !json.Valid(written) {
		return nil
	}
	return written
}

// readNumbers decodes JSON, and keeps each number as it is written. It returns nil for an
// empty text.
func readNumbers(text []byte) (value any, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	if !json.Valid(text) { // json.Decoder ignores text that follows the value
		return nil, errors.New("not JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

// keepNumbers returns a copy of a value with exact numbers. The value was decoded from a JSON
// text, so its numbers may be rounded, and it may have been changed since. The source is
// what readNumbers decoded from the same text: its numbers have all digits. Where both have
// an equal number at the same place, the copy has that of the source. Where the source has
// nothing, the value is not copied but used as it is. So keepNumbers returns even if the value
// contains itself.
func keepNumbers(value, source any) any {
	switch v := value.(type) {
	case float64:
		if number, ok := source.(json.Number); ok {
			if f, err := number.Float64(); err == nil && f == v {
				return number
			}
		}
	case map[string]any:
		if members, ok := source.(map[string]any); ok && v != nil {
			kept := make(map[string]any, len(v))
			for name, member := range v {
				kept[name] = keepNumbers(member, members[name])
			}
			return kept
		}
	case []any:
		if items, ok := source.([]any); ok && len(items) == len(v) {
			kept := make([]any, len(v))
			for i, item := range v {
				kept[i] = keepNumbers(item, items[i])
			}
			return kept
		}
	}
	return value
}

// arrivals has the original arguments of calls that hooks or other middleware may change
// before our middleware runs. The key is the RequestProtocolInfo of the request: mcp-go
// makes one for every request and stores it in the request's context, so every derived
// context has it too. An entry is removed when its RequestProtocolInfo is
// garbage-collected. mcp-go keeps the RequestProtocolInfo of a task for as long as the
// client wants, so the arguments of a task are forgotten earlier.
var arrivals sync.Map // maps a weak.Pointer[server.RequestProtocolInfo] to a *passage.Arguments

// recordArrival remembers the arguments of a call before other hooks see them.
func recordArrival(ctx context.Context, _ any, method mcp.MCPMethod, message any) {
	if method != mcp.MethodToolsCall {
		return
	}
	req, ok := message.(*mcp.CallToolRequest)
	info := server.RequestProtocolInfoFromContext(ctx)
	if i := installed(ctx); !ok || info == nil || i == nil || !i.othersSeeCalls() && !i.outer {
		return
	}
	sent := bytes.Clone(req.Params.RawArguments)
	key := weak.Make(info)
	if _, known := arrivals.LoadOrStore(key, &passage.Arguments{Sent: sent, Settled: sent}); !known { // a hook of the author may call this one again
		runtime.AddCleanup(info, removeArrival, key)
	}
}

// taskTimeout is how long the arguments of a task are kept at most. Middleware from before
// Protect may return a result without running the task. Our middleware, which forgets the
// arguments after the task has run, is then never called.
const taskTimeout = 10 * time.Minute

// forgetTaskLater makes sure that the arguments of a task are forgotten. For a task tool,
// they are forgotten at once: it runs without our middleware, so nothing needs them.
func forgetTaskLater(ctx context.Context, isTaskTool bool) {
	key := weak.Make(server.RequestProtocolInfoFromContext(ctx))
	if isTaskTool {
		forgetTask(key)
	} else if a := arrivalOf(ctx); a != nil {
		a.Timeout = time.AfterFunc(taskTimeout, func() { dropTexts(key) })
		a.DropDecoded() // it may take many times the memory of the texts
		dropOldTasks(key, len(a.Sent)+len(a.Settled))
	}
}

// tasks has the latest tasks, with the lengths of their texts. Many of them have run already.
var tasks = struct {
	mu    sync.Mutex
	queue []queuedTask // the oldest first
	bytes int          // the total length of their texts
	limit int          // the greatest total length
}{limit: 64 << 20}

type queuedTask struct {
	key   weak.Pointer[server.RequestProtocolInfo]
	bytes int
}

// dropOldTasks adds a task to the latest tasks. If their texts are then too long together, it
// forgets the arguments of the oldest. A task needs its arguments only when it begins to run.
func dropOldTasks(key weak.Pointer[server.RequestProtocolInfo], bytes int) {
	bytes += 256 // for the entries themselves
	tasks.mu.Lock()
	defer tasks.mu.Unlock()
	tasks.queue, tasks.bytes = append(tasks.queue, queuedTask{key, bytes}), tasks.bytes+bytes
	for tasks.bytes > tasks.limit && len(tasks.queue) > 1 {
		forgetTask(tasks.queue[0].key)
		tasks.bytes -= tasks.queue[0].bytes
		tasks.queue = tasks.queue[1:]
	}
}

// forgetTask forgets the arguments that recordArrival has remembered for a task.
func forgetTask(key weak.Pointer[server.RequestProtocolInfo]) {
	if a := dropTexts(key); a != nil {
		stop(a.Timeout)
	}
}

// dropTexts replaces an entry by one without texts, and returns the old entry, or nil if
// there is none.
func dropTexts(key weak.Pointer[server.RequestProtocolInfo]) *passage.Arguments {
	entry, ok := arrivals.Load(key)
	if !ok {
		return nil
	}
	a := entry.(*passage.Arguments)
	arrivals.CompareAndSwap(key, a, &passage.Arguments{Tool: a.Tool, IsTask: true, IsForgotten: true})
	return a
}

// removeArrival removes what is left of a call when its RequestProtocolInfo is gone.
func removeArrival(key weak.Pointer[server.RequestProtocolInfo]) {
	if entry, ok := arrivals.LoadAndDelete(key); ok {
		stop(entry.(*passage.Arguments).Timeout)
	}
}

func stop(timer *time.Timer) {
	if timer != nil {
		timer.Stop()
	}
}

// arrivalOf returns the arguments that recordArrival has remembered for a call, or nil if
// there are none.
func arrivalOf(ctx context.Context) *passage.Arguments {
	info := server.RequestProtocolInfoFromContext(ctx)
	if info == nil {
		return nil
	}
	a, _ := arrivals.Load(weak.Make(info))
	remembered, _ := a.(*passage.Arguments)
	return remembered
}

// settleHooks settles the arguments of a call after all hooks have seen the call. If it
// refuses the arguments, the middleware will refuse the call. But mcp-go runs a task tool
// without middleware. So if settleHooks refuses the arguments, it also turns the call into
// an ordinary call, which a task tool refuses.
func (i *installation) settleHooks(ctx context.Context, params *mcp.CallToolParams, a *passage.Arguments) {
	err := settle(params, a)
	if err == nil {
		err = checkAlike(a)
	}
	if err != nil {
		a.Refused = i.refuseArguments(ctx, params.Name, err)
		params.Task = nil
	}
}

// settleOuter settles the arguments of a call after outer middleware has seen the call.
// It returns how the arguments arrived, or nil if nobody needs to know that.
func (i *installation) settleOuter(ctx context.Context, params *mcp.CallToolParams) (*passage.Arguments, error) {
	if !i.outer && !i.othersSeeCalls() {
		if string(params.RawArguments) == notJSON {
			return nil, errParams
		}
		if !i.paged.hasAny() {
			return nil, nil
		}
		sent := bytes.Clone(params.RawArguments)
		return &passage.Arguments{Tool: params.Name, Sent: sent, Settled: sent}, nil // settleInner needs this if inner middleware changes the arguments of a paged tool
	}
	var now passage.Arguments
	var err error
	if a := arrivalOf(ctx); a != nil && a.Refused != nil {
		return nil, a.Refused
	} else if a != nil && a.IsForgotten {
		err = errRepeated
	} else if a != nil && a.Tool != params.Name {
		err = errRenamed
	} else if a != nil {
		if now = *a; i.outer {
			err = settle(params, &now)
		}
	} else if i.othersSeeCalls() || i.paged.hasAny() {
		err = errLost // nothing tells whether settleHooks has refused the arguments
	} else {
		now.Sent = bytes.Clone(params.RawArguments)
		if err = settleUnknown(params); err == nil && hasLong(params.RawArguments) {
			err = errMoved
		}
		now.Settle(params.RawArguments)
	}
	if err == nil {
		err = checkAlike(&now)
	}
	if err != nil {
		return nil, i.refuseArguments(ctx, params.Name, err)
	}
	now.Tool = params.Name
	return &now, nil
}

// settleInner makes both forms of the arguments agree, as settle does, after inner
// middleware has seen a call of the named tool. It returns the JSON that the client sent,
// and the JSON that the handler must get. If the handler of another tool makes the call,
// nobody knows what the client sent; then the first result is RawArguments of this call.
func settleInner(ctx context.Context, tool string, params *mcp.CallToolParams) (sent, text []byte, err error) {
	if a := passage.From(ctx).Arguments; a != nil && a.Tool == tool {
		now := *a
		sent, err = a.Sent, settle(params, &now)
	} else {
		if params.Arguments == nil { // a handler may have set RawArguments and left Arguments nil
			json.Unmarshal(params.RawArguments, &params.Arguments) // if this is not JSON, settleUnknown refuses the call
		}
		if err = settleUnknown(params); err == errDisagree { // if there is no error, this may have set params.RawArguments
			err = errCalled
		}
		sent = params.RawArguments
	}
	if text = params.RawArguments; len(text) == 0 && params.Arguments != nil {
		// If err is nil, RawArguments is empty here only because Arguments cannot be written as
		// JSON. Then jsonOf returns a text that is refused later.
		text = jsonOf(params.Arguments)
	}
	return sent, text, err
}

// hasMiddleware reports whether a server already has middleware for tools. mcp-go has no
// method for this, so hasMiddleware reads a private field. If a later release of mcp-go
// has no such field, hasMiddleware returns true, which costs only time.
func hasMiddleware(srv *server.MCPServer) bool {
	field := reflect.ValueOf(srv).Elem().FieldByName("toolHandlerMiddlewares")
	return field.Kind() != reflect.Slice || field.Len() > 0
}
