package mcpgo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/big"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/exactjson"
	"github.com/mcpseal/mcpseal/mcpgo/internal/passage"
)

// Nothing tells when a call is over, for example if its handler panics. So its arguments are
// forgotten when its protocol information is garbage-collected.
func TestTheArgumentsOfACallAreForgotten(t *testing.T) {
	b := newBoundary(t)
	before, held := arrivalsHeld(), 0
	hooks := new(server.Hooks)
	hooks.AddBeforeAny(func(context.Context, any, mcp.MCPMethod, any) { held = max(held, arrivalsHeld()) })
	srv := server.NewMCPServer("test", "1", server.WithHooks(hooks))
	Protect(srv, b, &Options{AllowAnonymous: true})
	srv.AddTool(mcp.NewTool("t"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("over") })
	for range 100 {
		srv.HandleMessage(t.Context(), json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1}}}`))
	}
	if held <= before {
		t.Fatal("nothing was remembered")
	}
	for range 100 {
		if runtime.GC(); arrivalsHeld() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d of 100 are held for ever", arrivalsHeld()-before)
}

// mcp-go keeps the context of a task after the task has ended, and even for ever if the client
// sets no time to live. The arguments must be forgotten earlier, even if middleware from before
// Protect answers for the task and ours does not run.
func TestTheArgumentsOfAFinishedTaskAreForgotten(t *testing.T) {
	hooks := new(server.Hooks)
	hooks.AddBeforeCallTool(func(context.Context, any, *mcp.CallToolRequest) {})
	deny := func(server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errors.New("denied")
		}
	}
	for name, option := range map[string]server.ServerOption{
		"hooks": server.WithHooks(hooks), "outer middleware": server.WithRecovery(), "outer middleware that answers": server.WithToolHandlerMiddleware(deny),
	} {
		synctest.Test(t, func(t *testing.T) {
			boundary, err := mcpseal.New(mcpseal.Config{Keys: mcpseal.Ephemeral(), Audience: "test", Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			srv := server.NewMCPServer("test", "1", option, server.WithTaskCapabilities(true, true, true))
			Protect(srv, boundary, &Options{AllowAnonymous: true, Logger: slog.New(slog.DiscardHandler)})
			srv.AddTool(mcp.NewTool("either", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("done"), nil
			})
			srv.AddTaskTool(mcp.NewTool("task", mcp.WithTaskSupport(mcp.TaskSupportRequired)), func(context.Context, mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
				return &mcp.CreateTaskResult{}, nil
			})
			before := map[any]bool{}
			arrivals.Range(func(key, _ any) bool { before[key] = true; return true })
			for _, tool := range []string{"either", "task"} {
				call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","task":{},"arguments":{"a":1}}}`
				if answer, _ := json.Marshal(srv.HandleMessage(context.Background(), json.RawMessage(call))); !bytes.Contains(answer, []byte(`"taskId"`)) {
					t.Fatalf("%s, %s: %s", name, tool, answer)
				}
			}
			synctest.Wait() // until both tasks have run
			if strings.HasSuffix(name, "answers") {
				time.Sleep(taskTimeout + time.Second)
			}
			arrivals.Range(func(key, value any) bool {
				if a := value.(*passage.Arguments); !before[key] && len(a.Sent)+len(a.Settled) > 0 {
					t.Errorf("%s: the arguments of a finished task are held: %s", name, a.Tool)
				}
				return true
			})
			runtime.KeepAlive(srv)
		})
	}
}

func arrivalsHeld() (n int) {
	arrivals.Range(func(any, any) bool { n++; return true })
	return n
}

// hasMiddleware reads a private field of mcp-go. If a newer mcp-go has no such field, every call
// would pay for outer middleware, even if there is none.
func TestMiddlewareThatWasAddedBeforeProtectIsFound(t *testing.T) {
	for _, has := range []bool{false, true} {
		srv := server.NewMCPServer("test", "1")
		if has {
			srv.Use(func(next server.ToolHandlerFunc) server.ToolHandlerFunc { return next })
		}
		if got := hasMiddleware(srv); got != has {
			t.Errorf("got %t, want %t", got, has)
		}
	}
}

// FuzzSettle changes one form of the arguments, or both. After settle, both forms must have the
// change, and settling them again must change nothing.
func FuzzSettle(f *testing.F) {
	f.Fuzz(func(t *testing.T, sent, changed string) {
		var value, other any
		if sent != "" && json.Unmarshal([]byte(sent), &value) != nil || json.Unmarshal([]byte(changed), &other) != nil {
			t.Skip()
		}
		for name, params := range map[string]mcp.CallToolParams{
			"raw":     {Arguments: value, RawArguments: json.RawMessage(changed)},
			"decoded": {Arguments: other, RawArguments: json.RawMessage(sent)},
			"both":    {Arguments: other, RawArguments: json.RawMessage(changed)},
			"removed": {Arguments: other},
		} {
			a := &passage.Arguments{Sent: []byte(sent), Settled: []byte(sent)}
			if err := settle(&params, a); err == errMoved && hasFragile([]byte(sent)) && hasLong([]byte(changed)) {
				continue
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var read any
			if len(params.RawArguments) > 0 && json.Unmarshal(params.RawArguments, &read) != nil {
				t.Fatalf("%s: %s is not JSON", name, params.RawArguments)
			}
			if !reflect.DeepEqual(read, params.Arguments) || !reflect.DeepEqual(read, other) {
				t.Fatalf("%s: %v and %s, want %s", name, params.Arguments, params.RawArguments, changed)
			}
			again := params
			if err := settle(&again, a); err != nil || fmt.Sprint(again) != fmt.Sprint(params) {
				t.Fatalf("%s: settled again: %v, %v, was %v", name, again, err, params)
			}
			if !bytes.Equal(a.Settled, params.RawArguments) {
				t.Fatalf("%s: %s is recorded in place of %s", name, a.Settled, params.RawArguments)
			}
			isLong := hasLong(params.RawArguments) // a typed handler reads all digits of a long number
			if checkAlike(a) == nil && !isLong && !readAlike(params.RawArguments) {
				t.Fatalf("%s: a typed handler reads %s otherwise", name, params.RawArguments)
			}
		}
	})
}

// FuzzRewrittenText sets a member of decoded arguments, and writes their JSON anew, as a hook may
// do. Each whole number that reaches the handler must be the one that was sent.
func FuzzRewrittenText(f *testing.F) {
	f.Fuzz(func(t *testing.T, sent string) {
		var value map[string]any
		if json.Unmarshal([]byte(sent), &value) != nil || value == nil || !exactjson.Distinct([]byte(sent)) {
			t.Skip()
		}
		set := maps.Clone(value)
		set["tenant"] = "own"
		text, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		for name, params := range map[string]mcp.CallToolParams{
			"raw":     {Arguments: value, RawArguments: text},
			"decoded": {Arguments: set, RawArguments: json.RawMessage(sent)},
			"both":    {Arguments: set, RawArguments: text},
		} {
			if settle(&params, &passage.Arguments{Sent: []byte(sent), Settled: []byte(sent)}) != nil {
				continue
			}
			was, _ := readNumbers([]byte(sent))
			now, _ := readNumbers(params.RawArguments)
			delete(was.(map[string]any), "tenant")
			delete(now.(map[string]any), "tenant")
			if !equalWhole(was, now) {
				t.Fatalf("%s: %s became %s", name, sent, params.RawArguments)
			}
		}
	})
}

// equalWhole reports whether all whole numbers of up to 64 bits are the same in two values.
func equalWhole(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		one, ok := new(big.Rat).SetString(string(a))
		number, _ := b.(json.Number)
		other, otherOK := new(big.Rat).SetString(string(number))
		return ok && otherOK && (one.Cmp(other) == 0 || !one.IsInt() || one.Num().BitLen() > 64)
	case map[string]any:
		for name, member := range a {
			if other, ok := b.(map[string]any); !ok || !equalWhole(member, other[name]) {
				return false
			}
		}
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, equalWhole)
	}
	return true
}

// readAlike reports whether a typed handler reads the same numbers from a text as are in the
// decoded form of the text.
func readAlike(text []byte) bool {
	var decoded map[string]any
	var typed struct {
		A *int64
		B map[string]struct{ A *int64 }
	}
	if json.Unmarshal(text, &decoded) != nil || json.Unmarshal(text, &typed) != nil {
		return true
	}
	isAlike := func(members map[string]any, a *int64) bool {
		for name, member := range members {
			if f, ok := member.(float64); ok && a != nil && strings.EqualFold(name, "a") {
				return f == float64(*a) && (math.Abs(f) < 1<<53 || f < math.MaxInt64 && int64(f) == *a)
			}
		}
		return true
	}
	for name, b := range typed.B {
		for outer, members := range decoded {
			members, _ := members.(map[string]any)
			if inner, ok := members[name].(map[string]any); ok && strings.EqualFold(outer, "b") && !isAlike(inner, b.A) {
				return false
			}
		}
	}
	return isAlike(decoded, typed.A)
}

// Servers of other SDKs open the same tokens, and bind them to the object that arrived. So if
// arguments were changed, a token must be bound to a text that is not an object. For each pair of
// sent and changed arguments, this text must be another one.
func TestTheTextThatChangedArgumentsAreBoundToIsNotThatOfOthers(t *testing.T) {
	texts := []string{
		``, `{}`, `{"a":1}`, `[]`, `[{}]`, `[{},{}]`, `[{},{"a":1}]`, `[{"a":1},{}]`, `[[{},{"a":1}]]`, ` [[]]`, `[[],[]]`, `5`, `"a"`, `{"a":[{},{}]}`,
	}
	seen := make(map[string]string)
	for _, sent := range texts {
		for _, text := range texts {
			c := call{arguments: []byte(text)}
			c.bindSent([]byte(sent), 1<<10)
			bound := "{}"
			if len(c.arguments) > 0 {
				var compact bytes.Buffer
				if err := json.Compact(&compact, c.arguments); err != nil {
					t.Fatalf("%s, %s: %v", sent, text, err)
				}
				bound = compact.String()
			}
			if isArray := bound[0] == '['; !isArray && !exactjson.Same([]byte(sent), []byte(text)) {
				t.Errorf("%s became %s, which is bound to %s", sent, text, bound)
			}
			pair := fmt.Sprint(orEmpty([]byte(sent)), orEmpty([]byte(text)))
			if other, ok := seen[bound]; ok && other != pair {
				t.Errorf("%s became %s, which is bound to %s, as is another pair", sent, text, bound)
			}
			seen[bound] = pair
		}
	}
	for _, value := range []any{[]any{1.0, 2.0}, []int{1, 2}} { // as in a handler that seals its state itself, on a server without Protect
		p := Prepare(newBoundary(t), &Options{AllowAnonymous: true})
		var req mcp.CallToolRequest
		req.Params.Arguments = value
		if r, err := p.Request(t.Context(), req); err != nil || string(r.Arguments) != `[[1,2]]` {
			t.Errorf("%v: %s, %v", value, r.Arguments, err)
		}
	}
}

func newBoundary(t *testing.T) *mcpseal.Boundary {
	t.Helper()
	b, err := mcpseal.New(mcpseal.Config{Keys: mcpseal.Ephemeral()})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// If nobody changes the arguments, they are decoded once. After that, checking them again costs
// only a comparison.
func TestUnchangedArgumentsAreDecodedOnce(t *testing.T) {
	const sent = `{"a":[{"b":1},{"b":[1,2,3]}],"c":{"d":"e","f":[true,null]}}`
	params := mcp.CallToolParams{RawArguments: json.RawMessage(sent)}
	if err := json.Unmarshal(params.RawArguments, &params.Arguments); err != nil {
		t.Fatal(err)
	}
	a := &passage.Arguments{Sent: []byte(sent), Settled: []byte(sent)}
	both := func() {
		if settle(&params, a) != nil || checkAlike(a) != nil {
			t.Fatal("refused")
		}
	}
	both()
	if n := testing.AllocsPerRun(10, both); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
