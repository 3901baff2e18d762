// Package hostile makes JSON texts whose digest is expensive compared with their length.
// Tests use them to check that a digest needs only little memory.
package hostile

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
)

// Text is a JSON text whose digest is expensive, with its name in a test.
type Text struct{ Name, JSON string }

// Texts returns expensive texts of about size bytes each. The native digest and the digests
// of all peers accept these texts: none nests deeper than the strictest peer allows.
func Texts(size int) []Text {
	list := []Text{
		{"zeros", array("0", size)},
		{"numbers with an exponent", array("1e1", size)},
		{"numbers that grow when written out", array("1e15", size)},
		{"integers beyond 64 bits", array(strings.Repeat("7", 33), size)},
		{"empty arrays", array("[]", size)},
		{"empty objects", array("{}", size)},
		{"empty strings", array(`""`, size)},
		{"literals", array("null", size)},
		{"arrays in arrays", array("[[[0]]]", size)},
		{"nested to the limit, again and again", array(nested("[", "]"), size)},
		{"nested objects to the limit", array(nested(`{"":`, "}"), size)},
		{"nested and unsorted to the limit", array(nested(`{"b":0,"a":`, "}"), size)},
		{"one object nested to the limit around a long string", aroundLong(size)},
		{"objects of one member", array(`{"":0}`, size)},
		{"objects of two members", array(`{"":0,"a":0}`, size)},
		{"objects of two members, unsorted", array(`{"a":0,"":0}`, size)},
		{"objects of many members, unsorted", array(object(reversed(names(90))), size)},
		{"unsorted objects that grow", growing(size)},
		{"unsorted objects in an ordered one", object(names(size/20), `{"a":0,"":0}`)},
		{"members in order", object(names(size / 8))},
		{"members reversed", object(reversed(names(size / 8)))},
		{"members in random order", object(shuffled(names(size / 8)))},
		{"members of empty arrays in random order", object(shuffled(names(size/9)), "[]")},
		{"members in random order, names in escapes", object(escaped(shuffled(names(size / 22))))},
		{"long names, reversed", object(reversed(long(names(size / 1006))))},
		{"long names in escapes, reversed", object(escaped(reversed(long(names(size / 6006)))))},
		{"two names that differ in the end", object([]string{strings.Repeat("k", size/2) + "b", strings.Repeat("k", size/2) + "a"})},
		{"each name the prefix of the next, reversed", object(reversed(prefixes(size)))},
		{"long fractions", array("1."+strings.Repeat("1", 798), size)},
		{"many zeros before and after the point", array("0."+strings.Repeat("0", 398)+"1"+strings.Repeat("0", 399), size)},
		{"a long string", quoted("x", size)},
		{"a string of commas", quoted(",", size)},
		{"a string of brackets", quoted("[", size)},
		{"a string of braces", quoted("{", size)},
		{"a string of colons", quoted(":", size)},
		{"a string of escaped quotes", quoted(`\"`, size)},
		{"a string of zeros", quoted(`\u0000`, size)},
		{"a string of line ends", quoted(`\n`, size)},
		{"a string of DEL", quoted("\x7f", size)},
		{"a string of letters in escapes", quoted(`\u0061`, size)},
		{"a string of accents", quoted("é", size)},
		{"a string of accents in escapes", quoted(`\u00e9`, size)},
		{"a string of surrogate pairs", quoted(`\ud83d\ude00`, size)},
		{"a string of emoji", quoted("😀", size)},
		{"strings of one escape", array(`"\n"`, size)},
		{"white space", strings.Repeat(" ", size-2) + "{}"},
	}
	return list
}

// Allocated returns how many bytes f allocates in total, including bytes that are freed
// again. The number does not depend on how busy the machine is, but no other goroutine may
// allocate while f runs.
func Allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// May returns how many bytes may be allocated while the digest of a text is computed.
func May(text string) int { return 4*len(text) + 64<<10 }

func array(element string, size int) string {
	return "[" + strings.Repeat(element+",", size/(len(element)+1)) + element + "]"
}

// maxLevels is how many levels the two functions below make. An array around their text makes one
// more level: 99, which is as many as the strictest peer allows.
const maxLevels = 98

func nested(open, closing string) string {
	return strings.Repeat(open, maxLevels) + "0" + strings.Repeat(closing, maxLevels)
}

func aroundLong(size int) string {
	return strings.Repeat(`{"b":0,"a":`, maxLevels) + quoted("x", size) + strings.Repeat("}", maxLevels)
}

func quoted(s string, size int) string { return `"` + strings.Repeat(s, size/len(s)) + `"` }

// letters are ASCII characters that need no escape in a JSON string, in order. Lower-case
// letters, +, -, point, underscore, 0, E, I and N are left out, so that no two names are alike: see
// [jsonorder.Object.Alike].
const letters = "!#$%&'()*,/123456789:;<=>?@ABCDFGHJKLMOPQRSTUVWXYZ[]^`{|}~"

// names returns the n shortest names that use only the characters in [letters]. The names are
// sorted.
func names(n int) []string {
	list := make([]string, 1, max(n, 1)) // the first name is empty
	for i := 0; len(list) < n; i++ {
		for _, c := range letters {
			if len(list) < n {
				list = append(list, list[i]+string(c))
			}
		}
	}
	slices.Sort(list)
	return list
}

func reversed(list []string) []string {
	slices.Reverse(list)
	return list
}

func shuffled(list []string) []string {
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func long(list []string) []string {
	for i := range list {
		list[i] = strings.Repeat("k", 1000) + list[i]
	}
	return list
}

func escaped(list []string) []string {
	for i, name := range list {
		var b strings.Builder
		for _, c := range name {
			fmt.Fprintf(&b, `\u%04x`, c)
		}
		list[i] = b.String()
	}
	return list
}

func prefixes(size int) (list []string) {
	for n := 0; n*n/14 < size; n += 7 {
		list = append(list, strings.Repeat("k", n))
	}
	return list
}

// object returns a JSON object with one member for each name. The names must need no
// escapes. All members have the same value: the given one, or 0 if none is given.
func object(names []string, value ...string) string {
	value = append(value, "0")
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		b.WriteString(name)
		b.WriteString(`":`)
		b.WriteString(value[0])
	}
	return "{" + b.String() + "}"
}

func growing(size int) string {
	var b strings.Builder
	for n := 8; b.Len() < size; n += n/8 + 1 {
		b.WriteString("," + object(reversed(names(n))))
	}
	return "[" + b.String()[1:] + "]"
}
