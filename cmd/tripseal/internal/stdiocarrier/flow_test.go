package stdiocarrier

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay"
)

func TestTheServerSeesItsStateAndTheClientDoesNot(t *testing.T) {
	r := connect(t)
	r.send(call("1", "deploy", ""))
	r.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`, ask("1", r.secret+` \u0022 state`))
	r.expect(`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`)
	token := r.tokenOf(r.next(), "1")
	r.received()

	r.send(call("2", "deploy", `,"requestState":"`+token+`"`+agreed))
	got := r.received()
	if len(got) != 1 || !strings.Contains(got[0], agreed) || stateOf(got[0]) != r.secret+` " state` {
		t.Fatalf("the server got %q", got)
	}
	r.say(ask("2", r.secret+" two"))
	second := r.tokenOf(r.next(), "2")
	r.send(call(`"three"`, "deploy", `,"requestState":"`+second+`"`+agreed))
	if got := r.received(); len(got) != 1 || stateOf(got[0]) != r.secret+" two" {
		t.Fatalf("the server got %q", got)
	}
	done := `{"jsonrpc":"2.0","id":"three","result":{"content":[]}}`
	r.say(done)
	r.expect(done)

	r.send(call("4", "destroy", `,"requestState":"`+token+`"`+agreed))
	r.expectError("4", -32602)
	r.send(call("5", "deploy", `,"requestState":"forged"`+agreed))
	r.expectError("5", -32602)
	if got := r.received(); len(got) != 0 {
		t.Errorf("the server got %q", got)
	}
}

func stateOf(line string) string {
	var m struct{ Params struct{ RequestState string } }
	json.Unmarshal([]byte(line), &m)
	return m.Params.RequestState
}

func TestTheServerSeesItsCursorAndTheClientDoesNot(t *testing.T) {
	r := connect(t)
	for _, list := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
		r.send(`{"jsonrpc":"2.0","id":1,"method":"` + list + `"}`)
		r.say(`{"jsonrpc":"2.0","id":1,"result":{"nextCursor":"` + r.secret + `"}}`)
		token := r.tokenOf(r.next(), "1")
		r.received()
		r.send(`{"jsonrpc":"2.0","id":2,"method":"` + list + `","params":{"cursor":"` + token + `"}}`)
		want := `{"jsonrpc":"2.0","id":2,"method":"` + list + `","params":{"cursor":"` + r.secret + `"}}`
		if got := r.received(); len(got) != 1 || got[0] != want {
			t.Errorf("the server got %q", got)
		}
		r.say(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		r.expect(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		r.send(`{"jsonrpc":"2.0","id":3,"method":"` + list + `","params":{"cursor":"` + r.secret + `"}}`)
		r.expectError("3", -32602)
	}
}

func TestAnswersInAnyOrderReachTheirRequests(t *testing.T) {
	const count = 64
	r := connect(t)
	for i := range count {
		r.send(call(strconv.Itoa(i), "tool-"+strconv.Itoa(i), ""))
	}
	for i := count - 1; i >= 0; i-- {
		r.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"before","params":{"n":%d}}`, i), ask(strconv.Itoa(i), r.secret+strconv.Itoa(i)))
	}
	tokens := make([]string, count)
	for i := count - 1; i >= 0; i-- {
		r.expect(fmt.Sprintf(`{"jsonrpc":"2.0","method":"before","params":{"n":%d}}`, i))
		tokens[i] = r.tokenOf(r.next(), strconv.Itoa(i))
	}
	r.received()
	for i, token := range tokens {
		r.send(call(`"other"`, "tool-"+strconv.Itoa((i+1)%count), `,"requestState":"`+token+`"`+agreed))
		r.expectError(`"other"`, -32602)
		r.send(call(strconv.Itoa(i), "tool-"+strconv.Itoa(i), `,"requestState":"`+token+`"`+agreed))
	}
	got := r.received()
	if len(got) != count {
		t.Fatalf("the server got %d lines", len(got))
	}
	for i, line := range got {
		if stateOf(line) != r.secret+strconv.Itoa(i) {
			t.Errorf("the server got %q", line)
		}
	}
}

func TestAnAnswerToNoRequestPassesOnlyWithoutState(t *testing.T) {
	r := connect(t)
	r.send(call("1", "deploy", ""))
	r.say(
		ask("2", r.secret), ask(`"1"`, r.secret), ask("null", r.secret),
		`{"jsonrpc":"2.0","id":3,"result":{"nextCursor":"`+r.secret+`"}}`,
		`{"jsonrpc":"2.0","id":4,"result":{"request\u0053tate":"`+r.secret+`"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"x","result":{"requestState":"`+r.secret+`"}}`,
		`{"jsonrpc":"2.0","method":"x","params":{"requestState":"`+r.secret+`"}}`,
		`{"jsonrpc":"2.0","ID":1,"result":{"requestState":"`+r.secret+`"}}`,
		`{"jsonrpc":"2.0","id":5,"result":{"content":[]}}`,
		ask("1", r.secret), ask("1", r.secret), `{"jsonrpc":"2.0","id":1,"result":{}}`,
	)
	r.expect(`{"jsonrpc":"2.0","id":5,"result":{"content":[]}}`)
	r.tokenOf(r.next(), "1")
	r.expect(`{"jsonrpc":"2.0","id":1,"result":{}}`)
}

// If the carrier refuses an answer of the server, it must send an error instead. Otherwise the
// client would wait for ever.
func TestAnAnswerThatIsRefusedIsAnErrorForTheClient(t *testing.T) {
	r := connect(t)
	for _, answer := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"requestState":"` + r.secret + `"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"x":1},"result":{"requestState":"` + r.secret + `"}}`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"requestState\":\"" + r.secret + "\xff\"}}",
		`{"result":{"requestState":"` + r.secret + `","deep":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `},"jsonrpc":"2.0","id":1}`,
		`{"jsonrpc":"2.0","id":1}`,
	} {
		r.send(call("1", "deploy", ""))
		r.say(answer)
		r.expectError("1", internalError)
	}
}

func TestRequestsOfTheServerAndTheirAnswersPass(t *testing.T) {
	r := connect(t)
	r.send(call("1", "deploy", ""))
	r.received()
	request := `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[]}}`
	r.say(request)
	r.expect(request)
	answer := `{"jsonrpc":"2.0","id":1,"result":{"role":"assistant","content":{"type":"text","text":"hi"}}}`
	r.send(answer)
	if got := r.received(); len(got) != 1 || got[0] != answer {
		t.Errorf("the server got %q", got)
	}
	r.say(ask("1", r.secret)) // the client's request with the same id still waits
	r.tokenOf(r.next(), "1")
}

func TestARequestThatIsRefusedForItsIDDoesNotSpendItsToken(t *testing.T) {
	store, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := connectWith(t, tripseal.Config{Replay: store}, patient)
	r.send(call("1", "deploy", ""))
	r.say(ask("1", r.secret))
	retry := `,"requestState":"` + r.tokenOf(r.next(), "1") + `"` + agreed
	r.send(call("2", "other", ""))
	r.send(call("2", "deploy", retry))
	r.expectError("2", invalidRequest)
	r.received()
	r.send(call("3", "deploy", retry))
	if got := r.received(); len(got) != 1 || stateOf(got[0]) != r.secret {
		t.Errorf("the server got %q", got)
	}
	r.send(call("4", "deploy", retry))
	r.expectError("4", -32602)
}
