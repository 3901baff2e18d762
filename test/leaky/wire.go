package leaky

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
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
	return read(dec, data)
}

func read(dec *json.Decoder, data string) (value, error) {
	start := dec.InputOffset()
	token, err := dec.Token()
	if err != nil {
		return value{}, err
	}
	var v value
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
			name := ""
			if v.kind == '{' {
				key, err := dec.Token()
				if err != nil {
					return value{}, err
				}
				name, _ = key.(string)
			}
			item, err := read(dec, data)
			if err != nil {
				return value{}, err
			}
			if v.kind == '{' {
				v.members = append(v.members, member{name, item})
			} else {
				v.items = append(v.items, item)
			}
		}
		if _, err := dec.Token(); err != nil {
			return value{}, err
		}
	}
	v.raw = strings.TrimLeft(data[start:dec.InputOffset()], " \t\r\n:,")
	return v, nil
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

// fold returns the same text for all names that strings.EqualFold treats as equal.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, name)
}

func (v value) hasNull() bool {
	return v.kind == 'n' || slices.ContainsFunc(v.items, value.hasNull) ||
		slices.ContainsFunc(v.members, func(m member) bool { return m.hasNull() })
}

// canonical returns a text for v that does not depend on spaces, escapes or the order of members.
// It converts the text of each JSON number with convertNumber. If several members have the same
// name, the returned text has only the first.
func (v value) canonical(convertNumber func(string) string) string {
	var b strings.Builder
	v.write(&b, convertNumber)
	return b.String()
}

func exact(number string) string { return number }

func (v value) write(b *strings.Builder, convertNumber func(string) string) {
	switch v.kind {
	case 's':
		b.WriteString(strconv.Quote(v.text))
	case '0':
		b.WriteString(convertNumber(v.text))
	case 'b':
		b.WriteString(v.text)
	case 'n':
		b.WriteString("null")
	case '[':
		b.WriteByte('[')
		for _, item := range v.items {
			item.write(b, convertNumber)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case '{':
		sorted := slices.Clone(v.members)
		slices.SortStableFunc(sorted, func(x, y member) int { return strings.Compare(x.name, y.name) })
		b.WriteByte('{')
		for i, m := range sorted {
			if i > 0 && m.name == sorted[i-1].name {
				continue
			}
			b.WriteString(strconv.Quote(m.name) + ":")
			m.write(b, convertNumber)
			b.WriteByte(',')
		}
		b.WriteByte('}')
	}
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

// badText reports whether a JSON text has invalid UTF-8, or half of a surrogate pair.
func badText(data string) bool {
	if !utf8.ValidString(data) {
		return true
	}
	for i := 0; i+1 < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		i++
		switch unit := escaped(data, i); {
		case unit >= 0xdc00 && unit <= 0xdfff:
			return true
		case unit >= 0xd800 && unit <= 0xdbff:
			if low := escaped(data, i+6); low < 0xdc00 || low > 0xdfff || data[i+5] != '\\' {
				return true
			}
			i += 6
		}
	}
	return false
}

// escaped returns the value of the \u escape whose "u" is at index i, or 0 if there is none.
func escaped(data string, i int) uint64 {
	if i+5 > len(data) || data[i] != 'u' {
		return 0
	}
	unit, _ := strconv.ParseUint(data[i+1:i+5], 16, 16)
	return unit
}
