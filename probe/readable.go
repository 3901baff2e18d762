package probe

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// layer is the text of a state, or a text that the probe decoded from a state.
type layer struct {
	how   string              // how the text was decoded, such as "base64url of part 1"
	text  []byte              // the decoded text
	write func([]byte) []byte // returns the state with the given text in place of this layer's text
	jwt   bool                // true if text is the header of a JWT; such a header reveals nothing
}

// layers returns the state itself, what it decodes to, what that decodes to, and so on, at most
// four decodings deep. It goes no deeper after it has decoded 64 layers.
func layers(state string) (all []layer) {
	queue := []layer{{how: "the text", text: []byte(state), write: func(b []byte) []byte { return b }}}
	for depth := 0; depth < 4 && len(queue) > 0 && len(all) < 64; depth++ {
		var next []layer
		for _, l := range queue {
			all = append(all, l)
			next = append(next, l.inner()...)
		}
		queue = next
	}
	return append(all, queue...)
}

var encodings = []struct {
	name string
	*base64.Encoding
}{
	{"base64url", base64.RawURLEncoding}, {"base64url with padding", base64.URLEncoding},
	{"base64", base64.RawStdEncoding}, {"base64 with padding", base64.StdEncoding},
}

// inner returns what the layer, or a part of it, decodes to in one step.
func (l layer) inner() (all []layer) {
	text := string(l.text)
	add := func(how string, decoded []byte, write func([]byte) []byte) {
		if len(decoded) > 1 && len(decoded) < 1<<20 && !bytes.Equal(decoded, l.text) {
			all = append(all, layer{how: how + " of " + l.how, text: decoded, write: func(b []byte) []byte { return l.write(write(b)) }})
		}
	}
	decode := func(where, part string, write func(string) string) {
		before := len(all)
		for _, e := range encodings {
			if decoded, err := e.Strict().DecodeString(part); err == nil && len(all) == before {
				add(e.name+where, decoded, func(b []byte) []byte { return []byte(write(e.EncodeToString(b))) })
			}
		}
	}
	decode("", text, func(s string) string { return s })
	for _, separator := range []string{".", ":", "|", "~"} {
		parts := strings.Split(text, separator)
		if len(parts) < 2 || len(parts) > 8 {
			continue
		}
		for i, part := range parts {
			start := len(all)
			decode(fmt.Sprintf(", part %d", i+1), part, func(s string) string {
				again := slices.Clone(parts)
				again[i] = s
				return strings.Join(again, separator)
			})
			for j := start; j < len(all); j++ {
				all[j].jwt = i == 0 && separator == "." && isHeader(all[j].text)
			}
		}
	}
	return all
}

// joseNames has the registered names of members in the header of a signed or encrypted JWT.
var joseNames = []string{
	"alg", "enc", "zip", "jku", "jwk", "kid", "x5u", "x5c", "x5t", "x5t#S256", "typ", "cty", "crit", "epk", "apu", "apv", "iv", "tag", "p2s", "p2c",
}

// isHeader reports whether a text is the header of a JWT.
func isHeader(text []byte) bool {
	fields, ok := members(string(text))
	for _, m := range fields {
		ok = ok && slices.Contains(joseNames, unquoted(m.name))
	}
	return ok && len(fields) > 0
}

// readState looks for something readable in the states of all targets.
func readState(t *trial) {
	for _, target := range t.targets() {
		t.result.Outcomes[complete.String()]++ // the attack counts as tried, whatever it finds
		for i := range 2 {                     // two states must be readable, to exclude a coincidence
			f, err := t.mint(target)
			if err != nil {
				t.unclear(err)
				return
			}
			shows := f.shows(t.redact)
			if shows == "" {
				break
			}
			if i == 1 {
				t.recordFinding(target, shows, f.before...)
			}
		}
	}
}

// shows says what can be read in the state. It returns "" if nothing can be read. The function
// hide removes access tokens from a text.
func (f *flow) shows(hide func(string) string) string {
	known := f.words()
	for i, l := range layers(f.state) {
		if what := l.readable(known, i == 0, hide); what != "" && !l.jwt {
			return fmt.Sprintf("%s shows %s", l.how, what)
		}
	}
	return ""
}

// words returns words that the client knows from the call. If one of them is in the state, then
// the state is readable.
func (f *flow) words() (all []string) {
	add := func(text string) {
		for _, word := range strings.FieldsFunc(text, func(char rune) bool {
			return !unicode.IsLetter(char) && !unicode.IsDigit(char) && char != '_' && char != '-'
		}) {
			if len(word) >= 5 {
				all = append(all, strings.ToLower(word))
			}
		}
	}
	add(f.target.Name)
	add(f.target.arguments())
	for _, sent := range f.before {
		for key, q := range sent.reply.message.Result.InputRequests {
			add(key)
			var params struct{ Message string }
			json.Unmarshal(q.Params, &params)
			add(params.Message)
		}
	}
	return all
}

// readable says what a person can read in a layer. It returns "" if a person can read nothing.
// A text that contains one of the words in knownWords is readable. asIs is true for the state
// before any decoding: there, many letters in a row may be base64, and do not count as readable.
func (l layer) readable(knownWords []string, asIs bool, hide func(string) string) string {
	lower := bytes.ToLower(l.text)
	for _, word := range knownWords {
		if bytes.Contains(lower, []byte(word)) {
			return fmt.Sprintf("the word %q: %s", word, quoted(clip(hide(printable(string(l.text))), 80)))
		}
	}
	if asIs {
		if text := strings.TrimRight(string(l.text), "="); strings.ContainsAny(text, "{}[]&=,; ") || len(text) < 20 && isNumber(text) {
			return "text: " + quoted(clip(hide(printable(string(l.text))), 80))
		}
		return ""
	}
	if isEncoded(l.text) {
		return "" // this text looks encoded; if it is, the next layer has the decoded text
	}
	const run = 16 // this many printable characters in a row are hardly a coincidence
	length := 0
	for _, b := range l.text {
		if length++; b < ' ' || b > '~' {
			length = 0
		}
		if length >= run {
			return "text: " + quoted(clip(hide(printable(string(l.text))), 80))
		}
	}
	if _, ok := members(string(l.text)); ok {
		return "JSON: " + quoted(clip(hide(string(l.text)), 80))
	}
	return ""
}

// isEncoded reports whether a text looks like base64 or hex.
func isEncoded(text []byte) bool {
	for _, b := range bytes.TrimRight(text, "=") {
		if !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("+/-_", b) >= 0) {
			return false
		}
	}
	return len(text) >= 16
}

func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// edit is a state in which one readable value was changed.
type edit struct {
	what string // which value was changed, and how
	text string // the changed state
}

// edits returns at most 24 copies of the state, each with one readable value changed.
func edits(state string) (all []edit) {
	for _, l := range layers(state) {
		text := string(l.text)
		if l.jwt {
			all = append(all, noSignature(state)...)
			continue
		}
		if fields, ok := members(text); ok {
			for i, m := range fields {
				for _, other := range otherValues(m.value) {
					again := slices.Clone(fields)
					again[i].value = other
					all = append(all, edit{fmt.Sprintf("%s: the member %s changed to %s", l.how, m.name, clip(other, 24)), string(l.write([]byte(object(again))))})
				}
			}
		} else if pairs := strings.Split(text, "&"); strings.Contains(text, "=") && utf8.ValidString(text) && len(pairs) < 16 && len(l.text) < 4096 && printable(text) == text {
			for i, pair := range pairs {
				name, value, ok := strings.Cut(pair, "=")
				if !ok || name == "" || value == "" || strings.Trim(value, "=") == "" {
					continue
				}
				again := slices.Clone(pairs)
				again[i] = name + "=" + otherText(value)
				all = append(all, edit{fmt.Sprintf("%s: %s changed", l.how, clip(name, 24)), string(l.write([]byte(strings.Join(again, "&"))))})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b edit) int { return strings.Compare(a.what, b.what) })
	return spread(all, 24)
}

// forged returns a state that the server did not issue, but that is very similar to the given
// state. It differs in a readable value if there is one, and otherwise in one character.
func forged(state string) string {
	if all := edits(state); len(all) > 0 {
		return all[0].text
	}
	return changedAt(state, len(state)/2)
}

// noSignature returns copies of a state that is a JWT. They have the same payload and no
// signature. Their header says that no signature is needed.
func noSignature(state string) (all []edit) {
	parts := strings.Split(state, ".")
	if len(parts) < 3 {
		return nil
	}
	for _, alg := range []string{"none", "None", "NONE"} {
		header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"` + alg + `","typ":"JWT"}`))
		all = append(all, edit{"a JWT with the algorithm " + alg, header + "." + parts[1] + "."})
		header = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"` + alg + `"}`))
		all = append(all, edit{"a JWT with the algorithm " + alg + " alone", header + "." + parts[1] + "."})
	}
	return all
}

// otherValues returns values of the same JSON type that differ from the given one.
func otherValues(value string) []string {
	var decoded any
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.UseNumber()
	if decoder.Decode(&decoded) != nil {
		return nil
	}
	switch v := decoded.(type) {
	case bool:
		return []string{fmt.Sprint(!v)}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return []string{fmt.Sprint(n + 1)}
		}
		return []string{"1.5"}
	case string:
		return []string{quoted(otherText(v))}
	case map[string]any:
		if fields, ok := members(value); ok {
			for i, m := range fields {
				if others := otherValues(m.value); len(others) > 0 {
					fields[i].value = others[0]
					return []string{object(fields)}
				}
			}
		}
	}
	return nil
}

// otherText returns another text of similar length and look.
func otherText(text string) string {
	if text == "" {
		return "x"
	}
	last := text[len(text)-1]
	switch {
	case last >= '0' && last <= '8':
		last++
	case last == '9':
		last = '0'
	case last == 'x':
		last = 'y'
	case last < 0x80:
		last = 'x'
	default:
		return text + "x"
	}
	return text[:len(text)-1] + string(last)
}
