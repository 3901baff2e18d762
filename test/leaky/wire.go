package leaky

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// value is one JSON value. It keeps what encoding/json loses when it decodes: duplicate
// members, the text of numbers, and the text as it arrived.
type value struct {
	kind    byte   // '{', '[', 's' for a string, '0' for a number, 'b' for a bool, 'n' for null; 0 if absent
	text    string // the text of a string, a number or a bool
	raw     string
	items   []value
	members []member
}

type member struct {
	name string
	value
}

// first returns the first member of this name, and the method get returns the last one. The
// results differ only on a server that accepts duplicate members.
func (v value) first(name string) value {
	for _, m := range v.members {
		if m.name == name {
			return m.value
		}
	}
	return value{}
}

func (v value) get(name string) value {
	for _, m := range slices.Backward(v.members) {
		if m.name == name {
			return m.value
		}
	}
	return value{}
}

// misspelt returns a member whose name differs from the given name only in upper and lower case.
func (v value) misspelt(name string) value {
	for _, m := range slices.Backward(v.members) {
		if m.name != name && strings.EqualFold(m.name, name) {
			return m.value
		}
	}
	return value{}
}

func (v value) has(name string) bool { return v.get(name).kind != 0 }

func (v value) isString() bool { return v.kind == 's' }

// parse reads exactly one JSON value. The caller must limit how deep the value is nested.
func parse(data string) (value, error) {
	if !json.Valid([]byte(data)) {
		return value{}, errors.New("not JSON")
	}
	dec := json.NewDecoder(strings.NewReader(data))
	dec.UseNumber()
	return read(dec, data), nil
}

// read reads a value that is known to be valid.
func read(dec *json.Decoder, data string) (v value) {
	start := dec.InputOffset()
	token, _ := dec.Token()
	switch token := token.(type) {
	case nil:
		v.kind = 'n'
	case bool:
		v.kind, v.text = 'b', strconv.FormatBool(token)
	case json.Number:
		v.kind, v.text = '0', token.String()
	case string:
		v.kind, v.text = 's', token
	case json.Delim:
		v.kind = byte(token)
		for dec.More() {
			if v.kind == '[' {
				v.items = append(v.items, read(dec, data))
				continue
			}
			name, _ := dec.Token()
			v.members = append(v.members, member{name.(string), read(dec, data)})
		}
		dec.Token()
	}
	v.raw = strings.TrimLeft(data[start:dec.InputOffset()], " \t\r\n:,")
	return v
}

// repeats looks for members that occur twice in an object inside v. sameName is true if two
// members have the same name. misspelt is true if the names of two members differ only in upper
// and lower case.
func (v value) repeats() (sameName, misspelt bool) {
	seen, folded := map[string]bool{}, map[string]bool{}
	for _, m := range v.members {
		sameName = sameName || seen[m.name]
		misspelt = misspelt || folded[fold(m.name)] && !seen[m.name]
		seen[m.name], folded[fold(m.name)] = true, true
		s, d := m.repeats()
		sameName, misspelt = sameName || s, misspelt || d
	}
	for _, item := range v.items {
		s, d := item.repeats()
		sameName, misspelt = sameName || s, misspelt || d
	}
	return sameName, misspelt
}

// fold returns the same text for names that differ only in case.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// replaced reports whether a text inside v has U+FFFD, which stands for invalid UTF-8 after decoding.
func (v value) replaced() bool {
	return strings.ContainsRune(v.text, '\uFFFD') || slices.ContainsFunc(v.items, value.replaced) ||
		slices.ContainsFunc(v.members, func(m member) bool { return value{text: m.name}.replaced() || m.replaced() })
}

func (v value) hasNull() bool {
	return v.kind == 'n' || slices.ContainsFunc(v.items, value.hasNull) ||
		slices.ContainsFunc(v.members, func(m member) bool { return m.hasNull() })
}

// canonical returns a text for v that does not depend on spaces, escapes or the order of members.
// It converts the text of each JSON number with convertNumber. If several members have the same
// name, the returned text has only the first.
func (v value) canonical(convertNumber func(string) string) string {
	text, _ := json.Marshal(v.plain(convertNumber))
	return string(text)
}

func exact(number string) string { return number }

func (v value) plain(convertNumber func(string) string) any {
	switch v.kind {
	case 's':
		return v.text
	case '0':
		return json.Number(convertNumber(v.text))
	case 'b':
		return v.text == "true"
	case '[':
		all := []any{}
		for _, item := range v.items {
			all = append(all, item.plain(convertNumber))
		}
		return all
	case '{':
		all := map[string]any{}
		for _, m := range slices.Backward(v.members) {
			all[m.name] = m.plain(convertNumber)
		}
		return all
	}
	return nil
}

// depth returns how deep the arrays and objects of a text are nested. The text need not be valid
// JSON.
func depth(data []byte) (deepest int) {
	level, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			level++
			deepest = max(deepest, level)
		case !quoted && (c == '}' || c == ']'):
			level--
		}
	}
	return deepest
}
