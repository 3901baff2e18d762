package wire_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"math/big"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// pair is a member of a JSON object.
type pair struct {
	name  string
	value json.RawMessage
}

// pairs returns all members of a JSON object, even if two have the same name. It returns nil if
// the text is not an object. It shares no code with the proxy.
func pairs(text []byte) (list []pair) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return list
		}
		p := pair{name: name.(string)}
		if decoder.Decode(&p.value) != nil {
			return list
		}
		list = append(list, p)
	}
	return list
}

// valuesOf returns the value of each member that some reader could find under the given name.
func valuesOf(text []byte, name string) (values []json.RawMessage) {
	for _, p := range pairs(text) {
		if loosely(p.name) == loosely(name) || strings.EqualFold(p.name, name) {
			values = append(values, p.value)
		}
	}
	return values
}

func loosely(name string) string {
	name, _, _ = strings.Cut(name, "\x00")
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r))
	}, name)
}

// valuesAt returns all values at a path. It finds the names of the path in every spelling that
// valuesOf accepts.
func valuesAt(text []byte, path ...string) (values []json.RawMessage) {
	values = []json.RawMessage{text}
	for _, name := range path {
		var below []json.RawMessage
		for _, v := range values {
			below = append(below, valuesOf(v, name)...)
		}
		values = below
	}
	return values
}

func textOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return "not a text: " + string(value)
	}
	return text
}

func methodOf(message []byte) string {
	var m struct {
		Method string `json:"method"`
	}
	json.Unmarshal(message, &m)
	return m.Method
}

// secret returns a random text, so that no input of a fuzz corpus can contain it.
func secret() string { return "s" + rand.Text() }

// FuzzOpen gives the proxy any message of a client. In the message that the server gets, no JSON
// reader may find a state, a cursor or an answer that the proxy did not accept. In the input, TOKEN
// becomes a token of alice, and CURSOR becomes a cursor of alice.
func FuzzOpen(f *testing.F) {
	r := newRig(f, tripseal.Config{}, wire.Config{})
	plaintext := secret()
	given := r.begin(carriers[0], "", `"`+plaintext+`"`, `{"q":`+form+`}`)
	e, _ := r.forwarded(page("tools/list", ""))
	at := textOf(member(f, r.sealed(e, `{"id":7,"result":{"nextCursor":"`+plaintext+`"}}`), "result", "nextCursor"))
	f.Fuzz(func(t *testing.T, message []byte) {
		r.t = t
		r.log.Reset()
		message = bytes.ReplaceAll(bytes.ReplaceAll(message, []byte("TOKEN"), []byte(given)), []byte("CURSOR"), []byte(at))
		e := r.engine.Open(context.Background(), string(message), tripseal.User("alice"))
		if e.Reply != "" {
			if checkError(t, e.Reply, e.ID, -32600, -32602, -32603); strings.Contains(e.Reply, plaintext) {
				t.Fatalf("a plaintext reached the client: %s", e.Reply)
			}
		}
		if e.Forward == "" {
			if e.Reply == "" && !e.Malformed {
				t.Fatal("neither forwarded nor answered")
			}
			return
		}
		forward := []byte(e.Forward)
		if !json.Valid(forward) || !utf8.Valid(forward) {
			t.Fatalf("the server got %q", forward)
		}
		opened := false
		for _, value := range valuesAt(forward, "params", "requestState") {
			if textOf(value) != plaintext || e.Method != "tools/call" {
				t.Fatalf("the server got a state that was not opened: %s", e.Forward)
			}
			opened = true
		}
		for _, value := range valuesAt(forward, "result", "requestState") {
			t.Fatalf("the server got the state %s in a result: %s", value, e.Forward)
		}
		if slices.Contains(lists, e.Method) {
			for _, value := range valuesAt(forward, "params", "cursor") {
				if textOf(value) != plaintext {
					t.Fatalf("the server got a cursor that was not opened: %s", e.Forward)
				}
			}
		}
		if e.Method == "tools/call" || e.Method == "prompts/get" || e.Method == "resources/read" {
			for _, value := range valuesAt(forward, "params", "inputResponses") {
				for _, p := range pairs(value) {
					if !opened || p.name != "q" || len(valuesOf(p.value, "action")) != 1 || bytes.Contains(p.value, []byte(":null")) {
						t.Fatalf("the server got an answer that was not asked for: %s", e.Forward)
					}
				}
			}
		}
		var loose struct { // a reader that ignores the case of names; if a name occurs twice, it takes the last value
			Params struct {
				RequestState *string `json:"requestState"`
				Cursor       *string `json:"cursor"`
			} `json:"params"`
		}
		json.Unmarshal(forward, &loose)
		if s := loose.Params.RequestState; s != nil && *s != plaintext {
			t.Fatalf("encoding/json reads the state %q in %s", *s, e.Forward)
		}
		if s := loose.Params.Cursor; slices.Contains(lists, e.Method) && s != nil && *s != plaintext {
			t.Fatalf("encoding/json reads the cursor %q in %s", *s, e.Forward)
		}
		if methodOf(forward) != e.Method && utf8.ValidString(e.Method) {
			t.Fatalf("encoding/json reads the method %q, not %q", methodOf(forward), e.Method)
		}
	})
}

// fuzzRequests are the requests that FuzzSeal answers with its input.
var fuzzRequests = []string{carriers[0].call(""), carriers[1].call(""), carriers[2].call(""), page("tools/list", ""), page("tasks/list", ""), `{"id":7,"method":"ping"}`, `{"method":"notifications/x"}`}

// FuzzSeal gives the proxy any answer of a server. In the message that the client gets, no JSON
// reader may find an unsealed state, an unsealed cursor, or a question that no token pins. FuzzSeal
// replaces the word SECRET in the input with a plaintext.
func FuzzSeal(f *testing.F) {
	r := newRig(f, tripseal.Config{}, wire.Config{})
	plaintext := secret()
	f.Fuzz(func(t *testing.T, answer []byte) {
		r.t = t
		r.log.Reset()
		answer = bytes.ReplaceAll(answer, []byte("SECRET"), []byte(plaintext))
		for _, request := range fuzzRequests {
			e := r.open(request)
			r.checkSealed(request, answer, e.Seal(context.Background(), string(answer)))
			second := []byte(e.Seal(context.Background(), string(answer)))
			if len(valuesOf(second, "result"))+len(valuesOf(second, "error")) > 0 && string(valuesAt(second, "id")[0]) == e.ID {
				t.Fatalf("a second answer reached the client: %s", second)
			}
		}
		r.checkSealed("", answer, r.engine.Pass(context.Background(), string(answer)))
	})
}

// checkSealed checks what the proxy makes of a server's answer. The parameter out is the message
// that the client gets; nil means that it gets none. If the request is empty, the answer belongs to
// no request.
func (r *rig) checkSealed(request string, answer []byte, sealed string) {
	if sealed == "" {
		return
	}
	out := []byte(sealed)
	if !json.Valid(out) || !utf8.Valid(out) {
		r.t.Fatalf("the client got %q", out)
	}
	method := methodOf([]byte(request))
	calls := slices.ContainsFunc(carriers, func(c carrier) bool { return c.method == method })
	states := valuesAt(out, "result", "requestState")
	for _, value := range states {
		if !calls || !strings.HasPrefix(textOf(value), "ms1.") {
			r.t.Fatalf("the client got the state %s", value)
		}
		_, got := r.forwarded(strings.Replace(request, `}}`, `,"requestState":`+string(value)+`}}`, 1))
		was, is := valuesAt(answer, "result", "requestState"), valuesAt([]byte(got), "params", "requestState")
		if len(was) != len(is) || len(was) == 1 && textOf(was[0]) != textOf(is[0]) {
			r.t.Fatalf("the state %s came back as %s", was, is)
		}
	}
	if len(valuesAt(out, "params", "requestState")) > 0 {
		r.t.Fatalf("the client got a state in %s", out)
	}
	if asked := valuesAt(out, "result", "inputRequests"); len(asked) > 0 && (request == "" || calls && len(states) != 1) {
		r.t.Fatalf("the client got questions that are not pinned: %s", out)
	}
	for _, value := range valuesAt(out, "result", "nextCursor") {
		if request == "" || slices.Contains(lists, method) && string(value) != "null" && !strings.HasPrefix(textOf(value), "mc1.") {
			r.t.Fatalf("the client got the cursor %s", value)
		}
	}
	var loose struct { // a reader that ignores the case of names; if a name occurs twice, it takes the last value
		Result struct {
			RequestState *string `json:"requestState"`
			NextCursor   *string `json:"nextCursor"`
		} `json:"result"`
	}
	json.Unmarshal(out, &loose)
	if s := loose.Result.RequestState; s != nil && !strings.HasPrefix(*s, "ms1.") {
		r.t.Fatalf("encoding/json reads the state %q in %s", *s, out)
	}
	if s := loose.Result.NextCursor; slices.Contains(lists, method) && s != nil && !strings.HasPrefix(*s, "mc1.") {
		r.t.Fatalf("encoding/json reads the cursor %q in %s", *s, out)
	}
}

// FuzzPassed checks messages without a state, a question, an answer or a cursor. The proxy must
// pass them on byte for byte, whatever white space and numbers they have.
func FuzzPassed(f *testing.F) {
	r := newRig(f, tripseal.Config{}, wire.Config{})
	f.Fuzz(func(t *testing.T, value string, seed uint64) {
		if !utf8.ValidString(value) || !json.Valid([]byte(value)) || len(value) > 1<<16 || deep(value) {
			return
		}
		r.t = t
		r.log.Reset()
		rnd := mathrand.New(mathrand.NewPCG(seed, 1))
		big := new(big.Int).SetUint64(rnd.Uint64()).String() + "00000000000000000001"
		for _, template := range []string{
			`{ "jsonrpc" : "2.0" , "id" : 12 , "method" : "x/y" , "params" : { "a" : VALUE , "name" : VALUE , "Name" : VALUE , "cursor" : VALUE , "inputResponses" : VALUE } }`,
			`{ "id" : "é" , "method" : "tools/call" , "params" : { "name" : "x" , "arguments" : VALUE , "_meta" : VALUE , "x" : VALUE , "x" : BIG } , "x" : VALUE }`,
			`{ "id" : -150 , "method" : "prompts/get" , "params" : { "arguments" : VALUE , "name" : "x" , "inputResponses" : { } } }`,
			`{ "id" : 0 , "method" : "resources/read" , "params" : { "uri" : "x" , "task" : VALUE } }`,
			`{ "id" : 0 , "method" : "tools/list" , "params" : { "_meta" : VALUE , "x" : BIG } }`,
			`{ "method" : "notifications/x" , "params" : { "x" : VALUE } }`,
			`{ "id" : 0 , "result" : { "x" : VALUE } }`, `{ "id" : 0 , "error" : VALUE }`,
		} {
			message := spaced(template, value, big, rnd)
			if _, got := r.forwarded(message); got != message {
				t.Fatalf("%s became %s", message, got)
			}
		}
		for i, template := range []string{
			`{ "id" : 7 , "result" : { "resultType" : "complete" , "content" : VALUE , "x" : BIG , "x" : VALUE } , "x" : VALUE }`,
			`{ "id" : 7 , "result" : { "tools" : VALUE , "ttlMs" : VALUE , "cacheScope" : VALUE } }`,
			`{ "id" : 7 , "result" : { "x" : VALUE , "inputRequests" : VALUE , "nextCursor" : VALUE } }`,
			`{ "id" : 7 , "error" : VALUE }`,
			`{ "method" : "notifications/x" , "params" : { "x" : VALUE , "inputRequests" : VALUE } , "x" : BIG }`,
			`{ "id" : VALUE , "method" : "roots/list" }`,
		} {
			message := spaced(template, value, big, rnd)
			if i == 5 {
				message = spaced(template, big, big, rnd)
			}
			e, _ := r.forwarded([]string{carriers[0].call(""), page("tools/list", ""), `{"id":7,"method":"ping"}`}[min(i, 2)])
			if got := e.Seal(context.Background(), message); string(got) != message {
				t.Fatalf("%s became %s", message, got)
			}
			if got := r.engine.Pass(context.Background(), message); string(got) != message && i != 2 {
				t.Fatalf("%s became %s", message, got)
			}
		}
	})
}

// spaced replaces the words VALUE and BIG of a template. It also puts up to two characters of
// white space before each word.
func spaced(template, value, big string, rnd *mathrand.Rand) string {
	var out strings.Builder
	for _, word := range strings.Fields(template) {
		for range rnd.IntN(3) {
			out.WriteByte(" \t\r\n"[rnd.IntN(4)])
		}
		switch word {
		case "VALUE":
			word = value
		case "BIG":
			word = big
		}
		out.WriteString(word)
	}
	return out.String()
}

// deep reports whether the proxy might refuse a value because the value is nested too deeply, or
// because a number or an exponent in it is too long.
func deep(value string) bool {
	depth, most, digits := 0, 0, 0
	for _, c := range value {
		switch {
		case c == '[' || c == '{':
			depth++
			most = max(most, depth)
		case c == ']' || c == '}':
			depth--
		}
		if digits++; c < '0' || c > '9' {
			digits = 0
		}
		if digits > 18 && strings.ContainsAny(value, "eE") || digits > 300 && strings.Contains(value, ".") {
			return true
		}
	}
	return most > 100
}
