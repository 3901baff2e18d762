package wire_test

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

func (r *pipeRig) isIdle() bool { return isClosed(r.pipe.Idle()) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestAPipeIsIdleExactlyWhenNoCallWaits(t *testing.T) {
	r := exactPipe(t)
	r.send(aside, pipeCall("1", "deploy", pipeRetry("forged")), pipeCancel("1"))
	if !r.isIdle() {
		t.Error("nothing waits, but the pipe is not idle")
	}
	for name, end := range map[string]func(){
		"the answer":        func() { r.say(pipeAsk("2", canary)) },
		"a cancel":          func() { r.send(pipeCancel("2"), pipeCancel("2")) },
		"the server's end":  func() { r.pipe.Server.Close() },
		"an answer refused": func() { r.say("\r", "{\r}", `{"jsonrpc":"2.0","id":2,"error":`+"\r{}}") },
	} {
		r = exactPipe(t)
		r.send(pipeCall("1", "deploy", ""), pipeCall("2", "deploy", ""))
		first, second := r.pipe.Idle(), r.pipe.Idle() // for all who ask
		r.say(pipeAsk("1", canary), aside)
		if isClosed(first) || isClosed(second) || r.isIdle() {
			t.Errorf("%s: the pipe is idle, but a call waits", name)
		}
		if end(); !isClosed(first) || !isClosed(second) || !r.isIdle() {
			t.Errorf("%s: the pipe is not idle", name)
		}
		if name == "the server's end" {
			continue
		}
		r.send(pipeCall("3", "deploy", ""))
		if r.isIdle() {
			t.Errorf("%s: the pipe is idle while another call waits", name)
		}
	}
}

func TestAnIDInUseIsRefused(t *testing.T) {
	r := exactPipe(t)
	r.send(pipeCall("1", "deploy", ""), pipeCall("1", "destroy", ""))
	r.clientGotError("1", -32600)
	r.serverGot(pipeCall("1", "deploy", ""))
	r.say(pipeAsk("1", canary))
	given := r.clientGotToken("1")
	r.send(pipeCall("1", "destroy", pipeRetry(given))) // the id is free, but the token is for deploy
	r.clientGotError("1", -32602)
	r.send(pipeCall("1", "deploy", pipeRetry(given)))
	if got := stateIn(t, r.one(&r.server)); got != canary {
		t.Errorf("the server got the state %q", got)
	}
}

func TestAnIDThatParsersReadDifferentlyIsRefusedWithAnErrorForThisID(t *testing.T) {
	r := exactPipe(t)
	for _, id := range []string{
		"1.0", "1e0", "1E+1", "-0", "-0.0", "9007199254740992", "-9007199254740992", "1e400", "12345678901234567890",
		`"` + strings.Repeat("x", 255) + `"`, strings.Repeat("1", 257),
	} {
		r.send(pipeCall(id, "deploy", ""), `{"jsonrpc":"2.0","method":"ping","id":`+id+`}`)
		got := r.client.take()
		if len(got) != 2 {
			t.Fatalf("%s: the client got %q", id, got)
		}
		checkError(t, got[0], id, -32600)
		checkError(t, got[1], id, -32600)
	}
	r.serverGot()
	for _, id := range []string{"9007199254740991", "-9007199254740991", `"` + strings.Repeat("x", 254) + `"`} {
		r.send(pipeCall(id, "deploy", ""))
		r.say(pipeAsk(id, canary))
		r.clientGotToken(id)
	}
}

func TestAnAnswerBelongsToOneID(t *testing.T) {
	for asked, others := range map[string][]string{
		"1":   {`"1"`, "1.0", "1e0", "2", "null", "{}"},
		`"1"`: {"1", `"1.0"`, `" 1"`, `"01"`},
		`"a"`: {`"A"`, `"b"`}, `"null"`: {"null"}, `"\ud800"`: {`"\ufffd"`, `"\ud801"`},
	} {
		r := exactPipe(t)
		r.send(pipeCall(asked, "deploy", ""))
		for _, other := range others {
			r.say(pipeAsk(other, canary))
			r.send(pipeCancel(other))
		}
		r.clientGot()
		r.say(pipeAsk(asked, canary))
		r.clientGotToken(asked)
	}
	r := exactPipe(t)
	r.send(pipeCall(`"é/"`, "deploy", ""))
	r.say(pipeAsk(`"\u00e9\/"`, canary)) // another spelling of the same id
	r.clientGotToken(`"\u00e9\/"`)
}

// If both ids were in use, the state of one call could be sealed for the other.
func TestAnIDThatAServerCouldTakeForAnotherOneIsRefused(t *testing.T) {
	r := exactPipe(t)
	for _, pair := range [][2]string{
		{"1", `"1"`}, {"1", `"01"`}, {"1", `" 1 "`}, {"1000", `"1_000"`}, {"1", `"+1"`}, {"1", `"1.0"`},
		{"0", `"-0"`}, {"-1", `"-1"`},
		{`"1"`, `"1.0"`}, {`"a"`, `"\u0061"`}, {`"/"`, `"\/"`}, {`"\ud800"`, `"\udfff"`},
		{`"9007199254740992"`, `"9007199254740993"`},
	} {
		for _, order := range [][2]string{pair, {pair[1], pair[0]}} {
			r.send(pipeCall(order[0], "deploy", ""), pipeCall(order[1], "destroy", ""))
			r.clientGotError(order[1], -32600)
			r.say(pipeAsk(order[0], canary))
			r.clientGotToken(order[0])
		}
	}
	for _, pair := range [][2]string{
		{"1", "2"}, {"1", "-1"}, {"1", `"1.5"`}, {`"a"`, `"A"`}, {`"12e9999"`, `"13e9999"`},
		{`""`, "0"}, {`""`, `" "`}, {`"-"`, `"."`}, {"9007199254740991", "9007199254740990"},
		{`"0x1"`, "1"}, {`"null"`, `"nan"`},
		{`"number 1"`, "1"}, {`"text a"`, `"a"`}, {`"a_b"`, `"ab"`}, {`" a"`, `"a"`},
	} {
		r.send(pipeCall(pair[0], "deploy", ""), pipeCall(pair[1], "deploy", ""))
		for _, id := range pair {
			r.say(pipeAsk(id, canary))
			r.clientGotToken(id)
		}
	}
}

func TestTooManyRequestsAreRefusedUntilSomeAreAnswered(t *testing.T) {
	r := exactPipe(t)
	for i := range 1024 {
		r.send(pipeCall(strconv.Itoa(i), "deploy", ""))
	}
	r.clientGot()
	for _, free := range []func(){
		func() { r.say(pipeAsk("7", canary)); r.clientGotToken("7") },
		func() { r.send(pipeCancel("8"), pipeCancel("8")) },
		func() { r.say(`{"jsonrpc":"2.0","id":9}`); r.clientGotError("9", -32603) },
	} {
		r.send(pipeCall(`"one more"`, "deploy", ""))
		r.clientGotError(`"one more"`, -32603)
		r.server.take()
		r.send(aside) // a notification needs no place
		r.serverGot(aside)
		free()
		r.send(pipeCall(`"one more"`, "deploy", ""), pipeCall(`"two more"`, "deploy", ""))
		r.clientGotError(`"two more"`, -32603)
		r.say(pipeAsk(`"one more"`, canary))
		r.clientGotToken(`"one more"`)
		r.send(pipeCall(fmt.Sprintf(`"again %p"`, free), "deploy", "")) // takes the place
	}
}

func TestTheMessagesThatWaitHaveALimit(t *testing.T) {
	r := exactPipe(t)
	long := func(id string) string {
		return padded(pipeCall(id, "deploy", ""), wire.DefaultMaxRequest)
	}
	for range 2 { // the second time shows that all the bytes came free
		for i := range 16 { // 64 MiB
			r.send(long(strconv.Itoa(i)))
		}
		r.clientGot()
		r.send(pipeCall(`"x"`, "deploy", ""))
		r.clientGotError(`"x"`, -32603)
		for i := range 8 {
			r.say(pipeAsk(strconv.Itoa(i), canary))
			r.clientGotToken(strconv.Itoa(i))
		}
		for i := range 8 {
			r.send(pipeCancel(strconv.Itoa(8 + i)))
			r.say(pipeAsk(strconv.Itoa(8+i), canary)) // the late answer
		}
		r.clientGot()
	}
}

func TestALateAnswerToACancelledCallIsNoAnswerToAnotherOne(t *testing.T) {
	r := exactPipe(t)
	r.send(pipeCall("1", "deploy", ""))
	r.server.take()
	r.send(pipeCancel("1"))
	r.serverGot(pipeCancel("1"))
	// If the id were free now, the state of the first request would be sealed for the second one.
	r.send(pipeCall("1", "destroy", ""))
	r.clientGotError("1", -32600)
	r.say(pipeAsk("1", canary))
	r.clientGot()
	r.send(pipeCall("1", "destroy", "")) // now the id is free, because the late answer came
	r.say(pipeAsk("1", canary))
	r.clientGotToken("1")

	late := `{"jsonrpc":"2.0","id":"2","result":{"content":[]}}`
	r.send(pipeCall(`"2"`, "deploy", ""), pipeCancel(`"\u0032"`))
	if !r.isIdle() {
		t.Error("an id in another spelling cancels nothing")
	}
	r.say(late)
	r.clientGot(late)
	r.send(pipeCall("3", "deploy", ""), strings.Replace(pipeCancel("3"), "{", `{"id":4,`, 1),
		strings.Replace(pipeCancel("3"), "/cancelled", "/x", 1), strings.Replace(pipeCancel("[3]"), "requestId", "RequestIds", 1))
	r.say(pipeAsk("3", canary)) // none of these is a cancel
	r.clientGotToken("3")
}

// Most servers never answer a cancelled call.
func TestCallsStillWorkAfterManyWereCancelled(t *testing.T) {
	const kept = 1 << 16
	r := newPipe(t, tripseal.Config{}, wire.Config{})
	cancelled := func(id string) {
		r.send(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`, pipeCancel(id))
	}
	cancelled("0")
	r.say(`{"jsonrpc":"2.0","id":0,"result":{}}`) // a late answer
	r.client.take()
	r.send(pipeCall("0", "deploy", ""))
	for i := 1; i < kept; i++ {
		cancelled(strconv.Itoa(i))
	}
	r.send(pipeCall("1", "deploy", ""))
	r.clientGotError("1", -32600)
	cancelled(`"a"`)
	cancelled(`"b"`) // now the first two are forgotten, and only these
	r.send(pipeCall("2", "deploy", ""), pipeCall("0", "deploy", ""))
	if got := r.client.take(); len(got) != 2 {
		t.Errorf("an id that is in use was accepted: %q", got)
	}
	r.send(pipeCall("1", "deploy", ""))
	for _, id := range []string{"0", "1"} {
		r.say(pipeAsk(id, canary))
		r.clientGotToken(id)
	}
	r.say(pipeAsk("2", canary), pipeAsk(`"b"`, canary)) // their late answers
	r.clientGot()
	if !r.isIdle() {
		t.Error("a call waits")
	}
}

// spender is a replay store that calls a function while the boundary opens a token.
type spender func()

func (s spender) Spend(context.Context, tripseal.Use) (bool, error) { s(); return true, nil }

func TestAnAnswerBelongsToNoCallBeforeTheServerHasTheCall(t *testing.T) {
	for name, early := range map[string]func(r *pipeRig){
		"an answer":       func(r *pipeRig) { r.say(pipeAsk("1", canary)) },
		"an error":        func(r *pipeRig) { r.say(`{"jsonrpc":"2.0","id":1}`) },
		"the server ends": func(r *pipeRig) { r.pipe.Server.Close() },
	} {
		var r *pipeRig
		r = newPipe(t, tripseal.Config{Replay: spender(func() { early(r) })}, wire.Config{})
		r.send(pipeCall("1", "deploy", ""))
		r.say(pipeAsk("1", canary))
		retry := pipeCall("1", "deploy", pipeRetry(r.clientGotToken("1")))
		r.server.take()
		io.WriteString(r.pipe.Client, retry+"\n")
		r.clientGot()
		if name == "the server ends" {
			r.serverGot()
		} else {
			r.one(&r.server)
			r.say(pipeAsk("1", canary))
			r.clientGotToken("1")
		}
		if !r.isIdle() || r.marks() != 0 {
			t.Errorf("%s: a call waits, or %d marks are left", name, r.marks())
		}
	}
}
