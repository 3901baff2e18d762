package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// utf16Of and utf32Of return a text in another encoding, which Python's json reads too.
func utf16Of(text string, order binary.AppendByteOrder) (out []byte) {
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return out
}

func utf32Of(text string, order binary.AppendByteOrder) (out []byte) {
	for _, r := range text {
		out = order.AppendUint32(out, uint32(r))
	}
	return out
}

func TestWhatIsNotOneJSONObjectInUTF8IsRefused(t *testing.T) {
	r := plainRig(t)
	forged := carriers[0].call(state(canary))
	ping := `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	answer := `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","requestState":"` + canary + `"}}`
	for _, whole := range []string{ping, forged, answer} {
		for name, message := range map[string]string{
			"nothing": "", "space": " ", "null": "null", "true": "true", "number": "1", "text": `"x"`, "empty list": "[]",
			"empty object": "{}", "batch": "[" + whole + "]", "batch of two": "[" + ping + "," + whole + "]",
			"two": whole + whole, "two lines": whole + "\n" + whole, "trailing data": whole + "x", "trailing zero": whole + "\x00", "trailing comma": whole + ",",
			"byte order mark": "\ufeff" + whole, "mark at the end": whole + "\ufeff",
			"UTF-16LE": string(utf16Of(whole, binary.LittleEndian)), "UTF-16BE": string(utf16Of(whole, binary.BigEndian)),
			"UTF-16LE with a mark": "\xff\xfe" + string(utf16Of(whole, binary.LittleEndian)), "UTF-16BE with a mark": "\xfe\xff" + string(utf16Of(whole, binary.BigEndian)),
			"UTF-32LE": string(utf32Of(whole, binary.LittleEndian)), "UTF-32BE": string(utf32Of(whole, binary.BigEndian)),
			"UTF-32LE with a mark": "\xff\xfe\x00\x00" + string(utf32Of(whole, binary.LittleEndian)),
			"not UTF-8":            whole[:len(whole)-1] + ",\"x\":\"\xff\"}", "not UTF-8 in a name": whole[:len(whole)-1] + ",\"\xff\":1}",
			"an overlong name":     whole[:len(whole)-1] + ",\"\xc1\xb0arams\":1}",
			"a surrogate in UTF-8": whole[:len(whole)-1] + ",\"x\":\"\xed\xa0\x80\"}",
			"cut":                  whole[:len(whole)-1], "a comma too many": whole[:len(whole)-1] + ",}", "a comma first": "{," + whole[1:],
			"a comment": whole[:len(whole)-1] + "/**/}", "a line comment": whole + "//", "single quotes": strings.ReplaceAll(whole, `"`, `'`), "no quotes": strings.ReplaceAll(whole, `"id"`, `id`),
			"NaN": whole[:len(whole)-1] + `,"x":NaN}`, "Infinity": whole[:len(whole)-1] + `,"x":-Infinity}`, "hex": whole[:len(whole)-1] + `,"x":0x1}`, "plus": whole[:len(whole)-1] + `,"x":+1}`, "leading zero": whole[:len(whole)-1] + `,"x":01}`, "a bare point": whole[:len(whole)-1] + `,"x":1.}`,
			"a control character": whole[:len(whole)-1] + ",\"x\":\"\n\"}", "a broken escape": whole[:len(whole)-1] + `,"x":"\x41"}`, "a short escape": whole[:len(whole)-1] + `,"x":"\u12"}`,
			"a strange space": "\u00a0" + whole, "a form feed": "\f" + whole, "a huge exponent": whole[:len(whole)-1] + `,"x":1e1234567890123456789}`,
			"too deep":     whole[:len(whole)-1] + `,"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
			"far too deep": whole[:len(whole)-1] + `,"x":` + strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000) + `}`,
		} {
			t.Run(name, func(t *testing.T) {
				r.refused(message)
				r.stopped(message)
				for _, request := range []string{carriers[0].call(""), page("tools/list", ""), ping} {
					e, _ := r.forwarded(request)
					r.withheld(e, message)
				}
			})
		}
	}
}

// stopped checks that the method Pass drops a message of the server. It does not call Seal, because
// Seal could take the message for the answer to a request.
func (r *rig) stopped(message string) {
	r.t.Helper()
	r.log.Reset()
	if out := r.engine.Pass(context.Background(), message); out != "" || !strings.Contains(r.log.String(), "was dropped") {
		r.t.Errorf("%q was not dropped, or not logged: %s", message, out)
	}
}

func TestAMessageIsARequestOrANotificationOrAnAnswer(t *testing.T) {
	r := plainRig(t)
	for _, message := range []string{
		`{"id":7,"method":"x","result":{}}`, `{"id":7,"method":"x","error":{}}`, `{"id":7,"result":{},"error":{}}`, `{"id":7,"result":{},"error":null}`,
		`{"id":7}`, `{"id":7,"params":{}}`, `{"id":7,"result":{},"params":{}}`, `{"result":{}}`, `{"error":{}}`, `{"params":{}}`, `{"jsonrpc":"2.0"}`,
		`{"id":7,"method":null}`, `{"id":7,"method":""}`, `{"id":7,"method":1}`, `{"id":7,"method":["tools/call"]}`, `{"id":7,"method":{},"params":{}}`,
		`{"id":7,"method":null,"result":{}}`, `{"method":null,"id":7,"error":{}}`,
		`{"id":7,"method":"tools/call\u0000","params":{"name":"x"}}`, `{"id":7,"method":"tools/list\u0000x","params":{"cursor":"x"}}`, `{"id":7,"method":"\u0000"}`,
	} {
		r.refused(message)
		r.stopped(message)
	}
}

func TestTheIdOfARequestIsAStringOrAnIntegerThatIsReadExactly(t *testing.T) {
	r := plainRig(t)
	for _, id := range []string{
		`null`, `true`, `false`, `{}`, `[]`, `[1]`, `{"a":1}`, `1.5`, `1.0`, `1e3`, `-0`, `9007199254740992`, `-9007199254740992`, `12345678901234567890`,
	} {
		r.refused(`{"id":` + id + `,"method":"ping"}`)
		r.refused(`{"id":` + id + `,"method":"tools/call","params":{"name":"x"}}`)
		if strings.ContainsAny(id, "0123456789") && id[0] != '[' && id[0] != '{' {
			continue // the server may use these
		}
		r.stopped(`{"id":` + id + `,"method":"ping"}`)
		if id != "null" {
			r.stopped(`{"id":` + id + `,"result":{}}`)
		}
	}
	for _, id := range []string{`0`, `-1`, `9007199254740991`, `""`, `"a"`, `"null"`, `"é"`, `"😀"`, `"\ud800"`, `"a\"b\\"`, `"<&>"`} {
		e, _ := r.forwarded(`{"id": ` + id + ` ,"method":"tools/call","params":{"name":"x"}}`)
		if e.ID != id {
			t.Errorf("the id %s is %s", id, e.ID)
		}
		out := r.sealed(e, `{"id":`+id+`,"result":{"resultType":"input_required","requestState":"`+canary+`"}}`)
		if !strings.HasPrefix(out, `{"id":`+id+`,`) {
			t.Errorf("the id %s changed: %s", id, out)
		}
		token(t, out)
		e = r.open(`{"id":` + id + `,"method":"tools/call","params":{}}`)
		if got := string(member(t, string(e.Reply), "id")); got != id {
			t.Errorf("the error for %s is for %s", id, got)
		}
	}
}

func TestAnIdInAnotherSpellingIsTheSame(t *testing.T) {
	r := plainRig(t)
	for asked, answered := range map[string]string{
		`"é"`: `"\u00e9"`, `"\u00e9"`: `"é"`, `"a<b"`: `"a\u003cb"`, `"a/b"`: `"a\/b"`, `"😀"`: `"\ud83d\ude00"`, `"\uD800"`: `"\ud800"`,
	} {
		e, _ := r.forwarded(`{"id":` + asked + `,"method":"tools/call","params":{"name":"x"}}`)
		token(t, r.sealed(e, `{"id":`+answered+`,"result":{"resultType":"input_required","requestState":"`+canary+`"}}`))
	}
}

func TestAnAnswerWithAnotherIdIsNotTheAnswer(t *testing.T) {
	r := plainRig(t)
	for asked, answered := range map[string]string{
		`1`: `"1"`, `"1"`: `1`, `2`: `1`, `"a"`: `"A"`, `11`: `11.0`, `10`: `1e1`, `"x"`: `null`, `"null"`: `null`, `"\ud800"`: `"\ufffd"`, `"\ufffd"`: `"\ud800"`, `"s"`: `"ſ"`,
	} {
		for _, result := range []string{`{"resultType":"input_required","requestState":"` + canary + `"}`, `{"inputRequests":{}}`, `{"nextCursor":"` + canary + `"}`} {
			e, _ := r.forwarded(`{"id":` + asked + `,"method":"tools/call","params":{"name":"x"}}`)
			if out := e.Seal(context.Background(), `{"id":`+answered+`,"result":`+result+`}`); out != "" {
				t.Errorf("%s for %s: the client got %s", answered, asked, out)
			}
			token(t, r.sealed(e, `{"id":`+asked+`,"result":{"resultType":"input_required"}}`)) // the right answer is still accepted
		}
	}
}

func TestARequestOfTheServerWithTheSameIdIsNotTheAnswer(t *testing.T) {
	r := plainRig(t)
	e, _ := r.forwarded(carriers[0].call(""))
	const request = `{"id":7,"method":"sampling/createMessage","params":{"messages":[]}}`
	if out := e.Seal(context.Background(), request); string(out) != request {
		t.Errorf("it became %s", out)
	}
	token(t, r.sealed(e, asking(`"`+canary+`"`, "")))
}

func TestASecondAnswerIsDropped(t *testing.T) {
	r := plainRig(t)
	answer := asking(`"`+canary+`"`, "")
	for _, first := range []string{answer, `{"id":7,"result":{}}`, `{"id":7,"error":{"code":1,"message":"x"}}`, `garbage`, `{"id":7,"result":{"requestState":"x"}}`} {
		for _, request := range []string{carriers[0].call(""), page("tools/list", ""), `{"id":7,"method":"ping"}`} {
			e, _ := r.forwarded(request)
			e.Seal(context.Background(), first)
			for _, second := range []string{answer, `{"id":7,"result":{}}`, `{"id":7,"error":{}}`, `garbage`} {
				r.log.Reset()
				if out := e.Seal(context.Background(), second); out != "" || !strings.Contains(r.log.String(), "was dropped") {
					t.Errorf("after %s the client got %s", first, out)
				}
			}
			if note := `{"method":"notifications/x"}`; string(e.Seal(context.Background(), note)) != note {
				t.Error("a notification after the answer was dropped")
			}
		}
	}
}

func TestAnAnswerToNoRequestCarriesNothing(t *testing.T) {
	r := plainRig(t)
	for _, first := range []string{`{"method":"notifications/x"}`, `{"id":7,"result":{}}`} {
		e, _ := r.forwarded(first)
		for _, answer := range []string{asking(`"`+canary+`"`, ""), `{"id":7,"result":{"nextCursor":"` + canary + `"}}`, `{"id":7,"result":{"inputRequests":{}}}`, `garbage`} {
			if out := e.Seal(context.Background(), answer); out != "" {
				t.Errorf("%s: the client got %s", first, out)
			}
			r.stopped(answer)
		}
	}
}

func TestAnErrorOfTheServerPassesAsItIs(t *testing.T) {
	r := plainRig(t)
	const answer = `{ "id":7, "error": {"code":-1,"message":"x","data":[1.0]} }`
	for _, request := range []string{carriers[0].call(""), page("tools/list", ""), `{"id":7,"method":"ping"}`} {
		e, _ := r.forwarded(request)
		if out := e.Seal(context.Background(), answer); string(out) != answer {
			t.Errorf("it became %s", out)
		}
	}
}

func TestACallWithoutAnIdIsRefusedInSilence(t *testing.T) {
	r := plainRig(t)
	for _, c := range carriers {
		message := strings.Replace(c.call(""), `"id":7,`, "", 1)
		if r.refused(message); r.open(message).Reply != "" {
			t.Error("a notification got an answer")
		}
	}
	for _, method := range lists {
		message := strings.Replace(page(method, ""), `"id":7,`, "", 1)
		if r.refused(message); r.open(message).Reply != "" {
			t.Error("a notification got an answer")
		}
	}
	message := `{"method":"notifications/x","params":{"requestState":"x"}}`
	if r.refused(message); r.open(message).Reply != "" {
		t.Error("a notification got an answer")
	}
}

func TestACallNamesItsTarget(t *testing.T) {
	r := plainRig(t)
	for _, c := range carriers {
		for _, params := range []string{``, `,"params":null`, `,"params":[]`, `,"params":"x"`, `,"params":{}`, `,"params":{"name":null,"uri":null}`, `,"params":{"name":1,"uri":1}`, `,"params":{"name":["x"],"uri":{}}`} {
			r.refused(`{"id":7,"method":"` + c.method + `"` + params + `}`)
		}
		e, _ := r.forwarded(c.call(""))
		if e.Method != c.method || !strings.Contains(c.target, `"`+e.Target+`"`) || e.ID != "7" {
			t.Errorf("method %q, target %q, id %s", e.Method, e.Target, e.ID)
		}
	}
	r.refused(`{"id":7,"method":"resources/read","params":{"name":"x"}}`)
	r.refused(`{"id":7,"method":"tools/call","params":{"uri":"x"}}`)
	for _, method := range lists {
		for _, params := range []string{`[]`, `"x"`, `1`, `[{"cursor":"x"}]`} {
			r.refused(`{"id":7,"method":"` + method + `","params":` + params + `}`)
		}
	}
}

func TestAStateWhereNoneBelongsIsRefused(t *testing.T) {
	r := plainRig(t)
	given := r.begin(carriers[0], "", `"x"`, "")
	for _, value := range []string{`"` + given + `"`, `"x"`, `""`, `null`, `1`, `{}`} {
		for _, method := range append([]string{"ping", "initialize", "x/y", "tasks/get", "tasks/update", "server/discover", "Tools/call", "tools/call ", "completion/complete"}, lists...) {
			r.refused(`{"id":7,"method":"` + method + `","params":{"requestState":` + value + `}}`)
		}
		r.refused(`{"method":"notifications/x","params":{"requestState":` + value + `}}`)
		r.refused(`{"id":7,"result":{"requestState":` + value + `}}`)

		for _, c := range carriers {
			for _, kind := range []string{``, `"resultType":"complete",`, `"resultType":"task",`, `"resultType":"Input_required",`, `"resultType":["input_required"],`, `"resultType":null,`} {
				e, _ := r.forwarded(c.call(""))
				r.withheld(e, `{"id":7,"result":{`+kind+`"requestState":`+value+`}}`)
			}
		}
		for _, method := range append([]string{"ping", "x/y", "tasks/get"}, lists...) {
			e, _ := r.forwarded(`{"id":7,"method":"` + method + `"}`)
			r.withheld(e, `{"id":7,"result":{"resultType":"input_required","requestState":`+value+`}}`)
		}
		r.dropped(`{"method":"notifications/progress","params":{"requestState":` + value + `}}`)
		r.dropped(`{"id":7,"method":"sampling/createMessage","params":{"requestState":` + value + `}}`)
		r.dropped(`{"id":7,"result":{"requestState":` + value + `}}`)
	}
	for _, value := range []string{"null", "1", "{}", `["x"]`, "true"} {
		e, _ := r.forwarded(carriers[0].call(""))
		r.withheld(e, asking(value, `{"q":`+form+`}`))
	}
}

func TestQuestionsInAResultThatDoesNotAskAreRefused(t *testing.T) {
	r := plainRig(t)
	for _, questions := range []string{`{}`, `null`, `{"q":` + form + `}`} {
		e, _ := r.forwarded(carriers[0].call(""))
		r.withheld(e, `{"id":7,"result":{"resultType":"complete","inputRequests":`+questions+`}}`)
		e, _ = r.forwarded(carriers[0].call(""))
		r.withheld(e, `{"id":7,"result":{"inputRequests":`+questions+`}}`)
	}
}

func TestAResultOfACallAndAPageAreObjects(t *testing.T) {
	r := plainRig(t)
	for _, result := range []string{`null`, `[]`, `1`, `"x"`, `[{"requestState":"` + canary + `"}]`} {
		for _, request := range []string{carriers[0].call(""), page("tools/list", "")} {
			e, _ := r.forwarded(request)
			r.withheld(e, `{"id":7,"result":`+result+`}`)
		}
	}
	for _, next := range []string{`1`, `{}`, `["x"]`, `true`} {
		e, _ := r.forwarded(page("tools/list", ""))
		r.withheld(e, `{"id":7,"result":{"nextCursor":`+next+`}}`)
	}
}

func TestAQuestionOfAnUnknownKindIsRefused(t *testing.T) {
	r := plainRig(t)
	for _, questions := range []string{
		`[]`, `"q"`, `1`, `[` + form + `]`, `{"q":null}`, `{"q":1}`, `{"q":[]}`, `{"q":{}}`, `{"q":{"method":"x"}}`, `{"q":{"method":null,"params":{}}}`, `{"q":{"method":["roots/list"]}}`,
		`{"q":{"method":"elicitation/create"}}`, `{"q":{"method":"elicitation/create","params":null}}`, `{"q":{"method":"elicitation/create","params":[]}}`, `{"q":{"method":"Roots/list"}}`,
		`{"a":` + form + `,"q":{"method":"x"}}`,
	} {
		e, _ := r.forwarded(carriers[0].call(""))
		r.withheld(e, asking(`"`+canary+`"`, questions))
	}
}

func TestAnswersThatAreNoObjectAreRefused(t *testing.T) {
	r := plainRig(t)
	for _, answers := range []string{`[]`, `"x"`, `1`, `true`, `[` + accept + `]`} {
		r.refused(carriers[0].call(`,"inputResponses":` + answers))
	}
}

func TestMoreAnswersThanARoundCanAskAreRefused(t *testing.T) {
	r := newRig(t, tripseal.Config{}, wire.Config{Unsolicited: []string{"deploy"}})
	many := make([]string, tripseal.MaxQuestions+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"q%d":%s`, i, accept)
	}
	call := func(answers []string) string {
		return carriers[0].call(`,"inputResponses":{` + strings.Join(answers, ",") + `}`)
	}
	r.refused(call(many))
	if _, got := r.forwarded(call(many[1:])); got != call(many[1:]) {
		t.Errorf("the server got %s", got)
	}
}

func TestWhatARefusedMessageSaysIsNotInTheLog(t *testing.T) {
	r := plainRig(t)
	r.refused(carriers[0].call(`,"RequestState":"` + canary + `"`))
	r.refused(`{"id":7,"method":"` + canary[:2] + `\n\u001b[2J","params":{"requestState":"` + canary + `"}}`)
	long := strings.Repeat("x", 10_000)
	r.refused(`{"id":7,"method":"` + long + `","params":{"requestState":"x"}}`)
	if strings.Contains(r.log.String(), "\x1b") || strings.Contains(r.log.String(), long) {
		t.Error("the log has a control character, or a long text of the client")
	}
	stranger, _ := r.forwarded(`{"id":7,"method":"` + long + `"}`)
	if r.withheld(stranger, "garbage"); strings.Contains(r.log.String(), long) {
		t.Error("the log has a long text of the client")
	}
	e, _ := r.forwarded(carriers[0].call(""))
	r.withheld(e, asking(`1`, `{"`+canary+`":1}`))
	r.stopped(`{"method":"x","params":{"requestState":"` + canary + `"}}`)
	if strings.Contains(r.log.String(), canary) {
		t.Errorf("the log has a state: %s", &r.log)
	}
}

type panicking struct{ slog.Handler }

func (panicking) Handle(context.Context, slog.Record) error { panic("log") }

func TestALoggerThatPanicsStopsNothing(t *testing.T) {
	r := newRig(t, tripseal.Config{}, wire.Config{Logger: slog.New(panicking{slog.NewTextHandler(&bytes.Buffer{}, nil)})})
	if e := r.open("garbage"); e.Forward != "" || e.Reply == "" {
		t.Errorf("the server got %s", e.Forward)
	}
	e, _ := r.forwarded(carriers[0].call(""))
	checkError(t, e.Seal(context.Background(), "garbage"), "7", -32603)
	if r.engine.Pass(context.Background(), "garbage") != "" {
		t.Error("garbage passed")
	}
}
