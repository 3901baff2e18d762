package parts_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/internal/parts"
)

func TestHasNull(t *testing.T) {
	for text, want := range map[string]bool{
		`null`: true, `[null]`: true, `{"a":null}`: true, `{"a":[{"b":[1,null]}]}`: true,
		`1`: false, `[]`: false, `{}`: false, `"null"`: false, `{"a":[{"b":[1,false,""]}]}`: false,
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if got := parts.HasNull(value); got != want {
			t.Errorf("HasNull(%s) = %v", text, got)
		}
	}
}

func TestArgumentsAreACopy(t *testing.T) {
	text := []byte(`{"a":1}`)
	a := parts.CopyArguments(text)
	clear(text)
	if string(a.Text()) != `{"a":1}` {
		t.Errorf("got %s", a.Text())
	}
	kept := a.Text()
	a.Release()
	if !bytes.Equal(kept, make([]byte, len(kept))) {
		t.Error("the memory of released arguments still holds them")
	}
	var none *parts.Arguments
	if none.Release(); none.Text() != nil {
		t.Error("nil has a text")
	}
}

func TestStringsAreWrittenAsJSON(t *testing.T) {
	members := map[string]string{"": "", "a": "\x00\x1f\"\\/\u2028\x7f€", "é\n": "x"}
	var got map[string]string
	if err := json.Unmarshal(parts.CopyStrings(members).Text(), &got); err != nil || !maps.Equal(got, members) {
		t.Errorf("got %q, %v", got, err)
	}
	if text := parts.AppendStrings(nil, nil); string(text) != "{}" {
		t.Errorf("got %s", text)
	}
	invalid := tripseal.Binding{Arguments: parts.AppendStrings(nil, map[string]string{"a": "\xff"})}
	if _, err := invalid.ArgumentsDigest(); err == nil {
		t.Error("text that is not UTF-8 has a digest")
	}
}

// FuzzStrings checks the text from which the digest of a prompt's arguments is made: it must decode to the same
// arguments.
func FuzzStrings(f *testing.F) {
	f.Add("dry_run", "yes")
	f.Add("\"\\\x00\x1f", "\u2028\U0001f9ad\x7f")
	f.Fuzz(func(t *testing.T, name, value string) {
		name, value = strings.ToValidUTF8(name, "?"), strings.ToValidUTF8(value, "?")
		want := map[string]string{name: value, "other": name}
		var got map[string]string
		text := parts.AppendStrings(nil, want)
		if err := json.Unmarshal(text, &got); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q reads as %q, %v", text, got, err)
		}
	})
}

func TestATableForgetsWhatIsGone(t *testing.T) {
	type object struct{ next *object }
	var table parts.Table[object, int]
	kept := new(object)
	if !table.Add(kept, 7) || table.Add(kept, 8) {
		t.Error("an object is new once")
	}
	const objects = 5000
	gone := make(chan struct{}, objects)
	for range objects {
		o := &object{next: new(object)}
		table.Add(o, 1)
		runtime.AddCleanup(o, func(int) { gone <- struct{}{} }, 0)
	}
	for n := 0; n < objects-100; { // the stack may still refer to the last objects
		runtime.GC()
		for drained := false; !drained; {
			select {
			case <-gone:
				n++
			default:
				drained = true
			}
		}
		runtime.Gosched()
	}
	held := make([]*object, 0, 20000)
	for len(held) < cap(held) { // only some calls of table.Add remove the entries of objects that are gone
		o := &object{next: kept}
		held = append(held, o)
		table.Add(o, 2)
	}
	if n := table.Len(); n > len(held)+200 {
		t.Errorf("%d objects are remembered, %d are left", n, len(held)+1)
	}
	if value, ok := table.Get(kept); !ok || value != 7 {
		t.Errorf("got %v, %v", value, ok)
	}
	if _, ok := table.Get(nil); ok {
		t.Error("nil has a value")
	}
	runtime.KeepAlive(held)
}

func TestUnlistedToolsAreToldOnceAfterTheLastPage(t *testing.T) {
	var text bytes.Buffer
	logger := func() *slog.Logger { return slog.New(slog.NewTextHandler(&text, nil)) }
	var u parts.Unlisted
	u.Expect("Unsolicited", []string{"here", "there", "misspelt"})
	u.Page(t.Context(), 1, true, slices.Values([]string{"there"}), logger) // another replica served page 0
	u.Page(t.Context(), 0, false, slices.Values([]string{"here"}), logger)
	if text.Len() != 0 {
		t.Errorf("told too early: %s", text.String())
	}
	for range 2 {
		u.Page(t.Context(), 1, true, slices.Values([]string{"there"}), logger)
	}
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "option=Unsolicited tool=misspelt") {
		t.Errorf("got %s", got)
	}
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("a secret") }

func TestWhatCannotBeWrittenIsFound(t *testing.T) {
	loop := map[string]any{}
	loop["loop"] = loop
	for name, value := range map[string]any{
		"channel": make(chan int), "not a number": math.NaN(), "infinite": map[string]any{"x": []any{math.Inf(1)}},
		"panic": []any{panics{}}, "loop": loop, "invalid": json.RawMessage(`{`), "number": json.Number("x"), "func": func() {},
	} {
		err := parts.CheckWritable(value)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, value := range map[string]any{
		"nil": nil, "tree": map[string]any{"a": []any{1, 1.5, "x", true, nil, []string{"y"}}}, "raw": json.RawMessage(`{}`),
		"struct": struct{ A int }{1}, "number": json.Number("1"),
	} {
		if err := parts.CheckWritable(value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	schema := any(map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "string"}}})
	if n := testing.AllocsPerRun(100, func() { parts.CheckWritable(schema) }); n != 0 {
		t.Errorf("%v allocations for a schema", n)
	}
}

// TestALoggerMayListTheTools calls Page from the logger that Page uses. This happens if a log handler
// lists the server's tools. So Page must not hold its lock while it logs.
func TestALoggerMayListTheTools(t *testing.T) {
	var u parts.Unlisted
	u.Expect("Options.Unsolicited", []string{"misspelt"})
	none := func(func(string) bool) {}
	warned := 0
	u.Page(t.Context(), 0, true, none, func() *slog.Logger {
		warned++
		u.Page(t.Context(), 0, true, none, func() *slog.Logger { t.Error("a second warning"); return slog.Default() })
		return slog.New(slog.DiscardHandler)
	})
	if warned != 1 {
		t.Errorf("%d warnings", warned)
	}
}
