package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/exactjson"
)

// PageHandler returns the items of one page, and the position where this page ends, or
// nil if it is the last page. To get the next page, the handler is called with that
// position. For the first page, it is called with nil in place of a position. Pass a
// PageHandler to [AddPagedTool].
type PageHandler[In, At, Item any] func(ctx context.Context, req mcp.CallToolRequest, in In, after *At) (items []Item, next *At, err error)

// PageOptions sets the names of what [AddPagedTool] adds to arguments and results, and
// limits the size of the arguments. Pass it to AddPagedTool; nil means the defaults.
type PageOptions = cursor.PageOptions

// AddPagedTool registers a tool that returns its items page by page. It adds an optional
// cursor to the tool's arguments. The tool's result has the items and, unless the page is
// the last, the cursor of the next page. Use AddPagedTool if a tool can have more items
// than fit into one result.
//
// A cursor works for an hour, and only if the user, the service, the tool and the arguments are the
// same as in the call that returned the cursor. Only the arguments in PageOptions.Unbound may
// differ. Any other cursor is refused before the handler runs. Only one refusal tells its reason:
// the user who got a cursor learns that it has expired. All other refusals of a text have the same
// words, unless the request is too long for the tool. An empty cursor means the first page. A
// position is written as JSON, in at most 256 bytes: put a key into it, not a row. An issuer in
// Options.Cursors may have another lifetime and another limit.
//
// The arguments are read once, into In. The value that the handler gets is the value that the
// cursor is bound to. Names are case-sensitive: a name that differs from a field's name only in
// case is refused. Suppose that the schema has two names that differ only in case, such as id and
// ID. An object with one of these names is then refused for a type that reads JSON itself, such as
// json.RawMessage. A whole number arrives exactly or is refused. It is also refused if a float64
// cannot hold it exactly, because server.WithInputSchemaValidation checks numbers as float64. So
// pass long ids as strings. A float32 field gets the nearest float32; a fraction is refused if this
// rounds it to a whole number. mcp-go checks the arguments against the schema only with
// server.WithInputSchemaValidation, and never fills in defaults.
//
// If the tool has no input schema, AddPagedTool makes one from In, as mcp.WithInputSchema
// does. AddPagedTool panics if the tool cannot be registered. Some reasons are:
//   - The tool has an output schema.
//   - The tool can run as a task.
//   - An argument has the name of the cursor, or two names of arguments and the cursor differ only
//     in case.
//   - A name in the schema differs only in case from the name of a field for the same object. If
//     the schema has rules such as $ref or allOf, every name in the schema is compared with every
//     field.
//   - PageOptions.Unbound has a name that is not the name of an argument.
//   - The schema has a reference to its root or to another document, or, in draft-07, a rule beside
//     a $ref.
//   - The schema has a rule at its root that may apply to the cursor, such as maxProperties or
//     oneOf.
//
// If a hook or middleware changes the arguments, it must make the same change in Params.Arguments
// and in Params.RawArguments, or change Arguments and remove RawArguments. Otherwise the call
// fails, and the log says why. The handler gets the changed arguments, and the cursor is bound to
// them. So do not remove an argument, for example to pass it on in the context: the cursor would
// not be bound to the removed argument.
func AddPagedTool[In, At, Item any](p *Protected, tool mcp.Tool, handler PageHandler[In, At, Item], options *PageOptions) {
	if err := addPagedTool(p, tool, handler, options); err != nil {
		panic(fmt.Sprintf("mcpgo: the paged tool %q: %v", tool.Name, err))
	}
}

func addPagedTool[In, At, Item any](p *Protected, tool mcp.Tool, handler PageHandler[In, At, Item], options *PageOptions) error {
	if p == nil || p.server == nil || handler == nil {
		return errors.New("it needs the value that Protect returned, and a handler")
	}
	if p.protection.options.Cursors == nil {
		return errors.New("the boundary has no keys of its own; set Options.Cursors, or add tripseal.NativeFormat to Config.AlsoOpen")
	}
	names, err := options.WithDefaults(p.protection.policy.MaxArguments)
	if err != nil {
		return err
	}
	t := &pagedTool[In, At, Item]{p: p.protection, name: tool.Name, names: names, handler: handler}
	if tool.Execution != nil && tool.Execution.TaskSupport != "" && tool.Execution.TaskSupport != mcp.TaskSupportForbidden {
		return errors.New("a paged tool cannot run as a task, because mcp-go does not check the arguments of tasks")
	}
	inferred := false
	if schema := tool.InputSchema; len(tool.RawInputSchema) == 0 && len(schema.Properties) == 0 && len(schema.Required) == 0 &&
		schema.AdditionalProperties == nil && len(schema.Defs) == 0 {
		inferred = true
		if mcp.WithInputSchema[In]()(&tool); len(tool.RawInputSchema) == 0 {
			return errors.New("mcp-go cannot make an input schema from the Go type: set one")
		}
	}
	listed, err := t.listedSchema(tool, inferred)
	if err != nil {
		return err
	}
	if err := checkApplied(tool.Name, listed); err != nil {
		return err
	}
	if len(tool.RawInputSchema) > 0 {
		tool.RawInputSchema = listed
	} else { // InputSchema stays in use, so that server.WithStrictInputSchemaDefault applies to it
		tool.InputSchema.Properties = maps.Clone(tool.InputSchema.Properties)
		if tool.InputSchema.Properties == nil {
			tool.InputSchema.Properties = make(map[string]any)
		}
		tool.InputSchema.Properties[names.Cursor] = t.cursorSchema()
	}
	if tool.OutputSchema.Type != "" || len(tool.RawOutputSchema) > 0 {
		return errors.New("the output schema is made from the items; leave it out")
	}
	tool.RawOutputSchema, err = json.Marshal(map[string]any{
		"type": "object",
		"properties": map[string]any{
			names.Items:      map[string]any{"type": "array"},
			names.NextCursor: map[string]any{"type": "string", "description": "Where the next page begins. There is none on the last page."},
		},
		"required": []string{names.Items},
	})
	if err != nil {
		return err
	}
	p.protection.paged.add(&tool, names)
	p.server.AddTool(tool, t.serve)
	return nil
}

// pagedTools has the options of a server's paged tools. A tool is recognised by the address of
// its output schema, which AddPagedTool made: an author may register another tool of the same
// name. The options of a tool that is gone are forgotten.
type pagedTools struct {
	exist   atomic.Bool // true if the server has ever had a paged tool
	options adapter.Table[byte, PageOptions]
}

func (p *pagedTools) add(tool *mcp.Tool, options PageOptions) {
	p.options.Add(&tool.RawOutputSchema[0], options)
	p.exist.Store(true)
}

// tooLong has an entry for each call that refuseLong has refused. The key is the
// RequestProtocolInfo of the request, as in the map arrivals.
var tooLong sync.Map

// refuseLong refuses a call of a paged tool if the arguments, without the cursor, are too long. A
// hook calls refuseLong, because our middleware runs too late: mcp-go may already have checked
// arguments of any length against a schema, and repeated them in an error. A hook cannot make a
// call fail. So refuseLong puts the call into the map tooLong, and our filter shownTools hides the
// tool from this call. mcp-go applies the filter before it checks the arguments.
func (i *installation) refuseLong(ctx context.Context, params *mcp.CallToolParams) {
	if !i.paged.exist.Load() {
		return
	}
	tool := toolOf(ctx, params.Name)
	if tool == nil || len(tool.RawOutputSchema) == 0 {
		return
	}
	options, isPaged := i.paged.options.Get(&tool.RawOutputSchema[0])
	if !isPaged {
		return
	}
	isLong := isTooLong(params.RawArguments, &options)
	if !isLong && i.mayChange() && !agree(params.RawArguments, params.Arguments) { // mcp-go checks Arguments
		isLong = isTooLong(jsonOf(params.Arguments), &options)
	}
	if isLong {
		i.logger().WarnContext(ctx, "mcpgo: the arguments of a paged tool were refused", "tool", params.Name, "cause", errTooLong.Error())
		remember(ctx, &tooLong, true)
	}
}

// shownTools is a filter for tools. It hides all tools from a call that refuseLong has refused, and
// from everybody if our hooks are gone.
func (i *installation) shownTools(ctx context.Context, tools []mcp.Tool) []mcp.Tool {
	if i.paged.exist.Load() && remembered(ctx, &tooLong) != nil {
		return nil
	}
	for k := range tools {
		if runsAsTask(&tools[k]) { // toolOf does not know task tools
			i.unlisted.Page(ctx, 0, false, slices.Values([]string{tools[k].Name}), i.logger)
		}
	}
	return whileIntact(i, ctx, tools)
}

// cursorRoom is how many bytes the cursor may add to the arguments of a paged tool.
const cursorRoom = 132 << 10

// isTooLong reports whether arguments are too long for a paged tool. The cursor does not count.
func isTooLong(text []byte, options *PageOptions) bool {
	switch {
	case len(text) <= options.MaxArguments:
		return false
	case len(text) > options.MaxArguments+cursorRoom:
		return true
	}
	rest, _, err := exactjson.Cut(text, options.Cursor)
	return err != nil || len(rest) > options.MaxArguments
}

// pagedTool is a tool that AddPagedTool registered.
type pagedTool[In, At, Item any] struct {
	p       *installation // of the server on which the tool was registered
	name    string
	names   PageOptions
	known   exactjson.Names // the name of the cursor, and the names of all properties at any depth of the schema
	roots   exactjson.Names // the name of the cursor, and the names of the tool's arguments
	handler PageHandler[In, At, Item]
}

// refuse logs why the arguments were refused. It returns an error that tells the client
// that they were refused, but not why.
func (t *pagedTool[In, At, Item]) refuse(ctx context.Context, why string) error {
	t.p.logger().WarnContext(ctx, "mcpgo: the arguments of a paged tool were refused", "tool", t.name, "cause", why)
	return tripseal.WireError{Code: -32602, Message: "Invalid params"} // mcp-go sends the message, but not this code
}

func (t *pagedTool[In, At, Item]) serve(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if !Sealed(ctx) || installed(ctx) != t.p {
		return nil, t.p.refuse(ctx, string(mcp.MethodToolsCall), "a paged tool got a context that comes from no call of its server")
	}
	text, isDecoded := []byte(req.Params.RawArguments), false
	if len(text) == 0 && req.Params.Arguments != nil {
		text, isDecoded = jsonOf(req.Params.Arguments), true
	}
	if isTooLong(text, &t.names) {
		return nil, t.refuse(ctx, errTooLong.Error())
	}
	if !isDecoded && !agree(text, req.Params.Arguments) {
		return nil, t.p.refuse(ctx, string(mcp.MethodToolsCall), disagree)
	}
	in, bound, token, err := t.read(text, isDecoded)
	if errors.Is(err, exactjson.ErrMalformed) {
		return nil, t.refuse(ctx, err.Error())
	} else if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	if len(bound) > t.p.policy.MaxArguments { // this text may be longer than the one that the client sent: 1e19 becomes 20 digits
		return nil, t.refuse(ctx, "more than tripseal.Config.MaxArguments")
	}
	caller := func(context.Context) (string, error) { return t.p.arrivedUser(ctx) }
	page, err := cursor.ServePage(ctx, t.p.options.Cursors, tripseal.Request{
		Method: string(mcp.MethodToolsCall), Target: t.name, Arguments: bound, Principal: caller,
	}, token, &t.names, func(after *At) ([]Item, *At, error) { return t.handler(ctx, req, in, after) })
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{StructuredContent: json.RawMessage(page), Content: []mcp.Content{mcp.NewTextContent(string(page))}}, nil
}

const disagree = "a paged tool got a call whose Params.Arguments and Params.RawArguments disagree: a hook, middleware or handler that changes one of them " +
	"must change the other in the same way, or remove RawArguments"

// agree reports whether a text is the JSON of a value. An empty text means the same as {}.
func agree(text []byte, value any) bool {
	var decoded, again any
	if len(text) > 0 && json.Unmarshal(text, &decoded) != nil {
		return false
	}
	if equalJSON(orEmpty(value), orEmpty(decoded)) {
		return true
	}
	// A hook, middleware or handler may have put another Go type into the value, for example a
	// []string where encoding/json decodes a []any. So the JSON of the value is decoded and
	// compared too.
	return json.Unmarshal(jsonOf(value), &again) == nil && equalJSON(orEmpty(again), orEmpty(decoded))
}

// read reads the JSON of a call's arguments. It returns the arguments for the handler, the
// JSON that the cursor is bound to, and the cursor itself. If isDecoded is true, the JSON was
// made from a decoded value, in which long numbers may be rounded.
func (t *pagedTool[In, At, Item]) read(text []byte, isDecoded bool) (in In, bound []byte, token string, err error) {
	var none In
	if len(text) == 0 || string(text) == "null" {
		text = []byte("{}")
	}
	rest, token, err := exactjson.Cut(text, t.names.Cursor)
	if err != nil {
		return none, nil, "", err
	}
	value, err := exactjson.Read(rest)
	if err != nil {
		return none, nil, "", err
	}
	arguments, ok := value.(map[string]any)
	if !ok || slices.ContainsFunc(keys(arguments), t.roots.Misspelt) {
		return none, nil, "", errNames
	}
	if wouldRound(value, isDecoded) {
		return none, nil, "", errRounds
	}
	kept := make(map[string]any, len(arguments))
	for name, member := range arguments {
		if !slices.Contains(t.names.Unbound, name) {
			kept[name] = member
		}
	}
	if bound, err = exactjson.Text(kept); err != nil {
		return none, nil, "", err
	}
	if err := exactjson.Put(value, &in, t.known); err != nil {
		return none, nil, "", err
	}
	return in, bound, token, nil
}

var (
	errTooLong = fmt.Errorf("%w: more than PageOptions.MaxArguments", exactjson.ErrMalformed)
	errNames   = fmt.Errorf("%w: not an object, or a name that differs from the name of an argument only in upper and lower case", exactjson.ErrMalformed)
	errRounds  = errors.New("a whole number is too large for a float64 to hold exactly: pass it as a string")
)

func keys(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	return names
}

// wouldRound reports whether a value contains a whole number that a float64 would round. If
// isDecoded is true, wouldRound also returns true for a whole number with an absolute value of 2^53
// or more, because a float64 may have rounded it already.
func wouldRound(value any, isDecoded bool) bool {
	switch v := value.(type) {
	case int64:
		f := float64(v)
		return f >= math.MaxInt64 || int64(f) != v || isDecoded && math.Abs(f) >= 1<<53
	case uint64:
		f := float64(v)
		return f >= math.MaxUint64 || uint64(f) != v || isDecoded && f >= 1<<53
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return wouldRound(item, isDecoded) })
	case map[string]any:
		for _, member := range v {
			if wouldRound(member, isDecoded) {
				return true
			}
		}
	}
	return false
}
