package jsonorder

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// read reads a value and writes it as the text has it, without white space.
func read(r *Reader) {
	switch r.Next() {
	case '"':
		raw, _ := r.String()
		r.Write(raw)
	case '[':
		var a Array
		r.Array(&a)
		for r.Element(&a) {
			read(r)
		}
	case '{':
		var o Object
		r.Object(&o)
		for {
			raw, _, ok := r.Member(&o)
			if !ok {
				break
			}
			r.Write(raw)
			read(r)
		}
	default:
		r.Write(r.Scalar())
	}
}

func TestNothingOfATextIsKept(t *testing.T) {
	long := strings.Repeat("secret", 1000)
	for _, text := range []string{
		`{"secret-b":"secret","secret-a":"secret"}`,
		`{"secret-b":"` + long + `","secret-a":"` + long + `","secret-c":"secret"}`,
		`{"secret-b":"secret","secret-a":"secret"`,
		`"secret`,
	} {
		var r Reader
		r.Begin([]byte(text), 0)
		read(&r)
		if again, _ := r.Check(); again {
			read(&r)
		}
		r.Sum(new([32]byte))
		if !r.Release() {
			t.Errorf("%.20s: the reader is not kept for reuse", text)
		}
		if r.text != nil || r.hash != nil || len(bytes.Trim(r.Buf[:cap(r.Buf)], "\x00")) > 0 {
			t.Errorf("%.20s: a piece of the text is kept", text)
		}
		if slices.ContainsFunc(r.keys[:cap(r.keys)], func(k key) bool { return k != key{} }) {
			t.Errorf("%.20s: a piece of a name is kept", text)
		}
	}
}

func TestALargeReaderIsNotKept(t *testing.T) {
	var r Reader
	r.Begin([]byte("["+strings.Repeat("[],", 5000)+"0]"), 0)
	read(&r)
	if _, refusal := r.Check(); refusal != nil || r.Release() {
		t.Errorf("it is kept, or the text was refused: %v", refusal)
	}
}
