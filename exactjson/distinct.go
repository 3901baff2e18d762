package exactjson

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpseal/mcpseal/internal/argdigest"
)

// Distinct reports whether a text is JSON in which encoding/json can tell the names of
// every object apart, at any depth. It returns false if an object has the same name twice,
// or has two names that differ only in upper and lower case. encoding/json puts two such
// members into one field of a struct, but may keep both in a map, so two readers may see
// different values. For an empty text, which has no names, Distinct returns true.
func Distinct(text []byte) bool { return DistinctWithin(text, math.MaxInt) }

// DistinctWithin does the same as Distinct, but compares only the names in the outer levels
// of a text. The outermost value is level 1, and its members or items are level 2. With two
// levels, DistinctWithin compares the names in a JSON-RPC message and in its params, but not
// those in the arguments.
func DistinctWithin(text []byte, levels int) bool {
	if len(text) == 0 {
		return true
	}
	if !json.Valid(text) { // json.Valid also limits how deep the text nests
		return false
	}
	w := nameWalk{text: string(text)}
	return w.value(levels)
}

// Same reports whether two JSON texts mean the same: if they do, a token or cursor that is
// bound to one of them is also bound to the other. An empty text and null mean {}. Same
// returns false if one of the texts has no digest, for example because it has two members
// with the same name, unless the texts are equal.
func Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	one, err := argdigest.Sum(a)
	other, otherErr := argdigest.Sum(b)
	return err == nil && otherErr == nil && one == other
}

// nameWalk reads a JSON text and compares the names in it. The text must be valid JSON.
type nameWalk struct {
	text  string
	at    int
	names []string // the names read so far in the objects that enclose the current position
}

// value moves past the next value, and reports whether the names in its outer levels are
// distinct.
func (w *nameWalk) value(levels int) bool {
	switch w.next() {
	case '{':
		first := len(w.names)
		for w.at++; w.next() != '}'; {
			if w.text[w.at] == ',' {
				w.at++
				w.next()
			}
			w.names = append(w.names, w.name())
			w.next()
			w.at++ // skip the colon
			if !w.value(levels - 1) {
				return false
			}
		}
		w.at++
		twins := levels > 0 && haveTwins(w.names[first:])
		w.names = w.names[:first]
		return !twins
	case '[':
		for w.at++; w.next() != ']'; {
			if w.text[w.at] == ',' {
				w.at++
			}
			if !w.value(levels - 1) {
				return false
			}
		}
		w.at++
	case '"':
		w.str()
	default: // a number, true, false or null
		for w.at < len(w.text) && strings.IndexByte(",]} \n\r\t", w.text[w.at]) < 0 {
			w.at++
		}
	}
	return true
}

// next skips white space and returns the byte after it.
func (w *nameWalk) next() byte {
	for strings.IndexByte(" \n\r\t", w.text[w.at]) >= 0 {
		w.at++
	}
	return w.text[w.at]
}

// str moves past a string, and returns it with its quotation marks.
func (w *nameWalk) str() string {
	start := w.at
	for w.at++; w.text[w.at] != '"'; w.at++ {
		if w.text[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
	return w.text[start:w.at]
}

// name moves past a name, and returns it as encoding/json decodes it.
func (w *nameWalk) name() (name string) {
	quoted := w.str()
	if strings.IndexByte(quoted, '\\') < 0 && utf8.ValidString(quoted) {
		return quoted[1 : len(quoted)-1]
	}
	json.Unmarshal([]byte(quoted), &name) // there is no error: the text is JSON
	return name
}

// haveTwins reports whether two of the names are equal, or differ only in upper and lower
// case. It may change the slice.
func haveTwins(names []string) bool {
	if len(names) <= 8 { // comparing every pair of a few names needs no allocation
		for i, name := range names {
			if slices.ContainsFunc(names[:i], func(other string) bool { return strings.EqualFold(name, other) }) {
				return true
			}
		}
		return false
	}
	for i, name := range names {
		names[i] = fold(name)
	}
	slices.Sort(names)
	for i := range len(names) - 1 {
		if names[i] == names[i+1] {
			return true
		}
	}
	return false
}
