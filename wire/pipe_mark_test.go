package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// markIn returns the mark in a call that the server got, or "" if there is none.
func markIn(t testing.TB, line string) string {
	t.Helper()
	var params struct {
		Meta json.RawMessage `json:"_meta"`
	}
	json.Unmarshal(member(t, line, "params"), &params)
	var meta map[string]string
	json.Unmarshal(params.Meta, &meta)
	return meta[wire.MarkName]
}

func markedPipe(t testing.TB) *pipeRig { return newPipe(t, tripseal.Config{}, wire.Config{}) }

func (r *pipeRig) through(mark string) *wire.Exchange {
	return r.engine.Through(context.Background(), mark)
}

func TestACallIsKnownByItsMarkUntilItsAnswer(t *testing.T) {
	for _, c := range carriers {
		r := markedPipe(t)
		var during *wire.Exchange
		r.server.line = func(line string) { during = r.through(markIn(t, line)) }
		r.send(c.call(""))
		if during == nil || during.Method != c.method || during.Target == "" || during.User() == nil {
			t.Fatalf("%s: the server that got the call found %+v", c.method, during)
		}
		r.server.line = nil
		r.say(aside)
		r.client.take()
		for _, answer := range []string{
			asking(`"`+canary+`"`, ""), `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`, "no answer",
		} {
			const other = `"another"`
			r.send(strings.Replace(c.call(""), `"id":7`, `"id":`+other, 1))
			lines := r.server.take()
			mark := markIn(t, lines[len(lines)-1])
			if r.through(mark) == nil || r.through(mark) == during || mark == "" {
				t.Errorf("%s: the mark %q of a second call is not its own", c.method, mark)
			}
			if r.say(strings.Replace(answer, `"id":7`, `"id":`+other, 1)); answer == "no answer" {
				r.pipe.Server.Close()
			}
			if r.through(mark) != nil {
				t.Errorf("%s: the mark is known after the answer %s", c.method, answer)
			}
		}
	}
}

func TestAMarkIsUnknownAfterACancelAndToAnotherEngine(t *testing.T) {
	r, other := markedPipe(t), markedPipe(t)
	r.send(pipeCall("1", "deploy", ""))
	mark := markIn(t, r.one(&r.server))
	if r.through(mark) == nil || other.through(mark) != nil || r.through("") != nil || r.through(mark[1:]) != nil {
		t.Error("a mark is for one engine, and whole")
	}
	r.send(pipeCancel("2"))
	if r.through(mark) == nil {
		t.Error("the mark is unknown after the cancel of another call")
	}
	r.send(pipeCancel("1"))
	if r.through(mark) != nil {
		t.Error("the mark is known after a cancel")
	}
}

func TestACallOverHTTPIsKnownToTheEngineOfItsDoorAlone(t *testing.T) {
	r, other := markedPipe(t), markedPipe(t)
	reached := false
	server := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		reached = true
		if x := r.engine.Through(q.Context(), "none"); x == nil || x.Target != "deploy" {
			t.Errorf("the engine found %+v", x)
		}
		if other.engine.Through(q.Context(), "none") != nil {
			t.Error("another engine knows the call")
		}
		w.WriteHeader(http.StatusAccepted)
	})
	q := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(pipeCall("1", "deploy", "")))
	q.Header.Set("Content-Type", "application/json")
	r.engine.Handler(server, wire.Options{AllowAnonymous: true}).ServeHTTP(httptest.NewRecorder(), q)
	if !reached {
		t.Error("the call did not reach the server")
	}
}

// A client that knew a mark that stays could use it on a transport that has no door.
func TestAMarkOfACallThatTheServerDoesNotGetIsUnknown(t *testing.T) {
	r := markedPipe(t)
	var mark string
	r.server.line = func(line string) { mark = markIn(t, line); r.pipe.Server.Close() } // while the call is on its way
	r.send(pipeCall("1", "deploy", ""))
	if mark == "" || r.through(mark) != nil {
		t.Errorf("the mark %q is known after the server's end", mark)
	}
	r = markedPipe(t)
	r.server.line = func(line string) { mark = markIn(t, line); r.server.fail(context.Canceled) }
	r.send(pipeCall("1", "deploy", ""), pipeCall("2", strings.Repeat("x", 1<<17), ""))
	r.client.take()
	if r.through(mark) == nil {
		t.Error("the first call waits, but its mark is unknown")
	}
	if n := r.marks(); n != 1 {
		t.Errorf("%d marks are known, and one call waits", n)
	}
}

// marks returns how many calls the engine knows by a mark.
func (r *pipeRig) marks() int { return wire.Marks(r.engine) }

func TestOnlyCallsAreMarkedAndOnlyThoseThatTheServerGets(t *testing.T) {
	r := markedPipe(t)
	lines := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"_meta":{}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","method":"notifications/x","params":{"_meta":{"a":1}}}`,
		`{"jsonrpc":"2.0","id":"s","result":{"_meta":{}}}`,
		pipeCancel("9"),
	}
	r.send(lines...)
	r.serverGot(lines...)
	r.send(pipeCall("3", "deploy", pipeRetry("forged")), pipeCall("2", "deploy", ""), pipeCall("1.0", "deploy", ""),
		`{"jsonrpc":"2.0","id":4,"method":"tools/call"}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}`)
	r.serverGot()
	if r.marks() != 0 {
		t.Errorf("%d marks for no call", r.marks())
	}
	exact := exactPipe(t)
	exact.send(pipeCall("1", "deploy", `,"_meta":{"a":1}`))
	exact.serverGot(pipeCall("1", "deploy", `,"_meta":{"a":1}`))
	if exact.marks() != 0 {
		t.Error("an engine for a server that is another program knows marks")
	}
}

func TestAMarkIsAddedToTheMetaOfTheClientAndReplacesItsOwn(t *testing.T) {
	const name = `"` + wire.MarkName + `":`
	escaped := strings.Replace(name, "/", `\/`, 1)
	for given, want := range map[string]string{
		"":                            `{` + name + `"MARK"}`,
		`,"_meta":null`:               `{` + name + `"MARK"}`,
		`,"_meta":{}`:                 `{` + name + `"MARK"}`,
		`,"_meta": { "a" : 1.0 }`:     `{"a" : 1.0,` + name + `"MARK"}`,
		`,"_meta":{` + name + `"x"}`:  `{` + name + `"MARK"}`,
		`,"_meta":{` + name + `null}`: `{` + name + `"MARK"}`,
		`,"_meta":{` + name + `{"a":[]},"b":2,` + name + `1}`: `{` + name + `"MARK","b":2,` + name + `"MARK"}`,
		`,"_meta":{` + escaped + `"x"}`:                       `{` + escaped + `"MARK"}`,
		`,"_meta":"text"`:                                     `"text"`,
		`,"_meta":["` + wire.MarkName + `"]`:                  `["` + wire.MarkName + `"]`,
		`,"_meta":7`:                                          `7`,
	} {
		r := markedPipe(t)
		r.send(pipeCall("1", "deploy", given))
		line := r.one(&r.server)
		mark := markIn(t, line)
		if (mark == "") != (r.through(mark) == nil) || len(mark) == 1 {
			t.Errorf("%s: the mark is %q", given, mark)
		}
		got := string(member(t, line, "params", "_meta"))
		if mark != "" {
			got = strings.ReplaceAll(got, mark, "MARK")
		}
		if got != want || textOf(member(t, line, "params", "name")) != "deploy" {
			t.Errorf("%s became %s", given, line)
		}
	}
	r := markedPipe(t)
	r.send(pipeCall("1", "deploy", `,"_meta":{},"_meta":{}`))
	r.clientGotError("1", -32602)
}

func TestNoMarkReachesTheClient(t *testing.T) {
	places := map[string]string{ // what the server writes
		"a result":             `{"jsonrpc":"2.0","id":1,"result":{"_meta":META,"content":["MARK","xMARKMARKx"]}}`,
		"a result, in spaces":  ` {"jsonrpc":"2.0","id":1, "result":{"_meta":META,"MARK":"MARK"}}`,
		"an error":             `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"MARK","data":META}}`,
		"a question":           strings.Replace(pipeAsk("1", canary+"MARK"), "Sure?", "MARK?", 1),
		"an answer to nothing": `{"jsonrpc":"2.0","id":"MARK","result":{"_meta":META}}`,
		"a notification":       `{"jsonrpc":"2.0","method":"notifications/x","params":{"_meta":META,"message":"MARK"}}`,
		"a request":            `{"jsonrpc":"2.0","id":"MARK","method":"roots/list","params":{"_meta":META}}`,
	}
	for name, place := range places {
		for _, before := range []string{"nothing", "an answer", "a cancel"} {
			r := markedPipe(t)
			r.send(pipeCall("1", "deploy", `,"_meta":{"a":1}`), pipeCall("2", "deploy", ""))
			lines := r.server.take()
			mark := markIn(t, lines[0])
			switch before {
			case "an answer":
				r.say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
			case "a cancel":
				r.send(pipeCancel("1"))
			}
			meta := string(member(t, lines[0], "params", "_meta"))
			r.say(strings.NewReplacer("MARK", mark, "META", meta).Replace(place))
			if before == "nothing" && len(r.client.take()) != 1 {
				t.Errorf("%s did not reach the client", name)
			}
			if out := r.client.text(); strings.Contains(out, mark) || strings.Contains(out, markIn(t, lines[1])) {
				t.Errorf("%s, after %s: the client got the mark %s: %s", name, before, mark, out)
			}
		}
	}
}

func TestMarksCannotBeGuessed(t *testing.T) {
	r := markedPipe(t)
	seen := map[string]bool{}
	for i := range 1000 {
		r.send(pipeCall(fmt.Sprint(i), "deploy", ""))
		mark := markIn(t, r.one(&r.server))
		if len(mark) < 26 || seen[mark] { // 26 characters of base 32 are 130 bits
			t.Fatalf("the mark %q", mark)
		}
		seen[mark] = true
	}
}
