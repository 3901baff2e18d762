package wire

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/strictjson"
)

// names has the names of the members that the engine reads in one kind of JSON object.
type names struct {
	list   []string
	folded map[string]bool // the names in the list, as fold returns them
}

func namesOf(list ...string) *names {
	n := &names{list, map[string]bool{}}
	for _, name := range list {
		n.folded[fold(name)] = true
	}
	return n
}

// fold returns the same text for two names if they differ only in upper and lower case, as strings.EqualFold and
// encoding/json define it.
func fold(name string) string { return strings.Map(strictjson.Fold, name) }

// field is a member of a JSON object. If the object does not have this member, present is false.
type field struct {
	strictjson.Member
	present bool
}

// isString reports whether the value is a string. If so, f.Text is that string.
func (f *field) isString() bool { return strings.HasPrefix(f.Raw, `"`) }

// read reads a JSON object. It returns a field for each name in n.list, in the same order. It returns false if the text
// is not one object. It also returns false if two JSON parsers could read one of these fields differently: its name
// occurs twice or in another spelling.
func (n *names) read(text string) (fields []field, ok bool) {
	members := strictjson.ReadMembers(text)
	return n.readFrom(&members)
}

func (n *names) readFrom(members *strictjson.Members) (fields []field, ok bool) {
	fields = make([]field, len(n.list))
	for {
		member, ok := members.Next()
		if !ok {
			return fields, members.Whole()
		}
		switch i := slices.Index(n.list, member.Name); {
		case i >= 0 && fields[i].present, i < 0 && n.misspelt(member.Name):
			return fields, false
		case i >= 0:
			fields[i] = field{Member: member, present: true}
		}
	}
}

// misspelt reports whether some JSON parser could mistake the given name for a name in n.list. The given name must not
// be in n.list.
func (n *names) misspelt(name string) bool {
	name, _, _ = strings.Cut(name, "\x00") // parsers in C may read a name only up to a zero byte
	return n.folded[fold(name)] || n.folded[fold(alike.Replace(name))] || name == prototype
}

// prototype is the name of a member whose own members a JavaScript program may take for those of the object: after
// Object.assign({}, params), for example, params.requestState is the requestState of this member.
const prototype = "__proto__"

// alike turns a name into what a JSON parser may read if it is not strict. pydantic's populate_by_name accepts
// request_state for requestState, and Go's json/v2 can ignore dashes as well as underscores. A parser that converts
// names to upper or lower case may read U+0131 or U+0130 (ı or İ) as i, and U+FB05 or U+FB06 (ﬅ or ﬆ) as st, which fold
// does not.
var alike = strings.NewReplacer("_", "", "-", "", "\u0131", "i", "\u0130", "i", "\ufb05", "st", "\ufb06", "st")

// readAll returns all members of an object of questions or answers. It returns false if the text is not one object, or
// has more members than a round can have questions. It also returns false if two members have the same name, or if a
// name has half of a surrogate pair. Go, for example, replaces every such half by the same character, so it could
// mistake two names for one.
func readAll(text string) (list []field, ok bool) {
	seen := map[string]bool{}
	members := strictjson.ReadMembers(text)
	for {
		member, ok := members.Next()
		if !ok {
			return list, members.Whole()
		}
		if len(list) == tripseal.MaxQuestions || seen[member.Name] || !utf8.ValidString(member.Name) {
			return nil, false
		}
		seen[member.Name] = true
		list = append(list, field{Member: member, present: true})
	}
}

// changes has new values for members of an object. A key is the name of a member. The value is JSON text, or "" if the
// member must be removed.
type changes map[string]string

// apply returns a copy of the message in which one object has the changes. The object begins at the offset base. The
// bytes outside the object and the text of its unchanged members stay the same. A member that the object lacks is
// added.
func (c changes) apply(message string, base int, object string) string {
	if len(c) == 0 {
		return message
	}
	size := len(message) + len(c)*64
	for _, value := range c {
		size += len(value)
	}
	var out strings.Builder
	out.Grow(size)
	out.WriteString(message[:base])
	out.WriteByte('{')
	first := true
	add := func(text, value string) {
		if !first {
			out.WriteByte(',')
		}
		out.WriteString(text)
		out.WriteString(value)
		first = false
	}
	missing := maps.Clone(c)
	members := strictjson.ReadMembers(object)
	for {
		member, ok := members.Next()
		if !ok {
			break
		}
		value, changed := c[member.Name]
		switch {
		case !changed:
			add(object[member.At:member.From+len(member.Raw)], "")
		case value != "":
			add(object[member.At:member.From], value)
		}
		delete(missing, member.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if missing[name] != "" {
			add(quoted(name)+":", missing[name])
		}
	}
	out.WriteByte('}')
	out.WriteString(message[base+len(object):])
	return out.String()
}
