package gosdk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

var sized = properties(`"prefix":{"type":"string"},"limit":{"type":"integer","maximum":100,"default":10}`)

func TestAnUnboundArgumentMayChangeFromPageToPage(t *testing.T) {
	k := newTaker[listArgs](t, sized, &gosdk.PageOptions{Unbound: []string{"limit"}})
	next := k.mustCall(t, `{"prefix":"r","limit":5}`)
	for _, c := range []struct {
		arguments string
		limit     int
	}{
		{`{"prefix":"r","limit":7}`, 7}, {`{"prefix":"r","limit":7.0}`, 7}, {`{"prefix":"r"}`, 10},
		{`{"limit":5,"prefix":"r"}`, 5}, {`{"prefix":"r","limit":-3}`, -3}, {`{"prefix":"r","l\u0069mit":8}`, 8},
	} {
		next = k.mustCall(t, withCursor(next, c.arguments))
		if k.got != (listArgs{"r", c.limit}) {
			t.Errorf("%s: the handler got %+v", c.arguments, k.got)
		}
	}
}

func TestOtherArgumentsStayBoundBesideAnUnboundOne(t *testing.T) {
	k := newTaker[listArgs](t, sized, &gosdk.PageOptions{Unbound: []string{"limit"}})
	next := k.mustCall(t, `{"prefix":"r","limit":5}`)
	for _, arguments := range []string{
		`{"prefix":"s","limit":5}`, `{"limit":5}`, `{"prefix":"","limit":5}`, `{"prefix":"r","limit":5,"more":1}`,
		`{"limit":5,"prefix":"r","x":{"limit":5}}`, `{"prefix":"r","limit":5,"Limit":5}`, `{"prefix":"r","prefix":"r"}`,
	} {
		if _, err := k.call(t, withCursor(next, arguments)); wireText(err) != invalidCursor {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	k.mustCall(t, withCursor(next, `{"prefix":"r","limit":6}`))
}

// With In = any, the handler gets all arguments in a map, including the unbound ones.
func TestAHandlerOfAnyGetsAnUnboundArgument(t *testing.T) {
	k := newTaker[any](t, sized, &gosdk.PageOptions{Unbound: []string{"limit"}})
	next := k.mustCall(t, `{"prefix":"r","limit":5}`)
	k.mustCall(t, withCursor(next, `{"prefix":"r","limit":6}`))
	if got, _ := k.got.(map[string]any); got["limit"] != 6.0 || got["prefix"] != "r" {
		t.Errorf("the handler got %v", k.got)
	}
}

func TestTheListOfUnboundArgumentsIsCopied(t *testing.T) {
	unbound := []string{"limit"}
	k := newTaker[listArgs](t, sized, &gosdk.PageOptions{Unbound: unbound})
	unbound[0] = "prefix"
	next := k.mustCall(t, `{"prefix":"r","limit":5}`)
	if _, err := k.call(t, withCursor(next, `{"prefix":"s","limit":5}`)); wireText(err) != invalidCursor {
		t.Errorf("another prefix: %v", err)
	}
}

func TestOnlyTheArgumentAtTheRootIsUnbound(t *testing.T) {
	schema := properties(`"limit":{},"in":{"properties":{"limit":{}}}`)
	k := newTaker[map[string]any](t, schema, &gosdk.PageOptions{Unbound: []string{"limit"}})
	next := k.mustCall(t, `{"limit":1,"in":{"limit":1}}`)
	if _, err := k.call(t, withCursor(next, `{"limit":1,"in":{"limit":2}}`)); wireText(err) != invalidCursor {
		t.Errorf("another limit inside: %v", err)
	}
	k.mustCall(t, withCursor(next, `{"limit":2,"in":{"limit":1}}`))
}

func TestTheSchemaStillChecksAnUnboundArgument(t *testing.T) {
	k := newTaker[listArgs](t, sized, &gosdk.PageOptions{Unbound: []string{"limit"}})
	next := k.mustCall(t, `{"prefix":"r","limit":5}`)
	for _, arguments := range []string{
		`{"prefix":"r","limit":101}`, `{"prefix":"r","limit":"5"}`, `{"prefix":"r","limit":null}`, `{"prefix":"r","limit":1.5}`,
	} {
		if _, err := k.call(t, withCursor(next, arguments)); err == nil {
			t.Errorf("%s: the handler got %+v", arguments, k.got)
		}
	}
}

func TestEveryArgumentIsBoundByDefault(t *testing.T) {
	k := newTaker[listArgs](t, sized, nil)
	next := k.mustCall(t, `{"prefix":"r","limit":5}`)
	for _, arguments := range []string{`{"prefix":"r","limit":6}`, `{"prefix":"r"}`} {
		if _, err := k.call(t, withCursor(next, arguments)); wireText(err) != invalidCursor {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	if said := cursorDescription(t, k.session); !strings.Contains(said, "with the other arguments unchanged. ") {
		t.Errorf("clients are told: %s", said)
	}
}

func TestClientsAreToldWhichArgumentsMayChange(t *testing.T) {
	k := newTaker[listArgs](t, sized, &gosdk.PageOptions{Unbound: []string{"limit"}})
	if said := cursorDescription(t, k.session); !strings.Contains(said, `arguments unchanged, except "limit". `) {
		t.Errorf("clients are told: %s", said)
	}
}

func cursorDescription(t *testing.T, session *mcp.ClientSession) string {
	t.Helper()
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(listed.Tools[0].InputSchema)
	var schema struct {
		Properties struct{ Cursor struct{ Description string } }
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	return schema.Properties.Cursor.Description
}

func TestAnUnboundNameThatIsNoArgumentIsRefusedAtRegistration(t *testing.T) {
	schema := properties(`"prefix":{},"limit":{},"in":{"properties":{"deep":{}}}`)
	for said, unbound := range map[string][]string{
		`"limits" is no argument`:  {"limits"},
		`"Limit" is no argument`:   {"Limit"},
		`"deep" is no argument`:    {"deep"},
		`"in.deep" is no argument`: {"in.deep"},
		`"" is no argument`:        {""},
		`"cursor" is no argument`:  {"cursor"},
	} {
		text := panicOf(func() { newTaker[map[string]any](t, schema, &gosdk.PageOptions{Unbound: unbound}) })
		if !strings.HasPrefix(text, "gosdk: the paged tool") || !strings.Contains(text, said) {
			t.Errorf("%q: %q", unbound, text)
		}
	}
	for said, options := range map[string]*gosdk.PageOptions{
		`"page" is no argument`:  {Cursor: "page", Unbound: []string{"page"}},
		`"Limit" is no argument`: {Unbound: []string{"Limit"}},
		``:                       {Unbound: []string{"limit"}},
	} {
		if text := panicOf(func() { newTaker[listArgs](t, nil, options) }); !strings.Contains(text, said) || (text == "") != (said == "") {
			t.Errorf("%s: %q", said, text)
		}
	}
}
