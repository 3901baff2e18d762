package compat

import (
	"crypto/subtle"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/strictjson"
)

// envelope is the JSON object in a token. It has a field for each member that any of the
// peers writes; no peer writes all of them. The field payload is the member "p", which holds
// the user in Python and the payload in TypeScript.
type envelope struct {
	version, issued, expires, method, target, arguments, audience, state, bind, payload claim
}

// claim is a member of an envelope. If the envelope lacks this member, the claim's Raw is
// empty.
type claim struct{ strictjson.Member }

// read reads a JSON object into e. It returns false if the text is not an object, or if a
// claim appears twice.
func (e *envelope) read(text string) bool {
	members := strictjson.ReadMembers(text)
	for v, ok := members.Next(); ok; v, ok = members.Next() {
		c := e.named(v.Name)
		switch {
		case c == nil: // ignore an unknown member, as peers do
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

// isNone reports whether the claim is absent or null.
func (c *claim) isNone() bool { return c.absent() || c.Raw == "null" }

// text returns the claim as a string, and false if it is not a string.
func (c *claim) text() (string, bool) { return c.Text, c.IsString() }

// utf8 returns the claim as a string, and false if it is not a string or has a lone
// surrogate. It is for peers that cannot write lone surrogates.
func (c *claim) utf8() (string, bool) {
	return c.Text, c.IsString() && utf8.ValidString(c.Text)
}

// equalsPublic reports whether the claim is a string equal to name. The time that the
// comparison takes may reveal where the two differ, so the name must not be secret.
func (c *claim) equalsPublic(name string) bool { return c.IsString() && c.Text == name }

// equalsSecret reports whether the claim is a string equal to want. The time that the
// comparison takes does not reveal where the two differ. Unlike subtle.ConstantTimeCompare,
// equalsSecret needs no copies of the strings.
func (c *claim) equalsSecret(want string) bool {
	if !c.IsString() || len(c.Text) != len(want) {
		return false
	}
	var difference byte
	for i := range len(want) {
		difference |= c.Text[i] ^ want[i]
	}
	return subtle.ConstantTimeByteEq(difference, 0) == 1
}

// number returns the claim as a number, and false if it is not a finite number.
func (c *claim) number() (float64, bool) {
	if !c.IsNumber() {
		return 0, false
	}
	f := strictjson.Float(c.Text)
	return f, !math.IsInf(f, 0)
}

// integer returns the claim as an integer, and false if it is not written as a whole number.
func (c *claim) integer() (int64, bool) {
	if !c.IsNumber() || !isInteger(c.Text) {
		return 0, false
	}
	n, err := strconv.ParseInt(c.Text, 10, 64)
	return n, err == nil
}

// maxSeconds is the latest second whose end, in milliseconds, fits into an int64.
const maxSeconds = math.MaxInt64/1000 - 1

// throughSecond converts an expiry from seconds to milliseconds. A token is valid to the end
// of the second in which it expires, so the result is the end of that second. A time that is
// too late for an int64 becomes the latest possible time.
func throughSecond(exp int64) int64 {
	if exp > maxSeconds {
		return math.MaxInt64
	}
	return (max(exp, -maxSeconds) + 1) * 1000
}

// lastSecond returns the expiry to write for a peer that counts in whole seconds: the last
// second that ends before the token expires. The peer accepts the token until the end of
// that second. lastSecond returns an error if the token would expire at once.
func lastSecond(c *tripseal.Claims) (int64, error) {
	exp := c.Expires/1000 - 1
	if throughSecond(exp) <= c.Issued {
		return 0, errShort
	}
	return exp, nil
}

const (
	errShort = tripseal.PlainError("the token would expire at once: the peer counts whole seconds, so the TTL must be a second or more")
	errState = tripseal.PlainError("the state is not text in UTF-8, so the peer's token cannot carry it")
	errName  = tripseal.PlainError("the request's method, target, audience or user is not text in UTF-8")
)
