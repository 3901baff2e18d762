package wire

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/strictjson"
)

// names lists the names of the members that the engine reads in one kind of JSON object.
type names struct{ list []string }

func namesOf(list ...string) *names { return &names{list} }

// field is a member of a JSON object. If the object does not have this member, present is false.
type field struct {
	strictjson.Member
	present bool
}

// isString reports whether the value is a string. If so, f.Text is that string.
func (f *field) isString() bool { return strings.HasPrefix(f.Raw, `"`) }

// isObject reports whether the value is an object.
func (f *field) isObject() bool { return strings.HasPrefix(f.Raw, "{") }

// sameID returns the same text for two spellings of the same id, because the other side may write a string with other
// escapes. It returns "" if there is no id.
func (f *field) sameID() string {
	if f.isString() {
		return strictjson.Quote(f.Text)
	}
	return f.Raw
}

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
	plain := name
	if strings.ContainsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r > unicode.MaxASCII }) {
		plain = alike.Replace(name)
	}
	return name == prototype || slices.ContainsFunc(n.list, func(of string) bool {
		return strings.EqualFold(of, name) || strings.EqualFold(of, plain) // as encoding/json compares names
	})
}

// prototype is the name of a member whose own members a JavaScript program may take for those of the object: after
// Object.assign({}, params), for example, params.requestState is the requestState of this member.
const prototype = "__proto__"

// alike turns a name into what a JSON parser may read if it is not strict. pydantic's populate_by_name accepts
// request_state for requestState, and Go's json/v2 can ignore dashes as well as underscores. A parser that converts
// names to upper or lower case may read U+0131 or U+0130 (ı or İ) as i, and U+FB05 or U+FB06 (ﬅ or ﬆ) as st.
// strings.EqualFold does not.
var alike = strings.NewReplacer("_", "", "-", "", "\u0131", "i", "\u0130", "i", "\ufb05", "st", "\ufb06", "st")

// readAll returns all members of an object of questions or answers. It returns false if the text is not one object, or
// has more members than a round can have questions. It also returns false if two members have the same name, or if a
// name has half of a surrogate pair. Go, for example, replaces every such half by the same character, so it could
// mistake two names for one.
func readAll(text string) (list []field, ok bool) {
	members := strictjson.ReadMembers(text)
	for {
		member, ok := members.Next()
		if !ok {
			return list, members.Whole()
		}
		twice := slices.ContainsFunc(list, func(f field) bool { return f.Name == member.Name })
		if len(list) == tripseal.MaxQuestions || twice || !utf8.ValidString(member.Name) {
			return nil, false
		}
		list = append(list, field{Member: member, present: true})
	}
}

// changes has new values for members of an object.
type changes []change

// change is a member's name and its new value: JSON text, or "" if the member must be removed.
type change struct{ name, value string }

// apply returns a copy of the message in which one object has the changes. The object begins at the offset base. The
// bytes outside the object and the text of its unchanged members stay the same. A member that the object lacks is
// added.
func (c changes) apply(message string, base int, object string) string {
	if len(c) == 0 {
		return message
	}
	size := len(message)
	for _, of := range c {
		size += len(of.name) + len(of.value) + 8
	}
	out := append(append(make([]byte, 0, size), message[:base]...), '{')
	add := func(text, value string) {
		if len(out) > base+1 {
			out = append(out, ',')
		}
		out = append(append(out, text...), value...)
	}
	found := make([]bool, len(c))
	members := strictjson.ReadMembers(object)
	for member, ok := members.Next(); ok; member, ok = members.Next() {
		i := slices.IndexFunc(c, func(of change) bool { return of.name == member.Name })
		if i < 0 {
			add(object[member.At:member.From+len(member.Raw)], "")
		} else if found[i] = true; c[i].value != "" {
			add(object[member.At:member.From], c[i].value)
		}
	}
	for i, of := range c {
		if !found[i] && of.value != "" {
			add(strictjson.Quote(of.name)+":", of.value)
		}
	}
	return string(append(append(out, '}'), message[base+len(object):]...))
}
