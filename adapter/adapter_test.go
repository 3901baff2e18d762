package adapter_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/cursor"
)

func TestCapabilitiesMeetWhatWasDeclared(t *testing.T) {
	needs := map[string]adapter.Need{
		"form": {Kind: tripseal.KindForm}, "url": {Kind: tripseal.KindURL}, "sampling": {Kind: tripseal.KindSampling},
		"tools": {Kind: tripseal.KindSampling, Tools: true}, "roots": {Kind: tripseal.KindRoots}, "none": {},
	}
	for text, want := range map[string]string{
		`{}`: "", `{"elicitation":{}}`: "form", `{"elicitation":{"form":{}}}`: "form", `{"elicitation":{"url":{}}}`: "url",
		`{"elicitation":{"form":{},"url":{}}}`: "form url", `{"elicitation":{"x":{}}}`: "form", `{"sampling":{}}`: "sampling", `{"sampling":{"tools":{}}}`: "sampling tools",
		`{"roots":{}}`: "roots", `{"elicitation":true,"sampling":[],"roots":null}`: "",
	} {
		var declared map[string]any
		if err := json.Unmarshal([]byte(text), &declared); err != nil {
			t.Fatal(err)
		}
		var met []string
		for name, need := range needs {
			if adapter.CapabilitiesIn(declared).Meet(need) {
				met = append(met, name)
			}
		}
		slices.Sort(met)
		if got := strings.Join(met, " "); got != want {
			t.Errorf("%s meets %q, want %q", text, got, want)
		}
	}
	all := slices.Collect(maps.Values(needs))
	wire := adapter.MissingCapabilities(append(all, all...)...)
	if want := `{"requiredCapabilities":{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{"tools":{}}}}`; wire.Code != -32021 || string(wire.Data) != want {
		t.Errorf("got %+v %s", wire, wire.Data)
	}
}

func TestCursorsOfToolsNeedAUserIfTheBoundarySaysSo(t *testing.T) {
	for _, own := range []bool{false, true} {
		boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), RequireUser: true, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		var issuer cursor.Issuer
		if own {
			lenient, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			if issuer, err = cursor.New(lenient, cursor.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		for user, want := range map[string]bool{"": false, "alice": true} {
			request := tripseal.Request{Method: "tools/call", Target: "t", Principal: func(context.Context) (string, error) { return user, nil }}
			page, err := adapter.ToolCursors(boundary, issuer).Open(t.Context(), request, "")
			if err == nil {
				_, err = page.Next(t.Context(), cursor.NextPage{Position: []byte("1")})
			}
			if (err == nil) != want {
				t.Errorf("own %v, user %q: %v", own, user, err)
			}
		}
		if adapter.ListCursors(boundary) == nil {
			t.Error("no cursors for lists")
		}
	}
}
