package elicit_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/elicit"
)

type pizza struct {
	Size    string   `json:"size" jsonschema:"S < M & L"`
	Slices  uint8    `json:"slices,omitempty"`
	Mail    *string  `json:"mail,omitempty"`
	Toppers []string `json:"toppers,omitempty"`
}

func pizzaOptions() []elicit.FormOption {
	return []elicit.FormOption{elicit.Enum("size", "S", "M", "L"), elicit.TextFormat("mail", "email"), elicit.Enum("toppers", "ham", "olives \u2028 <b>")}
}

// whichDigest is the digest of the question "Which?" about a pizza.
const whichDigest = "1Y1YA1RXllv6av_LD22RnhQ"

// stateOf returns the state that elicit wrote into the token of a result.
func stateOf(t *testing.T, s service, asked *mcp.CallToolResult) string {
	t.Helper()
	opened, err := s.Boundary().Open(t.Context(), tripseal.Request{Method: "tools/call", Target: "t"}, asked.RequestState)
	if err != nil {
		t.Fatal(err)
	}
	state, _ := opened.State()
	return state
}

// TestDigestsOfFormsDoNotChange checks that the digests are those of earlier releases.
// Otherwise, in calls that began on an earlier release, the recorded answers would not count.
func TestDigestsOfFormsDoNotChange(t *testing.T) {
	const odd = "Tom & <Jerry> \u2028 \"\\\x00\xff\U0001f600 \ufffd"
	for name, c := range map[string]struct {
		ask  func(*elicit.Asker) error
		want string // the digest in releases that did not keep forms yet
	}{
		"plain":            {func(ask *elicit.Asker) error { return asks[confirm](ask, "Delete?") }, "1bXWAbCP3BtOmhgEgM41KZw"},
		"an empty message": {func(ask *elicit.Asker) error { return asks[confirm](ask, "") }, "1BgbdYusqwqj2EmVSZmUnwA"},
		"odd characters":   {func(ask *elicit.Asker) error { return asks[value](ask, odd) }, byJSON("1qdT3GoBOWcNLpq2b9jD4hw", "1y9sdbwHSGpAS83dn3tdftA")},
		"options":          {func(ask *elicit.Asker) error { return asks[pizza](ask, "Which?", pizzaOptions()...) }, whichDigest},
		"options and odd":  {func(ask *elicit.Asker) error { return asks[pizza](ask, odd, pizzaOptions()...) }, byJSON("15lQvxx6_0tCMBYIXJOpBBg", "1qgtBCEfBq0aropqAUAn0VQ")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, nil)
			var sent []byte
			s.Server().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					result, err := next(ctx, method, req)
					if r, ok := result.(*mcp.CallToolResult); ok {
						sent, _ = json.Marshal(r.InputRequests["k"])
					}
					return result, err
				}
			})
			elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
				return result{"done"}, c.ask(ask)
			})
			session := connect(t, s.Server(), reply(nil).options(true), revision2026)
			for range 2 { // the second form comes from memory
				var state struct {
					Q map[string]struct{ D string }
				}
				if err := json.Unmarshal([]byte(stateOf(t, s, round(t, session, "t", nil, nil))), &state); err != nil {
					t.Fatal(err)
				}
				sum := sha256.Sum256([]byte("tripseal/1 elicit \x01" + string(sent)))
				if made := "1" + base64.RawURLEncoding.EncodeToString(sum[:16]); state.Q["k"].D != made || made != c.want {
					t.Errorf("%s; the question that was sent has %s, and before forms were kept it had %s", state.Q["k"].D, made, c.want)
				}
			}
		})
	}
}

// byJSON returns the digest of a question that is not UTF-8. By default, encoding/json writes \ufffd
// for its bad bytes. With GOEXPERIMENT=jsonv2 it writes the character itself.
func byJSON(escaped, written string) string {
	if text, _ := json.Marshal("\xff"); string(text) == "\"\ufffd\"" {
		return written
	}
	return escaped
}

func asks[T any](ask *elicit.Asker, message string, options ...elicit.FormOption) error {
	_, err := elicit.Form[T](ask, "k", message, options...).Value()
	return err
}

// TestARecordedAnswerIsCheckedInEveryRound checks that an answer in the state is checked again
// before the handler gets it. The state may hold an unchecked answer: perhaps the handler did not
// ask the question again in the round in which the answer came.
func TestARecordedAnswerIsCheckedInEveryRound(t *testing.T) {
	for content, want := range map[string]string{
		`{"size":"M"}`: `{"done":"M 0 []"}`,
		`{"slices":8,"size":"M","toppers":["ham"]}`:    `{"done":"M 8 [ham]"}`,
		`{"size":"M","Size":"XL","SLICES":7,"more":1}`: `{"done":"M 0 []"}`,
		`{"size":"XL"}`:                    "ASKS [k]",
		`{"Size":"M"}`:                     "ASKS [k]",
		`{"size":"M","slices":256}`:        "ASKS [k]",
		`{"size":"M","slices":-1}`:         "ASKS [k]",
		`{"size":"M","slices":null}`:       "ASKS [k]",
		`{"size":"M","mail":"nobody"}`:     "ASKS [k]",
		`{"size":"M","toppers":["glass"]}`: "ASKS [k]",
		`{}`:                               "ASKS [k]",
		`null`:                             "ASKS [k]",
		`[]`:                               "ASKS [k]",
		`"M"`:                              "ASKS [k]",
	} {
		t.Run(content, func(t *testing.T) {
			s := newService(t, nil)
			elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
				v, err := elicit.Form[pizza](ask, "k", "Which?", pizzaOptions()...).Value()
				return result{fmt.Sprint(v.Size, " ", v.Slices, " ", v.Toppers)}, err
			})
			state := fmt.Sprintf(`{"v":2,"q":{"other":{"d":%q}},"a":{"k":{"d":%q,"o":"accept","c":%s}}}`, whichDigest, whichDigest, content)
			r, err := s.Boundary().Open(t.Context(), tripseal.Request{Method: "tools/call", Target: "t"}, "")
			if err != nil {
				t.Fatal(err)
			}
			sum, err := base64.RawURLEncoding.DecodeString(whichDigest[1:])
			if err != nil {
				t.Fatal(err)
			}
			token, err := s.Boundary().Seal(t.Context(), &r, &state, tripseal.Question{Key: "other", Kind: tripseal.KindForm, Digest: [16]byte(sum)})
			if err != nil {
				t.Fatal(err)
			}
			session := connect(t, s.Server(), reply(nil).options(true), revision2026)
			if got := text(call(t, session, &mcp.CallToolParams{Name: "t", RequestState: token})); got != want {
				t.Errorf("%s, want %s; the log: %s", got, want, s.book)
			}
		})
	}
}

// TestAChoiceIsAmongTheValuesOfItsOwnQuestion checks that an answer must be one of the choices
// of its own question. All questions use one slice, and the test changes the slice between calls.
func TestAChoiceIsAmongTheValuesOfItsOwnQuestion(t *testing.T) {
	s := newService(t, nil)
	values := []string{"", "other"}
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		v, err := elicit.Form[value](ask, "k", "Which?", elicit.Enum("value", values...)).Value()
		return result{v.Value}, err
	})
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	for _, only := range []string{"a", "b", "a", "c"} {
		values[0] = only
		for _, answer := range []string{"a", "b", "c"} {
			asked := round(t, session, "t", nil, nil)
			got := round(t, session, "t", asked, mcp.InputResponseMap{"k": accept(map[string]any{"value": answer})})
			if got.IsError == (answer == only) {
				t.Errorf("the answer %s, where %q are allowed: %s", answer, values, text(got, nil))
			}
		}
	}
}

// TestFormsThatAreKeptAreFewAndSmall checks that only a few small forms with options are kept in
// memory. Otherwise a client could fill the memory: a handler may make the choices of a form from
// texts that a client sent.
func TestFormsThatAreKeptAreFewAndSmall(t *testing.T) {
	type own struct{ Value string }
	for i := range 100 {
		if err := elicit.CheckForm[own](elicit.Enum("Value", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	few, size := elicit.KeptForms[own]()
	if few != 8 {
		t.Errorf("%d forms are kept", few)
	}
	if err := elicit.CheckForm[own](elicit.Enum("Value", strings.Repeat("x", 1<<20))); err != nil {
		t.Fatal(err)
	}
	if _, after := elicit.KeptForms[own](); after != size {
		t.Errorf("%d bytes are kept, and before a large form %d", after, size)
	}
}

// TestAFormHoldsOnToNothingElse checks that a form keeps only its own values in memory, even if
// they were cut out of a long text.
func TestAFormHoldsOnToNothingElse(t *testing.T) {
	type own struct{ Value string }
	inUse := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	const long, forms = 4 << 20, 8
	before := inUse()
	for i := range forms {
		text := strings.Repeat(fmt.Sprint(i), long)
		if err := elicit.CheckForm[own](elicit.Enum("Value", text[:3])); err != nil {
			t.Fatal(err)
		}
	}
	if after := inUse(); after > before+forms*long/2 {
		t.Errorf("%d bytes are in use, and before %d", after, before)
	}
}

func TestFormsOfManyGoroutinesAreApart(t *testing.T) {
	type own struct{ Value string }
	var wait sync.WaitGroup
	for i := range 12 {
		wait.Go(func() {
			for range 50 {
				if got := elicit.SchemaOf[own](elicit.Enum("Value", fmt.Sprint(i))); !strings.Contains(got, fmt.Sprintf(`"enum":["%d"]`, i)) {
					t.Errorf("the form for %d is %s", i, got)
				}
			}
		})
	}
	wait.Wait()
}

type crust struct {
	Crust string `json:"crust"`
	Count uint   `json:"count"`
}

// TestMiddlewareCannotChangeTheFormsOfLaterCalls checks that the form stays the same when
// middleware changes the schema of a question: the form is kept for all calls.
func TestMiddlewareCannotChangeTheFormsOfLaterCalls(t *testing.T) {
	option := elicit.Enum("crust", "thin", "thick")
	before := elicit.SchemaOf[crust](option)
	damage, damaged := true, false
	both(t, func(t *testing.T, revision string) {
		edit := func(question mcp.InputRequest) {
			params, ok := question.(*mcp.ElicitParams)
			if !ok || !damage {
				return
			}
			if schema, ok := params.RequestedSchema.(*jsonschema.Schema); ok {
				damaged = true
				schema.Properties["crust"].Enum[0] = "stuffed"
				schema.Required[0] = "none"
				slices.Reverse(schema.PropertyOrder)
				*schema.Properties["count"].Minimum = 100
			}
		}
		s := serviceBehind(t, func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				result, err := next(ctx, method, req)
				if r, ok := result.(*mcp.CallToolResult); ok && r != nil {
					edit(r.InputRequests["k"])
				}
				return result, err
			}
		})
		s.Server().AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if params, ok := req.GetParams().(*mcp.ElicitParams); ok {
					edit(params)
				}
				return next(ctx, method, req)
			}
		})
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			answer, err := elicit.Form[crust](ask, "k", "Crust?", option).Value()
			return result{answer.Crust}, err
		})
		u := &user{answer: func(string, *mcp.ElicitParams) *mcp.ElicitResult {
			return accept(map[string]any{"crust": "thin", "count": 1})
		}}
		session := connect(t, s.Server(), u.options(false), revision)
		damage, damaged = true, false
		call(t, session, &mcp.CallToolParams{Name: "t"})
		if damage = false; !damaged {
			t.Fatal("the middleware has seen no schema")
		}
		if got := text(call(t, session, &mcp.CallToolParams{Name: "t"})); got != `{"done":"thin"}` {
			t.Errorf("%s; the log: %s", got, s.book)
		}
	})
	if after := elicit.SchemaOf[crust](option); after != before {
		t.Errorf("the form is now %s, it was %s", after, before)
	}
}

type picks struct {
	Orders []string `json:"orders"`
	Mail   string   `json:"mail,omitempty"`
	Day    string   `json:"day,omitempty"`
	Size   *string  `json:"size,omitempty"`
	Note   string   `json:"note,omitempty"`
	Empty  *string  `json:"empty,omitempty"`
}

// sendPicks sends an answer to a form, and returns what the handler makes of it.
func sendPicks(t *testing.T, revision string, content map[string]any) string {
	t.Helper()
	s := newService(t, nil)
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		v, err := elicit.Form[picks](ask, "k", "Which?", elicit.Enum("orders", "one", "two", "three"), elicit.TextFormat("mail", "email"),
			elicit.TextFormat("day", "date"), elicit.Enum("size", "S", "M"), elicit.Enum("empty", "", "x")).Value()
		if err != nil {
			return result{}, err
		}
		_, err = elicit.Form[confirm](ask, "sure", "Sure?").Value() // so that the answer is also read from the state
		return result{fmt.Sprint(v.Orders, " ", v.Mail+v.Day+v.Note, v.Size == nil, v.Empty == nil)}, err
	})
	u := &user{answer: func(message string, _ *mcp.ElicitParams) *mcp.ElicitResult {
		if message == "Sure?" {
			return accept(map[string]any{"ok": true})
		}
		return accept(content)
	}}
	if revision == revision2025 {
		return text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"}))
	}
	session := connect(t, s.Server(), u.options(true), revision) // the rounds are sent by hand, because the SDK's client would check the answers
	asked := round(t, session, "t", round(t, session, "t", nil, nil), mcp.InputResponseMap{"k": accept(content)})
	if asked.RequestState == "" {
		return text(asked, nil)
	}
	return text(round(t, session, "t", asked, mcp.InputResponseMap{"sure": accept(map[string]any{"ok": true})}), nil)
}

// TestAChoiceThatIsTakenTwiceDoesNotFit checks that an answer must not have the same choice
// twice: otherwise one order could be refunded twice.
func TestAChoiceThatIsTakenTwiceDoesNotFit(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		for _, orders := range [][]any{{"one", "one"}, {"one", "two", "one"}, {"two", "one", "one"}} {
			if got := sendPicks(t, revision, map[string]any{"orders": orders}); got != "ERROR the answer to the question k does not fit what was asked" {
				t.Errorf("%v: %s", orders, got)
			}
		}
		for _, orders := range [][]any{{}, {"two"}, {"three", "one", "two"}} {
			if got, want := sendPicks(t, revision, map[string]any{"orders": orders}), fmt.Sprintf(`{"done":"%v true true"}`, orders); got != want {
				t.Errorf("%v: %s, want %s", orders, got, want)
			}
		}
	})
}

func TestAChoiceThatIsNotUTF8IsRefused(t *testing.T) {
	type pick struct {
		File string `json:"file"`
	}
	for _, names := range [][]string{{"a", "b\xff"}, {"b\xff"}} {
		if err := elicit.CheckForm[pick](elicit.Enum("file", names...)); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
			t.Errorf("%q: %v", names, err)
		}
	}
}

func TestALongListOfChoicesCostsLittle(t *testing.T) {
	s := newService(t, nil)
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint(i))
	}
	elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		answer := elicit.Form[struct {
			Files []string `json:"files"`
		}](ask, "f", "Which files?", elicit.Enum("files", names...))
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
			t.Errorf("reading the answer allocated %d MiB", grown>>20)
		}
		_, err := answer.Value()
		return result{}, err
	})
	session := connect(t, s.Server(), reply(nil).options(true), revision2026)
	asked, err := call(t, session, &mcp.CallToolParams{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	for _, last := range []string{"99", "none of them"} {
		got := text(call(t, session, &mcp.CallToolParams{Name: "t", RequestState: asked.RequestState,
			InputResponses: mcp.InputResponseMap{"f": accept(map[string]any{"files": slices.Repeat([]any{last}, 50_000)})}}))
		if got != "ERROR the answer to the question f does not fit what was asked" {
			t.Error(got)
		}
	}
}

// TestAnEmptyTextInAFieldThatIsNotRequiredIsLeftOut checks that an empty text means the same as a
// missing field. Some clients send an empty text for a field that the user did not fill in.
func TestAnEmptyTextInAFieldThatIsNotRequiredIsLeftOut(t *testing.T) {
	both(t, func(t *testing.T, revision string) {
		content := map[string]any{"orders": []any{"one"}, "mail": "", "day": "", "note": "", "empty": ""}
		if revision == revision2026 { // for older clients, the SDK checks choices itself, and refuses an empty text
			content["size"] = ""
		}
		got := sendPicks(t, revision, content)
		if want := `{"done":"[one] true false"}`; got != want { // an empty text is an answer if it is among the choices
			t.Errorf("%s, want %s", got, want)
		}
		s := newService(t, nil)
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			return result{"done"}, asks[value](ask, "Mail?", elicit.TextFormat("value", "email"))
		})
		u := &user{answer: func(string, *mcp.ElicitParams) *mcp.ElicitResult { return accept(map[string]any{"value": ""}) }}
		got = text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"}))
		if want := "ERROR the answer to the question k does not fit what was asked"; got != want {
			t.Errorf("a field that is required: %s, want %s", got, want)
		}
		s = newService(t, nil)
		elicit.AddTool(s.Protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
			return result{"done"}, asks[value](ask, "Name?")
		})
		if got = text(call(t, connect(t, s.Server(), u.options(false), revision), &mcp.CallToolParams{Name: "t"})); got != `{"done":"done"}` {
			t.Errorf("a field that is required, and may be empty: %s", got)
		}
	})
}
