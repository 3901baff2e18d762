// Package jsonvalue reads JSON texts of other MCP implementations into values
// and writes values the way those implementations do, to the byte.
//
// Strings are held in UTF-8, with a lone surrogate as the three bytes that
// UTF-8 would give it, so that every JSON string has exactly one form here and
// compares by code points.
package jsonvalue

import (
	"errors"
	"math"
	"strings"
	"sync"
)

// MaxLevels is how deep arrays and objects may nest.
const MaxLevels = 128

// ErrSyntax is the only error of [Parse].
var ErrSyntax = errors.New("not a JSON text")

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

// Document is a text that was parsed.
type Document struct {
	text       string // as it was given
	unescaped  string // the strings in it that have escapes, behind one another
	nodes      []node // the first is the root
	duplicates bool
	levels     int

	buf []byte // becomes unescaped, and holds what is written
}

// node is one value of a document. It has no pointers and few bytes: a hostile
// text has a value for every two of its own.
type node struct {
	kind        Kind
	name, text  span  // of a member; of a string or a number
	first, next int32 // among the nodes; 0 is none
}

// span is a piece of the text or, if its end is negative, of the unescaped
// strings.
type span struct{ start, end int32 }

func (d *Document) at(s span) string {
	if s.end < 0 {
		return d.unescaped[s.start:-s.end]
	}
	return d.text[s.start:s.end]
}

// Kind is what the document's value is.
func (d *Document) Kind() Kind { return d.nodes[0].kind }

// Text is the text of a document that is a string, the literal of a number.
func (d *Document) Text() string { return d.at(d.nodes[0].text) }

// Empty says whether a document that is an array or an object has nothing in it.
func (d *Document) Empty() bool { return d.nodes[0].first == 0 }

// Duplicates says whether an object has two members of one name.
func (d *Document) Duplicates() bool { return d.duplicates }

// Levels is how deep its arrays and objects nest.
func (d *Document) Levels() int { return d.levels }

// Parse reads a text. What it returns points into the text, and may be given
// back with [Document.Release]. With constants it reads NaN, Infinity and
// -Infinity as numbers, as Python does.
func Parse(text string, constants bool) (*Document, error) {
	if len(text) >= math.MaxInt32 {
		return nil, ErrSyntax
	}
	d := documents.Get().(*Document)
	d.text = text
	// Every value but the root stands behind one of these, so that the nodes
	// need not grow, which would take several times their size.
	if cap(d.nodes) <= len(text)/2 {
		d.nodes = make([]node, 0, 1+strings.Count(text, ",")+strings.Count(text, "[")+strings.Count(text, "{"))
	}
	p := parser{doc: d, text: text, constants: constants}
	p.space()
	ok := p.node(span{})
	p.space()
	if !ok || p.at != len(text) {
		d.Release()
		return nil, ErrSyntax
	}
	if len(d.buf) > 0 {
		d.unescaped = string(d.buf)
		clear(d.buf)
		d.buf = d.buf[:0]
	}
	d.duplicates = d.hasDuplicates()
	return d, nil
}

var documents = sync.Pool{New: func() any { return new(Document) }}

// What a document may hold at most to be kept for reuse.
const (
	maxPooledNodes = 1 << 10
	maxPooledBytes = 64 << 10
)

// Release gives the document up for reuse. Texts taken from it stay good.
func (d *Document) Release() {
	if cap(d.nodes) > maxPooledNodes || cap(d.buf) > maxPooledBytes {
		return
	}
	clear(d.buf[:cap(d.buf)])
	*d = Document{nodes: d.nodes[:0], buf: d.buf[:0]}
	documents.Put(d)
}

// fewMembers is how many are compared each with each.
const fewMembers = 12

func (d *Document) hasDuplicates() bool {
	for i := range d.nodes {
		if n := &d.nodes[i]; n.kind == Object && n.first != 0 && d.duplicatesBehind(n.first) {
			return true
		}
	}
	return false
}

// duplicatesBehind looks at the members from first on.
func (d *Document) duplicatesBehind(first int32) bool {
	count := 0
	for i := first; i != 0; i = d.nodes[i].next {
		if count++; count > fewMembers {
			break
		}
		for j := first; j != i; j = d.nodes[j].next {
			if d.at(d.nodes[j].name) == d.at(d.nodes[i].name) {
				return true
			}
		}
	}
	if count <= fewMembers {
		return false
	}
	members := d.sorted(first)
	for i := 1; i < len(members); i++ {
		if d.at(d.nodes[members[i-1]].name) == d.at(d.nodes[members[i]].name) {
			return true
		}
	}
	return false
}
