package stdiocarrier

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tripseal/tripseal/proxy"
)

func TestAnIDInUseIsRefused(t *testing.T) {
	r := connect(t)
	r.send(call("1", "deploy", ""))
	r.send(call("1", "destroy", ""))
	r.expectError("1", invalidRequest)
	if got := r.received(); len(got) != 1 || got[0] != call("1", "deploy", "") {
		t.Errorf("the server got %q", got)
	}
	r.say(ask("1", r.secret))
	token := r.tokenOf(r.next(), "1")
	r.send(call("1", "destroy", `,"requestState":"`+token+`"`+agreed)) // the id is free, but the token is for deploy
	r.expectError("1", -32602)
	r.send(call("1", "deploy", `,"requestState":"`+token+`"`+agreed))
	if got := r.received(); len(got) != 1 || stateOf(got[0]) != r.secret {
		t.Errorf("the server got %q", got)
	}
}

func TestAnAnswerBelongsToOneID(t *testing.T) {
	for asked, others := range map[string][]string{
		"1":   {`"1"`, "1.0", "1e0", "01", "2"},
		`"1"`: {"1", `"1.0"`, `" 1"`},
		"1.0": {"1", "1.00", `"1.0"`},
		`"a"`: {`"A"`, `"b"`},
		"-0":  {"0", "0.0"},
	} {
		r := connect(t)
		r.send(call(asked, "deploy", ""))
		for _, other := range others {
			r.say(ask(other, r.secret))
		}
		r.say(`{"jsonrpc":"2.0","method":"y"}`, ask(asked, r.secret))
		r.expect(`{"jsonrpc":"2.0","method":"y"}`)
		r.tokenOf(r.next(), asked)
	}
}

// A server may answer the id 1.0 with the id 1, because for its JSON parser they are the same number.
// If both ids were in use, the state of one call could be sealed for the other.
func TestAnIDThatAServerCouldTakeForAnotherOneIsRefused(t *testing.T) {
	r := connect(t)
	for _, pair := range [][2]string{
		{"1", "1.0"}, {"1", "1e0"}, {"10", "1E+1"}, {"0", "-0"}, {"0", "-0.0"}, {"1", `"1"`}, {"1", `"01"`}, {"1", `" 1 "`}, {"1000", `"1_000"`}, {"1", `"+1"`}, {"1", `"1.0"`},
		{"9007199254740992", "9007199254740993"}, {"1e400", "1e500"}, {`"a"`, `"\u0061"`}, {`"/"`, `"\/"`}, {`"\ud800"`, `"\udfff"`},
	} {
		for _, order := range [][2]string{pair, {pair[1], pair[0]}} {
			r.send(call(order[0], "deploy", ""))
			r.send(call(order[1], "destroy", ""))
			r.expectError(order[1], invalidRequest)
			r.say(ask(order[0], r.secret))
			r.tokenOf(r.next(), order[0])
		}
	}
	for _, pair := range [][2]string{{"1", "2"}, {"1", "-1"}, {"1", "1.5"}, {`"a"`, `"A"`}, {`"1e1"`, "10"}, {`"12e9999"`, `"13e9999"`}, {`"inf"`, `"infinity"`}, {`""`, "0"}, {`""`, `" "`}, {`"-"`, `"."`}, {"9007199254740991", "9007199254740990"}} {
		for _, id := range pair {
			r.send(call(id, "deploy", ""))
		}
		for _, id := range pair {
			r.say(ask(id, r.secret))
			r.tokenOf(r.next(), id)
		}
	}
}

func TestALongIDIsRefused(t *testing.T) {
	r := connect(t)
	for _, id := range []string{`"` + strings.Repeat("x", maxID) + `"`, strings.Repeat("1", maxID+1)} {
		r.send(call(id, "deploy", ""))
		r.expectError(id, invalidRequest)
	}
	if got := r.received(); len(got) != 0 {
		t.Errorf("the server got %d lines", len(got))
	}
}

func TestTooManyRequestsAreRefusedUntilSomeAreAnswered(t *testing.T) {
	r := connect(t)
	for i := range maxPending {
		r.send(call(strconv.Itoa(i), "deploy", ""))
	}
	r.send(call(`"one more"`, "deploy", ""))
	r.expectError(`"one more"`, internalError)
	r.send(`{"jsonrpc":"2.0","method":"notifications/x"}`) // a notification does not count towards the limit
	r.say(ask("7", r.secret))
	r.tokenOf(r.next(), "7")
	r.send(call(`"one more"`, "deploy", ""))
	r.send(call(`"two more"`, "deploy", ""))
	r.expectError(`"two more"`, internalError)
	r.say(ask(`"one more"`, r.secret))
	r.tokenOf(r.next(), `"one more"`)
}

func TestTheMessagesThatWaitHaveALimit(t *testing.T) {
	var p pending
	for i := range maxBytes / maxClientLine {
		if err := p.reserve(strconv.Itoa(i), maxClientLine); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.reserve("x", 1); !errors.Is(err, errFull) {
		t.Errorf("%d bytes wait, and one more was accepted: %v", maxBytes, err)
	}
	p.release("3")
	if err := p.reserve("x", maxClientLine); err != nil {
		t.Error(err)
	}
}

func TestACancelledRequestFreesItsPlaceAndKeepsItsID(t *testing.T) {
	r := connect(t)
	r.send(call("1", "deploy", ""))
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	r.send(cancel)
	if got := r.received(); len(got) != 2 || got[1] != cancel {
		t.Errorf("the server got %q", got)
	}
	// If the id were free now, the state of the first request would be sealed for the second one.
	r.send(call("1", "destroy", ""))
	r.expectError("1", invalidRequest)
	r.say(ask("1", r.secret), `{"jsonrpc":"2.0","method":"y"}`)
	r.expect(`{"jsonrpc":"2.0","method":"y"}`)
	r.send(call("1", "destroy", "")) // now the id is free, because the late answer came
	r.say(ask("1", r.secret))
	r.tokenOf(r.next(), "1")

	late := `{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`
	r.send(call("2", "deploy", ""))
	r.send(strings.Replace(cancel, "1}", "2}", 1))
	r.say(late)
	r.expect(late)
}

func TestRequestsThatAreCancelledAndNeverAnsweredDoNotFillTheTable(t *testing.T) {
	var p pending
	request := func(id string) error {
		if err := p.reserve(id, 1<<20); err != nil {
			return err
		}
		if !p.setExchange(&proxy.Exchange{ID: id}) {
			t.Fatal("not forwarded")
		}
		return nil
	}
	for i := range maxCancelled {
		id := strconv.Itoa(i)
		if err := request(id); err != nil {
			t.Fatal(i, err)
		}
		p.cancel(id)
	}
	// No more ids of cancelled requests can be kept, and an id that was forgotten could be confused
	// with a new one. So from here on, a cancelled request still counts as waiting.
	for i := range maxBytes >> 20 {
		id := fmt.Sprintf(`"%d more"`, i)
		if err := request(id); err != nil {
			t.Fatal(i, err)
		}
		p.cancel(id)
	}
	if err := request(`"the last"`); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if err := request("7"); !errors.Is(err, errInUse) {
		t.Error(err)
	}
	if p.take("7") != nil {
		t.Error("a cancelled request has an exchange")
	}
	p.cancel(`"0 more"`) // this time the call has an effect: p.take has made room for one cancelled request
	if err := request("7"); err != nil {
		t.Error(err)
	}
}

func TestAnAnswerBeforeItsRequestIsForwardedBelongsToNone(t *testing.T) {
	var p pending
	if err := p.reserve("1", 1); err != nil {
		t.Fatal(err)
	}
	p.cancel("1")
	if p.take("1") != nil {
		t.Error("an answer to a request that the server has not got")
	}
	if !p.setExchange(&proxy.Exchange{ID: "1"}) {
		t.Error("the id is free")
	}
	if left := p.end(); len(left) != 1 {
		t.Error(left)
	}
	if err := p.reserve("2", 1); err == nil {
		t.Error("a request after the end was accepted")
	}
	if p.waiting != 0 || p.bytes != 0 || len(p.requests) != 0 {
		t.Errorf("%+v", &p)
	}
}
