package gosdktest

import (
	"encoding/json"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Change changes a message before it is sent. You can write your own.
type Change func(*Message)

// Tamper changes one character in the middle of the token.
func Tamper(m *Message) { m.Token = replaced(m.Token, len(m.Token)/2) }

// Strip removes the token, so that the answers come without a state. A protected server
// ignores such answers and asks again.
func Strip(m *Message) { m.Token = "" }

// By sends the message as another user.
func By(user string) Change { return func(m *Message) { m.User = user } }

// To sends the message to another tool, prompt or resource, which need not exist.
func To(target string) Change { return func(m *Message) { m.Target = target } }

// With sends the message with other arguments.
func With(arguments any) Change { return func(m *Message) { m.Arguments = arguments } }

// Attack sends the round's token as attackers would: changed, cut, as another user, as
// nobody, for another target, for another method, and with another argument. It fails the
// test unless the server rejects each of these. Then it sends the answers without a
// token, and fails the test unless the server asks again. Last it sends the genuine round
// and returns it, and fails the test unless the server accepts it: a server that rejects
// everything fails as well.
//
// The handler runs twice: for the answers without a token, and for the genuine round. If
// the round was sent by nobody, its token is not sent as another user.
//
// Do not use Attack with mcpseal.Config.AskAgain, because the server then asks again in
// place of a rejection, nor for tools in gosdk.Options.Unsolicited. Test these with
// Answer, and look at the reasons with sealtest.Events.
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
		{"with another first character", func(m *Message) { m.Token = replaced(m.Token, 0) }},
		{"with another character in the middle", Tamper},
		{"with another last character", func(m *Message) { m.Token = replaced(m.Token, len(m.Token)-1) }},
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
		all = append(all, attack{"of another user", By(other)}, attack{"sent by nobody", By("")})
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

// replaced returns text with another character at i.
func replaced(text string, i int) string {
	if i < 0 || i >= len(text) {
		return text + "A"
	}
	other := "A"
	if text[i] == 'A' {
		other = "B"
	}
	return text[:i] + other + text[i+1:]
}

// outcome returns what came back, for the message of a test that fails.
func (r *Round) outcome() string {
	switch {
	case r.Err != nil:
		return "the call failed with: " + r.Err.Error()
	case r.asks:
		return "the server asks"
	}
	return "the call is done: " + r.Text()
}
