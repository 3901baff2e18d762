package probe

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// revision is the protocol revision that the probe speaks.
const revision = "2026-07-28"

// member is one member of a JSON object. The name and the value are JSON texts, so that an
// attack can write them in any spelling.
type member struct{ name, value string }

// message is one request to the server. It holds JSON text and not Go values, because some
// attacks differ only in spelling.
type message struct {
	method string
	params []member
	as     user
	header map[string]string   // HTTP headers that replace the usual ones; "" leaves the header out
	body   func(id int) string // if it is not nil, it returns the whole body

	userHeader string // the header for the user's name; if "", the request carries an access token instead
}

// user says whose bearer token a request carries.
type user int

const (
	firstUser user = iota
	otherUser
	noUser
)

// This method returns a copy of m in which the member of the given name has the given value. If m
// has no such member, this method adds it at the end.
func (m message) with(name, value string) message {
	name = quoted(name)
	m.params = slices.Clone(m.params)
	for i := range m.params {
		if m.params[i].name == name {
			m.params[i].value = value
			return m
		}
	}
	m.params = append(m.params, member{name, value})
	return m
}

// This method returns a copy of m that lacks the member of the given name.
func (m message) without(name string) message {
	m.params = slices.DeleteFunc(slices.Clone(m.params), func(p member) bool { return p.name == quoted(name) })
	return m
}

// adding returns a copy of m with one more member, even if m already has a member of that name.
// The name and the value are both JSON texts.
func (m message) adding(name, value string) message {
	m.params = append(slices.Clone(m.params), member{name, value})
	return m
}

// value returns the value of the member of the given name, as JSON text. It returns "" if m has
// no such member.
func (m message) value(name string) string {
	for _, p := range m.params {
		if p.name == quoted(name) {
			return p.value
		}
	}
	return ""
}

// saying returns a copy of m with another value for an HTTP header. If the value is "", the copy
// is sent without the header.
func (m message) saying(header, value string) message {
	all := map[string]string{header: value}
	for name, value := range m.header {
		if _, ok := all[name]; !ok {
			all[name] = value
		}
	}
	m.header = all
	return m
}

// sentBy returns a copy of m that is sent with the bearer token of the given user.
func (m message) sentBy(who user) message { m.as = who; return m }

func (m message) text(id int) string {
	if m.body != nil {
		return m.body(id)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%s,"params":%s}`, id, quoted(m.method), object(m.params))
}

// headers returns the HTTP headers of m, without the bearer token.
func (m message) headers() http.Header {
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json, text/event-stream")
	header.Set("Mcp-Protocol-Version", revision)
	header.Set("Mcp-Method", m.method)
	for _, name := range []string{"name", "uri"} {
		var target string
		if json.Unmarshal([]byte(m.value(name)), &target) == nil && target != "" {
			header.Set("Mcp-Name", headerText(target))
		}
	}
	for name, value := range m.header {
		header.Del(name)
		if value != "" {
			header.Set(name, value)
		}
	}
	return header
}

// headerText returns a text in the form that the protocol requires in a header: unchanged if it
// is printable ASCII, and otherwise in base64.
func headerText(text string) string {
	for _, char := range text {
		if char < ' ' || char > '~' {
			return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
		}
	}
	return text
}

// object returns the JSON text of an object with these members, in this order.
func object(members []member) string {
	var text strings.Builder
	text.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(m.name + ":" + m.value)
	}
	text.WriteByte('}')
	return text.String()
}

// members returns the members of a JSON object in their order. ok is false if the text is not
// a JSON object.
func members(text string) (all []member, ok bool) {
	decoder := json.NewDecoder(strings.NewReader(text))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, false
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return nil, false
		}
		all = append(all, member{quoted(name.(string)), string(value)})
	}
	_, err := decoder.Token()
	return all, err == nil
}

// quoted returns text as a JSON string.
func quoted(text string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.Encode(text) // a string can always be encoded
	return strings.TrimSuffix(out.String(), "\n")
}

// meta returns the _meta of a request from a client with these capabilities.
func meta(capabilities string) string {
	return `{"io.modelcontextprotocol/protocolVersion":"` + revision + `",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"tripseal-probe","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}`
}

const (
	canEverything = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`
	canNothing    = `{}`
)
