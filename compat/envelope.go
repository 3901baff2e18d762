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

// envelope is the JSON object in a genuine token. No peer has all of these claims; p
// means the user to one peer and the payload to another.
type envelope struct {
	version, issued, expires, method, target, arguments, audience, state, bind, payload claim
}

// claim is a member of an envelope. It is absent if it has no raw text.
type claim struct{ jsonvalue.Member }

// read reads an object. It returns false if the text is not one, or if a claim appears
// twice.
func (e *envelope) read(text string) bool {
	members := jsonvalue.ReadMembers(text)
	for v, ok := members.Next(); ok; v, ok = members.Next() {
		c := e.named(v.Name)
		switch {
		case c == nil: // a claim that peers ignore too
		case !c.absent():
			return false
		default:
			c.Member = v
		}
	}
	return members.Whole()
}

func (e *envelope) named(name string) *claim {
	switch name {
	case "v":
		return &e.version
	case "iat":
		return &e.issued
	case "exp":
		return &e.expires
	case "m":
		return &e.method
	case "t":
		return &e.target
	case "a":
		return &e.arguments
	case "aud":
		return &e.audience
	case "s":
		return &e.state
	case "b":
		return &e.bind
	case "p":
		return &e.payload
	}
	return nil
}

func (c *claim) absent() bool { return c.Raw == "" }

// none reports whether a claim is absent or null.
func (c *claim) none() bool { return c.absent() || c.Kind == jsonvalue.Null }

// text returns a claim that must be a string.
func (c *claim) text() (string, bool) { return c.Text, c.Kind == jsonvalue.String }

// utf8 is text, but refuses lone surrogates, for peers that cannot write them.
func (c *claim) utf8() (string, bool) {
	return c.Text, c.Kind == jsonvalue.String && utf8.ValidString(c.Text)
}

// names reports whether a claim is this name, which must not be secret.
func (c *claim) names(name string) bool { return c.Kind == jsonvalue.String && c.Text == name }

// is reports whether a claim is this string. The time it takes does not show where the
// two differ. It is subtle.ConstantTimeCompare for strings, without a copy.
func (c *claim) is(want string) bool {
	if c.Kind != jsonvalue.String || len(c.Text) != len(want) {
		return false
	}
	var difference byte
	for i := range len(want) {
		difference |= c.Text[i] ^ want[i]
	}
	return subtle.ConstantTimeByteEq(difference, 0) == 1
}

// number returns a claim that must be a finite number.
func (c *claim) number() (float64, bool) {
	if c.Kind != jsonvalue.Number {
		return 0, false
	}
	f := jsonvalue.Float(c.Text)
	return f, !math.IsInf(f, 0)
}

// integer returns a claim that must be written as a whole number.
func (c *claim) integer() (int64, bool) {
	if c.Kind != jsonvalue.Number || !jsonvalue.IsInteger(c.Text) {
		return 0, false
	}
	n, err := strconv.ParseInt(c.Text, 10, 64)
	return n, err == nil
}

// maxSeconds is the latest time that fits an int64 in milliseconds.
const maxSeconds = math.MaxInt64/1000 - 1

// throughSecond returns the expiry, in milliseconds, of a token that is still valid
// throughout the second exp. A time that is too late becomes the latest possible one.
func throughSecond(exp int64) int64 {
	if exp > maxSeconds {
		return math.MaxInt64
	}
	return (max(exp, -maxSeconds) + 1) * 1000
}

// lastSecond returns the expiry to write for a peer that counts in whole seconds: the
// last second that ends before the token expires. The peer accepts the token until the
// end of that second. The error says that the token would expire at once.
func lastSecond(c *mcpseal.Claims) (int64, error) {
	exp := c.Expires/1000 - 1
	if throughSecond(exp) <= c.Issued {
		return 0, errShort
	}
	return exp, nil
}

const (
	errShort = plain.Error("the token would expire at once: the peer counts whole seconds, so the TTL must be a second or more")
	errState = plain.Error("the state is not text in UTF-8, so the peer's token cannot carry it")
	errName  = plain.Error("the request's method, target, audience or user is not text in UTF-8")
)
