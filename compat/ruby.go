package compat

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/strictjson"
)

const (
	rubyPrefix  = "v1."
	rubyKeySize = 32
	// rubyMaxLevels is how deep arguments may nest. Ruby reads 100 levels, and the params
	// object around the arguments is one of them.
	rubyMaxLevels = 99
)

// Ruby returns the format of the Ruby SDK (mcp 1.x), AES-256-GCM over JSON claims under
// a key of exactly 32 bytes. Arguments are written as the gem json 2.6 writes them. Use
// this format while a fleet moves from the Ruby SDK to Go.
//
// The format carries the request, the arguments and the audience, but neither user nor
// questions nor flow nor single use. If a handler wrote no state, the state comes back
// as "". Times are whole seconds, so a token may live up to a second shorter than
// Config.TTL says.
func Ruby(key []byte) (tripseal.Format, error) {
	if len(key) != rubyKeySize {
		return nil, fmt.Errorf("compat: a key for the Ruby format has %d bytes, this one has %d", rubyKeySize, len(key))
	}
	sealer, err := newSealer(key)
	if err != nil {
		return nil, err
	}
	return &rubyFormat{"Ruby", sealer}, nil
}

type rubyFormat struct {
	redacted
	sealer *sealer
}

func (f *rubyFormat) Prefix() string { return rubyPrefix }

func (f *rubyFormat) Carries() tripseal.ClaimSet {
	return tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience
}

// Digest returns the digest of the arguments, as a Ruby server writes it into a token.
func (f *rubyFormat) Digest(b *tripseal.Binding) ([]byte, error) {
	sum, err := rubyStyle.Sum(b.Arguments)
	if err != nil {
		return nil, err
	}
	return hex.AppendEncode(nil, sum[:]), nil
}

func (f *rubyFormat) Seal(_ context.Context, b *tripseal.Binding, c *tripseal.Claims) (string, error) {
	exp, err := lastSecond(c)
	if err != nil {
		return "", err
	}
	payload, err := rubyEnvelope(b, c.State, exp, string(c.Arguments))
	if err != nil {
		return "", err
	}
	return f.sealer.seal(rubyPrefix, nil, payload, []byte(rubyPrefix)), nil
}

// rubyEnvelope returns the JSON object of a token, byte for byte as a Ruby server writes it.
func rubyEnvelope(b *tripseal.Binding, state string, exp int64, digest string) ([]byte, error) {
	buf := append(make([]byte, 0, 192+len(state)+len(state)/8), `{"v":1,"exp":`...)
	buf = strconv.AppendInt(buf, exp, 10)
	ok := true
	member := func(start, text string) {
		if ok {
			buf, ok = strictjson.AppendString(append(buf, start...), text, &strictjson.Usual)
		}
	}
	member(`,"m":`, b.Method)
	member(`,"t":`, b.Target)
	member(`,"a":`, digest)
	if b.Audience != "" {
		member(`,"aud":`, b.Audience)
	}
	if !ok {
		return nil, errName
	}
	member(`,"s":`, state)
	if !ok {
		return nil, errState
	}
	return append(buf, '}'), nil
}

func (f *rubyFormat) Open(_ context.Context, b *tripseal.Binding, token string) (tripseal.Claims, error) {
	payload, err := f.open(token)
	if err != nil {
		return tripseal.Claims{}, err
	}
	return rubyClaims(payload, b)
}

// open returns the payload of a token, or an error if the token is not genuine.
func (f *rubyFormat) open(token string) (string, error) {
	text, ok := strings.CutPrefix(token, rubyPrefix)
	if !ok {
		return "", tripseal.ReasonMalformed
	}
	s := scratches.Get().(*scratch)
	defer s.release()
	if !s.decode(text, 0) {
		return "", tripseal.ReasonMalformed
	}
	return f.sealer.open(s, s.sealed, []byte(rubyPrefix))
}

// rubyClaims returns the claims in the payload of a genuine token. It returns an error if
// the payload is malformed or not bound to b.
func rubyClaims(payload string, b *tripseal.Binding) (tripseal.Claims, error) {
	var e envelope
	if !e.read(payload) {
		return tripseal.Claims{}, tripseal.ReasonMalformed
	}
	if v, ok := e.version.integer(); !ok || v != 1 {
		return tripseal.Claims{}, tripseal.ReasonVersion
	}
	state, hasState := e.state.utf8()
	arguments, hasArguments := e.arguments.text()
	exp, hasExp := e.expires.integer()
	switch {
	case !hasState || !hasArguments || !hasExp:
		return tripseal.Claims{}, tripseal.ReasonMalformed
	case !e.method.equalsPublic(b.Method) || !e.target.equalsPublic(b.Target):
		return tripseal.Claims{}, tripseal.ReasonRequest
	case b.Audience == "" && !e.audience.isNone(), b.Audience != "" && !e.audience.equalsPublic(b.Audience):
		return tripseal.Claims{}, tripseal.ReasonAudience
	}
	return tripseal.Claims{Expires: throughSecond(exp), Arguments: []byte(arguments), State: state, HasState: true}, nil
}

// rubyStyle writes arguments as the Ruby SDK writes them, and {} for arguments that are false in a Ruby condition.
var rubyStyle = strictjson.Style{
	Strings: strictjson.Usual, Number: rubyNumber, Levels: rubyMaxLevels, Empty: []string{"null", "false"},
	Refusal: "half a surrogate pair, or a number beyond a double",
}

func rubyNumber(dst, literal []byte) ([]byte, bool) {
	if string(literal) == "-0" {
		return append(dst, '0'), true
	}
	if isInteger(literal) {
		return append(dst, literal...), true
	}
	f := strictjson.Float(literal)
	if math.IsInf(f, 0) {
		return dst, false
	}
	if abs := math.Abs(f); 1e15 <= abs && abs < 1e16 && f != math.Trunc(f) {
		return strconv.AppendFloat(dst, f, 'f', -1, 64), true // Ruby writes these numbers without an exponent
	}
	start := len(dst)
	dst = appendFloat(dst, f, -4, 14)
	text := string(dst[start:])
	if mantissa, exponent, ok := strings.Cut(text, "e"); ok && !strings.Contains(mantissa, ".") {
		dst = append(append(append(dst[:start], mantissa...), ".0e"...), exponent...)
	}
	return dst, true
}
