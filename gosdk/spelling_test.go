package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

// speller makes random JSON values, and writes each value in many ways.
type speller struct{ *rand.Rand }

// units is a string of UTF-16 code units. A surrogate in it may lack its other half.
type units []uint16

func (r speller) value(depth int) any {
	switch n := r.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return r.IntN(2) == 0
	case n <= 3:
		return r.number()
	case n == 4:
		u := make(units, r.IntN(6))
		for i := range u {
			u[i] = []uint16{0xD800, 0xDC00, 0xD83D, 0xDE00, 'A', 'u', '\\', '"', 0, 0xFFFD}[r.IntN(10)]
		}
		return u
	case n == 5 || depth == 0:
		return r.text()
	case n == 6:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = r.value(depth - 1)
		}
		return list
	}
	object := map[string]any{}
	for range r.IntN(4) {
		object[r.text()] = r.value(depth - 1)
	}
	return object
}

func (r speller) text() string {
	const letters = "aB/\\\"\n\x00é€😀ſKu\u2028\x7fsk"
	text := []rune(letters)
	for i := range text {
		text[i] = []rune(letters)[r.IntN(len(text))]
	}
	return string(text[:r.IntN(7)])
}

func (r speller) number() json.Number {
	digits := strconv.Itoa(1 + r.IntN(9))
	for range r.IntN(22) {
		digits += strconv.Itoa(r.IntN(10))
	}
	if r.IntN(6) == 0 {
		digits = "0"
	}
	exponent := 0
	if r.IntN(2) == 0 {
		exponent = r.IntN(40) - 25
	}
	return json.Number(fmt.Sprintf("%s%se%d", strings.Repeat("-", r.IntN(3)/2), digits, exponent))
}

func (r speller) spell(value any) string {
	switch value := value.(type) {
	case string:
		return r.spellText(value)
	case units:
		var b strings.Builder
		for _, unit := range value {
			fmt.Fprintf(&b, []string{`\u%04x`, `\u%04X`}[r.IntN(2)], unit)
		}
		return `"` + b.String() + `"`
	case json.Number:
		return r.spellNumber(string(value))
	case []any:
		var items []string
		for _, item := range value {
			items = append(items, r.space()+r.spell(item)+r.space())
		}
		return "[" + strings.Join(items, ",") + "]"
	case map[string]any:
		keys := slices.Sorted(maps.Keys(value))
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		var members []string
		for _, key := range keys {
			members = append(members, r.space()+r.spellText(key)+r.space()+":"+r.spell(value[key])+r.space())
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	text, _ := json.Marshal(value)
	return string(text)
}

func (r speller) space() string { return []string{"", " ", "\t", "\r\n"}[r.IntN(4)] }

func (r speller) spellText(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c > 0xFFFF && r.IntN(2) == 0:
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xD800+(c-0x10000)>>10, 0xDC00+(c-0x10000)&0x3FF)
		case c == '/' && r.IntN(2) == 0:
			b.WriteString(`\/`)
		case c < 0x20 || c == '"' || c == '\\' || c <= 0xFFFF && r.IntN(3) == 0:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteRune(c)
		}
	}
	return `"` + b.String() + `"`
}

// spellNumber takes a literal that has digits and an exponent, but no decimal point. It writes the
// same number, sometimes with a point at a random place.
func (r speller) spellNumber(literal string) string {
	digits, negative := strings.CutPrefix(literal, "-")
	digits, after, _ := strings.Cut(digits, "e")
	exponent, _ := strconv.Atoi(after)
	zeros := r.IntN(4)
	digits, exponent = digits+strings.Repeat("0", zeros), exponent-zeros
	switch point := r.IntN(len(digits)); {
	case digits[0] == '0' || point == 0 && r.IntN(2) == 0: // put 0. before the digits
		digits, exponent = "0."+digits, exponent+len(digits)
	case point > 0 && r.IntN(2) == 0:
		digits, exponent = digits[:point]+"."+digits[point:], exponent+len(digits)-point
	}
	if exponent != 0 || r.IntN(2) == 0 {
		digits += fmt.Sprintf([]string{"e%d", "E%d", "e%+d"}[r.IntN(3)], exponent)
	}
	return strings.Repeat("-", map[bool]int{true: 1}[negative]) + digits
}

// A token or a cursor also opens for arguments that write the same value in another way.
// Whenever it opens, the handler gets the same value as before.
func TestArgumentsThatCountAsTheSameAreTheSameToTheHandler(t *testing.T) {
	var b book
	var seen []any
	anything := map[string]any{"type": "object"}
	server := newServer()
	protected := gosdk.Protect(server, boundary(t, &b, nil), nil)
	mcp.AddTool(server, &mcp.Tool{Name: "asks", InputSchema: anything}, func(_ context.Context, req *mcp.CallToolRequest, in any) (*mcp.CallToolResult, any, error) {
		seen = append(seen, in)
		if req.Params.RequestState != "" {
			return &mcp.CallToolResult{}, nil, nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": form("?")}, RequestState: "s"}, nil, nil
	})
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "pages", InputSchema: anything}, func(_ context.Context, _ *mcp.CallToolRequest, in any, _ *int) ([]int, *int, error) {
		seen = append(seen, in)
		return nil, new(int), nil
	}, nil)
	session := connect(t, server, raw(), revision2026)
	call := func(tool, arguments, state, cursor string) (next string, ok bool) {
		if cursor != "" {
			arguments = strings.TrimSuffix(arguments, "}") + `,"cursor":"` + cursor + `"}`
		}
		result, err := callTool(t, session, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments), RequestState: state})
		if err != nil || result.IsError {
			return "", false
		}
		page, _ := result.StructuredContent.(map[string]any)
		next, _ = page["nextCursor"].(string)
		return result.RequestState + next, true
	}
	r := speller{rand.New(rand.NewPCG(1, 2))}
	opened, others := 0, 0
	for range 300 {
		value := map[string]any{"v": r.value(3), "w": r.value(2), "n": r.number()}
		for _, tool := range []string{"asks", "pages"} {
			first := r.spell(value)
			seen = nil
			token, ok := call(tool, first, "", "")
			if !ok {
				continue // there is half a surrogate pair, or a number that the tool refuses
			}
			other, near := maps.Clone(value), maps.Clone(value)
			other["w"] = r.value(1)
			near["n"] = value["n"].(json.Number) + "0" // another exponent
			for _, again := range []map[string]any{value, other, near} {
				same, text := reflect.DeepEqual(again, value), r.spell(again)
				seen = seen[:1]
				if tool == "asks" {
					_, ok = call(tool, text, token, "")
				} else {
					_, ok = call(tool, text, "", token)
				}
				switch {
				case same && !ok:
					t.Errorf("%s: %s does not open for %s", tool, first, text)
				case ok && (len(seen) != 2 || !reflect.DeepEqual(seen[0], seen[1])):
					t.Errorf("%s: opened for %s and %s: %#v", tool, first, text, seen)
				case same:
					opened++
				case !ok:
					others++
				}
			}
		}
	}
	if opened < 200 || others < 200 {
		t.Errorf("only %d opened and %d did not", opened, others)
	}
}
