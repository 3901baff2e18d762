package jsonvalue

import (
	"strings"
	"unicode/utf8"
)

// maxExponentDigits is what the native digest takes too.
const maxExponentDigits = 18

// parser reads a text as RFC 8259 has it.
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

func (p *parser) word(w string) bool {
	if strings.HasPrefix(p.text[p.at:], w) {
		p.at += len(w)
		return true
	}
	return false
}

// node reads a value into the document.
func (p *parser) node(name span) bool {
	index := len(p.doc.nodes)
	p.doc.nodes = append(p.doc.nodes, node{name: name}) // its place is before what is in it
	n := node{name: name}
	ok := p.value(&n)
	p.doc.nodes[index] = n
	return ok
}

// value reads a value.
func (p *parser) value(n *node) (ok bool) {
	if p.at >= len(p.text) {
		return false
	}
	start := p.at
	switch c := p.text[p.at]; {
	case c == '{':
		n.kind = Object
		return p.items(n, '}')
	case c == '[':
		n.kind = Array
		return p.items(n, ']')
	case c == '"':
		n.kind = String
		n.text, ok = p.str()
		return ok
	case c == '-' || '0' <= c && c <= '9':
		n.kind = Number
		ok = p.number() || p.constants && p.word("-Infinity")
	case p.word("null"):
		n.kind, ok = Null, true
	case p.word("true"):
		n.kind, ok = True, true
	case p.word("false"):
		n.kind, ok = False, true
	case p.constants && (p.word("NaN") || p.word("Infinity")):
		n.kind, ok = Number, true
	}
	n.text = span{int32(start), int32(p.at)}
	return ok
}

// items reads the elements of an array or the members of an object.
func (p *parser) items(n *node, end byte) bool {
	if p.level++; p.level > MaxLevels {
		return false
	}
	if p.doc != nil {
		p.doc.levels = max(p.doc.levels, p.level)
	}
	p.at++
	p.space()
	last := int32(0)
	for empty := p.take(end); !empty; {
		p.space()
		var name span
		if n.kind == Object {
			var ok bool
			if name, ok = p.name(); !ok {
				return false
			}
		}
		if !p.item(n, name, &last) {
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
	p.level--
	return true
}

// name reads a member's name and what stands before its value.
func (p *parser) name() (span, bool) {
	name, ok := p.str()
	p.space()
	ok = ok && p.take(':')
	p.space()
	return name, ok
}

// item reads a value behind the last one in n.
func (p *parser) item(n *node, name span, last *int32) bool {
	if p.doc == nil {
		return p.value(new(node))
	}
	index := int32(len(p.doc.nodes))
	if !p.node(name) {
		return false
	}
	if *last == 0 {
		n.first = index
	} else {
		p.doc.nodes[*last].next = index
	}
	*last = index
	return true
}

// number reads a number.
func (p *parser) number() bool {
	start := p.at
	p.take('-')
	if !p.take('0') && p.digits() == 0 {
		p.at = start
		return false
	}
	if p.take('.') && p.digits() == 0 {
		return false
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		n := p.digits()
		return 0 < n && n <= maxExponentDigits
	}
	return true
}

func (p *parser) digits() int {
	start := p.at
	for p.at < len(p.text) && '0' <= p.text[p.at] && p.text[p.at] <= '9' {
		p.at++
	}
	return p.at - start
}

// str reads a string. Where nobody keeps the values, what an escaped one
// unescapes to is lost.
func (p *parser) str() (span, bool) {
	if !p.take('"') {
		return span{}, false
	}
	start, ascii := p.at, true
	for {
		p.at = skipPlain(p.text, p.at)
		if p.at == len(p.text) {
			return span{}, false
		}
		switch c := p.text[p.at]; {
		case c == '"':
			s := span{int32(start), int32(p.at)}
			p.at++
			return s, ascii || utf8.ValidString(p.text[s.start:s.end])
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return span{}, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
		p.at++
	}
}

// escaped reads the rest of a string whose first escape comes next.
func (p *parser) escaped(start int) (span, bool) {
	if !utf8.ValidString(p.text[start:p.at]) {
		return span{}, false
	}
	var buf []byte
	if p.doc != nil {
		buf = p.doc.buf
	}
	s := span{start: int32(len(buf))}
	buf = append(buf, p.text[start:p.at]...)
	buf, ok := p.unescape(buf)
	if p.doc != nil {
		p.doc.buf = buf
	}
	s.end = -int32(len(buf)) // at least one: an escape stands for something
	return s, ok
}

// unescape appends the rest of a string.
func (p *parser) unescape(buf []byte) ([]byte, bool) {
	for p.at < len(p.text) {
		plain := p.at
		for p.at < len(p.text) && p.text[p.at] >= ' ' && p.text[p.at] != '"' && p.text[p.at] != '\\' {
			p.at++
		}
		if !utf8.ValidString(p.text[plain:p.at]) {
			return buf, false
		}
		buf = append(buf, p.text[plain:p.at]...)
		if p.take('"') {
			return buf, true
		}
		if !p.take('\\') || p.at >= len(p.text) {
			return buf, false
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
			r, ok := p.codePoint()
			if !ok {
				return buf, false
			}
			buf = appendRune(buf, r)
		default:
			return buf, false
		}
	}
	return buf, false
}

// codePoint reads the digits of an escape, and those of the other half of a
// surrogate pair.
func (p *parser) codePoint() (rune, bool) {
	unit, ok := p.hex()
	if !ok || !isHigh(unit) || !strings.HasPrefix(p.text[p.at:], `\u`) {
		return unit, ok
	}
	behind := p.at
	p.at += 2
	low, ok := p.hex()
	if ok && isLow(low) {
		return 0x10000 + (unit-0xD800)<<10 + (low - 0xDC00), true
	}
	p.at = behind // a lone one; what follows is read for itself
	return unit, true
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

// appendRune appends a code point, a lone surrogate too.
func appendRune(buf []byte, r rune) []byte {
	if 0xD800 <= r && r < 0xE000 {
		return append(buf, 0xE0|byte(r>>12), 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F))
	}
	return utf8.AppendRune(buf, r)
}
