// Package exactargs reads the arguments of a paged tool into a Go value, exactly. The
// schema checks the same value that the handler gets and that the cursor is bound to.
// Arguments that the author left unbound are the exception: the cursor is not bound to
// them. Names are case-sensitive, and whole numbers keep all their digits.
package exactargs

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/exactjson"
)

var (
	errTooLong = fmt.Errorf("%w: more than PageOptions.MaxArguments", exactjson.ErrMalformed)
	errCase    = fmt.Errorf("%w: a name differs from another only in upper and lower case", exactjson.ErrMalformed)
)

// Reader reads the arguments of one tool.
type Reader[In any] struct {
	cursor  string   // the name of the cursor's argument
	unbound []string // the arguments that the cursor is not bound to
	schema  *jsonschema.Schema
	check   *jsonschema.Resolved
	divides bool            // true if the schema has a multipleOf
	names   exactjson.Names // the names of the arguments, including the cursor
	known   exactjson.Names // all names anywhere in the schema
}

// New makes the reader of a tool whose arguments have the given schema. If the given
// schema is nil, the schema is made from the type In. New needs the name of the
// argument that carries the cursor, and the names of the arguments that the cursor is
// not bound to. It also returns the schema for tools/list, which has the cursor as
// well. The reader, the schema for tools/list and the given schema share no memory.
func New[In any](given any, cursorName string, unboundNames ...string) (reader *Reader[In], listed *jsonschema.Schema, err error) {
	schema, listed, err := schemas[In](given, cursorName, unboundNames)
	if err != nil {
		return nil, nil, err
	}
	if reader, err = newReader[In](schema, given == nil, cursorName); err != nil {
		return nil, nil, fmt.Errorf("the arguments: %w", err)
	}
	reader.unbound = slices.Clone(unboundNames)
	return reader, listed, nil
}

func newReader[In any](schema *jsonschema.Schema, inferred bool, cursor string) (*Reader[In], error) {
	check, err := schema.Resolve(nil)
	if err != nil {
		return nil, err
	}
	draft, err := (&jsonschema.Schema{Schema: schema.Schema}).Resolve(nil)
	if err != nil || draft.Validate(nil) != nil {
		return nil, fmt.Errorf("the $schema %q is not supported: write http://json-schema.org/draft-07/schema# or https://json-schema.org/draft/2020-12/schema, or leave it out", schema.Schema)
	}
	refs, err := newReferences(schema)
	if err != nil {
		return nil, err
	}
	if err := refs.checkCycles(); err != nil {
		return nil, err
	}
	in := reflect.TypeFor[In]()
	if err := checkQuoted(in); err != nil {
		return nil, err
	}
	if err := (&fitting{refs, inferred, map[fit]bool{}}).check(schema, in); err != nil {
		return nil, err
	}
	a := &Reader[In]{cursor: cursor, schema: schema, check: check}
	a.names.Add(cursor)
	for name := range schema.Properties {
		a.names.Add(name)
	}
	var all []*jsonschema.Schema
	named := false // true if a schema has propertyNames; a text in an enum may then be a name
	isDraft07 := strings.Contains(schema.Schema, "draft-07")
	if err := eachSchema(schema, nil, func(s *jsonschema.Schema, _ map[string]any) error {
		if rule := idleRule(s, isDraft07); rule != "" {
			return fmt.Errorf("the schema has %s, which the draft in its $schema does not apply", rule)
		}
		all = append(all, s)
		a.divides = a.divides || s.MultipleOf != nil
		named = named || s.PropertyNames != nil
		return nil
	}); err != nil {
		return nil, err
	}
	for _, s := range all {
		addNamesOf(&a.known, s, named)
	}
	if err := refs.checkApplied(schema, "", true, true, map[appliedCheck]bool{}); err != nil {
		return nil, err
	}
	return a, a.checkDefaults()
}

// Read reads the arguments of a call. It returns the Go value of the arguments without
// the cursor, the text that the cursor is bound to, and the cursor itself. That text has
// all arguments that the handler gets, except the unbound ones. It includes defaults, so
// it changes if a default in the schema changes. The limit is in bytes: if the arguments
// without the cursor are longer, Read refuses them before it decodes them.
func (a *Reader[In]) Read(text []byte, limit int) (in In, boundText []byte, cursor string, err error) {
	var none In
	if len(text) > limit+adapter.CursorRoom {
		return none, nil, "", errTooLong
	}
	text, cursor, err = exactjson.Cut(text, a.cursor)
	if err != nil {
		return none, nil, "", err
	}
	if len(text) > limit {
		return none, nil, "", errTooLong
	}
	arguments, err := readObject(text)
	if err != nil {
		return none, nil, "", err
	}
	for name := range arguments {
		if a.names.Misspelt(name) {
			return none, nil, "", errCase
		}
	}
	if err := addDefaults(a.schema, arguments); err != nil {
		return none, nil, "", err
	}
	if err := a.validate(a.check, arguments); err != nil {
		return none, nil, "", asTyped(err)
	}
	boundText, err = exactjson.Text(a.boundOf(arguments)) // written before the handler gets the arguments, because the handler may change them
	if err != nil {
		return none, nil, "", err
	}
	if err := exactjson.Put(arguments, &in, a.known); err != nil {
		return none, nil, "", clientError("the arguments do not fit", err)
	}
	return in, boundText, cursor, nil
}

// boundOf returns the arguments without the unbound ones. It does not change the given
// map, because the handler gets that map.
func (a *Reader[In]) boundOf(arguments map[string]any) map[string]any {
	if len(a.unbound) == 0 {
		return arguments
	}
	bound := maps.Clone(arguments)
	for _, name := range a.unbound {
		delete(bound, name)
	}
	return bound
}

// validate returns an error if a value does not fit the schema. If the schema has a
// multipleOf, validate also refuses integers that a double would round, because the
// schema library calculates with doubles.
func (a *Reader[In]) validate(check *jsonschema.Resolved, value any) error {
	if a.divides && mayRound(value) {
		return errors.New("a number is out of range: with multipleOf in the schema, every integer must be between -2^53 and 2^53")
	}
	return check.Validate(value)
}

// asTyped returns an error about the arguments, with the words that the SDK's typed
// tools use.
func asTyped(err error) error { return clientError(`validating "arguments"`, err) }

// clientError returns an error for the client. Its text is the prefix, a colon, and the
// text of err. The whole text is cut after 1024 bytes, because err may repeat all of
// the arguments. The returned error does not keep err in memory. If err is an
// ErrMalformed, clientError returns it unchanged.
func clientError(prefix string, err error) error {
	const most = 1 << 10
	if errors.Is(err, exactjson.ErrMalformed) {
		return err
	}
	text := prefix + ": " + err.Error()
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return errors.New(text)
}

// readObject reads arguments. It reads missing arguments and null as the empty object.
func readObject(text []byte) (map[string]any, error) {
	if len(text) == 0 {
		return map[string]any{}, nil
	}
	value, err := exactjson.Read(text)
	if err != nil {
		return nil, asTyped(err)
	}
	switch object := value.(type) {
	case map[string]any:
		return object, nil
	case nil:
		return map[string]any{}, nil
	}
	return nil, fmt.Errorf("%w: not an object", exactjson.ErrMalformed)
}
