package main

import (
	"encoding/binary"
	"fmt"
	mathrand "math/rand/v2"
	"regexp"
	"strings"
	"unicode/utf16"
)

// mutator makes random changes to messages.
type mutator struct {
	*mathrand.Rand
	words map[string]string // from a placeholder, such as TOKEN, to the text that replaces it
}

func (m *mutator) filled(text string) string {
	for word, value := range m.words {
		text = strings.ReplaceAll(text, word, value)
	}
	return text
}

func (m *mutator) pick(list ...string) string { return list[m.IntN(len(list))] }

// mutated returns one of the messages with up to three random changes.
func (m *mutator) mutated(messages []string) string {
	text := m.pick(messages...)
	for range m.IntN(4) {
		text = m.change(text)
	}
	text = m.filled(text)
	if m.IntN(100) > 0 {
		return text
	}
	var out []byte // the message in UTF-16, which Python's JSON parser reads as well
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return string(out)
}

var names = regexp.MustCompile(`"[A-Za-z_]+" ?:`)

// change makes one random change. After most changes the text is still valid JSON.
func (m *mutator) change(text string) string {
	found := names.FindAllStringIndex(text, -1)
	if len(found) == 0 {
		return text
	}
	at := found[m.IntN(len(found))]
	name := strings.Trim(text[at[0]:at[1]], `": `)
	switch m.IntN(10) {
	case 0, 1, 2: // write the name in another way
		return text[:at[0]] + `"` + m.misspelt(name) + `":` + text[at[1]:]
	case 3, 4, 5: // add a member before this one
		other := m.pick("requestState", "cursor", "inputResponses", "nextCursor", "inputRequests", "resultType", "method", "params", "result", "id", name, "x")
		if m.IntN(2) == 0 {
			other = m.misspelt(other)
		}
		return text[:at[0]] + `"` + other + `":` + m.value() + "," + text[at[0]:]
	case 6: // replace one character by another text, which may be wrong there
		return strings.Replace(text, m.pick(`"`, `:`, `,`, `{`, `}`, `e`, `/`, `7`), m.pick(` "`, ` :`, "\n,", `{ `, "\t}", `\u0065`, `\/`, `7.0`, `"7"`, `é`, "\x00", `\u0000`, "\xff", "\ufeff"), 1)
	case 7: // swap two bytes, or take one out
		i := m.IntN(len(text) - 1)
		if m.IntN(2) == 0 {
			return text[:i] + text[i+1:]
		}
		return text[:i] + text[i+1:i+2] + text[i:i+1] + text[i+2:]
	case 8: // put something before, after or around the text
		return m.pick("\ufeff"+text, text+text, "["+text+"]", text+"\n", " "+text, text+"\x00", text+","+text)
	default: // write the same member twice
		comma := strings.IndexByte(text[at[1]:], ',')
		if comma < 0 {
			return text
		}
		return text[:at[0]] + text[at[0]:at[1]+comma+1] + text[at[0]:]
	}
}

func (m *mutator) value() string {
	return m.pick(`"x"`, `""`, `null`, `1`, `{}`, `[]`, `{"x":{"action":"accept"}}`, `{"requestState":"x","cursor":"x","nextCursor":"SECRET"}`, `"SECRET"`, `"TOKEN"`, `"CURSOR"`, `"tools/list"`, `"complete"`, `12345678901234567890`, `"\ud800"`)
}

// misspelt returns another spelling that some JSON parser takes for the name, or the name
// itself written with escapes.
func (m *mutator) misspelt(name string) string {
	for range 1 + m.IntN(2) {
		runes := []rune(name)
		i := m.IntN(len(runes))
		switch c := string(runes[i]); m.IntN(8) {
		case 0:
			runes[i] = []rune(strings.ToUpper(c))[0]
		case 1:
			runes[i] = []rune(strings.ToLower(c))[0]
		case 2:
			return m.pick(strings.ToUpper(name), strings.ToLower(name), strings.ReplaceAll(name, "S", "_s"), strings.ReplaceAll(name, "R", "-r"), "_"+name, name+"_")
		case 3:
			return strings.Replace(name, m.pick("s", "S", "k", "K"), m.pick("ſ", `\u017f`, `\u212a`), 1)
		case 4:
			return strings.Replace(name, m.pick("st", "i", "I"), m.pick("\ufb06", `\ufb05`, "\u0131", `\u0130`), 1)
		case 5:
			return name + m.pick(`\u0000`, `\u0000x`, " ", `\u200b`, `\ud800`, "́")
		default:
			return string(runes[:i]) + fmt.Sprintf(`\u%04x`, runes[i]) + string(runes[i+1:])
		}
		name = string(runes)
	}
	return name
}
