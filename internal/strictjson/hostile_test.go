package strictjson

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
)

// hostileText is a JSON text whose digest is expensive, with its name in a test.
type hostileText struct{ Name, JSON string }

// hostileTexts returns expensive texts of about size bytes each. The native digest and the digests
// of all peers accept these texts: none nests deeper than the strictest peer allows.
func hostileTexts(size int) []hostileText {
	list := []hostileText{
		{"zeros", arrayOf("0", size)},
		{"numbers with an exponent", arrayOf("1e1", size)},
		{"numbers that grow when written out", arrayOf("1e15", size)},
		{"integers beyond 64 bits", arrayOf(strings.Repeat("7", 33), size)},
		{"empty arrays", arrayOf("[]", size)},
		{"empty objects", arrayOf("{}", size)},
		{"empty strings", arrayOf(`""`, size)},
		{"literals", arrayOf("null", size)},
		{"arrays in arrays", arrayOf("[[[0]]]", size)},
		{"nested to the limit, again and again", arrayOf(nested("[", "]"), size)},
		{"nested objects to the limit", arrayOf(nested(`{"":`, "}"), size)},
		{"nested and unsorted to the limit", arrayOf(nested(`{"b":0,"a":`, "}"), size)},
		{"one object nested to the limit around a long string", aroundLong(size)},
		{"objects of one member", arrayOf(`{"":0}`, size)},
		{"objects of two members", arrayOf(`{"":0,"a":0}`, size)},
		{"objects of two members, unsorted", arrayOf(`{"a":0,"":0}`, size)},
		{"objects of many members, unsorted", arrayOf(objectWith(reversed(namesFrom(90))), size)},
		{"unsorted objects that grow", growing(size)},
		{"unsorted objects in an ordered one", objectWith(namesFrom(size/20), `{"a":0,"":0}`)},
		{"members in order", objectWith(namesFrom(size / 8))},
		{"members reversed", objectWith(reversed(namesFrom(size / 8)))},
		{"members in random order", objectWith(shuffled(namesFrom(size / 8)))},
		{"members of empty arrays in random order", objectWith(shuffled(namesFrom(size/9)), "[]")},
		{"members in random order, names in escapes", objectWith(inEscapes(shuffled(namesFrom(size / 22))))},
		{"long names, reversed", objectWith(reversed(longNames(namesFrom(size / 1006))))},
		{"long names in escapes, reversed", objectWith(inEscapes(reversed(longNames(namesFrom(size / 6006)))))},
		{"two names that differ in the end", objectWith([]string{strings.Repeat("k", size/2) + "b", strings.Repeat("k", size/2) + "a"})},
		{"each name the prefix of the next, reversed", objectWith(reversed(prefixes(size)))},
		{"long fractions", arrayOf("1."+strings.Repeat("1", 798), size)},
		{"many zeros before and after the point", arrayOf("0."+strings.Repeat("0", 398)+"1"+strings.Repeat("0", 399), size)},
		{"a long string", stringOf("x", size)},
		{"a string of commas", stringOf(",", size)},
		{"a string of brackets", stringOf("[", size)},
		{"a string of braces", stringOf("{", size)},
		{"a string of colons", stringOf(":", size)},
		{"a string of escaped quotes", stringOf(`\"`, size)},
		{"a string of zeros", stringOf(`\u0000`, size)},
		{"a string of line ends", stringOf(`\n`, size)},
		{"a string of DEL", stringOf("\x7f", size)},
		{"a string of nameLetters in escapes", stringOf(`\u0061`, size)},
		{"a string of accents", stringOf("é", size)},
		{"a string of accents in escapes", stringOf(`\u00e9`, size)},
		{"a string of surrogate pairs", stringOf(`\ud83d\ude00`, size)},
		{"a string of emoji", stringOf("😀", size)},
		{"strings of one escape", arrayOf(`"\n"`, size)},
		{"white space", strings.Repeat(" ", size-2) + "{}"},
	}
	return list
}

// allocated returns how many bytes f allocates in total, including bytes that are freed
// again. The number does not depend on how busy the machine is, but no other goroutine may
// allocate while f runs.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// mayAllocate returns how many bytes may be allocated while the digest of a text is computed.
func mayAllocate(text string) int { return 4*len(text) + 64<<10 }

func arrayOf(element string, size int) string {
	return "[" + strings.Repeat(element+",", size/(len(element)+1)) + element + "]"
}

// peersLevels is how many levels the two functions below make. An array around their text makes one
// more level: 99, which is as many as the strictest peer allows.
const peersLevels = 98

func nested(open, closing string) string {
	return strings.Repeat(open, peersLevels) + "0" + strings.Repeat(closing, peersLevels)
}

func aroundLong(size int) string {
	return strings.Repeat(`{"b":0,"a":`, peersLevels) + stringOf("x", size) + strings.Repeat("}", peersLevels)
}

func stringOf(s string, size int) string { return `"` + strings.Repeat(s, size/len(s)) + `"` }

// nameLetters are ASCII characters that need no escape in a JSON string, in order. Lower-case
// nameLetters, +, -, point, underscore, 0, E, I and N are left out, so that no two names are alike.
const nameLetters = "!#$%&'()*,/123456789:;<=>?@ABCDFGHJKLMOPQRSTUVWXYZ[]^`{|}~"

// namesFrom returns the n shortest names that use only the characters in [nameLetters]. The names are
// sorted.
func namesFrom(n int) []string {
	list := make([]string, 1, max(n, 1)) // the first name is empty
	for i := 0; len(list) < n; i++ {
		for _, c := range nameLetters {
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

func longNames(list []string) []string {
	for i := range list {
		list[i] = strings.Repeat("k", 1000) + list[i]
	}
	return list
}

func inEscapes(list []string) []string {
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
func objectWith(names []string, value ...string) string {
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
		b.WriteString("," + objectWith(reversed(namesFrom(n))))
	}
	return "[" + b.String()[1:] + "]"
}
