package strictjson

import "unicode/utf8"

// Members reads the members of a JSON object one by one, in the order of the text. It keeps none of them in memory. It
// accepts names that occur twice: the caller decides about them.
type Members struct {
	scanner[string]
	// Object is called with each member whose value is an object, unless Object is nil. It may read the members of
	// that object. So nobody has to read the text a second time.
	Object func(name string, inner *Members)

	level int // how many objects are around this one
	begun bool
	ended bool
	whole bool
}

// Member is one member of a JSON object.
type Member struct {
	Name string
	Text string // the value: a string with its escapes resolved, or a number as it is written
	Raw  string // the value as it is written
	At   int    // where the name begins in the text: the position of its opening quotation mark
	From int    // where the value begins in the text
}

// IsString reports whether the value is a string. It returns false for the zero Member, which has no value.
func (m *Member) IsString() bool { return m.Raw != "" && m.Raw[0] == '"' }

// IsNumber reports whether the value is a number. It returns false for the zero Member, which has no value.
func (m *Member) IsNumber() bool { return m.Raw != "" && (m.Raw[0] == '-' || isDigit(m.Raw[0])) }

// ReadMembers returns a Members that reads one JSON object. The argument is the text of that object.
func ReadMembers(text string) Members {
	m := Members{scanner: scanner[string]{text: text}}
	if !utf8.ValidString(text) {
		m.fail("text that is not UTF-8")
	}
	return m
}

// Next returns the next member. It returns false at the end of the object, and also if the text cannot be read;
// [Members.Whole] tells these two cases apart.
func (m *Members) Next() (v Member, ok bool) {
	if m.ended {
		return v, false
	}
	switch c := m.next(); {
	case !m.begun && c == '{':
		m.begun = true
		m.pos++
		if m.next() == '}' {
			return v, m.end()
		}
	case m.begun && c == '}':
		return v, m.end()
	case m.begun && c == ',':
		m.pos++
	default:
		return v, m.fail("no member")
	}
	m.next()
	v.At = m.pos
	var named bool
	if v.Name, named = m.unquote(); !named || !m.colon() {
		return v, false
	}
	c := m.next()
	v.From = m.pos
	switch {
	case c == '"':
		v.Text, ok = m.unquote()
	case c == '-' || isDigit(c):
		ok = m.number()
		v.Text = m.text[v.From:m.pos]
	case c == '{' && m.Object != nil:
		ok = m.readObject(v.Name)
	default:
		ok = m.skip(m.level + 1)
	}
	v.Raw = m.text[v.From:m.pos]
	return v, ok
}

// readObject calls m.Object with the object that comes next, and moves past it.
func (m *Members) readObject(name string) bool {
	if m.level+1 == MaxLevels {
		return m.fail("too many levels")
	}
	inner := Members{scanner: m.scanner, level: m.level + 1}
	m.Object(name, &inner)
	for more := true; more; {
		_, more = inner.Next()
	}
	m.scanner = inner.scanner
	return inner.Whole()
}

// unquote reads a string and returns it with its escapes resolved.
func (m *Members) unquote() (string, bool) {
	if m.next() != '"' {
		return "", m.fail("no string")
	}
	start := m.pos + 1
	f := m.str()
	if f == broken {
		return "", false
	}
	raw := m.text[start : m.pos-1]
	if f == literal {
		return raw, true
	}
	buf := make([]byte, 0, len(raw))
	for at := 0; at < len(raw); {
		if raw[at] != '\\' {
			buf = append(buf, raw[at])
			at++
			continue
		}
		var r rune
		r, at, _ = unescape(raw, at)
		buf = AppendRune(buf, r)
	}
	return string(buf), true
}

// skip moves past the next value, and reports whether it is valid. The parameter level is how many arrays and objects
// are around it.
func (m *Members) skip(level int) bool {
	open := m.next()
	if open != '[' && open != '{' {
		return m.scalar()
	}
	if level == MaxLevels {
		return m.fail("too many levels")
	}
	end := open + 2 // in ASCII, ] is two after [, and } is two after {
	m.pos++
	if m.next() == end {
		m.pos++
		return true
	}
	for {
		if open == '{' && (m.next() != '"' || m.str() == broken || !m.colon()) {
			return m.fail("no member")
		}
		if !m.skip(level + 1) {
			return false
		}
		switch m.next() {
		case ',':
			m.pos++
		case end:
			m.pos++
			return true
		default:
			return m.fail("no comma")
		}
	}
}

// end moves past the end of the object. It sets m.whole to true if nothing more follows in the text, or if this object
// is inside another one. It always returns false, which Next then returns too.
func (m *Members) end() bool {
	m.ended = true
	m.pos++
	if m.whole = m.level > 0; !m.whole {
		m.skipSpace()
		m.whole = m.pos == len(m.text)
	}
	return false
}

// Whole reports whether the text was exactly one object and was read without a problem. Call it after Next has
// returned false.
func (m *Members) Whole() bool { return m.whole && m.problem == "" }
