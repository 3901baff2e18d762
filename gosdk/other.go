package gosdk

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

// serveOther serves the methods for which nothing is sealed: all methods except
// tools/call, prompts/get, resources/read and the lists. So it refuses params and results
// with a state, questions or answers.
func (p *Protection) serveOther(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) (mcp.Result, error) {
	if carriesInput(req.GetParams()) {
		return nil, p.refuse(ctx, tripseal.PlainText(method), "params with a state or answers were refused: nothing seals them for this method")
	}
	if method == methodListen && isOlder(req) {
		// The method is refused: no older revision has it, and some releases of the SDK
		// never end a session on which it was sent.
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found"}
	}
	result, err := next(ctx, method, withSessions(req))
	return p.withoutInput(ctx, method, result, err)
}

// withoutInput returns the given result and error unchanged, but refuses a result with
// a state or questions.
func (p *Protection) withoutInput(ctx context.Context, method string, result mcp.Result, err error) (mcp.Result, error) {
	if err == nil && carriesInput(result) {
		return nil, p.refuse(ctx, tripseal.PlainText(method), "a result with a state or questions was refused: nothing seals them for this method, "+
			"ask from a tool, a prompt or a resource")
	}
	return result, err
}

const methodListen = "subscriptions/listen"

// inputMembers are the members that multi round-trip requests add to params and results.
var inputMembers = []string{"requestState", "inputRequests", "inputResponses"}

// carriesInput reports whether params or a result have a member that inputMembers lists
// and that is not empty. It checks the SDK's own types field by field, and the JSON of
// any other type.
func carriesInput(message any) bool {
	v := reflect.ValueOf(message)
	for v.Kind() == reflect.Pointer {
		v = v.Elem() // an invalid Value if the pointer is nil
	}
	if !v.IsValid() {
		return false
	}
	if v.Kind() != reflect.Struct || v.Type().PkgPath() != sdkPackage {
		return jsonCarriesInput(message)
	}
	for _, index := range inputFields(v.Type()) {
		// FieldByIndexErr fails if an embedded pointer is nil: then the message has no
		// such field.
		if field, err := v.FieldByIndexErr(index); err == nil && !field.IsZero() {
			return true
		}
	}
	return false
}

var sdkPackage = reflect.TypeFor[mcp.CallToolResult]().PkgPath()

func jsonCarriesInput(message any) bool {
	text, err := json.Marshal(message)
	if err != nil {
		return true // what cannot be checked must be refused
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return false // not an object, so it has no members
	}
	for name, value := range members {
		isInput := slices.ContainsFunc(inputMembers, func(member string) bool { return strings.EqualFold(name, member) })
		if isInput && string(value) != "null" && string(value) != `""` {
			return true
		}
	}
	return false
}

var inputFieldsOf sync.Map // caches the results of inputFields: a [][]int for each reflect.Type

// inputFields finds the fields of an SDK struct that have one of the inputMembers as their name in
// JSON. It returns the reflect index of each field.
func inputFields(t reflect.Type) [][]int {
	if known, ok := inputFieldsOf.Load(t); ok {
		return known.([][]int)
	}
	var found [][]int
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			name = field.Name
		}
		for _, member := range inputMembers {
			if field.IsExported() && strings.EqualFold(name, member) {
				found = append(found, field.Index)
			}
		}
	}
	inputFieldsOf.Store(t, found)
	return found
}
