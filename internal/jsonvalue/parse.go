// Package jsonvalue reads JSON texts of other MCP implementations into values
// and writes values the way those implementations do, to the byte.
//
// Strings are held in UTF-8, with a lone surrogate as the three bytes that
// UTF-8 would give it, so that every JSON string has exactly one form here and
// compares by code points.
package jsonvalue

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// MaxLevels is how deep arrays and objects may nest.
const MaxLevels = 128

// ErrSyntax is the only error of [Parse].
var ErrSyntax = errors.New("not a JSON text")

// Kind is what a value is.
type Kind uint8

const (
	Null Kind = iota
	False
	True
	Number
	String
	Array
	Object
)

// Value is one value of a document.
type Value struct {
	Kind Kind
	Name string // of a member
	Text string // a string's text, a number's literal
	Raw  string // the value as it is written

	first, next int32 // among the document's values; 0 is none
}

// Document is a text that was parsed.
type Document struct {
	values     []Value // the first is the root
	duplicates bool
	levels     int
}

// Root returns the document's value.
func (d *Document) Root() *Value { return &d.values[0] }

// Duplicates says whether an object has two members of one name.
func (d *Document) Duplicates() bool { return d.duplicates }

// Levels is how deep its arrays and objects nest.
func (d *Document) Levels() int { return d.levels }

// Member returns the last member of v with this name, or nil.
func (d *Document) Member(v *Value, name string) (found *Value) {
	if v.Kind != Object {
		return nil
	}
	for i := v.first; i != 0; i = d.values[i].next {
		if d.values[i].Name == name {
			found = &d.values[i]
		}
	}
	return found
}

// Empty says whether an array or object has nothing in it.
func (v *Value) Empty() bool { return v.first == 0 }

// Parse reads a text. What it returns points into the text. With constants it
// reads NaN, Infinity and -Infinity as numbers, as some parsers do.
func Parse(text string, constants bool) (*Document, error) {
	d := &Document{values: make([]Value, 0, 4+len(text)/16)}
	p := parser{Document: d, text: text, constants: constants}
	p.space()
	if !p.value("") {
		return nil, ErrSyntax
	}
	p.space()
	if p.at != len(text) {
		return nil, ErrSyntax
	}
	return d, nil
}

type parser struct {
	*Document
	text      string
	at        int
	level     int
	constants bool
}

func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

// take reads c if it comes next.
func (p *parser) take(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

// value reads a value and adds it to the document, before what is in it.
func (p *parser) value(name string) bool {
	if p.at >= len(p.text) {
		return false
	}
	start, index := p.at, len(p.values)
	p.values = append(p.values, Value{Name: name})
	v := Value{Name: name}
	ok := false
	switch c := p.text[p.at]; {
	case c == '{':
		v.Kind = Object
		ok = p.items(&v, '}')
	case c == '[':
		v.Kind = Array
		ok = p.items(&v, ']')
	case c == '"':
		v.Kind = String
		v.Text, ok = p.str()
	case c == '-' || '0' <= c && c <= '9':
		v.Kind = Number
		ok = p.number() || p.constants && p.word("-Infinity")
		v.Text = p.text[start:p.at]
	default:
		switch {
		case p.word("null"):
			v.Kind, ok = Null, true
		case p.word("true"):
			v.Kind, ok = True, true
		case p.word("false"):
			v.Kind, ok = False, true
		case p.constants && (p.word("NaN") || p.word("Infinity")):
			v.Kind, v.Text, ok = Number, p.text[start:p.at], true
		}
	}
	v.Raw = p.text[start:p.at]
	p.values[index] = v
	return ok
}

func (p *parser) word(w string) bool {
	if strings.HasPrefix(p.text[p.at:], w) {
		p.at += len(w)
		return true
	}
	return false
}

// items reads the elements of an array or the members of an object.
func (p *parser) items(v *Value, end byte) bool {
	if p.level++; p.level > MaxLevels {
		return false
	}
	p.levels = max(p.levels, p.level)
	p.at++
	p.space()
	if p.take(end) {
		p.level--
		return true
	}
	last := int32(0)
	for {
		p.space()
		name := ""
		if v.Kind == Object {
			var ok bool
			if name, ok = p.str(); !ok {
				return false
			}
			p.space()
			if !p.take(':') {
				return false
			}
			p.space()
		}
		index := int32(len(p.values))
		if !p.value(name) {
			return false
		}
		if last == 0 {
			v.first = index
		} else {
			p.values[last].next = index
		}
		last = index
		p.space()
		if p.take(end) {
			break
		}
		if !p.take(',') {
			return false
		}
	}
	p.level--
	if v.Kind == Object && !p.duplicates {
		p.duplicates = p.hasDuplicates(v.first)
	}
	return true
}

// fewMembers is how many are compared each with each.
const fewMembers = 12

func (p *parser) hasDuplicates(first int32) bool {
	count := 0
	for i := first; i != 0; i = p.values[i].next {
		if count++; count > fewMembers {
			break
		}
		for j := first; j != i; j = p.values[j].next {
			if p.values[j].Name == p.values[i].Name {
				return true
			}
		}
	}
	if count <= fewMembers {
		return false
	}
	seen := make(map[string]struct{}, 2*count)
	for i := first; i != 0; i = p.values[i].next {
		if _, ok := seen[p.values[i].Name]; ok {
			return true
		}
		seen[p.values[i].Name] = struct{}{}
	}
	return false
}

// number reads a number as RFC 8259 has it.
func (p *parser) number() bool {
	start := p.at
	p.take('-')
	if !p.take('0') && !p.digits() {
		p.at = start
		return false
	}
	if p.take('.') && !p.digits() {
		return false
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		return p.digits()
	}
	return true
}

func (p *parser) digits() bool {
	start := p.at
	for p.at < len(p.text) && '0' <= p.text[p.at] && p.text[p.at] <= '9' {
		p.at++
	}
	return p.at > start
}

// str reads a string.
func (p *parser) str() (string, bool) {
	if !p.take('"') {
		return "", false
	}
	start := p.at
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '"':
			text := p.text[start:p.at]
			p.at++
			return text, utf8.ValidString(text)
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return "", false
		}
		p.at++
	}
	return "", false
}

// escaped reads the rest of a string whose first escape comes next.
func (p *parser) escaped(start int) (string, bool) {
	if !utf8.ValidString(p.text[start:p.at]) {
		return "", false
	}
	buf := append(make([]byte, 0, 2*(p.at-start)+32), p.text[start:p.at]...)
	for p.at < len(p.text) {
		plain := p.at
		for p.at < len(p.text) && p.text[p.at] >= ' ' && p.text[p.at] != '"' && p.text[p.at] != '\\' {
			p.at++
		}
		if !utf8.ValidString(p.text[plain:p.at]) {
			return "", false
		}
		buf = append(buf, p.text[plain:p.at]...)
		if p.take('"') {
			return string(buf), true
		}
		if !p.take('\\') || p.at >= len(p.text) {
			return "", false
		}
		c := p.text[p.at]
		p.at++
		switch c {
		case '"', '\\', '/':
			buf = append(buf, c)
		case 'b':
			buf = append(buf, '\b')
		case 'f':
			buf = append(buf, '\f')
		case 'n':
			buf = append(buf, '\n')
		case 'r':
			buf = append(buf, '\r')
		case 't':
			buf = append(buf, '\t')
		case 'u':
			unit, ok := p.hex()
			if !ok {
				return "", false
			}
			if isHigh(unit) && strings.HasPrefix(p.text[p.at:], `\u`) {
				behind := p.at
				p.at += 2
				low, ok := p.hex()
				if !ok {
					return "", false
				}
				if isLow(low) {
					buf = utf8.AppendRune(buf, 0x10000+(unit-0xD800)<<10+(low-0xDC00))
					continue
				}
				p.at = behind
			}
			buf = appendUnit(buf, unit)
		default:
			return "", false
		}
	}
	return "", false
}

// hex reads four hexadecimal digits.
func (p *parser) hex() (unit rune, ok bool) {
	if len(p.text)-p.at < 4 {
		return 0, false
	}
	for range 4 {
		c := p.text[p.at]
		p.at++
		switch {
		case '0' <= c && c <= '9':
			unit = unit<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			unit = unit<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			unit = unit<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return unit, true
}

func isHigh(unit rune) bool { return 0xD800 <= unit && unit < 0xDC00 }
func isLow(unit rune) bool  { return 0xDC00 <= unit && unit < 0xE000 }

// appendUnit appends a code unit, a lone surrogate too.
func appendUnit(buf []byte, unit rune) []byte {
	if 0xD800 <= unit && unit < 0xE000 {
		return append(buf, 0xE0|byte(unit>>12), 0x80|byte(unit>>6&0x3F), 0x80|byte(unit&0x3F))
	}
	return utf8.AppendRune(buf, unit)
}
