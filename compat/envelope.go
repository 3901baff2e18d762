package compat

import (
	"crypto/subtle"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/jsonvalue"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// envelope is the JSON object in a token that proved genuine.
type envelope struct {
	*jsonvalue.Document
}

// readEnvelope reads an object in which no name stands twice.
func readEnvelope(text string) (envelope, error) {
	d, err := jsonvalue.Parse(text, false)
	if err != nil || d.Root().Kind != jsonvalue.Object || d.Duplicates() {
		return envelope{}, mcpseal.ReasonMalformed
	}
	return envelope{d}, nil
}

// member returns a member, or nil.
func (e envelope) member(name string) *jsonvalue.Value { return e.Member(e.Root(), name) }

// present returns a member; null counts as absent.
func (e envelope) present(name string) *jsonvalue.Value {
	if v := e.member(name); v != nil && v.Kind != jsonvalue.Null {
		return v
	}
	return nil
}

// text returns a member that must be a string.
func (e envelope) text(name string) (string, bool) {
	if v := e.member(name); v != nil && v.Kind == jsonvalue.String {
		return v.Text, true
	}
	return "", false
}

// utf8 is text for peers that know no lone surrogates.
func (e envelope) utf8(name string) (string, bool) {
	text, ok := e.text(name)
	return text, ok && utf8.ValidString(text)
}

// isText says whether a member is this string. The time it takes tells nothing
// about where the two differ.
func (e envelope) isText(name, want string) bool {
	text, ok := e.text(name)
	return ok && subtle.ConstantTimeCompare([]byte(text), []byte(want)) == 1
}

// number returns a member that must be a finite number.
func (e envelope) number(name string) (float64, bool) {
	v := e.member(name)
	if v == nil || v.Kind != jsonvalue.Number {
		return 0, false
	}
	f := jsonvalue.Float(v.Text)
	return f, !math.IsInf(f, 0)
}

// integer returns a member that must be written as a whole number.
func (e envelope) integer(name string) (int64, bool) {
	v := e.member(name)
	if v == nil || v.Kind != jsonvalue.Number || !jsonvalue.IsInteger(v.Text) {
		return 0, false
	}
	n, err := strconv.ParseInt(v.Text, 10, 64)
	return n, err == nil
}

// maxSeconds keeps every time within the milliseconds of an int64.
const maxSeconds = math.MaxInt64/1000 - 1

// throughSecond is when a token ends that is still good in the second exp. A
// time that is too far away counts as the last there is.
func throughSecond(exp int64) int64 {
	if exp > maxSeconds {
		return math.MaxInt64
	}
	return (max(exp, -maxSeconds) + 1) * 1000
}

// lastSecond is the last full second before a token ends: peers that count in
// whole seconds accept it in all of the second that it names.
func lastSecond(c *mcpseal.Claims) (int64, error) {
	exp := c.Expires/1000 - 1
	if throughSecond(exp) <= c.Issued {
		return 0, errShort
	}
	return exp, nil
}

const (
	errShort = plain.Error("the token would be dead at once: the peer counts whole seconds, so the TTL must be two seconds or more")
	errState = plain.Error("the state is not text in UTF-8, so the peer's token cannot carry it")
	errName  = plain.Error("the request's method, target, audience or user is not text in UTF-8")
)
