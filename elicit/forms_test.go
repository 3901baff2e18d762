package elicit_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal/elicit"
)

func TestFormsAreWhatElicitationAllows(t *testing.T) {
	type everything struct {
		X       bool     `json:"x"`
		Name    string   `json:"name" jsonschema:"your \"name\" <"`
		Mail    *string  `json:"mail,omitempty"`
		Age     uint8    `json:"age"`
		Rate    float64  `json:"rate,omitempty"`
		OK      *bool    `json:"ok"`
		Size    string   `json:"size"`
		Toppers []string `json:"toppers,omitempty" jsonschema:"on top"`
		Hidden  string   `json:"-"`
		//lint:ignore U1000 a field that is not exported is no field of the form
		private string
	}
	options := []elicit.Option{elicit.Enum("size", "S", "M"), elicit.Enum("toppers", "olives", "ham")}
	var got everything
	s := newService(t)
	h := func(ask *elicit.Asker) (_ string, err error) {
		got, err = elicit.Form[everything](ask, "order", "Order", options...).Value()
		if err == nil {
			_, err = elicit.Form[confirm](ask, "sure", "Sure?").Value() // so that the answer is also read from the state
		}
		return "done", err
	}
	asked := s.round(h, "", nil)
	want := `{"type":"object","properties":{"x":{"type":"boolean"},"name":{"type":"string","description":"your \"name\" \u003c"},` +
		`"mail":{"type":"string"},"age":{"type":"integer"},"rate":{"type":"number"},"ok":{"type":"boolean"},` +
		`"size":{"type":"string","enum":["S","M"]},"toppers":{"type":"array","description":"on top","items":{"type":"string","enum":["olives","ham"]}}},"required":["x","name","age","size"]}`
	if schema := string(asked.questions["order"].Schema); schema != want {
		t.Errorf("the schema is %s", schema)
	}
	content := map[string]any{
		"x": true, "name": "n", "mail": "a@b.c", "age": 7, "ok": true, "size": "M", "toppers": []any{"ham"}, "Extra": 1, "NAME": "other",
		"rate": 1.5,
	}
	answer := func(content map[string]any) answers {
		text, _ := json.Marshal(map[string]any{"action": "accept", "content": content})
		return answers{"order": string(text)}
	}
	s.expect(s.round(h, s.round(h, asked.token, answer(content)).token, answers{"sure": form("x")}), "done", "")
	if got.Name != "n" || *got.Mail != "a@b.c" || got.Age != 7 || !*got.OK || got.Size != "M" || len(got.Toppers) != 1 || !got.X || got.Rate != 1.5 {
		t.Errorf("%+v", got)
	}
	for field, bad := range map[string][]any{
		"size": {"XL", 1, "s"}, "age": {-1, 256, 1.5, "7", nil}, "toppers": {[]any{"glass"}, "ham", []any{1}, []any{nil}, map[string]any{}}, "name": {nil, 1, []any{}},
		"ok": {"yes", 1}, "rate": {"1", true}, "mail": {1}, "x": {nil, "true"},
	} {
		for _, wrong := range bad {
			changed := maps.Clone(content)
			changed[field] = wrong
			want := "ERROR the answer to the question order does not fit what was asked"
			if got := s.round(h, asked.token, answer(changed)); got.text != want {
				t.Errorf("%s = %v: %s", field, wrong, got.text)
			}
		}
	}
}

type picks struct {
	Orders []string `json:"orders"`
	Mail   string   `json:"mail,omitempty"`
	Size   *string  `json:"size,omitempty"`
	Note   string   `json:"note,omitempty"`
	Empty  *string  `json:"empty,omitempty"`
}

// sendPicks sends the content of an answer to a form, and returns what the handler makes of it.
func sendPicks(t *testing.T, content string) string {
	t.Helper()
	s := newService(t)
	h := func(ask *elicit.Asker) (string, error) {
		v, err := elicit.Form[picks](ask, "k", "Which?", elicit.Enum("orders", "one", "two", "three"),
			elicit.Enum("size", "S", "M"), elicit.Enum("empty", "", "x")).Value()
		if err != nil {
			return "", err
		}
		_, err = elicit.Form[confirm](ask, "sure", "Sure?").Value()
		return fmt.Sprint(v.Orders, " ", v.Mail+v.Note, v.Size == nil, v.Empty == nil), err
	}
	asked := s.round(h, s.round(h, "", nil).token, answers{"k": `{"action":"accept","content":` + content + `}`})
	if asked.questions == nil {
		return asked.text
	}
	return s.round(h, asked.token, answers{"sure": form("x")}).text
}

const misfit = "ERROR the answer to the question k does not fit what was asked"

// TestAChoiceThatIsTakenTwiceDoesNotFit: otherwise one order could be refunded twice.
func TestAChoiceThatIsTakenTwiceDoesNotFit(t *testing.T) {
	for content, want := range map[string]string{
		`{"orders":["one","one"]}`: misfit, `{"orders":["one","two","one"]}`: misfit, `{"orders":["two","\u006fne","one"]}`: misfit,
		`{"orders":["one","two","three","one"]}`: misfit,
		`{"orders":[]}`:                          "[] true true", `{"orders":["two"]}`: "[two] true true", `{"orders":["three","one","two"]}`: "[three one two] true true",
	} {
		if got := sendPicks(t, content); got != want {
			t.Errorf("%s: %s, want %s", content, got, want)
		}
	}
}

func TestANullAndAnEmptyTextInAFieldThatIsNotRequiredAreLeftOut(t *testing.T) {
	for content, want := range map[string]string{
		`{"orders":["one"],"mail":"","note":"","size":"","empty":""}`: "[one] true false", // an empty text is an answer if it is among the choices
		`{"orders":["one"],"mail":null,"size":null,"empty":null}`:     "[one] true true",
		`{"orders":null}`: misfit, `{"orders":""}`: misfit,
	} {
		if got := sendPicks(t, content); got != want {
			t.Errorf("%s: %s, want %s", content, got, want)
		}
	}
	s := newService(t)
	asked := s.round(asks("k", "?"), "", nil)
	s.expect(s.round(asks("k", "?"), asked.token, answers{"k": form("")}), "k=accept:", "") // required, and may be empty
}

// makes returns what a client gets of a handler that asks with a form.
func makes[T any](t *testing.T, options ...elicit.Option) (got string, log string) {
	s := newService(t)
	got = s.round(func(ask *elicit.Asker) (string, error) {
		_, err := elicit.Form[T](ask, "k", "?", options...).Value()
		return "done", err
	}, "", nil).text
	return got, s.book.String()
}

func TestFormsThatCannotBeAreRefused(t *testing.T) {
	for name, try := range map[string]func() (string, string){
		"no struct":         func() (string, string) { return makes[int](t) },
		"nothing":           func() (string, string) { return makes[struct{}](t) },
		"only unexported":   func() (string, string) { return makes[struct{ x int }](t) },
		"embedded":          func() (string, string) { return makes[struct{ value }](t) },
		"nested":            func() (string, string) { return makes[struct{ Where struct{ X int } }](t) },
		"a time":            func() (string, string) { return makes[struct{ At time.Time }](t) },
		"a list":            func() (string, string) { return makes[struct{ Names []string }](t) },
		"a list of numbers": func() (string, string) { return makes[struct{ N []int }](t) },
		"enum for a number": func() (string, string) { return makes[struct{ N int }](t, elicit.Enum("N", "x")) },
		"no such field":     func() (string, string) { return makes[value](t, elicit.Enum("valu", "x")) },
		"no values":         func() (string, string) { return makes[value](t, elicit.Enum("value")) },
	} {
		if got, log := try(); got != internal || !strings.Contains(log, "the question k: the form") {
			t.Errorf("%s: %s; the log: %s", name, got, log)
		}
	}
	for name, try := range map[string]func() (string, string){
		"pointer":  func() (string, string) { return makes[struct{ N *int8 }](t) },
		"a choice": func() (string, string) { return makes[struct{ Names []string }](t, elicit.Enum("Names", "a", "b")) },
	} {
		if got, log := try(); got != "ASKS [k]" {
			t.Errorf("%s: %s; the log: %s", name, got, log)
		}
	}
}

func TestFormatsAreChecked(t *testing.T) {
	for format, texts := range map[string][]string{
		"email": {"a@b.example", "not an email"}, "date": {"2026-01-31", "2026-02-31"},
		"uri":       {"https://x.example/a", "/a", "mailto:a b", "http://a/\u202e", "http://a/\n"},
		"date-time": {"2026-01-02T03:04:05Z", "2026-01-02", "2026-01-02T3:04:05Z", "2026-01-02T03:04:05,5Z"},
	} {
		s := newService(t)
		h := func(ask *elicit.Asker) (string, error) {
			v, err := elicit.FormSchema(ask, "k", "?", json.RawMessage(`{"type":"object","properties":{"value":{"type":"string","format":"`+format+`"}},"required":["value"]}`)).Value()
			return fmt.Sprint(v["value"]), err
		}
		asked := s.round(h, "", nil)
		for i, text := range texts {
			want := misfit
			if i == 0 {
				want = text
			}
			s.expect(s.round(h, asked.token, answers{"k": form(text)}), want, "")
		}
	}
}

// TestAChoiceIsAmongTheValuesOfItsOwnQuestion uses one slice for all questions, and changes it between the calls.
func TestAChoiceIsAmongTheValuesOfItsOwnQuestion(t *testing.T) {
	s := newService(t)
	values := []string{"", "other"}
	for name, h := range map[string]handler{
		"Enum": func(ask *elicit.Asker) (string, error) {
			v, err := elicit.Form[value](ask, "k", "Which?", elicit.Enum("value", values...)).Value()
			return v.Value, err
		},
		"Choice": func(ask *elicit.Asker) (string, error) { return elicit.Choice(ask, "k", "Which?", values...).Value() },
	} {
		for _, only := range []string{"a", "b", "a", "c"} {
			values[0] = only
			for _, answer := range []string{"a", "b", "c"} {
				want := misfit
				if answer == only {
					want = answer
				}
				text := fmt.Sprintf(`{"action":"accept","content":{"value":%q,"choice":%q}}`, answer, answer)
				if got := s.round(h, s.round(h, "", nil).token, answers{"k": text}); got.text != want {
					t.Errorf("%s: the answer %s, where %q are allowed: %s", name, answer, values, got.text)
				}
			}
		}
	}
	s.expect(s.round(func(ask *elicit.Asker) (string, error) { return elicit.Choice(ask, "k", "Which?").Value() }, "", nil), internal, "no values to choose from")
}

// TestALongListOfChoicesCostsLittle sends a choice many times over.
func TestALongListOfChoicesCostsLittle(t *testing.T) {
	s := newService(t)
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint(i))
	}
	h := func(ask *elicit.Asker) (string, error) {
		_, err := elicit.Form[struct{ Files []string }](ask, "k", "Which?", elicit.Enum("Files", names...)).Value()
		return "done", err
	}
	asked := s.round(h, "", nil)
	content, _ := json.Marshal(slices.Repeat([]string{"99"}, 50_000))
	given := answers{"k": `{"action":"accept","content":{"Files":` + string(content) + `}}`}
	if n := testing.AllocsPerRun(1, func() { s.expect(s.round(h, asked.token, given), misfit, "") }); n > 60_000 {
		t.Errorf("%f allocations", n)
	}
}

const flights = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","title":"Flight","properties":{
	"flight":{"type":"string","title":"Flight","description":"when","oneOf":[{"const":"BA1","title":"09:00"},{"const":"BA2","title":"17:00"}]},
	"seat":{"type":"string","enum":["A","B"],"enumNames":["Window","Aisle"],"default":"A"},
	"bags":{"type":"integer","minimum":0,"maximum":2},
	"meals":{"type":"array","items":{"anyOf":[{"const":"veg","title":"Vegetarian"},{"const":"fish","title":"Fish"}]},"minItems":1,"maxItems":2},
	"name":{"type":"string","minLength":2,"maxLength":5},
	"mail":{"type":"string","format":"email"},
	"share":{"type":"number","maximum":1},
	"ok":{"type":"boolean","default":false}},"required":["flight"]}`

func TestAFormMayBeKnownOnlyAtRunTime(t *testing.T) {
	s := newService(t)
	h := func(ask *elicit.Asker) (string, error) {
		v, err := elicit.FormSchema(ask, "k", "Which?", json.RawMessage(flights)).Value()
		text, _ := json.Marshal(v)
		return string(text), err
	}
	asked := s.round(h, "", nil)
	if string(asked.questions["k"].Schema) != flights {
		t.Errorf("the schema is %s", asked.questions["k"].Schema)
	}
	for content, want := range map[string]string{
		`{"flight":"BA1"}`: `{"flight":"BA1"}`,
		`{"flight":"BA2","seat":"B","bags":2,"meals":["fish"],"name":"ünïcö","mail":"a@b.c","share":0.5,"ok":true,"more":1}`: `{"bags":2,"flight":"BA2","mail":"a@b.c","meals":["fish"],"name":"ünïcö","ok":true,"seat":"B","share":0.5}`,
		`{}`: misfit, `{"flight":"BA3"}`: misfit, `{"flight":"BA1","seat":"Window"}`: misfit, `{"flight":"BA1","bags":3}`: misfit, `{"flight":"BA1","bags":-1}`: misfit,
		`{"flight":"BA1","bags":1.5}`: misfit, `{"flight":"BA1","meals":[]}`: misfit, `{"flight":"BA1","meals":["veg","veg"]}`: misfit, `{"flight":"BA1","meals":["meat"]}`: misfit,
		`{"flight":"BA1","name":"n"}`: misfit, `{"flight":"BA1","name":"longer"}`: misfit, `{"flight":"BA1","mail":"x"}`: misfit, `{"flight":"BA1","share":1.1}`: misfit, `{"flight":"BA1","ok":"yes"}`: misfit,
	} {
		s.expect(s.round(h, asked.token, answers{"k": `{"action":"accept","content":` + content + `}`}), want, "")
	}
	for _, schema := range []string{
		``, `null`, `[]`, `{}`, `{"type":"object"}`, `{"type":"object","properties":{"a":{"type":"object"}}}`, `{"type":"object","properties":{"a":{"type":"string","pattern":"x"}}}`,
		`{"type":"object","properties":{"a":{"type":"array"}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`, `{"type":"object","properties":{"a":{"type":"integer","enum":["1"]}}}`,
		`{"type":"object","properties":{"a":{"type":"string"}}} {}`, `{"type":"object","properties":{"a":{"type":"string","format":"phone"}}}`,
		"{\"type\":\"object\",\"properties\":{\"a\xff\":{\"type\":\"string\"}}}", `{"type":"object","properties":{"a":{"type":"string"}},"allOf":[]}`,
	} {
		s := newService(t)
		s.expect(s.round(func(ask *elicit.Asker) (string, error) {
			_, err := elicit.FormSchema(ask, "k", "?", json.RawMessage(schema)).Value()
			return "done", err
		}, "", nil), internal, "the question k: the form")
	}
}

func TestNothingOfAnAnswerIsRepeated(t *testing.T) {
	s := newService(t)
	h := func(ask *elicit.Asker) (string, error) {
		_, err := elicit.Form[value](ask, "k", "?", elicit.Enum("value", "x")).Value()
		return "done", err
	}
	asked := s.round(h, "", nil)
	for _, content := range []string{`{"value":"hush"}`, `{"hush":1}`, `"hush"`, `{"value":{"hush":1}}`} {
		got := s.round(h, asked.token, answers{"k": `{"action":"accept","content":` + content + `}`, "hush": `"hush"`})
		if got.text != misfit || strings.Contains(s.book.String(), "hush") {
			t.Errorf("%s; the log: %s", got.text, s.book)
		}
	}
}
