package sealtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/internal/jsonorder"
	"github.com/tripseal/tripseal/sealtest"
)

// fakeAdapter is a small adapter without an SDK. It has at most one fault.
type fakeAdapter struct {
	sealtest.AdapterServer
	fault   string
	cursors cursor.Issuer
	tokens  sync.Map // the cache that the fault "cached tokens" uses
}

// fakeWith returns a function that starts fake adapters with this fault; "" means none.
func fakeWith(fault string) func(*testing.T, sealtest.AdapterServer) sealtest.AdapterClient {
	return func(t *testing.T, server sealtest.AdapterServer) sealtest.AdapterClient {
		f := &fakeAdapter{AdapterServer: server, fault: fault}
		config := f.Boundary.Config()
		switch fault {
		case "its own audience":
			config.Audience = "fixed"
		case "its own policy for single use":
			config.Replay = nil
		case "its own policy for expiry":
			config.AskAgain = tripseal.AskAgainIfExpired
		case "its own keys":
			config.Keys, config.Format = sharedRing, nil
		case "its own limits":
			config.MaxState, config.MaxToken, config.MaxArguments = 2<<20, 8<<20, 4<<20
		case "its own users":
			config.RequireUser = false
		}
		boundary, err := tripseal.New(config)
		if err != nil {
			t.Fatal(err)
		}
		cursors, ok := cursor.ConfigOf(boundary)
		if ok {
			if f.cursors, err = cursor.New(cursors); err != nil {
				t.Fatal(err)
			}
		}
		f.Boundary = boundary
		return f.serve
	}
}

var sharedRing = tripseal.Ephemeral()

// fakeParams has the params of all methods.
type fakeParams struct {
	Name, URI, Cursor string
	Arguments         json.RawMessage
	RequestState      *string
	InputResponses    map[string]json.RawMessage
	Meta              struct {
		Capabilities map[string]map[string]any `json:"io.modelcontextprotocol/clientCapabilities"`
	} `json:"_meta"`

	exactState     string
	exactArguments json.RawMessage
}

func (f *fakeAdapter) serve(user string, text []byte) (response []byte) {
	var request struct {
		ID     int
		Method string
		Params fakeParams
	}
	malformed := json.Unmarshal(text, &request)
	respond := func(result any, err error) []byte {
		answer := map[string]any{"jsonrpc": "2.0", "id": request.ID, "result": result}
		if err != nil {
			wire := tripseal.WireError{Code: -32603, Message: err.Error()}
			errors.As(err, &wire)
			delete(answer, "result")
			answer["error"] = wire
		}
		text, _ := json.Marshal(answer)
		return text
	}
	defer func() {
		if r := recover(); r != nil {
			if f.Logger.Error("a handler panicked"); f.fault != "panics tell" {
				r = "Internal error"
			}
			response = respond(nil, fmt.Errorf("%v", r))
		}
	}()
	if malformed != nil {
		return respond(nil, tripseal.WireError{Code: -32602, Message: "Invalid params"})
	}
	exactly(text, &request.Params)
	principal := func(ctx context.Context) (string, error) {
		name, err := f.Principal(ctx, user)
		switch {
		case f.fault == "failed principals are nobody" && err != nil:
			return "", nil
		case err == nil && name == "" && !f.AllowAnonymous && f.fault != "everybody may be nobody":
			return "", errors.New("no name")
		}
		return name, err
	}
	switch f.fault {
	case "no user":
		principal = nil
	case "failed principals are told":
		if _, err := principal(context.Background()); err != nil {
			return respond(nil, err)
		}
	}
	if strings.HasSuffix(request.Method, "/list") {
		return respond(f.list(principal, request.Method, request.Params.Cursor))
	}
	return respond(f.call(principal, request.Method, &request.Params))
}

// This function sets params.exactState and params.exactArguments. It reads only members with
// exactly the names requestState and arguments. It ignores RequestState, for example.
func exactly(text []byte, params *fakeParams) {
	var request struct{ Params map[string]json.RawMessage }
	json.Unmarshal(text, &request)
	json.Unmarshal(request.Params["requestState"], &params.exactState)
	params.exactArguments = request.Params["arguments"]
}

func (f *fakeAdapter) list(principal tripseal.Principal, method, text string) (any, error) {
	ctx := context.Background()
	handlers, field, key := f.Tools, "tools", "name"
	switch method {
	case "prompts/list":
		handlers, field = f.Prompts, "prompts"
	case "resources/list":
		handlers, field, key = f.Resources, "resources", "uri"
	case "resources/templates/list":
		handlers, field, key = f.Templates, "resourceTemplates", "uriTemplate"
	}
	open := tripseal.Request{Method: method, Principal: principal}
	switch f.fault {
	case "cursors for everybody":
		open.Principal = nil
	case "cursors for every list":
		open.Method = "list"
	case "cursors opened twice":
		f.cursors.Open(ctx, open, text)
	case "trimmed cursors":
		text = strings.TrimSpace(text)
	}
	var page cursor.Page
	var err error
	position := []byte(text)
	if f.fault != "plain cursors" {
		if page, err = f.cursors.Open(ctx, open, text); err != nil {
			return nil, cursor.Wire(err)
		}
		position = page.Position()
	}
	first, _ := strconv.Atoi(string(position))
	names := slices.Sorted(maps.Keys(handlers))
	last := min(len(names), max(0, first)+f.PageSize)
	var entries []any
	for _, name := range names[min(last, max(0, first)):last] {
		entries = append(entries, map[string]string{key: name})
	}
	result := map[string]any{field: entries}
	if last == len(names) {
		return result, nil
	}
	next := strconv.Itoa(last)
	if f.fault != "plain cursors" {
		if next, err = page.Next(ctx, cursor.NextPage{Position: []byte(next)}); err != nil {
			return nil, cursor.Wire(err)
		}
	}
	result["nextCursor"] = next
	return result, nil
}

func (f *fakeAdapter) handler(method, target string) sealtest.AdapterHandler {
	switch method {
	case "tools/call":
		return f.Tools[target]
	case "prompts/get":
		return f.Prompts[target]
	}
	if strings.HasPrefix(target, "test://host/items/") {
		return f.Templates["test://host/items/{id}"]
	}
	return f.Resources[target]
}

var errUnknown = errors.New("unknown target")

func (f *fakeAdapter) call(principal tripseal.Principal, method string, params *fakeParams) (any, error) {
	ctx, target, token := context.Background(), params.Name+params.URI, ""
	if params.RequestState != nil {
		token = *params.RequestState
	}
	handler := f.handler(method, target)
	arguments := any(params.Arguments)
	request := tripseal.Request{Method: method, Target: target, Arguments: bytes.Clone(params.Arguments), Principal: principal}
	if method == "prompts/get" {
		byName := make(map[string]string)
		json.Unmarshal(params.Arguments, &byName)
		arguments = byName
	}
	switch f.fault {
	case "no target":
		request.Target = ""
	case "no method":
		request.Method = "request"
	case "no arguments":
		request.Arguments = nil
	case "arguments byte by byte":
		request.Arguments = []byte(fmt.Sprintf("%q", params.Arguments))
	case "arguments that the handler changes":
		request.Arguments = params.Arguments
	case "arguments as floats":
		var value any
		json.Unmarshal(params.Arguments, &value)
		request.Arguments, _ = json.Marshal(value)
	case "arguments as strings":
		request.Arguments = []byte(strings.ReplaceAll(string(params.Arguments), `"`, ""))
		request.Arguments = []byte(strconv.Quote(string(request.Arguments)))
	case "arguments in another order in retries":
		if token != "" {
			request.Arguments = reversed(params.Arguments)
		}
	case "arguments by their exact name":
		request.Arguments = params.exactArguments
	case "states by their exact name":
		token = params.exactState
	case "unknown targets first":
		if handler == nil {
			return nil, errUnknown
		}
	case "an empty state counts":
		if params.RequestState != nil && token == "" {
			token = "empty"
		}
	case "trimmed tokens":
		token = strings.TrimSpace(token)
	case "long tokens are ignored":
		if len(token) > 64<<10 {
			token = ""
		}
	case "opens twice":
		f.Boundary.Open(ctx, request, token)
	case "logs tokens":
		f.Logger.Info("a call", "token", token)
	}
	round, err := f.Boundary.Open(ctx, request, token)
	if err != nil {
		return f.rejected(method, err)
	}
	if handler == nil {
		return nil, errUnknown
	}
	call := sealtest.AdapterCall{Arguments: arguments, Answers: f.answers(ctx, &round, token, params.InputResponses)}
	if params.URI != "" {
		call.Arguments = nil
	}
	call.State, _ = round.State()
	if adapter.PinsWording(&round) && f.fault != "pinned states" {
		call.State = ""
	}
	switch {
	case f.fault == "no state":
		call.State = ""
	case f.fault == "states by their exact name" && token == "" && params.RequestState != nil:
		call.State = *params.RequestState
	}
	result, err := handler(ctx, call)
	if err != nil {
		if f.fault == "errors are rejections" {
			return f.rejected(method, tripseal.ErrRejected)
		}
		return nil, err
	}
	if result.Questions == nil && (f.fault != "always a token" || !round.First()) {
		complete := f.complete(method, result.Text, false)
		if f.fault == "states of complete results" && result.State != "" {
			complete["requestState"] = result.State
		}
		return complete, nil
	}
	return f.ask(ctx, request, &round, params, result)
}

func (f *fakeAdapter) ask(ctx context.Context, request tripseal.Request, round *tripseal.Round, params *fakeParams, result sealtest.AdapterResult) (any, error) {
	var questions []tripseal.Question
	wording := map[string]any{}
	for key, kind := range result.Questions {
		questions = append(questions, tripseal.Question{Key: key, Kind: kind})
		wording[key] = map[string]any{"method": "ask"}
		capability, part := needs(kind)
		declared, ok := params.Meta.Capabilities[capability]
		if _, whole := declared[part]; f.fault != "asks everybody" && (!ok || part != "" && !whole) {
			return nil, tripseal.WireError{Code: -32021, Message: "Missing required client capabilities"}
		}
	}
	answer := map[string]any{"resultType": "input_required", "inputRequests": wording}
	switch f.fault {
	case "a flow for each round":
		*round, _ = f.Boundary.Open(ctx, request, "")
	case "no token without a state":
		if result.State == "" {
			return answer, nil
		}
	case "no token without a question":
		if len(questions) == 0 {
			return answer, nil
		}
	case "cached tokens":
		if token, ok := f.tokens.Load(cacheKey(request, round)); ok {
			answer["requestState"] = token
			return answer, nil
		}
	case "the first question alone":
		questions = questions[:min(1, len(questions))]
	case "the state beside the token":
		answer["debug"] = result.State
	}
	var state *string
	if result.State != "" {
		state = &result.State
	}
	token, err := f.Boundary.Seal(ctx, round, state, questions...)
	if err != nil {
		if f.fault == "the state if it is not sealed" {
			answer["requestState"] = result.State
			return answer, nil
		}
		return nil, tripseal.Wire(err)
	}
	f.tokens.Store(cacheKey(request, round), token)
	answer["requestState"] = token
	return answer, nil
}

// cacheKey returns the same key for two equal first calls of one user.
func cacheKey(request tripseal.Request, round *tripseal.Round) string {
	user, _ := request.Principal.Identify(context.Background())
	state, _ := round.State()
	return fmt.Sprint(user, request.Method, request.Target, string(request.Arguments), state)
}

func needs(kind tripseal.Kind) (capability, part string) {
	switch kind {
	case tripseal.KindForm:
		return "elicitation", "form"
	case tripseal.KindURL:
		return "elicitation", "url"
	case tripseal.KindSampling:
		return "sampling", ""
	}
	return "roots", ""
}

func (f *fakeAdapter) rejected(method string, err error) (any, error) {
	wire := tripseal.Wire(err)
	var reject *tripseal.RejectError
	switch {
	case f.fault == "rejections tell" && errors.As(err, &reject):
		wire.Data, _ = json.Marshal(reject.Reason)
	case f.fault == "rejections in other words":
		wire.Message = "tripseal: token rejected"
	case f.RejectedText != "" && f.fault != "no RejectedText" && (method == "tools/call" || f.fault == "RejectedText everywhere"):
		return f.complete(method, f.RejectedText, true), nil
	}
	return nil, wire
}

func (f *fakeAdapter) complete(method, text string, isError bool) map[string]any {
	content := map[string]any{"type": "text", "text": text}
	switch method {
	case "tools/call":
		return map[string]any{"content": []any{content}, "isError": isError}
	case "prompts/get":
		return map[string]any{"messages": []any{map[string]any{"role": "user", "content": content}}}
	}
	return map[string]any{"contents": []any{content}}
}

// answers returns the answers that the handler may see.
func (f *fakeAdapter) answers(ctx context.Context, round *tripseal.Round, token string, all map[string]json.RawMessage) map[string]string {
	kept := make(map[string]string)
	pinned := adapter.PinsWording(round) && f.fault != "pinned answers"
	for key, text := range all {
		var answer map[string]any
		if json.Unmarshal(text, &answer) != nil {
			continue
		}
		kind, whole := tripseal.KindForm, !hasNull(answer)
		switch {
		case answer["role"] != nil:
			content, isList := answer["content"].([]any)
			kind, whole = tripseal.KindSampling, whole && (!isList || len(content) > 0)
		case answer["roots"] != nil:
			kind = tripseal.KindRoots
		case answer["action"] == "decline" || answer["action"] == "cancel":
			if f.fault != "a no with content" {
				delete(answer, "content")
			}
		default:
			whole = whole && answer["action"] == "accept"
		}
		accepts := round.Accepts(key, kind)
		switch f.fault {
		case "answers of first calls":
			accepts = accepts || token == ""
		case "answers of rejected calls":
			accepts = accepts || token != "" && round.First()
		case "all answers":
			accepts = accepts || !round.First()
		case "answers of any kind":
			accepts = round.Accepts(key, tripseal.KindForm) || round.Accepts(key, tripseal.KindRoots) || round.Accepts(key, tripseal.KindSampling)
		case "answers with holes":
			whole = true
		}
		if accepts && whole && !pinned {
			again, _ := json.Marshal(answer)
			kept[key] = string(again)
		}
	}
	if f.fault != "silent drops" {
		round.Dropped(ctx, len(all)-len(kept))
	}
	return kept
}

func hasNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(v, hasNull)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hasNull)
	}
	return false
}

// reversed returns an object with its members in reverse order. It returns any other text unchanged.
func reversed(object []byte) []byte {
	var list []string
	members := jsonorder.ReadMembers(string(object))
	for m, ok := members.Next(); ok; m, ok = members.Next() {
		list = append(list, string(object[m.At:m.From])+m.Raw)
	}
	if !members.Whole() {
		return object
	}
	slices.Reverse(list)
	return []byte("{" + strings.Join(list, ",") + "}")
}
