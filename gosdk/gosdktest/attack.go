package gosdktest

import (
	"encoding/json"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Change is a function that changes a message before it is sent. You can write your own. Pass a Change to
// [Round.Answer] to send what an attacker would send.
type Change func(*Message)

// Tamper is a [Change] that changes one character in the middle of the token.
func Tamper(m *Message) { m.Token = replaceAt(m.Token, len(m.Token)/2) }

// Strip is a [Change] that removes the token: a protected server then ignores the answers, and asks again.
func Strip(m *Message) { m.Token = "" }

// By returns a [Change] that sends the message as another user. Use it to test that a stolen token is rejected.
func By(user string) Change { return func(m *Message) { m.User = user } }

// To returns a [Change] that sends the message to another tool, prompt or resource, which need not exist.
func To(target string) Change { return func(m *Message) { m.Target = target } }

// With returns a [Change] that sends the message with other arguments.
func With(arguments any) Change { return func(m *Message) { m.Arguments = arguments } }

// Attack sends the round's token as attackers would: with a changed character, with one more or one less, as another
// user, as a caller without a name, for another target, for another method, and with another argument (but not for a
// resource). It fails the test unless the server rejects each of these messages. Then it sends the answers without a
// token, and fails the test unless the server asks its questions again. Last it sends the genuine token, and fails the
// test unless the server accepts it. So a server that rejects everything fails the test too. Attack returns the round
// of the genuine token.
//
// The handler runs twice: for the answers without a token, and for the genuine token. If the round's caller has no
// name, Attack leaves out two attacks: the one as another user, and the one as a caller without a name.
//
// Do not use Attack with tripseal.Config.AskAgain, because the server then asks again instead of rejecting. Do not use
// it for tools in gosdk.Options.Unsolicited either. Test these servers and tools with [Round.Answer], and look at the
// reasons of rejections with sealtest.Events.
func (r *Round) Attack(answers mcp.InputResponseMap) *Round {
	t := r.on.t
	t.Helper()
	if r.asks && r.Token == "" {
		t.Fatal("gosdktest: the server asks without a token: is it protected?")
	}
	for _, a := range attacks(r.sent) {
		if got := r.Answer(answers, a.change); !got.Rejected() {
			t.Errorf("gosdktest: a token %s is not rejected: %s", a.name, got.outcome())
		}
	}
	if got := r.Answer(answers, Strip); !got.Asks() {
		t.Errorf("gosdktest: answers without their token do not make the server ask again: %s", got.outcome())
	}
	genuine := r.Answer(answers)
	if genuine.Err != nil {
		t.Errorf("gosdktest: the genuine token is not accepted, so the rejections mean nothing: %s", genuine.outcome())
	}
	return genuine
}

type attack struct {
	name   string
	change Change
}

func attacks(genuine Message) []attack {
	all := []attack{
		{"with another first character", func(m *Message) { m.Token = replaceAt(m.Token, 0) }},
		{"with another character in the middle", Tamper},
		{"with another last character", func(m *Message) { m.Token = replaceAt(m.Token, len(m.Token)-1) }},
		{"without its last character", func(m *Message) { m.Token = m.Token[:len(m.Token)-1] }},
		{"with one more character", func(m *Message) { m.Token += "A" }},
		{"for another target", To(genuine.Target + "-other")},
		{"for another method", otherMethod},
	}
	if genuine.Method != "resources/read" {
		all = append(all, attack{"with another argument", otherArguments})
	}
	if genuine.User != "" {
		other := Bob
		if genuine.User == Bob {
			other = Alice
		}
		all = append(all, attack{"of another user", By(other)}, attack{"sent without a user", By("")})
	}
	return all
}

// otherMethod changes the method of a message and nothing else.
func otherMethod(m *Message) {
	if m.Method == "prompts/get" {
		m.Method = "tools/call"
	} else {
		m.Method = "prompts/get"
	}
}

// otherArguments adds an argument to a message.
func otherArguments(m *Message) {
	const added = "gosdktest"
	if strings, ok := m.Arguments.(map[string]string); ok && m.Method == "prompts/get" {
		strings = maps.Clone(strings)
		if strings == nil {
			strings = make(map[string]string)
		}
		strings[added] = "other"
		m.Arguments = strings
		return
	}
	object := make(map[string]any)
	if text, err := json.Marshal(m.Arguments); err == nil {
		json.Unmarshal(text, &object)
	}
	if object == nil { // the arguments are null
		object = make(map[string]any)
	}
	object[added] = "other"
	m.Arguments = object
}

// replaceAt returns the text with another character at index i.
func replaceAt(text string, i int) string {
	if i < 0 || i >= len(text) {
		return text + "A"
	}
	other := "A"
	if text[i] == 'A' {
		other = "B"
	}
	return text[:i] + other + text[i+1:]
}

// outcome describes what came back, for the message of a failing test.
func (r *Round) outcome() string {
	switch {
	case r.Err != nil:
		return "the call failed with: " + r.Err.Error()
	case r.asks:
		return "the server asks"
	}
	return "the call is done: " + r.Text()
}
