package cursor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/strictjson"
)

// PageOptions describes a paged tool: a tool whose result has items and the cursor of the next page, and which takes
// that cursor as one more argument. Pass it to the function AddPagedTool of an adapter. Its methods are for authors of
// adapters; they need options from WithDefaults.
type PageOptions struct {
	Cursor     string // the argument that holds the cursor; "" means "cursor"
	NextCursor string // the member of the result that holds the next cursor; "" means "nextCursor"
	Items      string // the member of the result that holds the items; "" means "items"

	// Unbound lists the names of arguments that may differ from page to page, for example "limit". Each must be the
	// exact name of a property at the root of the tool's schema. Nil means that all arguments must stay the same.
	//
	// List only arguments that decide how many items are on a page. If a filter or a tenant is unbound, a client can
	// take a position from one list and use it in another list.
	Unbound []string

	// MaxArguments is the greatest length of the arguments' JSON in bytes, without the cursor. Longer arguments are
	// refused before they are read. It must not exceed tripseal.Config.MaxArguments. 0 means 64 KiB, or that value if
	// it is less.
	MaxArguments int
}

const (
	defaultMaxPaged = 64 << 10  // low, because a schema library may use many times this memory to refuse arguments
	cursorRoom      = 132 << 10 // what a cursor may add to MaxArguments: the longest native one has 128 KiB
)

// WithDefaults returns a copy of the options in which zero values are replaced with their defaults, or an error if an
// option is wrong. The limit is [tripseal.Config.MaxArguments]. A nil pointer means that every option has its default.
// Call it when a paged tool is registered.
func (o *PageOptions) WithDefaults(limit int) (PageOptions, error) {
	var resolved PageOptions
	if o != nil {
		resolved = *o
	}
	resolved.Cursor = cmp.Or(resolved.Cursor, "cursor")
	resolved.NextCursor = cmp.Or(resolved.NextCursor, "nextCursor")
	resolved.Items = cmp.Or(resolved.Items, "items")
	resolved.Unbound = slices.Clone(resolved.Unbound)
	resolved.MaxArguments = cmp.Or(resolved.MaxArguments, min(defaultMaxPaged, limit))
	if most := resolved.MaxArguments; most < 0 || most > limit {
		return resolved, fmt.Errorf("PageOptions.MaxArguments is %d, not between 1 and %d", most, limit)
	}
	return resolved, nil
}

// InputSchema returns the JSON of a tool's input schema, with the cursor as its last property. It returns an error if
// a property has the cursor's name in any case, or if Unbound has a name that is no property. Register the tool with the
// returned schema.
func (o *PageOptions) InputSchema(schema []byte) ([]byte, error) {
	text, object, from, to := string(schema), "{}", 0, 0
	root := strictjson.ReadMembers(text)
	for member, ok := root.Next(); ok; member, ok = root.Next() {
		if member.Name == "properties" {
			from, to = member.From, member.From+len(member.Raw)
			if object = member.Raw; object == "null" {
				object = "{}"
			}
		}
	}
	var names []string
	properties := strictjson.ReadMembers(object)
	for member, ok := properties.Next(); ok; member, ok = properties.Next() {
		names = append(names, member.Name)
		if strings.EqualFold(member.Name, o.Cursor) {
			return nil, fmt.Errorf("the argument %q clashes with the cursor's name; set PageOptions.Cursor to another",
				member.Name)
		}
	}
	if !root.Whole() || !properties.Whole() {
		return nil, errors.New("the input schema or its properties cannot be read as a JSON object")
	}
	for _, name := range o.Unbound {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%q is no argument, but is in PageOptions.Unbound: "+
				"write a name from the properties at the root of the schema, in the same case", name)
		}
	}
	except := ""
	if len(o.Unbound) > 0 {
		except = `, except "` + strings.Join(o.Unbound, `", "`) + `"`
	}
	added, err := json.Marshal(map[string]any{o.Cursor: map[string]any{
		"type": []string{"string", "null"},
		"description": "Where to go on: the cursor that came with the page before, " +
			"with the other arguments unchanged" + except + ". Leave it out for the first page.",
	}})
	if err != nil {
		return nil, err
	}
	object = insert(object, string(added[1:len(added)-1]))
	if to == 0 {
		return []byte(insert(text, `"properties":`+object)), nil
	}
	return []byte(text[:from] + object + text[to:]), nil
}

// insert adds a member at the end of a JSON object.
func insert(object, member string) string {
	end := strings.LastIndexByte(object, '}')
	before := strings.TrimRight(object[:end], " \t\r\n")
	if !strings.HasSuffix(before, "{") {
		member = "," + member
	}
	return before + member + object[end:]
}

// OutputSchema returns the JSON of the tool's output schema. The parameter is the JSON of the schema of one item, or
// nil if the items are not described.
func (o *PageOptions) OutputSchema(item json.RawMessage) ([]byte, error) {
	items := map[string]any{"type": "array"}
	if item != nil {
		items["items"] = item
	}
	const ends = "Where the next page begins. There is none on the last page."
	next := map[string]any{"type": "string", "description": ends}
	return json.Marshal(map[string]any{
		"type": "object", "required": []string{o.Items}, "properties": map[string]any{o.Items: items, o.NextCursor: next},
	})
}

// Cut takes the cursor out of the JSON of a call's arguments. It returns the other arguments as they are written, and
// the cursor, which is "" for the first page. Arguments that are missing or null count as {}. Call it before anything
// else reads the arguments, and refuse the call with "Invalid params" if there is an error, which says for the log why
// the arguments are refused.
func (o *PageOptions) Cut(arguments []byte) (rest []byte, cursor string, err error) {
	if len(arguments) > o.MaxArguments+cursorRoom {
		return nil, "", errTooLong
	}
	found, isText := 0, true
	rest, ok := without(arguments, func(member *strictjson.Member) bool {
		if member.Name != o.Cursor {
			return false
		}
		found++
		cursor, isText = member.Text, member.Raw == "null" || member.Raw[0] == '"'
		return true
	})
	switch {
	case !ok:
		return nil, "", errors.New("the arguments are not one JSON object of at most 128 levels")
	case found > 1:
		return nil, "", errors.New("the cursor is there twice")
	case !isText:
		return nil, "", errors.New("the cursor is not a text")
	case len(rest) > o.MaxArguments:
		return nil, "", errTooLong
	}
	return rest, cursor, nil
}

var errTooLong = errors.New("the arguments are longer than PageOptions.MaxArguments")

// without returns the text of arguments without some of them. ok is false if the text cannot be read as one object.
func without(arguments []byte, drop func(*strictjson.Member) bool) (rest []byte, ok bool) {
	text := strings.Trim(string(arguments), " \t\r\n")
	if text == "" || text == "null" {
		return []byte("{}"), true
	}
	rest = append(make([]byte, 0, len(text)), '{')
	members := strictjson.ReadMembers(text)
	for member, more := members.Next(); more; member, more = members.Next() {
		if drop(&member) {
			continue
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(rest, text[member.At:member.From+len(member.Raw)]...)
	}
	return append(rest, '}'), members.Whole()
}

// ServePage serves one page of a paged tool: it opens the cursor, calls the handler, and returns the JSON of the
// result with the next cursor. The request's Arguments are what [PageOptions.Cut] left, or what the SDK decodes in
// their place; the cursor is bound to them without Unbound. The handler gets the position where the previous page
// ended, or nil on the first page. It does not run if the cursor is refused. If a cursor cannot be opened or sealed,
// the error is a [tripseal.WireError], which the client may see. Call ServePage in the handler of a paged tool.
func ServePage[At, Item any](
	ctx context.Context, cursors Issuer, request tripseal.Request, cursor string, options *PageOptions,
	handler func(after *At) (items []Item, next *At, err error),
) ([]byte, error) {
	var ok bool
	if request.Arguments, ok = without(request.Arguments, func(member *strictjson.Member) bool {
		return slices.Contains(options.Unbound, member.Name)
	}); !ok {
		return nil, Wire(nil)
	}
	page, err := cursors.Open(ctx, request, cursor)
	if err != nil {
		return nil, Wire(err)
	}
	var after *At
	if !page.First() {
		if after, err = decode[At](ctx, &page, cursor); err != nil {
			return nil, Wire(err)
		}
	}
	items, next, err := handler(after)
	if err != nil {
		return nil, err
	}
	if items == nil {
		items = []Item{}
	}
	result := map[string]any{options.Items: items}
	if next != nil {
		position, err := encode(ctx, &page, next)
		if err == nil {
			result[options.NextCursor], err = page.Next(ctx, NextPage{Position: position})
		}
		if err != nil {
			return nil, Wire(err)
		}
	}
	text, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("the items cannot be written as JSON: %w", err)
	}
	return text, nil
}

// decode returns the position of a page. If the type At has changed since the cursor was issued, the position may not
// fit it. To be safe, change [Options.Epoch] whenever the type changes.
func decode[At any](ctx context.Context, page *Page, cursor string) (*At, error) {
	after := new(At)
	err := tripseal.Guard(func() (err error) {
		*after, err = tripseal.DecodeState[At](string(page.position))
		return err
	})
	if err == nil {
		return after, nil
	}
	return nil, page.report(ctx, OpOpen, time.Now(), cursor,
		failedBecause(tripseal.ReasonVersion, "the position does not fit %T", *after))
}

// encode returns a position as JSON. It refuses what would come back changed: see [tripseal.EncodeState].
func encode[At any](ctx context.Context, page *Page, after *At) (position []byte, err error) {
	err = tripseal.Guard(func() error {
		if _, err := tripseal.EncodeState(after); err != nil { // through a pointer, so that At may be an interface
			return err
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false) // a position is not HTML, and must be short
		err := encoder.Encode(after)
		position = bytes.TrimSuffix(text.Bytes(), []byte("\n"))
		return err
	})
	if err == nil {
		return position, nil
	}
	return nil, page.report(ctx, OpIssue, time.Now(), "",
		failedBecause(tripseal.ReasonMisuse, "a position of type %T cannot be written as JSON and read back", *after))
}
