package jsonvalue

import "github.com/mcpseal/mcpseal/internal/jsonorder"

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

// kindOf returns the kind of a value that begins with c.
func kindOf(c byte) Kind {
	switch c {
	case 'n':
		return Null
	case 'f':
		return False
	case 't':
		return True
	case '"':
		return String
	case '[':
		return Array
	case '{':
		return Object
	}
	return Number
}

// Members is [jsonorder.Members] that also tells the kind of each value.
type Members struct{ jsonorder.Members }

// Member is one member of an object.
type Member struct {
	Kind Kind
	jsonorder.Member
}

// ReadMembers begins to read the members of text.
func ReadMembers(text string) Members { return Members{jsonorder.ReadMembers(text)} }

// Next returns the next member. It returns false at the end, and where the text
// cannot be read; Whole tells which.
func (m *Members) Next() (v Member, ok bool) {
	if v.Member, ok = m.Members.Next(); ok {
		v.Kind = kindOf(v.Raw[0])
	}
	return v, ok
}
