package proxy

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/exactjson"
	"github.com/mcpseal/mcpseal/internal/jsonorder"
)

// names is a list of the members that matter at one place of a message.
type names struct {
	list []string
	set  exactjson.Names
}

func namesOf(list ...string) *names {
	n := &names{list: list}
	n.set.Add(list...)
	return n
}

// field is a member of an object that was read.
type field struct {
	jsonorder.Member
	present bool
}

// isString reports whether the value is a string; it is in f.Text then.
func (f *field) isString() bool { return strings.HasPrefix(f.Raw, `"`) }

// read reads an object, and returns the members that matter, in the order of the names. It
// returns false if the text is not one object, or if two readers could differ about one of
// these members: it is there twice, or in another spelling.
func (n *names) read(text string) (fields []field, ok bool) {
	fields = make([]field, len(n.list))
	members := jsonorder.ReadMembers(text)
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

// misspelt reports whether some reader of JSON takes a name, which is not in the list, for one
// that is.
func (n *names) misspelt(name string) bool {
	name, _, _ = strings.Cut(name, "\x00") // C reads a name up to there
	plain := alike.Replace(name)
	return n.set.Misspelt(name) || n.set.Misspelt(plain) || n.set.Has(plain)
}

// alike takes out of a name what some readers of JSON ignore. pydantic's populate_by_name
// accepts request_state, and Go's json/v2 can ignore dashes as well. The letters are the same
// in upper case, which exactjson.Names does not compare.
var alike = strings.NewReplacer("_", "", "-", "", "\u0131", "i", "\u0130", "i", "\ufb05", "st", "\ufb06", "st")

// readAll returns all members of an object of questions or answers. It returns false if the
// text is not one object, if it has more members than a round can ask, or if two readers could
// take two members for one: they have the same name, or a name has half a surrogate pair,
// which Go replaces.
func readAll(text string) (list []field, ok bool) {
	seen := map[string]bool{}
	members := jsonorder.ReadMembers(text)
	for {
		member, ok := members.Next()
		if !ok {
			return list, members.Whole()
		}
		if len(list) == mcpseal.MaxQuestions || seen[member.Name] || !utf8.ValidString(member.Name) {
			return nil, false
		}
		seen[member.Name] = true
		list = append(list, field{Member: member, present: true})
	}
}

// changes says what becomes of members of an object, by their name: another value, or "" to
// take the member out.
type changes map[string]string

// apply returns the message in which the object at the offset base is changed. Every other
// byte stays, and so does the text of every other member. It returns nil if nothing changes.
func (c changes) apply(message string, base int, object string) []byte {
	if len(c) == 0 {
		return nil
	}
	out := append(make([]byte, 0, len(message)+64), message[:base]...)
	out = append(out, '{')
	first := true
	add := func(text string) {
		if !first {
			out = append(out, ',')
		}
		out = append(out, text...)
		first = false
	}
	known := 0
	members := jsonorder.ReadMembers(object)
	for {
		member, ok := members.Next()
		if !ok {
			break
		}
		value, changed := c[member.Name]
		switch {
		case !changed:
			add(object[member.At : member.From+len(member.Raw)])
		case value != "":
			add(object[member.At:member.From] + value)
		}
		if changed {
			known++
		}
	}
	if known < len(c) { // only a state can be new
		add(`"requestState":` + c["requestState"])
	}
	out = append(out, '}')
	return append(out, message[base+len(object):]...)
}
