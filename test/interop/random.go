package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// random makes random texts and JSON values, and changes tokens at random.
type random struct{ *rand.Rand }

func (r *random) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func (r *random) oneOf(texts ...string) string { return texts[r.IntN(len(texts))] }

// text returns a random text of valid UTF-8, which has at most the given number of
// characters.
func (r *random) text(most int) string {
	var b strings.Builder
	for range r.IntN(most + 1) {
		switch r.IntN(8) {
		case 0:
			b.WriteByte(byte(r.IntN(0x20)))
		case 1:
			b.WriteString(r.oneOf(`"`, `\`, "/", "<", ">", "&", "'", "\x7f", "\u2028", "\ufeff", "\uffff"))
		case 2:
			b.WriteRune(rune(0x80 + r.IntN(0xD000-0x80)))
		case 3:
			b.WriteRune(rune(0x10000 + r.IntN(0x100000)))
		default:
			b.WriteByte(byte(' ' + r.IntN(0x5F)))
		}
	}
	return b.String()
}

// name returns a random text that is never empty.
func (r *random) name() string { return "n" + r.text(20) }

// number returns the text of a random JSON number. The same number can be written in several
// ways: 1, 1.0 or 1e0, for example.
func (r *random) number() string {
	switch r.IntN(7) {
	case 0:
		return r.oneOf("0", "-0", "0.0", "-0.0", "1.0", "1e0", "1E2", "1e16", "1e15", "1e21", "1e22", "1e-5", "1e-7", "0.0001", "5e-324",
			"1.7976931348623157e308", "9007199254740993", "9007199254740993.0", "18446744073709551615", "18446744073709551616",
			"-9223372036854775808", "-9223372036854775809", "123456789012345678901234567890", "1e-400", "0.1", "0.30000000000000004")
	case 1:
		return strconv.Itoa(r.IntN(2000) - 1000)
	case 2:
		return strconv.FormatInt(int64(r.Uint64()), 10)
	case 3:
		return fmt.Sprintf("%d%019d", 1+r.IntN(9), r.Uint64N(1e19))
	case 4:
		return strconv.FormatFloat(r.NormFloat64()*math.Pow(10, float64(r.IntN(40)-20)), 'g', -1, 64)
	case 5:
		return fmt.Sprintf("%d.%0*de%d", r.IntN(1000), 1+r.IntN(25), r.IntN(1e9), r.IntN(500)-300+r.IntN(2)*100)
	}
	for {
		f := math.Float64frombits(r.Uint64())
		if !math.IsNaN(f) && !math.IsInf(f, 0) {
			return strconv.FormatFloat(f, 'e', -1, 64)
		}
	}
}

// value is a JSON value, independent of how it is written. random.spell returns it as JSON text.
type value struct {
	scalar  string   // the JSON text, if the value is null, true, false or a number
	text    *string  // the string, if the value is a string
	items   []value  // the elements of an array, or the values of an object's members
	names   []string // the names of an object's members, whose values are in the field items
	isArray bool
}

func (r *random) value(depth int) value {
	kind := r.IntN(8)
	if depth == 0 {
		kind = r.IntN(4)
	}
	switch kind {
	case 0:
		return value{scalar: r.oneOf("null", "true", "false")}
	case 1, 2:
		return value{scalar: r.number()}
	case 3, 4:
		text := r.text(12)
		return value{text: &text}
	case 5:
		v := value{isArray: true}
		for range r.IntN(4) {
			v.items = append(v.items, r.value(depth-1))
		}
		return v
	}
	return r.object(depth)
}

func (r *random) object(depth int) value {
	v := value{}
	seen := map[string]bool{}
	for range r.IntN(6) {
		name := r.text(5)
		alike := strings.ToLower(strings.ToUpper(name)) // names that are alike are refused
		if strings.IndexAny(name, "+-.0123456789inIN") == 0 {
			alike = "number" // two of these may be the same number
		}
		if seen[alike] {
			continue
		}
		seen[alike] = true
		v.names = append(v.names, name)
		v.items = append(v.items, r.value(depth-1))
	}
	return v
}

// spell returns v as JSON text. White space, the order of members and escapes are random.
func (r *random) spell(v value) string {
	space := func() string { return strings.Repeat(r.oneOf(" ", "\n", "\t", ""), r.IntN(2)) }
	switch {
	case v.scalar != "":
		return v.scalar
	case v.text != nil:
		return r.quote(*v.text)
	case v.isArray:
		var items []string
		for _, item := range v.items {
			items = append(items, space()+r.spell(item)+space())
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	var members []string
	for _, i := range r.Perm(len(v.items)) {
		members = append(members, space()+r.quote(v.names[i])+space()+":"+space()+r.spell(v.items[i]))
	}
	return "{" + strings.Join(members, ",") + space() + "}"
}

func (r *random) quote(text string) string {
	if r.IntN(2) == 0 {
		quoted, _ := json.Marshal(text)
		return string(quoted)
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || c < 0x10000 && r.IntN(3) == 0:
			fmt.Fprintf(&b, r.oneOf(`\u%04x`, `\u%04X`), c)
		case c >= 0x10000 && r.IntN(3) == 0:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xD800+(c-0x10000)>>10, 0xDC00+(c-0x10000)&0x3FF)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// change returns the token with a random change, so that it decodes to other bytes. It never
// replaces the last character of a part: some peers ignore the unused bits of that
// character, and would still accept the token.
func (r *random) change(token, prefix string) string {
	body := token[len(prefix):]
	for {
		i := r.IntN(len(body))
		switch r.IntN(4) {
		case 0:
			if r.IntN(8) == 0 {
				return prefix + body[:i]
			}
		case 1:
			if j := r.IntN(len(body) - 1); body[j] != body[j+1] && body[j] != '.' && body[j+1] != '.' && j+2 < len(body) && body[j+2] != '.' {
				return prefix + body[:j] + string(body[j+1]) + string(body[j]) + body[j+2:]
			}
		default:
			last := i+1 == len(body) || body[i+1] == '.'
			if c := alphabet[r.IntN(len(alphabet))]; c != body[i] && body[i] != '.' && !last {
				return prefix + body[:i] + string(c) + body[i+1:]
			}
		}
	}
}
