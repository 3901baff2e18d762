package mcpgo

import "sync"

// snapshot remembers the contents of a call's arguments. mcp-go asks an older client during
// the call, and then calls the handler again with the same maps and slices as arguments.
// The handler may have changed these, so they are restored before mcp-go continues.
type snapshot struct {
	strings []stringMember
	members []member
	items   []item
	maps    []map[string]any
	prompt  map[string]string
}

type stringMember struct{ name, value string }

type member struct {
	of    map[string]any
	name  string
	value any
}

type item struct {
	of    []any
	index int
	value any
}

var snapshotPool = sync.Pool{New: func() any { return new(snapshot) }}

// maxSnapshot is the capacity of the largest snapshot whose memory is reused, in members,
// items and maps together.
const maxSnapshot = 1 << 10

// of adds the contents of a decoded JSON value to the snapshot, at any depth.
func (s *snapshot) of(value any) {
	switch v := value.(type) {
	case map[string]any:
		s.maps = append(s.maps, v)
		for name, m := range v {
			s.members = append(s.members, member{v, name, m})
			s.of(m)
		}
	case []any:
		for i, m := range v {
			s.items = append(s.items, item{v, i, m})
			s.of(m)
		}
	}
}

// ofStrings adds the arguments of a prompt to the snapshot.
func (s *snapshot) ofStrings(members map[string]string) {
	s.prompt = members
	for name, value := range members {
		s.strings = append(s.strings, stringMember{name, value})
	}
}

// restore sets the arguments back to what they were when the snapshot was made.
func (s *snapshot) restore() {
	for _, m := range s.maps {
		clear(m)
	}
	for _, m := range s.members {
		m.of[m.name] = m.value
	}
	for _, i := range s.items {
		i.of[i.index] = i.value
	}
	clear(s.prompt)
	for _, m := range s.strings {
		s.prompt[m.name] = m.value
	}
}

// release lets another call reuse the memory of the snapshot. The snapshot s may be nil.
func (s *snapshot) release() {
	if s == nil || cap(s.members)+cap(s.items)+cap(s.strings)+cap(s.maps) > maxSnapshot {
		return
	}
	clear(s.strings)
	clear(s.members)
	clear(s.items)
	clear(s.maps)
	*s = snapshot{strings: s.strings[:0], members: s.members[:0], items: s.items[:0], maps: s.maps[:0]}
	snapshotPool.Put(s)
}
