package gosdk_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/gosdk"
)

// limited returns a taker for a paged tool with the given options, which limit its arguments.
// The tool never has a last page.
func limited(t *testing.T, schema any, options *gosdk.PageOptions) *taker[map[string]any] {
	t.Helper()
	server, taken := newServer(), new(taker[map[string]any])
	gosdk.AddPagedTool(gosdk.Protect(server, boundary(t, &book{}, nil), nil), &mcp.Tool{Name: "t", InputSchema: schema},
		func(_ context.Context, _ *mcp.CallToolRequest, in map[string]any, _ *key) ([]row, *key, error) {
			taken.got = in
			taken.calls++
			return nil, &key{1}, nil
		}, options)
	taken.session = connect(t, server, nil, revision2026)
	return taken
}

// Arguments beyond the limit are refused before they are checked against the schema. With this
// schema, each level of the arguments doubles the work, so that the check would take more than a
// day.
func TestArgumentsBeyondTheLimitNeverReachTheSchema(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"f":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[
		{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"required":["a"]},
		{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"required":["b"]}]}}}`)
	taken := limited(t, schema, &gosdk.PageOptions{MaxArguments: 32})
	next := taken.mustCall(t, `{}`)
	const levels = 50
	deep := `"f":` + strings.Repeat(`{"n":`, levels) + "1" + strings.Repeat("}", levels)
	for _, arguments := range []string{
		`{` + deep + `}`, `{` + deep + `,"cursor":"` + next + `"}`, `{"cursor":"` + next + `",` + deep + `}`, `{"cursor":"x",` + deep + `}`, `{"cursor":7,` + deep + `}`,
		`{` + deep + `,"` + strings.Repeat("x", 200<<10) + `":1}`,
	} {
		if _, err := taken.call(t, arguments); wire(err) != invalidParams {
			t.Errorf("%.40s: %v", arguments, err)
		}
	}
}

func TestTheLimitIsOfTheArgumentsWithoutTheCursorWhereverItIs(t *testing.T) {
	const most = 64
	taken := limited(t, object, &gosdk.PageOptions{MaxArguments: most})
	for length, refused := range map[int]bool{most: false, most + 1: true} {
		a := `"a":"` + strings.Repeat("x", length-len(`{"a":"","b":1}`)) + `"`
		next, err := taken.call(t, `{`+a+`,"b":1}`)
		if (wire(err) == invalidParams) != refused {
			t.Errorf("%d bytes: %v", length, err)
		}
		for _, arguments := range []string{
			`{"cursor":"` + next + `",` + a + `,"b":1}`, `{` + a + `,"cursor":"` + next + `","b":1}`, `{` + a + `,"b":1,"cursor":"` + next + `"}`,
			`{` + a + `,"b":1,"\u0063ursor":"` + next + `"}`, `{"cursor":null,` + a + `,"b":1}`,
		} {
			if _, err := taken.call(t, arguments); (wire(err) == invalidParams) != refused || (err != nil) != refused {
				t.Errorf("%s: %v", arguments, err)
			}
		}
	}
}

func TestAnUnboundArgumentCountsOnEveryPage(t *testing.T) {
	taken := limited(t, properties(`"note":{"type":"string"}`), &gosdk.PageOptions{MaxArguments: 64, Unbound: []string{"note"}})
	next := taken.mustCall(t, `{}`)
	if _, err := taken.call(t, `{"cursor":"`+next+`","note":"`+strings.Repeat("x", 100)+`"}`); wire(err) != invalidParams {
		t.Errorf("the handler got %v; %v", taken.got, err)
	}
	taken.mustCall(t, `{"cursor":"`+next+`","note":"`+strings.Repeat("x", 64-len(`{"note":""}`))+`"}`)
}

// The cursor does not count towards the limit of the arguments, however long it is.
func TestAWalkWithLongCursorsGoesOn(t *testing.T) {
	cursors, err := cursor.New(cursor.Config{Keys: tripseal.Ephemeral(), Audience: "a", MaxPosition: 32 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for most, length := range map[int]int{0: 65_000, 1024: 1000} {
		server := newServer()
		protected := gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.MaxArguments = most }), &gosdk.Options{Cursors: cursors})
		gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list_rows"}, func(_ context.Context, _ *mcp.CallToolRequest, _ struct {
			Prefix string `json:"prefix"`
		}, after *string) ([]row, *string, error) {
			next := strings.Repeat("k", 32<<10-2) // the longest position that is allowed: two more bytes are for the quotes in JSON
			if after != nil && *after != next {
				t.Errorf("the position is %.20q", *after)
			}
			return nil, &next, nil
		}, &gosdk.PageOptions{MaxArguments: most})
		session := connect(t, server, nil, revision2026)
		arguments := map[string]any{"prefix": strings.Repeat("x", length)}
		for page := range 3 {
			got, err := listPage(t, session, arguments)
			if err != nil {
				t.Fatalf("page %d with %d bytes of at most %d: %v", page, length, most, err)
			}
			arguments["cursor"] = got.Next
		}
	}
}
