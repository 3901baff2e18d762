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

// references follows the references in a schema.
type references struct {
	root  map[string]any
	id    string                    // the $id of the root, without # at its end
	named map[string]map[string]any // the schemas that have an $anchor or an $id, by the text that refers to them
}

func readReferences(root map[string]any) *references {
	id, _ := root["$id"].(string)
	r := &references{root, strings.TrimSuffix(id, "#"), map[string]map[string]any{}}
	eachSchema(root, func(s map[string]any) {
		for _, rule := range []string{"$anchor", "$dynamicAnchor"} {
			if anchor, ok := s[rule].(string); ok {
				r.named["#"+anchor] = s
			}
		}
		if id, ok := s["$id"].(string); ok {
			r.named[id] = s
		}
	})
	return r
}

// find returns what a reference in a document finds, and the document in which it is. It returns nil if
// there is nothing in the whole schema.
func (r *references) find(document map[string]any, to string) (found any, in map[string]any) {
	if named := r.named[to]; named != nil {
		return named, document
	}
	if fragment, ok := strings.CutPrefix(to, r.id+"#"); ok && r.id != "" {
		return followPointer(r.root, "#"+fragment), r.root
	}
	if to == "" {
		to = "#"
	}
	return followPointer(document, to), document
}

// each is like eachSchema, but also visits the schemas that the references in the schema find. It visits
// each schema once.
func (r *references) each(schema any, document map[string]any, visit func(map[string]any)) {
	seen := map[uintptr]bool{}
	var walk func(schema any, document map[string]any)
	walk = func(schema any, document map[string]any) {
		eachSchemaIn(schema, document, func(s, document map[string]any) {
			if seen[address(s)] {
				return
			}
			seen[address(s)] = true
			visit(s)
			for _, rule := range referenceRules {
				if to, ok := s[rule].(string); ok {
					walk(r.find(document, to))
				}
			}
		})
	}
	walk(schema, document)
}

// check returns an error if the schema has a reference to something that eachSchema does not visit, or to
// its root: this would accept a cursor, because the cursor is added at the root. In a draft before
// 2019-09, mcp-go skips all rules beside a $ref, so these are refused too.
func (r *references) check() error {
	visited := map[uintptr]bool{}
	eachSchema(r.root, func(s map[string]any) { visited[address(s)] = true })
	draft, _ := r.root["$schema"].(string)
	var err error
	eachSchemaIn(r.root, nil, func(s, document map[string]any) {
		if _, ok := s["$schema"]; ok && address(s) != address(r.root) {
			err = errors.New("there is a $schema inside the schema: set it at the root alone")
		}
		for _, rule := range referenceRules {
			to, ok := s[rule].(string)
			if !ok {
				continue
			}
			found, _ := r.find(document, to)
			switch target := found.(type) {
			case bool: // the schema true or false
			case map[string]any:
				if address(target) == address(r.root) {
					err = fmt.Errorf("a %s refers to the root of the schema, where the cursor is an argument too: put what it means into $defs", rule)
				} else if !visited[address(target)] {
					err = fmt.Errorf("a %s refers to %q: put what it means into the $defs of this schema", rule, to)
				}
			default:
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

// address returns the address of a schema, which tells it from an equal one.
func address(schema map[string]any) uintptr { return reflect.ValueOf(schema).Pointer() }

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
var besideRef = slices.Concat(annotations, []string{"$ref", "$defs", "definitions"})
