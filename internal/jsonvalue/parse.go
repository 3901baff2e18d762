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
	"sync"
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
	Raw  string // as it is written, in what [Members] returns

	first, next int32 // among the document's values; 0 is none
}

// Document is a text that was parsed.
type Document struct {
	values     []Value // the first is the root
	buf        []byte  // for what is written
	duplicates bool
	levels     int
}

var documents = sync.Pool{New: func() any { return new(Document) }}

// maxPooled is how many values a document has at most that is kept for reuse.
const maxPooled = 1024

// Release gives the document up for reuse. Texts taken from it stay good.
func (d *Document) Release() {
	if cap(d.values) > maxPooled || cap(d.buf) > 64*maxPooled {
		return
	}
	clear(d.values)
	clear(d.buf)
	*d = Document{values: d.values[:0], buf: d.buf[:0]}
	documents.Put(d)
}

// Root returns the document's value.
func (d *Document) Root() *Value { return &d.values[0] }

// Duplicates says whether an object has two members of one name.
func (d *Document) Duplicates() bool { return d.duplicates }

// Levels is how deep its arrays and objects nest.
func (d *Document) Levels() int { return d.levels }

// Empty says whether an array or object has nothing in it.
func (v *Value) Empty() bool { return v.first == 0 }

// Parse reads a text. What it returns points into the text, and may be given
// back with [Document.Release]. With constants it reads NaN, Infinity and
// -Infinity as numbers, as some parsers do.
func Parse(text string, constants bool) (*Document, error) {
	d := documents.Get().(*Document)
	p := parser{doc: d, text: text, constants: constants}
	p.space()
	_, ok := p.value("")
	p.space()
	if !ok || p.at != len(text) {
		d.Release()
		return nil, ErrSyntax
	}
	return d, nil
}

type parser struct {
	doc       *Document // gets every value; nil where nobody keeps them
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

// value reads a value and adds it to the document.
func (p *parser) value(name string) (v Value, ok bool) {
	if p.at >= len(p.text) {
		return v, false
	}
	start, index := p.at, 0
	if p.doc != nil {
		index = len(p.doc.values)
		p.doc.values = append(p.doc.values, Value{}) // its place is before what is in it
	}
	v.Name = name
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
	if p.doc != nil {
		p.doc.values[index] = v
	}
	return v, ok
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
	p.at++
	p.space()
	last := int32(0)
	for empty := p.take(end); !empty; {
		p.space()
		name, ok := "", true
		if v.Kind == Object {
			name, ok = p.name()
		}
		last, ok = p.item(v, name, ok, last)
		if !ok {
			return false
		}
		p.space()
		if p.take(end) {
			break
		}
		if !p.take(',') {
			return false
		}
	}
	if p.doc != nil {
		p.doc.levels = max(p.doc.levels, p.level)
		p.doc.duplicates = p.doc.duplicates || v.Kind == Object && p.doc.hasDuplicates(v.first)
	}
	p.level--
	return true
}

// name reads a member's name and what stands before its value.
func (p *parser) name() (string, bool) {
	name, ok := p.str()
	p.space()
	ok = ok && p.take(':')
	p.space()
	return name, ok
}

// item reads a value behind the last one in v, and returns its place.
func (p *parser) item(v *Value, name string, ok bool, last int32) (int32, bool) {
	if !ok {
		return 0, false
	}
	index := int32(0)
	if p.doc != nil {
		index = int32(len(p.doc.values))
	}
	if _, ok := p.value(name); !ok {
		return 0, false
	}
	if p.doc != nil {
		if last == 0 {
			v.first = index
		} else {
			p.doc.values[last].next = index
		}
	}
	return index, true
}

// fewMembers is how many are compared each with each.
const fewMembers = 12

func (d *Document) hasDuplicates(first int32) bool {
	count := 0
	for i := first; i != 0; i = d.values[i].next {
		if count++; count > fewMembers {
			break
		}
		for j := first; j != i; j = d.values[j].next {
			if d.values[j].Name == d.values[i].Name {
				return true
			}
		}
	}
	if count <= fewMembers {
		return false
	}
	seen := make(map[string]struct{}, 2*count)
	for i := first; i != 0; i = d.values[i].next {
		if _, ok := seen[d.values[i].Name]; ok {
			return true
		}
		seen[d.values[i].Name] = struct{}{}
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
	start, ascii := p.at, true
	for {
		p.at = skipPlain(p.text, p.at)
		if p.at == len(p.text) {
			return "", false
		}
		switch c := p.text[p.at]; {
		case c == '"':
			text := p.text[start:p.at]
			p.at++
			return text, ascii || utf8.ValidString(text)
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return "", false
		case c >= utf8.RuneSelf:
			ascii = false
		}
		p.at++
	}
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
