package jsonvalue

// Members reads the members of a text that is an object, one by one, and keeps
// none of them.
type Members struct {
	p     parser
	begun bool
	whole bool
}

// ReadMembers begins.
func ReadMembers(text string) Members { return Members{p: parser{text: text}} }

// Next returns the next member. When there is none, or none that can be read, it
// returns false, and [Members.Whole] tells which.
func (m *Members) Next() (v Value, ok bool) {
	p := &m.p
	p.space()
	if !m.begun {
		m.begun, p.level = true, 1
		if !p.take('{') {
			return Value{}, false
		}
		p.space()
		if p.take('}') {
			return m.end()
		}
	} else if p.take('}') {
		return m.end()
	} else if !p.take(',') {
		return Value{}, false
	}
	p.space()
	name, ok := p.name()
	if !ok {
		return Value{}, false
	}
	start := p.at
	if v, ok = p.value(name); ok {
		v.Raw = p.text[start:p.at]
	}
	return v, ok
}

func (m *Members) end() (Value, bool) {
	m.p.space()
	m.whole = m.p.at == len(m.p.text)
	return Value{}, false
}

// Whole says whether the text was an object and nothing else.
func (m *Members) Whole() bool { return m.whole }
