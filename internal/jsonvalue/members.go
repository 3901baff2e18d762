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

// kindOf returns what a value is that begins with c.
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

// Members reads the members of a text that is an object, one by one, as the text
// has them, and keeps none of them.
type Members struct{ jsonorder.Members }

// Member is one of them.
type Member struct {
	Kind Kind
	jsonorder.Member
}

// ReadMembers begins.
func ReadMembers(text string) Members { return Members{jsonorder.ReadMembers(text)} }

// Next returns the next member. When there is none, or none that can be read, it
// returns false, and Whole tells which.
func (m *Members) Next() (v Member, ok bool) {
	if v.Member, ok = m.Members.Next(); ok {
		v.Kind = kindOf(v.Raw[0])
	}
	return v, ok
}
