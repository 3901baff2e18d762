package exactargs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/exactjson"
)

// schemas returns the schema of the arguments, and the schema that tools/list shows. The second
// schema also has the cursor.
func schemas[In any](given any, name string, unbound []string) (arguments, listed *jsonschema.Schema, err error) {
	if arguments, err = schemaOf[In](given); err != nil {
		return nil, nil, fmt.Errorf("the arguments: %w", err)
	}
	if slices.Equal(arguments.Types, []string{"object"}) {
		arguments.Type, arguments.Types = "object", nil
	}
	if arguments.Type != "object" {
		return nil, nil, errors.New(`the schema of the arguments must have "type": "object" at its root`)
	}
	taken := slices.Collect(maps.Keys(arguments.Properties))
	if t := bareType(reflect.TypeFor[In]()); t.Kind() == reflect.Struct && !readsItself(t) {
		for field, of := range exactjson.Fields(t) {
			if of.Type != nil {
				taken = append(taken, field)
			}
		}
	}
	for _, property := range taken {
		if strings.EqualFold(property, name) {
			return nil, nil, fmt.Errorf("the argument %q clashes with the cursor's name; set PageOptions.Cursor to another", property)
		}
	}
	for _, required := range arguments.Required {
		if strings.EqualFold(required, name) {
			return nil, nil, fmt.Errorf("the cursor %q is required, but the first page has none", required)
		}
	}
	if err := checkUnbound(arguments, name, unbound); err != nil {
		return nil, nil, err
	}
	if listed, err = schemaOf[In](given); err != nil {
		return nil, nil, err
	}
	listed.Type, listed.Types = "object", nil
	if listed.Properties == nil {
		listed.Properties = map[string]*jsonschema.Schema{}
	}
	listed.Properties[name] = &jsonschema.Schema{
		Types:       []string{"string", "null"},
		Description: "Where to go on: the cursor that came with the page before, with the other arguments unchanged" + exceptText(unbound) + ". Leave it out for the first page.",
	}
	if listed.PropertyOrder != nil && !slices.Contains(listed.PropertyOrder, name) {
		listed.PropertyOrder = append(listed.PropertyOrder, name)
	}
	return arguments, listed, nil
}

// checkUnbound refuses names in PageOptions.Unbound that would have no effect.
func checkUnbound(arguments *jsonschema.Schema, cursor string, unbound []string) error {
	for i, name := range unbound {
		switch _, listed := arguments.Properties[name]; {
		case name == cursor:
			return fmt.Errorf("%q is the cursor itself: leave it out of PageOptions.Unbound", name)
		case !listed:
			return fmt.Errorf("%q is no argument, but is in PageOptions.Unbound: write a name from the properties at the root of the schema, in the same case", name)
		case slices.Contains(unbound[:i], name):
			return fmt.Errorf("%q is in PageOptions.Unbound twice", name)
		}
	}
	return nil
}

// exceptText returns the part of the cursor's description that says which arguments may
// change from page to page. It returns "" if there are none.
func exceptText(unbound []string) string {
	if len(unbound) == 0 {
		return ""
	}
	quoted := make([]string, len(unbound))
	for i, name := range unbound {
		quoted[i] = strconv.Quote(name)
	}
	return ", except " + strings.Join(quoted, ", ")
}

// schemaOf returns a copy of the given schema. If the given schema is nil, schemaOf
// returns the schema made from the type T.
func schemaOf[T any](given any) (*jsonschema.Schema, error) {
	if given == nil {
		return inferredSchema(bareType(reflect.TypeFor[T]()))
	}
	if err := eachInGo(reflect.ValueOf(given), 0, checkEmpty); err != nil {
		return nil, err
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	document, err := readNumbers(text)
	if err != nil {
		return nil, fmt.Errorf("the schema is %w", err)
	}
	schema := new(jsonschema.Schema)
	if err := json.Unmarshal(text, schema); err != nil {
		return nil, err
	}
	if inGo, ok := given.(*jsonschema.Schema); ok {
		keepOrder(inGo, schema)
	}
	return schema, eachSchema(schema, document, func(schema *jsonschema.Schema, document map[string]any) error {
		return cmp.Or(checkEmpty(schema), checkKeywords(document), keepNumbers(schema, document))
	})
}

// keepOrder copies the order of properties from one schema to its copy, because the JSON
// of a schema loses that order.
func keepOrder(from, to *jsonschema.Schema) {
	if from == nil || to == nil {
		return // no error here, because Resolve reports a nil schema
	}
	to.PropertyOrder = slices.Clone(from.PropertyOrder)
	inside := subschemas(to)
	for i, sub := range subschemas(from) {
		keepOrder(sub.schema, inside[i].schema)
	}
}

// inferredSchema returns the schema made from a type. If the type is any, it is the schema
// of an object, because arguments are always an object. For json.RawMessage and big.Int,
// inferredSchema uses its own schemas, because jsonschema gets these two types wrong.
func inferredSchema(t reflect.Type) (*jsonschema.Schema, error) {
	if t == reflect.TypeFor[any]() {
		return &jsonschema.Schema{Type: "object"}, nil
	}
	return jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {Types: []string{"null", "boolean", "number", "string", "array", "object"}},
		reflect.TypeFor[big.Int]():         {Type: "integer"},
	}})
}

// checkEmpty returns an error if a schema refuses every value because of an empty list, such
// as an empty enum. The JSON of a schema leaves empty lists out, so the schema that is read
// back from it would allow every value.
func checkEmpty(schema *jsonschema.Schema) error {
	v := reflect.ValueOf(schema).Elem()
	for i := range v.NumField() {
		field := v.Field(i)
		if kind := field.Kind(); kind != reflect.Slice && kind != reflect.Map || field.IsNil() || field.Len() > 0 {
			continue
		}
		probe := new(jsonschema.Schema)
		reflect.ValueOf(probe).Elem().Field(i).Set(field)
		check, err := probe.Resolve(nil)
		if err != nil || check.Validate(map[string]any{}) != nil || check.Validate([]any{nil}) != nil {
			return fmt.Errorf("the schema has an empty %s, which nothing satisfies and which JSON does not carry: leave it out, or write false for the schema", v.Type().Field(i).Name)
		}
	}
	return nil
}

// eachInGo calls the function visit for every jsonschema.Schema in a Go value.
func eachInGo(v reflect.Value, depth int, visit func(*jsonschema.Schema) error) error {
	if depth > 1000 {
		return errors.New("the schema has itself in it: use $ref")
	}
	var inside []reflect.Value
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			inside = append(inside, v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len() && v.Type().Elem().Kind() != reflect.Uint8; i++ {
			inside = append(inside, v.Index(i))
		}
	case reflect.Map:
		for _, member := range v.Seq2() {
			inside = append(inside, member)
		}
	case reflect.Struct:
		if schema, ok := v.Interface().(jsonschema.Schema); ok {
			if err := visit(&schema); err != nil {
				return err
			}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				inside = append(inside, v.Field(i))
			}
		}
	}
	for _, v := range inside {
		if err := eachInGo(v, depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

// checkKeywords returns an error for a keyword that jsonschema drops, does not know, or
// mistakes for another keyword. Otherwise a misspelt rule would have no effect.
func checkKeywords(document map[string]any) error {
	for name, value := range document {
		known := keywords().Has(name)
		switch {
		case keywords().Misspelt(name):
			return fmt.Errorf("the schema has the keyword %q in another case", name)
		case !known && !strings.HasPrefix(name, "x-"):
			return fmt.Errorf("the schema has the keyword %q, which the schema library does not apply: correct it, leave it out, or begin it with x- if it only describes", name)
		case known && value == nil && name != "const" && name != "default":
			return fmt.Errorf("the schema has the keyword %q with null: leave it out", name)
		}
	}
	return nil
}

// keepNumbers restores the exact numbers in enum and const, because jsonschema reads them as
// floats. It returns an error for a number in another keyword, such as maximum, if jsonschema would
// not apply the number exactly.
func keepNumbers(schema *jsonschema.Schema, document map[string]any) error {
	if enum, ok := document["enum"].([]any); ok {
		exact, err := exactNumbers(enum)
		if err != nil {
			return err
		}
		schema.Enum, _ = exact.([]any)
	}
	if value, ok := document["const"]; ok {
		exact, err := exactNumbers(value)
		if err != nil {
			return err
		}
		schema.Const = &exact
	}
	for _, keyword := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} {
		written, ok := document[keyword]
		if !ok {
			continue
		}
		exact, err := exactNumbers(written)
		if err != nil || mayRound(exact) {
			return fmt.Errorf("%s is %v: it is compared as a double, so it must be exact and between -2^53 and 2^53; use enum or leave it out", keyword, written)
		}
		if _, fraction := exact.(float64); fraction && keyword == "multipleOf" {
			return fmt.Errorf("multipleOf is %v: doubles are divided by it, so it must be whole", written)
		}
	}
	return nil
}

// readNumbers reads the JSON of a schema, with every number as a json.Number. It accepts
// a number that Go cannot hold exactly: keepNumbers refuses such a number later, but only
// in a rule, such as maximum.
func readNumbers(text []byte) (value any, err error) {
	// The digest is not used. ArgumentsDigest is called because it refuses two members
	// with the same name, text that is not UTF-8, and values that are too deep or too
	// long.
	binding := tripseal.Binding{Arguments: text}
	if _, err := binding.ArgumentsDigest(); err != nil {
		return nil, exactjson.ErrMalformed
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, exactjson.ErrMalformed
	}
	return value, nil
}

// exactNumbers replaces each json.Number in a value by the Go number that exactjson.Read makes of
// it. It fails if exactjson.Read refuses a number.
func exactNumbers(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return exactjson.Read(text)
}

// mayRound reports whether a value has an integer in it that a double may round, because
// its magnitude is 2^53 or more.
func mayRound(value any) bool {
	const most = 1 << 53
	switch v := value.(type) {
	case int64:
		return v <= -most || v >= most
	case uint64:
		return v >= most
	case []any:
		return slices.ContainsFunc(v, mayRound)
	case map[string]any:
		for _, member := range v {
			if mayRound(member) {
				return true
			}
		}
	}
	return false
}

// idleRule returns a rule that jsonschema reads but does not apply, or "" if there is
// none. Such a rule belongs to another draft of JSON Schema, depends on a missing rule,
// or is beside a $ref in draft-07.
func idleRule(schema *jsonschema.Schema, isDraft07 bool) string {
	rules := map[string]bool{
		"then or else without if":                     schema.If == nil && (schema.Then != nil || schema.Else != nil),
		"minContains or maxContains without contains": schema.Contains == nil && (schema.MinContains != nil || schema.MaxContains != nil),
		"additionalItems without a list in items":     schema.ItemsArray == nil && schema.AdditionalItems != nil,
	}
	if isDraft07 {
		rules["prefixItems"] = schema.PrefixItems != nil
		rules["dependentSchemas"] = schema.DependentSchemas != nil
		rules["dependentRequired"] = schema.DependentRequired != nil
		rules["another rule beside a $ref (put the $ref into an allOf)"] = schema.Ref != "" && hasRules(schema)
	} else {
		rules["a list in items"] = schema.ItemsArray != nil
		rules["dependencies"] = schema.DependencySchemas != nil || schema.DependencyStrings != nil
	}
	for rule, has := range rules {
		if has {
			return rule
		}
	}
	return ""
}

// hasRules reports whether a schema has rules: anything except a $ref, definitions, a
// default and keywords that only describe.
func hasRules(schema *jsonschema.Schema) bool {
	rules := *schema
	rules.Ref, rules.Schema, rules.Comment, rules.Title, rules.Description, rules.Format = "", "", "", "", "", ""
	rules.Default, rules.Examples, rules.Defs, rules.Definitions, rules.Extra, rules.PropertyOrder = nil, nil, nil, nil, nil, nil
	rules.Deprecated, rules.ReadOnly, rules.WriteOnly = false, false, false
	return !reflect.ValueOf(rules).IsZero()
}

// eachSchema calls the function visit for a schema and for every schema in it, each
// time with the JSON of that schema. The document is the JSON of the outermost schema.
// If the document is nil, visit gets nil in place of the JSON.
func eachSchema(schema *jsonschema.Schema, document any, visit func(*jsonschema.Schema, map[string]any) error) error {
	if schema == nil {
		return nil // no error here, because Resolve reports a nil schema
	}
	members, _ := document.(map[string]any)
	if err := visit(schema, members); err != nil {
		return err
	}
	for _, sub := range subschemas(schema) {
		inJSON := members[sub.keyword]
		switch many := inJSON.(type) {
		case []any:
			if i, err := strconv.Atoi(sub.key); err == nil && i < len(many) {
				inJSON = many[i]
			}
		case map[string]any:
			if sub.named {
				inJSON = many[sub.key]
			}
		}
		if err := eachSchema(sub.schema, inJSON, visit); err != nil {
			return err
		}
	}
	return nil
}

// subschema is a schema inside another, under a keyword such as items.
type subschema struct {
	keyword string
	key     string // the name or index of the schema, if the keyword can have several schemas
	named   bool   // true if key is a name, not an index
	schema  *jsonschema.Schema
}

// pointer returns the JSON pointer that leads to a subschema from the schema around it.
func (s *subschema) pointer() string {
	if s.key == "" && !s.named {
		return "/" + s.keyword
	}
	return "/" + s.keyword + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(s.key)
}

func subschemas(schema *jsonschema.Schema) (all []subschema) {
	v := reflect.ValueOf(schema).Elem()
	for i := range v.NumField() {
		keyword := keywordOf(v.Type().Field(i))
		switch field := v.Field(i).Interface().(type) {
		case *jsonschema.Schema:
			if field != nil {
				all = append(all, subschema{keyword, "", false, field})
			}
		case []*jsonschema.Schema:
			for i, sub := range field {
				all = append(all, subschema{keyword, strconv.Itoa(i), false, sub})
			}
		case map[string]*jsonschema.Schema:
			for _, name := range slices.Sorted(maps.Keys(field)) {
				all = append(all, subschema{keyword, name, true, field[name]})
			}
		}
	}
	return all
}

// keywords returns the keywords that jsonschema knows.
var keywords = sync.OnceValue(func() (all exactjson.Names) {
	t := reflect.TypeFor[jsonschema.Schema]()
	for i := range t.NumField() {
		if name := keywordOf(t.Field(i)); name != "" && name != "-" {
			all.Add(name)
		}
	}
	return all
})

// keywordOf returns the JSON name of a field of a schema.
func keywordOf(field reflect.StructField) string {
	switch field.Name {
	case "Type", "Types":
		return "type"
	case "Items", "ItemsArray":
		return "items"
	case "DependencySchemas":
		return "dependencies"
	}
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}
