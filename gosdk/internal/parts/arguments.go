package parts

import (
	"slices"
	"sync"
)

// Arguments is a copy of a call's arguments as JSON. Make it when the call arrives:
// handlers and inner middleware may change the arguments before anything is sealed. The
// text of a nil *Arguments is nil.
type Arguments struct{ text []byte }

var argumentsPool = sync.Pool{New: func() any { return new(Arguments) }}

// maxPooled is the capacity of the largest copy whose memory is reused.
const maxPooled = 64 << 10

// CopyArguments returns a copy of the arguments of a tool. Call it before any handler or
// middleware runs.
func CopyArguments(text []byte) *Arguments {
	a := argumentsPool.Get().(*Arguments)
	a.text = append(a.text[:0], text...)
	return a
}

// CopyStrings returns the arguments of a prompt as a JSON object. Call it before any
// handler or middleware runs.
func CopyStrings(members map[string]string) *Arguments {
	a := argumentsPool.Get().(*Arguments)
	a.text = AppendStrings(a.text[:0], members)
	return a
}

// Text returns the copy. The copy is valid until Release is called. Use the copy as
// [tripseal.Request].Arguments.
func (a *Arguments) Text() []byte {
	if a == nil {
		return nil
	}
	return a.text
}

// Release lets a later copy reuse the memory of this copy. Call Release at the end of the
// request, when nothing more will be sealed for it.
func (a *Arguments) Release() {
	if a == nil || cap(a.text) > maxPooled {
		return
	}
	clear(a.text)
	argumentsPool.Put(a)
}

// AppendStrings appends members to dst as a JSON object, sorted by name, so that the same members
// always have the same digest. Use AppendStrings if you have your own buffer for the JSON object;
// otherwise use [CopyStrings].
func AppendStrings(dst []byte, members map[string]string) []byte {
	var room [16]string // on the stack, and enough for most requests
	names := room[:0]
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(append(appendString(dst, name), ':'), members[name])
	}
	return append(dst, '}')
}

// appendString appends a JSON string. Bytes that are not UTF-8 stay as they are, so
// that the digest refuses the text.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
