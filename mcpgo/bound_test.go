package mcpgo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpseal/mcpseal"
)

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

// Servers of other SDKs open the same tokens, and bind them to the object that arrived. So if
// the two forms of the arguments differ, a token must be bound to a text that is not an object.
// For each pair of forms, this text must be another one.
func TestNoOtherArgumentsHaveTheTextOfAPair(t *testing.T) {
	texts := []string{
		``, `{}`, `{"a":1}`, `[]`, `[{}]`, `[{},{}]`, `[{},{"a":1}]`, `[{"a":1},{}]`, `[[{},{"a":1}]]`, ` [[]]`, `[[],[]]`, `5`, `"a"`, `{"a":[{},{}]}`,
	}
	seen := make(map[string]string)
	for _, raw := range texts {
		for _, decoded := range texts {
			params := mcp.CallToolParams{RawArguments: json.RawMessage(raw), Arguments: decode(t, decoded)}
			bound := string(boundText(&params))
			if differ := raw != decoded; differ && bound[0] != '[' {
				t.Errorf("%s and %s are bound to %s", raw, decoded, bound)
			}
			// No arguments mean the same as {}.
			raw, decoded, bound := cmp.Or(raw, "{}"), cmp.Or(decoded, "{}"), cmp.Or(bound, "{}")
			var compact bytes.Buffer
			if err := json.Compact(&compact, []byte(bound)); err != nil {
				t.Fatalf("%s, %s: %v", raw, decoded, err)
			}
			pair := raw + " and " + decoded
			if other, ok := seen[compact.String()]; ok && other != pair {
				t.Errorf("%s is bound to %s, as is %s", pair, bound, other)
			}
			seen[compact.String()] = pair
		}
	}
}

func decode(t testing.TB, text string) (value any) {
	t.Helper()
	if text != "" && json.Unmarshal([]byte(text), &value) != nil {
		t.Skip("not JSON")
	}
	return value
}

// FuzzBoundText makes two pairs of forms. If a token binds both to the same value, both texts must
// have the same value, and so must both decoded forms.
func FuzzBoundText(f *testing.F) {
	b, err := mcpseal.New(mcpseal.Config{Keys: mcpseal.Ephemeral()})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw, decoded, otherRaw, otherDecoded string) {
		one := mcp.CallToolParams{RawArguments: json.RawMessage(raw), Arguments: decode(t, decoded)}
		other := mcp.CallToolParams{RawArguments: json.RawMessage(otherRaw), Arguments: decode(t, otherDecoded)}
		if !opensFor(t, b, boundText(&one), boundText(&other)) {
			return
		}
		orEmptyMap := func(value any) any {
			if value == nil {
				return map[string]any{}
			}
			return value
		}
		if !opensFor(t, b, []byte(raw), []byte(otherRaw)) || !reflect.DeepEqual(orEmptyMap(one.Arguments), orEmptyMap(other.Arguments)) {
			t.Errorf("%s and %v are bound to %s, as are %s and %v", raw, one.Arguments, boundText(&one), otherRaw, other.Arguments)
		}
	})
}

// opensFor reports whether a token that was sealed for some arguments opens for others.
func opensFor(t *testing.T, b *mcpseal.Boundary, sealed, opened []byte) bool {
	request := mcpseal.Request{Method: "tools/call", Target: "t", Arguments: sealed}
	round, err := b.Open(t.Context(), request, "")
	if err != nil {
		return false
	}
	state := "s"
	token, err := b.Seal(t.Context(), &round, &state)
	if err != nil {
		return false
	}
	request.Arguments = opened
	_, err = b.Open(t.Context(), request, token)
	return err == nil
}
