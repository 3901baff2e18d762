package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// speller writes one value in many ways.
type speller struct{ *rand.Rand }

func (s speller) space() string { return []string{"", " ", "\n", "\t \r"}[s.IntN(4)] }

func (s speller) text(value string) string {
	var b strings.Builder
	for _, c := range value {
		switch escaped := s.IntN(4) == 0; {
		case (escaped || c < ' ') && c > 0xffff:
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+(c-0x10000)>>10, 0xdc00+(c-0x10000)&0x3ff)
		case escaped || c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		case c == '"' || c == '\\' || c == '/' && s.IntN(2) == 0:
			b.WriteString(`\` + string(c))
		default:
			b.WriteRune(c)
		}
	}
	return `"` + b.String() + `"`
}

// number writes digits × 10^exponent.
func (s speller) number(digits string, exponent int) string {
	zeros := strings.Repeat("0", s.IntN(25))
	switch s.IntN(4) {
	case 0:
		return fmt.Sprintf("%s.0%sE%+d", digits, zeros, exponent)
	case 1:
		return fmt.Sprintf("0.%s%se%d", zeros, digits, exponent+len(zeros)+len(digits))
	case 2:
		if len(digits) > 1 {
			return fmt.Sprintf("%s.%se%d", digits[:1], digits[1:], exponent+len(digits)-1)
		}
	}
	if exponent < 0 || digits == "0" {
		return fmt.Sprintf("%se%d", digits, exponent)
	}
	return digits + strings.Repeat("0", exponent)
}

// TestArgumentsOfOneDigestAreOneValueToAHandler: a token is bound to the digest of the
// arguments, so two spellings that share it must not reach a handler as two values.
func TestArgumentsOfOneDigestAreOneValueToAHandler(t *testing.T) {
	type typed struct {
		S string         `json:"s,omitempty"`
		I int64          `json:"i,omitempty"`
		U uint64         `json:"u,omitempty"`
		F float64        `json:"f,omitempty"`
		A any            `json:"a,omitempty"`
		M map[string]any `json:"m,omitempty"`
	}
	var seen string
	server := newServer()
	mcp.AddTool(server, &mcp.Tool{Name: "typed"}, func(_ context.Context, _ *mcp.CallToolRequest, in typed) (*mcp.CallToolResult, any, error) {
		seen = fmt.Sprintf("%#v", in)
		return &mcp.CallToolResult{}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "typed, its own schema", InputSchema: object}, func(_ context.Context, _ *mcp.CallToolRequest, in typed) (*mcp.CallToolResult, any, error) {
		seen = fmt.Sprintf("%#v", in)
		return &mcp.CallToolResult{}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "any"}, func(_ context.Context, _ *mcp.CallToolRequest, in map[string]any) (*mcp.CallToolResult, any, error) {
		seen = fmt.Sprintf("%#v", in)
		return &mcp.CallToolResult{}, nil, nil
	})
	client := connect(t, server, raw(), revision2026)
	s := speller{rand.New(rand.NewPCG(7, 7))}
	texts := []string{"a", "a😀b", "/\"\\", "é\u2028\x00", "K\u212a"}
	numbers := []string{"0", "1", "17", "8005", "30000000000000004", "9007199254740993", "9223372036854775807", "18446744073709551615", "2251799813685248250001"}
	for _, tool := range []string{"typed", "typed, its own schema", "any"} {
		handled := 0
		for range 300 {
			name := []string{"s", "i", "u", "f", "a", "m"}[s.IntN(6)]
			value, digits, exponent, sign := texts[s.IntN(len(texts))], numbers[s.IntN(len(numbers))], s.IntN(12)-6, []string{"", "", "", "-"}[s.IntN(4)]
			isText := name == "s" || name == "a" && exponent%2 == 0
			spell := func() string {
				text := sign + s.number(digits, exponent)
				switch {
				case isText:
					text = s.text(value)
				case name == "m":
					text = "{" + s.text(value) + ":" + s.space() + text + "}"
				}
				return "{" + s.space() + s.text(name) + s.space() + ":" + s.space() + text + s.space() + "}"
			}
			var digests, reached [2]string
			spellings := [2]string{spell(), spell()}
			for i, spelling := range spellings {
				digest, err := (&mcpseal.Binding{Arguments: []byte(spelling)}).ArgumentsDigest()
				if err != nil {
					t.Fatal(spelling, err)
				}
				seen = ""
				callTool(t, client, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(spelling)})
				digests[i], reached[i] = fmt.Sprint(digest), seen
			}
			if digests[0] != digests[1] || reached[0] != reached[1] {
				t.Fatalf("%s: %q are %q, with the digests %q", tool, spellings, reached, digests)
			}
			if reached[0] != "" {
				handled++
			}
		}
		if handled < 150 {
			t.Errorf("%s: only %d pairs reached the handler", tool, handled)
		}
	}
}
