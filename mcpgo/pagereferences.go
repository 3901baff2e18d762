package mcpgo

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// referenceRules are the rules whose value is a reference.
var referenceRules = []string{"$ref", "$dynamicRef", "$recursiveRef"}

// checkReferences returns an error if a schema has a reference that eachSchema cannot follow, or one to
// the root of the schema: it would accept a cursor, because the cursor is added at the root. In a draft
// before 2019-09, mcp-go skips all rules beside a $ref, so these are refused too. The draft is that of
// the root.
func checkReferences(root map[string]any) error {
	targets := map[string]bool{} // the texts of references to schemas that have a name
	schemas := map[uintptr]bool{}
	eachSchema(root, func(s map[string]any) {
		schemas[reflect.ValueOf(s).Pointer()] = true
		for _, name := range []string{"$anchor", "$dynamicAnchor"} {
			if anchor, ok := s[name].(string); ok {
				targets["#"+anchor] = true
			}
		}
		if id, ok := s["$id"].(string); ok && len(schemas) > 1 { // the first schema is the root
			targets[id] = true
		}
	})
	draft, _ := root["$schema"].(string)
	id, _ := root["$id"].(string)
	var err error
	eachSchemaIn(root, nil, func(s, document map[string]any) {
		if _, ok := s["$schema"]; ok && reflect.ValueOf(s).Pointer() != reflect.ValueOf(root).Pointer() {
			err = errors.New("there is a $schema inside the schema: set it at the root alone")
		}
		for _, rule := range referenceRules {
			to, ok := s[rule].(string)
			if !ok || targets[to] {
				continue
			}
			from, pointer := document, to
			if fragment, ok := strings.CutPrefix(to, strings.TrimSuffix(id, "#")+"#"); ok && id != "" {
				from, pointer = root, "#"+fragment
			}
			found := followPointer(from, pointer)
			if _, ok := found.(bool); ok {
				continue // the schema true or false
			}
			target, _ := found.(map[string]any)
			switch address := reflect.ValueOf(target).Pointer(); {
			case to == "" || to == id || address == reflect.ValueOf(root).Pointer():
				err = fmt.Errorf("a %s refers to the root of the schema, where the cursor is an argument too: put what it means into $defs", rule)
			case !schemas[address]:
				err = fmt.Errorf("a %s refers to %q: put what it means into the $defs of this schema", rule, to)
			}
		}
		if _, ok := s["$ref"].(string); !ok || !strings.Contains(draft, "draft-0") {
			return
		}
		for rule := range s {
			if !slices.Contains(besideRef, rule) && !strings.HasPrefix(rule, "x-") {
				err = fmt.Errorf("mcp-go skips %s beside a $ref in this draft of JSON Schema: put the $ref into an allOf", rule)
			}
		}
	})
	return err
}

// followPointer returns what a reference finds in a document by its JSON pointer, such as #/$defs/name.
// It returns nil if there is nothing.
func followPointer(document map[string]any, reference string) any {
	pointer, ok := strings.CutPrefix(reference, "#")
	pointer, err := url.PathUnescape(pointer)
	if !ok || err != nil || pointer != "" && pointer[0] != '/' {
		return nil
	}
	var at any = document
	for _, step := range strings.Split(pointer, "/")[1:] {
		switch v := at.(type) {
		case map[string]any:
			at = v[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(v) {
				return nil
			}
			at = v[n]
		default:
			return nil
		}
	}
	return at
}

// besideRef are the keywords that lose nothing beside a $ref.
var besideRef = []string{
	"$ref", "$schema", "$id", "$defs", "definitions", "$comment", "title", "description", "example", "examples", "default", "deprecated", "readOnly", "writeOnly",
}
