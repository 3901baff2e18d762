package jsonvalue

// Members reads the members of a text that is an object, one by one, and keeps
// none of them.
type Members struct {
	p     parser
	begun bool
	whole bool
}

// Member is one of them.
type Member struct {
	Kind Kind
	Name string
	Text string // a string's text, a number's literal
	Raw  string // the value as it is written
}

// ReadMembers begins.
func ReadMembers(text string) Members { return Members{p: parser{text: text}} }

// Next returns the next member. When there is none, or none that can be read, it
// returns false, and [Members.Whole] tells which.
func (m *Members) Next() (v Member, ok bool) {
	p := &m.p
	p.space()
	if !m.begun {
		m.begun, p.level = true, 1
		if !p.take('{') {
			return v, false
		}
		p.space()
		if p.take('}') {
			return v, m.end()
		}
	} else if p.take('}') {
		return v, m.end()
	} else if !p.take(',') {
		return v, false
	}
	p.space()
	start := p.at
	name, ok := p.str()
	if !ok {
		return v, false
	}
	v.Name = p.textOf(name, start)
	p.space()
	if !p.take(':') {
		return v, false
	}
	p.space()
	var n node
	start = p.at
	if !p.value(&n) {
		return v, false
	}
	v.Kind, v.Raw = n.kind, p.text[start:p.at]
	switch v.Kind {
	case String:
		v.Text = p.textOf(n.text, start)
	case Number:
		v.Text = v.Raw
	}
	return v, true
}

// textOf returns what a string that was read, from start on, stands for. One
// with escapes is read again: nobody kept it.
func (p *parser) textOf(s span, start int) string {
	if s.end >= 0 {
		return p.text[s.start:s.end]
	}
	again := parser{text: p.text[start:p.at], at: 1}
	text, _ := again.unescape(make([]byte, 0, p.at-start))
	return string(text)
}

// end says that there is no more, and finds out whether nothing else follows.
func (m *Members) end() bool {
	m.p.space()
	m.whole = m.p.at == len(m.p.text)
	return false
}

// Whole says whether the text was an object and nothing else.
func (m *Members) Whole() bool { return m.whole }
