package jsonvalue

import "github.com/tripseal/tripseal/internal/jsonorder"

// Kind is the type of a JSON value.
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

// kindOf returns the kind of a JSON value that begins with the byte c.
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

// Members is a [jsonorder.Members] that also tells the kind of each value.
type Members struct{ jsonorder.Members }

// Member is one member of a JSON object, with the kind of its value.
type Member struct {
	Kind Kind
	jsonorder.Member
}

// ReadMembers returns a Members that reads one JSON object. The argument is the text of that
// object.
func ReadMembers(text string) Members { return Members{jsonorder.ReadMembers(text)} }

// Next returns the next member. It returns false at the end of the object, and also if the
// text cannot be read; the method Whole tells these two cases apart.
func (m *Members) Next() (v Member, ok bool) {
	if v.Member, ok = m.Members.Next(); ok {
		v.Kind = kindOf(v.Raw[0])
	}
	return v, ok
}
