package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/wire"
)

func TestAFlowOfSeveralRoundsIsSealed(t *testing.T) {
	for _, c := range carriers {
		r := plainRig(t)
		r.sealed(r.open(c.call("")), `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}`)
		given := ""
		for round := range 5 {
			e, got := r.forwarded(c.call(given))
			if round > 0 && string(member(t, got, "params", "requestState")) != fmt.Sprintf(`"%s %d"`, canary, round-1) {
				t.Errorf("%s: the server did not get its state: %s", c.method, got)
			}
			if round > 0 && string(member(t, got, "params", "inputResponses", fmt.Sprint("q", round-1))) != accept {
				t.Errorf("%s: the server did not get the answer: %s", c.method, got)
			}
			out := r.sealed(e, asking(fmt.Sprintf(`"%s %d"`, canary, round), fmt.Sprintf(`{"q%d":%s}`, round, form)))
			if string(member(t, out, "result", "inputRequests", fmt.Sprint("q", round))) != form {
				t.Errorf("%s: the question changed: %s", c.method, out)
			}
			given = state(token(t, out)) + fmt.Sprintf(`,"inputResponses":{"q%d":%s}`, round, accept)
		}
		e, _ := r.forwarded(c.call(given))
		done := `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete", "isError":false}}`
		if out := r.sealed(e, done); out != done {
			t.Errorf("the last answer changed: %s", out)
		}
	}
}

func TestEveryStateComesBackAsItWas(t *testing.T) {
	for _, written := range []string{
		`""`, `"x"`, `"\""`, `"\\"`, `"\u0000\u001f\n"`, `"é\u00e9"`, `"\ud83d\ude00 😀"`, `"\u2028<>&"`, `"a\/b"`, "\"\x7f\"", `"\ud800"`, `"\udc00\ud800x\ud83d"`, `"\ufffd"`,
	} {
		r := plainRig(t)
		given := r.begin(carriers[0], "", written, `{"q":`+form+`}`)
		_, got := r.forwarded(carriers[0].call(state(given)))
		// Compare the escapes, because Go's decoder replaces every lone half of a surrogate pair
		// by the same character.
		if back := ascii(t, string(member(t, got, "params", "requestState"))); back != ascii(t, written) {
			t.Errorf("%s came back as %s", written, back)
		}
	}
}

// ascii returns a JSON string with every character as an escape.
func ascii(t *testing.T, text string) (out string) {
	simple := map[byte]rune{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', '"': '"', '\\': '\\', '/': '/'}
	text = text[1 : len(text)-1]
	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], `\u`):
			out += strings.ToLower(text[i : i+6])
			i += 6
		case text[i] == '\\':
			out += fmt.Sprintf(`\u%04x`, simple[text[i+1]])
			i += 2
		default:
			var r rune
			for _, r = range text[i:] {
				break
			}
			i += len(string(r))
			if r >= 1<<16 {
				r -= 1 << 16
				out += fmt.Sprintf(`\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			} else {
				out += fmt.Sprintf(`\u%04x`, r)
			}
		}
	}
	return out
}

func TestAResultWithoutAStateGetsATokenThatPinsItsQuestions(t *testing.T) {
	for _, c := range carriers {
		r := plainRig(t)
		given := r.begin(c, "", "", `{"q":`+form+`}`)
		_, got := r.forwarded(c.call(state(given) + `,"inputResponses":{"q":` + accept + `,"other":` + accept + `}`))
		if member(t, got, "params", "requestState") != nil {
			t.Errorf("the server got a state that it did not write: %s", got)
		}
		if string(member(t, got, "params", "inputResponses")) != `{"q":`+accept+`}` {
			t.Errorf("the answers are %s", got)
		}
	}
}

func TestAStateWithoutQuestionsIsSealed(t *testing.T) {
	for _, questions := range []string{"", "{}", "null"} {
		r := plainRig(t)
		given := r.begin(carriers[0], "", `"`+canary+`"`, questions)
		_, got := r.forwarded(carriers[0].call(state(given) + `,"inputResponses":{"q":` + accept + `}`))
		if string(member(t, got, "params", "requestState")) != `"`+canary+`"` || member(t, got, "params", "inputResponses") != nil {
			t.Errorf("%q: the server got %s", questions, got)
		}
	}
}

func TestATokenOfAnotherRequestIsRejected(t *testing.T) {
	r := plainRig(t)
	const arguments = `,"arguments":{"a":1,"b":"x"}`
	given := r.begin(carriers[0], arguments, `"`+canary+`"`, `{"q":`+form+`}`)
	for name, message := range map[string]string{
		"tool":       `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"other"` + arguments + state(given) + `}}`,
		"method":     `{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"deploy"` + arguments + state(given) + `}}`,
		"resource":   `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"deploy","name":"deploy"` + arguments + state(given) + `}}`,
		"arguments":  carriers[0].call(`,"arguments":{"a":2,"b":"x"}` + state(given)),
		"none":       carriers[0].call(state(given)),
		"forged":     carriers[0].call(arguments + state(given[:len(given)-8]+"AAAAAAAA")),
		"plaintext":  carriers[0].call(arguments + state(canary)),
		"empty":      carriers[0].call(arguments + state("")),
		"number":     carriers[0].call(arguments + `,"requestState":1`),
		"object":     carriers[0].call(arguments + `,"requestState":{"a":"` + given + `"}`),
		"list":       carriers[0].call(arguments + `,"requestState":["` + given + `"]`),
		"with space": carriers[0].call(arguments + state(" "+given)),
	} {
		t.Run(name, func(t *testing.T) { r.rejected("alice", message) })
	}
	r.rejected("bob", carriers[0].call(arguments+state(given)))
	if e := r.engine.Open(context.Background(), carriers[0].call(arguments+state(given)), nil); e.Forward != "" {
		t.Error("a token of a user was opened for nobody")
	}
	if _, got := r.forwarded(carriers[0].call(` , "arguments" : { "b":"\u0078", "a":1.0 }` + state(given))); !strings.Contains(got, canary) {
		t.Errorf("the same arguments in another spelling: %s", got)
	}
}

func TestANullInPlaceOfAStateIsNoState(t *testing.T) {
	r := plainRig(t)
	e, got := r.forwarded(carriers[0].call(`,"requestState":null,"inputResponses":{"q":` + accept + `}`))
	if got != carriers[0].call("") {
		t.Errorf("the server got %s", got)
	}
	token(t, r.sealed(e, asking(`"`+canary+`"`, "")))
}

func TestTheArgumentsOfAPromptAndOfAResourceAreBoundToo(t *testing.T) {
	for _, c := range carriers {
		r := plainRig(t)
		given := r.begin(c, `,"arguments":{"a":"1"}`, `"`+canary+`"`, "")
		r.rejected("alice", c.call(`,"arguments":{"a":"2"}`+state(given)))
		r.rejected("alice", c.call(state(given)))
		r.forwarded(c.call(`,"arguments":{"a":"1"}` + state(given)))
	}
}

func TestATokenWorksOnceWithAReplayStore(t *testing.T) {
	store, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, tripseal.Config{Replay: store}, wire.Config{})
	given := r.begin(carriers[0], "", `"`+canary+`"`, "")
	r.forwarded(carriers[0].call(state(given)))
	r.rejected("alice", carriers[0].call(state(given)))
}

func TestATokenAndACursorExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tripseal.Config{TTL: time.Minute}, wire.Config{})
		given := r.begin(carriers[0], "", `"`+canary+`"`, "")
		at := r.cursor("alice", "tools/list", "", "")
		time.Sleep(2 * time.Minute)
		r.rejected("alice", carriers[0].call(state(given)))
		time.Sleep(400 * 24 * time.Hour)
		r.rejected("alice", page("tools/list", `"cursor":"`+at+`"`))
	})
}

func TestATokenThatAsksToOpenAURLLivesAsLongAsTheOperatorSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tripseal.Config{TTL: time.Minute, URLTTL: time.Hour / 2}, wire.Config{})
		short, long := r.begin(carriers[0], "", "", `{"q":`+form+`}`), r.begin(carriers[0], "", "", `{"q":`+url+`}`)
		time.Sleep(10 * time.Minute)
		r.rejected("alice", carriers[0].call(state(short)))
		r.forwarded(carriers[0].call(state(long)))
	})
}

func TestARejectedTokenThatIsAskedAgainIsAFirstRound(t *testing.T) {
	r := newRig(t, tripseal.Config{AskAgain: tripseal.AskAgainAlways}, wire.Config{})
	_, got := r.forwarded(carriers[0].call(state("ms1.forged") + `,"inputResponses":{"q":` + accept + `}`))
	if got != carriers[0].call("") {
		t.Errorf("the server got %s", got)
	}
}

func TestAnswersAreFilteredByKeyAndKind(t *testing.T) {
	questions := map[string]string{"form": form, "url": url, "sampling": sampling, "roots": roots}
	for kind, question := range questions {
		for name, answer := range map[string]struct{ text, fits string }{
			"accepted":    {accept, "form url"},
			"declined":    {`{"action":"decline"}`, "form url"},
			"sampled":     {sampled, "sampling"},
			"roots":       {rooted, "roots"},
			"no roots":    {`{"roots":[]}`, "roots"},
			"two kinds":   {`{"action":"accept","role":"user"}`, ""},
			"three kinds": {`{"action":"accept","role":"user","roots":[]}`, ""},
			"no kind":     {`{"content":{}}`, ""},
			"empty":       {`{}`, ""},
			"null":        {`null`, ""},
			"text":        {`"accept"`, ""},
			"number":      {`1`, ""},
			"list":        {`[` + accept + `]`, ""},
			"a null role": {`{"role":null,"content":{}}`, ""},
		} {
			r := plainRig(t)
			given := r.begin(carriers[0], "", `"`+canary+`"`, `{"q":`+question+`}`)
			_, got := r.forwarded(carriers[0].call(state(given) + `,"inputResponses":{"q":` + answer.text + `}`))
			want := ""
			if strings.Contains(" "+answer.fits+" ", " "+kind+" ") {
				want = `{"q":` + answer.text + `}`
			}
			if text := string(member(t, got, "params", "inputResponses")); text != want {
				t.Errorf("%s for %s: the server got %s", name, kind, text)
			}
			if dropped := strings.Contains(r.log.String(), "dropped answers"); dropped != (want == "") {
				t.Errorf("%s for %s: logged is %v", name, kind, dropped)
			}
		}
	}
}

// The Python SDK writes a null for an optional field that the user left empty: its types allow it. If the answer did not
// count, the user would be asked again and again.
func TestANullInAFieldOfAFormCountsAsAbsent(t *testing.T) {
	for content, want := range map[string]string{
		`{"name":"x","note":null}`: `{"name":"x"}`,
		`{"note":null}`:            `{}`,
		`{ "a" : null , "b" : 1.0, "\u0063":null,"d":"null", "e":["null"] ,"f":null }`: `{"b" : 1.0,"d":"null","e":["null"]}`,
		`{ "n" : 1.0 }`:             `{ "n" : 1.0 }`,
		`{"a":[null]}`:              "",
		`{"a":null,"b":{"c":null}}`: "",
		`[null]`:                    "",
		`null`:                      `{"p":{ "action":"decline" },"q":{"action" : "accept","com.example/x" : [ ]}}`,
	} {
		for _, question := range []string{form, url} {
			r := plainRig(t)
			given := r.begin(carriers[0], "", "", `{"p":`+form+`,"q":`+question+`}`)
			const before, after = `{"p":{ "action":"decline" },"q":{"action" : "accept", "content" : `, ` , "com.example/x" : [ ]}}`
			_, got := r.forwarded(carriers[0].call(state(given) + `,"inputResponses":` + before + content + after))
			if want == "" {
				want = `{"p":{ "action":"decline" }}`
			} else if !strings.HasPrefix(want, `{"p"`) {
				want = before + want + after
			}
			if text := string(member(t, got, "params", "inputResponses")); text != want {
				t.Errorf("%s: the server got %s", content, text)
			}
			if logged := strings.Contains(r.log.String(), "dropped answers"); logged == strings.Contains(want, "accept") {
				t.Errorf("%s: logged is %v", content, logged)
			}
		}
	}
	for question, answer := range map[string]string{
		roots:    `{"roots":[{"uri":"file:///x","name":null}]}`,
		sampling: `{"role":"assistant","content":{"type":"text","text":null},"model":"m"}`,
		form:     `{"action":"accept","content":{"a":null},"_meta":{"b":null}}`,
	} {
		r := plainRig(t)
		given := r.begin(carriers[0], "", "", `{"q":`+question+`}`)
		if _, got := r.forwarded(carriers[0].call(state(given) + `,"inputResponses":{"q":` + answer + `}`)); strings.Contains(got, "inputResponses") {
			t.Errorf("the server got %s", got)
		}
	}
}

func TestTheAnswersThatAreKeptStayAsTheyWere(t *testing.T) {
	r := plainRig(t)
	given := r.begin(carriers[0], "", "", `{"a":`+form+`,"b":`+form+`,"Ü\u0062":`+form+`,"":`+form+`}`)
	const kept = `{ "action" : "accept", "content" : { "n" : 12345678901234567890, "f" : 1.0 }, "com.example/x" : [ ] }`
	_, got := r.forwarded(carriers[0].call(state(given) + `,"inputResponses": { "x":` + accept + ` , "\u0061" : ` + kept + ` ,"c":null, "\u00dcb":` + accept + `,"":` + accept + `} , "_meta":{"k":1}`))
	const want = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"deploy","inputResponses":{"\u0061" : ` + kept + `,"\u00dcb":` + accept + `,"":` + accept + `},"_meta":{"k":1}}}`
	if strings.ReplaceAll(got, `"inputResponses": {`, `"inputResponses":{`) != want {
		t.Errorf("the server got %s\nnot                %s", got, want)
	}
}

func TestAnswersOfAnEarlierRoundAreDropped(t *testing.T) {
	r := plainRig(t)
	first := r.begin(carriers[0], "", "", `{"a":`+form+`}`)
	e, _ := r.forwarded(carriers[0].call(state(first) + `,"inputResponses":{"a":` + accept + `}`))
	second := token(t, r.sealed(e, asking("", `{"b":`+form+`}`)))
	_, got := r.forwarded(carriers[0].call(state(second) + `,"inputResponses":{"a":` + accept + `,"b":` + accept + `}`))
	if string(member(t, got, "params", "inputResponses")) != `{"b":`+accept+`}` {
		t.Errorf("the server got %s", got)
	}
}

func TestUnaskedAnswersReachOnlyTheToolsThatTakeThem(t *testing.T) {
	r := newRig(t, tripseal.Config{}, wire.Config{Unsolicited: []string{"deploy", "file:///deploy"}})
	for _, c := range carriers {
		message := c.call(`,"inputResponses":{"a":` + accept + `}`)
		_, got := r.forwarded(message)
		if c.method == "tools/call" && got != message || c.method != "tools/call" && got != c.call("") {
			t.Errorf("%s: the server got %s", c.method, got)
		}
	}
	if _, got := r.forwarded(`{"id":7,"method":"tools/call","params":{"name":"Deploy","inputResponses":{"a":` + accept + `}}}`); strings.Contains(got, "inputResponses") {
		t.Errorf("another tool got %s", got)
	}
	if _, got := r.forwarded(carriers[0].call(`,"inputResponses":{"a":` + accept + `,"b":null}`)); string(member(t, got, "params", "inputResponses")) != `{"a":`+accept+`}` {
		t.Errorf("an answer that is not whole: %s", got)
	}
	given := r.begin(carriers[0], "", "", `{"q":`+form+`}`)
	if _, got := r.forwarded(carriers[0].call(state(given) + `,"inputResponses":{"a":` + accept + `}`)); strings.Contains(got, "inputResponses") {
		t.Errorf("after it asked, the tool got %s", got)
	}
}

func TestEmptyAnswersPassAsTheyAre(t *testing.T) {
	r := plainRig(t)
	for _, answers := range []string{"{}", "{ }", "null"} {
		message := carriers[0].call(`,"inputResponses":` + answers)
		if _, got := r.forwarded(message); got != message {
			t.Errorf("%s became %s", message, got)
		}
	}
}

// elicitFormat seals every state as one that package elicit wrote.
type elicitFormat struct{ tripseal.Format }

func (f elicitFormat) Seal(ctx context.Context, b *tripseal.Binding, claims *tripseal.Claims) (string, error) {
	claims.Elicit = true
	return f.Format.Seal(ctx, b, claims)
}

func TestAStateThatIsForAnotherHandlerIsKeptFromTheServer(t *testing.T) {
	keys := tripseal.Ephemeral()
	elicits, err := tripseal.New(tripseal.Config{Format: elicitFormat{tripseal.NativeFormat(keys)}, Audience: "test"})
	if err != nil {
		t.Fatal(err)
	}
	round, _ := elicits.Open(context.Background(), tripseal.Request{Method: "tools/call", Target: "deploy", Principal: tripseal.User("alice")}, "")
	text := canary
	given, err := elicits.Seal(context.Background(), &round, &text, tripseal.Question{Key: "q", Kind: tripseal.KindForm})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, tripseal.Config{Keys: keys}, wire.Config{})
	if _, got := r.forwarded(carriers[0].call(state(given) + `,"inputResponses":{"q":` + accept + `}`)); got != carriers[0].call("") {
		t.Errorf("the server got %s", got)
	}
}

func TestManyUsersCanCallAtOnce(t *testing.T) {
	r := newRig(t, tripseal.Config{Logger: slog.New(slog.DiscardHandler)}, wire.Config{Logger: slog.New(slog.DiscardHandler)})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			user := fmt.Sprint("user", i)
			for range 20 {
				out := r.openAs(user, carriers[0].call("")).Seal(context.Background(), asking(`"`+user+`"`, ""))
				var m struct{ Result struct{ RequestState string } }
				if json.Unmarshal([]byte(out), &m) != nil {
					t.Errorf("%s got %s", user, out)
				}
				message := carriers[0].call(state(m.Result.RequestState))
				if e := r.openAs(user, message); string(e.Forward) != carriers[0].call(state(user)) {
					t.Errorf("the server got %s", e.Forward)
				}
				if e := r.openAs("other", message); e.Forward != "" {
					t.Errorf("the server got %s", e.Forward)
				}
				r.engine.Pass(context.Background(), "garbage")
			}
		})
	}
	all.Wait()
}

// Lists

var lists = []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "tasks/list"}

func page(method, params string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params + `}}`
}

// cursor asks for a page, and returns the sealed cursor of the next page. The server adds the given
// members to its result.
func (r *rig) cursor(user, method, params, members string) string {
	r.t.Helper()
	e := r.openAs(user, page(method, params))
	if e.Forward == "" {
		r.t.Fatalf("%s: %s", params, e.Reply)
	}
	out := r.sealed(e, `{"jsonrpc":"2.0","id":7,"result":{"list":[],"nextCursor":"`+canary+`"`+members+`}}`)
	var text string
	if json.Unmarshal(member(r.t, out, "result", "nextCursor"), &text) != nil || !strings.HasPrefix(text, "mc1.") {
		r.t.Fatalf("no cursor in %s", out)
	}
	return text
}

func TestTheCursorsOfEveryListAreSealed(t *testing.T) {
	for i, method := range lists {
		r := plainRig(t)
		at := r.cursor("alice", method, `"_meta":{"x":1}`, "")
		_, got := r.forwarded(page(method, `"cursor":"`+at+`","_meta":{"x":1}`))
		if got != page(method, `"cursor":"`+canary+`","_meta":{"x":1}`) {
			t.Errorf("%s: the server got %s", method, got)
		}
		next := r.cursor("alice", method, `"cursor":"`+at+`"`, "")
		if next == at {
			t.Error("the next page has the same cursor")
		}
		r.rejected("bob", page(method, `"cursor":"`+at+`"`))
		r.rejected("alice", page(lists[(i+1)%len(lists)], `"cursor":"`+at+`"`))
		r.rejected("alice", page(method, `"cursor":"`+canary+`"`))
		r.rejected("alice", page(method, `"cursor":"`+at+`A"`))
		r.rejected("alice", page(method, `"cursor":"`+r.begin(carriers[0], "", `"x"`, "")+`"`))
		for _, wrong := range []string{"1", "{}", `["` + at + `"]`, "true"} {
			r.refused(page(method, `"cursor":`+wrong))
		}
	}
}

func TestACursorIsNoState(t *testing.T) {
	r := plainRig(t)
	r.rejected("alice", carriers[0].call(state(r.cursor("alice", "tools/list", "", ""))))
}

func TestAnEmptyCursorOfTheServerComesBackAndOneOfTheClientIsTheFirstPage(t *testing.T) {
	r := plainRig(t)
	e, _ := r.forwarded(page("tools/list", ""))
	var at string
	out := r.sealed(e, `{"jsonrpc":"2.0","id":7,"result":{"nextCursor":""}}`)
	if json.Unmarshal(member(t, out, "result", "nextCursor"), &at) != nil || at == "" {
		t.Fatalf("an empty cursor was not sealed: %s", out)
	}
	if _, got := r.forwarded(page("tools/list", `"cursor":"`+at+`"`)); got != page("tools/list", `"cursor":""`) {
		t.Errorf("an empty cursor came back as %s", got)
	}
	for _, first := range []string{`"cursor":""`, `"cursor":null`, ` "cursor" : "" `} {
		if _, got := r.forwarded(page("tools/list", first)); got != page("tools/list", "") {
			t.Errorf("%s became %s", first, got)
		}
	}
}

func TestAPageWithoutACursorStaysAsItIs(t *testing.T) {
	r := plainRig(t)
	for _, result := range []string{`{"tools":[]}`, `{ "tools" : [] , "nextCursor" : null }`} {
		e, _ := r.forwarded(page("tools/list", ""))
		answer := `{"jsonrpc":"2.0","id":7,"result":` + result + `}`
		if out := r.sealed(e, answer); out != answer {
			t.Errorf("%s became %s", answer, out)
		}
	}
	for _, message := range []string{`{"id":7,"method":"tools/list"}`, `{"id":7,"method":"tools/list","params":null}`} {
		if _, got := r.forwarded(message); got != message {
			t.Errorf("%s became %s", message, got)
		}
	}
}

func TestACursorIsSharedOnlyIfItsPageMayBeCachedForAll(t *testing.T) {
	for more, shared := range map[string]bool{
		`,"ttlMs":1000,"cacheScope":"public"`:        true,
		`,"ttlMs":1e3,"cacheScope":"p\u0075blic"`:    true,
		`,"ttlMs":1e300,"cacheScope":"public"`:       true,
		`,"ttlMs":1e11,"cacheScope":"public"`:        true,
		`,"ttlMs":1000,"cacheScope":""`:              false,
		`,"ttlMs":1000,"cacheScope":"private"`:       false,
		`,"ttlMs":1000`:                              false,
		`,"cacheScope":"public"`:                     false,
		`,"ttlMs":0,"cacheScope":"public"`:           false,
		`,"ttlMs":-1,"cacheScope":"public"`:          false,
		`,"ttlMs":null,"cacheScope":"public"`:        false,
		`,"ttlMs":"1000","cacheScope":"public"`:      false,
		`,"ttlMs":1e999,"cacheScope":"public"`:       false,
		`,"ttlMs":1000,"cacheScope":["public"]`:      false,
		`,"ttlMs":1000,"cacheScope":"Public"`:        false,
		`,"ttlMs":1000,"cacheScope":{"x":"public"}`:  false,
		`,"ttlMs":[1000],"cacheScope":"public"`:      false,
		`,"ttlMs":true,"cacheScope":"public","x":[]`: false,
	} {
		r := plainRig(t)
		at := r.cursor("alice", "tools/list", "", more)
		e := r.openAs("bob", page("tools/list", `"cursor":"`+at+`"`))
		if (e.Forward != "") != shared {
			t.Errorf("%s: bob got %s %s", more, e.Forward, e.Reply)
		}
	}
}

func TestThePageThatIsCachedLongHasACursorThatLivesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := plainRig(t)
		short := r.cursor("alice", "tools/list", "", "")
		long := r.cursor("alice", "tools/list", "", `,"ttlMs":`+fmt.Sprint((100*24*time.Hour).Milliseconds()))
		time.Sleep(99 * 24 * time.Hour)
		r.rejected("alice", page("tools/list", `"cursor":"`+short+`"`))
		r.forwarded(page("tools/list", `"cursor":"`+long+`"`))
	})
}

// Failures

func TestAFailureToSealIsAnInternalError(t *testing.T) {
	r := newRig(t, tripseal.Config{MaxState: 100}, wire.Config{})
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf(`"q%d":%s`, i, roots)
	}
	for name, answer := range map[string]string{
		"a long state":       asking(`"`+strings.Repeat(canary, 20)+`"`, ""),
		"too many questions": asking(`"`+canary+`"`, "{"+strings.Join(many, ",")+"}"),
		"a long key":         asking(`"`+canary+`"`, `{"`+strings.Repeat("k", 129)+`":`+form+`}`),
	} {
		e, _ := r.forwarded(carriers[0].call(""))
		checkError(t, e.Seal(context.Background(), answer), "7", -32603)
		if r.log.Len() == 0 {
			t.Errorf("%s: nothing was logged", name)
		}
		r.log.Reset()
	}
	e, _ := r.forwarded(page("tools/list", ""))
	checkError(t, e.Seal(context.Background(), `{"id":7,"result":{"nextCursor":"`+strings.Repeat(canary, 10_000)+`"}}`), "7", -32603)
}

func TestAUserWhoCannotBeToldIsNotServed(t *testing.T) {
	const secret = "the identity provider said hush"
	r := plainRig(t)
	given, at := r.begin(carriers[0], "", `"x"`, ""), r.cursor("alice", "tools/list", "", "")
	for name, who := range map[string]tripseal.Principal{
		"an error": func(context.Context) (string, error) { return "alice", errors.New(secret) },
		"a panic":  func(context.Context) (string, error) { panic(secret) },
		"no name":  tripseal.User(""),
		"nobody":   nil,
	} {
		open := func(message string) *wire.Exchange {
			return r.engine.Open(context.Background(), message, who)
		}
		for _, message := range []string{carriers[0].call(state(given)), page("tools/list", `"cursor":"`+at+`"`)} {
			e := open(message)
			if e.Forward != "" {
				t.Errorf("%s: the server got %s", name, e.Forward)
			}
			checkError(t, e.Reply, "7", -32602, -32603)
		}
		if who != nil {
			checkError(t, open(carriers[0].call("")).Seal(context.Background(), asking(`"`+canary+`"`, "")), "7", -32603)
			checkError(t, open(page("tools/list", "")).Seal(context.Background(), `{"id":7,"result":{"nextCursor":"`+canary+`"}}`), "7", -32603)
		}
	}
	if strings.Contains(r.log.String(), "hush") {
		t.Errorf("the log has the text of a part's error: %s", &r.log)
	}
}

func TestNobodyIsRefusedIfAUserIsRequired(t *testing.T) {
	r := newRig(t, tripseal.Config{RequireUser: true}, wire.Config{})
	nobody := func(message string) *wire.Exchange {
		return r.engine.Open(context.Background(), message, nil)
	}
	checkError(t, nobody(carriers[0].call("")).Seal(context.Background(), asking(`"`+canary+`"`, "")), "7", -32603)
	checkError(t, nobody(page("tools/list", "")).Seal(context.Background(), `{"id":7,"result":{"nextCursor":"`+canary+`"}}`), "7", -32603)
}

func TestARejectedTokenOfAToolIsAResultIfTheOperatorWantsIt(t *testing.T) {
	const text = "Start \"over\".\n<&>"
	r := newRig(t, tripseal.Config{}, wire.Config{RejectedText: text})
	for _, given := range []string{state("ms1.forged"), state(""), `,"requestState":1`} {
		e := r.open(carriers[0].call(given))
		if e.Forward != "" || e.Malformed {
			t.Errorf("%s: the server got %s", given, e.Forward)
		}
		var m struct {
			ID     int
			Error  any
			Result struct {
				ResultType string
				IsError    bool
				Content    []struct{ Type, Text string }
			}
		}
		if json.Unmarshal([]byte(e.Reply), &m) != nil || m.ID != 7 || m.Error != nil || m.Result.ResultType != "complete" || !m.Result.IsError ||
			len(m.Result.Content) != 1 || m.Result.Content[0].Type != "text" || m.Result.Content[0].Text != text {
			t.Errorf("%s: the client got %s", given, e.Reply)
		}
	}
	for _, c := range carriers[1:] {
		r.rejected("alice", c.call(state("ms1.forged")))
	}
	r.rejected("alice", page("tools/list", `"cursor":"mc1.forged"`))
	r.refused(`{"id":7,"method":"tools/call","params":{}}`)
}

func TestFailedIsAnErrorForARequestOnly(t *testing.T) {
	r := plainRig(t)
	checkError(t, r.open(carriers[0].call("")).Failed(), "7", -32603)
	if e := r.open(`{"method":"notifications/initialized"}`); e.Failed() != "" {
		t.Errorf("a notification got %s", e.Failed())
	}
	if e := r.open(`{"id":7,"result":{}}`); e.Failed() != "" {
		t.Errorf("an answer got %s", e.Failed())
	}
}

func TestTheProxyNeedsABoundaryWithKeys(t *testing.T) {
	if p, err := wire.New(wire.Config{}); err == nil || p != nil {
		t.Error("a proxy without a boundary")
	}
	boundary, err := tripseal.New(tripseal.Config{Format: elicitFormat{tripseal.NativeFormat(tripseal.Ephemeral())}, Audience: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := wire.New(wire.Config{Boundary: boundary}); err == nil || p != nil {
		t.Error("a proxy that cannot seal cursors")
	}
}

func TestAQuestionThatTheClientCannotAnswerIsNotSent(t *testing.T) {
	const meta = `,"_meta":{"io.modelcontextprotocol/clientCapabilities":`
	for _, c := range []struct {
		declared, question string
		sent               bool
	}{
		{`{"elicitation":{}}`, `{"method":"elicitation/create","params":{"mode":"form"}}`, true},
		{`{"elicitation":{"url":{}}}`, `{"method":"elicitation/create","params":{"mode":"form"}}`, false},
		{`{"elicitation":{"url":{}}}`, `{"method":"elicitation/create","params":{"mode":"url"}}`, true},
		{`{"elicitation":{"form":{}}}`, `{"method":"elicitation/create","params":{"mode":"url"}}`, false},
		{`{"elicitation":{"form":{},"url":{}}}`, `{"method":"elicitation/create","params":{"mode":"form"}}`, true},
		{`{"elicitation":{"com.example/x":{}}}`, `{"method":"elicitation/create","params":{}}`, true},
		{`{"elicitation":true}`, `{"method":"elicitation/create","params":{}}`, false},
		{`{"sampling":[]}`, `{"method":"sampling/createMessage","params":{"messages":[]}}`, false},
		{`{"roots":null}`, `{"method":"roots/list"}`, false},
		{`{}`, `{"method":"elicitation/create","params":{}}`, false},
		{`{"sampling":{}}`, `{"method":"sampling/createMessage","params":{"messages":[]}}`, true},
		{`{"sampling":{}}`, `{"method":"sampling/createMessage","params":{"messages":[],"tools":[]}}`, false},
		{`{"sampling":{}}`, `{"method":"sampling/createMessage","params":{"messages":[],"toolChoice":{}}}`, false},
		{`{"sampling":{"tools":{}}}`, `{"method":"sampling/createMessage","params":{"messages":[],"tools":[]}}`, true},
		{`{"sampling":{}}`, `{"method":"roots/list"}`, false},
		{`{"roots":{}}`, `{"method":"roots/list"}`, true},
		{`"nothing"`, `{"method":"roots/list"}`, false},
		{`{"roots":{}},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}`, `{"method":"roots/list"}`, false},
		{`{"roots":{}},"io.modelcontextprotocol/ClientCapabilities":{"roots":{}}`, `{"method":"roots/list"}`, false},
	} {
		r := plainRig(t)
		e, _ := r.forwarded(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"deploy"` + meta + c.declared + `}}}`)
		out := string(e.Seal(t.Context(), `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","requestState":"`+canary+`","inputRequests":{"a":`+c.question+`}}}`))
		if sent := strings.Contains(out, `"inputRequests"`); sent != c.sent || !sent && !strings.Contains(out, "-32021") || strings.Contains(out, canary) {
			t.Errorf("%s, %s: %s", c.declared, c.question, out)
		}
	}
}
