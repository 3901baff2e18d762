package compat

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/b64u"
	"github.com/tripseal/tripseal/internal/mac"
	"github.com/tripseal/tripseal/internal/strictjson"
)

const (
	typeScriptPrefix    = "v1."
	typeScriptBindLabel = "mcp.requestState.bind:"
	typeScriptBindSize  = 16
)

// TypeScriptOptions holds the settings of your TypeScript servers, except the key. Copy the
// settings from those servers.
type TypeScriptOptions struct {
	// Bind returns the text that the servers' bind option returns for the same request. Nil
	// means that the servers do not set that option: tokens are then bound to nothing. If
	// Bind returns an error or panics, no token is sealed or accepted.
	Bind func(*tripseal.Binding) (string, error)
	// Binds is the set of claims that the text of Bind depends on. Zero means none: every
	// claim that the boundary demands must then be waived. [TypeScript] returns an error if
	// Bind plainly ignores one of these claims. It cannot notice an ambiguous text, such
	// as two names joined by a character that both names may contain.
	Binds tripseal.ClaimSet
	// Text is true if the payload of a token is a JSON string; a state is then the text of
	// that string. If Text is false, the payload is a JSON value of any type, and a state is
	// the JSON text of that value. In that case, a handler must write only states that are
	// JSON, without white space around them.
	Text bool
}

// TypeScript returns the format of the TypeScript SDK (@modelcontextprotocol/server
// 2.x), HMAC-SHA256 over JSON. If the TypeScript servers have the key as text, pass its
// UTF-8 bytes. Use this format while a fleet moves from the TypeScript SDK to Go.
//
// The format carries the claims in Binds and no others. Its tokens are not encrypted: a
// client can read the state. Times are whole seconds, so a token may live up to a second
// shorter than Config.TTL says.
func TypeScript(key []byte, options TypeScriptOptions) (tripseal.Format, error) {
	if err := checkSecret("the TypeScript format", key); err != nil {
		return nil, err
	}
	if err := checkBinds(&options); err != nil {
		return nil, err
	}
	return &typeScriptFormat{"TypeScript", options, mac.NewKey(key)}, nil
}

// checkBinds returns an error if the set Binds has a claim that the function Bind cannot
// depend on, or plainly ignores. It calls Bind with two requests that differ in one claim:
// Bind ignores the claim if it returns the same text for both requests.
func checkBinds(options *TypeScriptOptions) error {
	const possible = tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimUser
	switch {
	case options.Binds&^possible != 0:
		return fmt.Errorf("compat: TypeScriptOptions.Binds cannot name %v", options.Binds&^possible)
	case options.Binds != 0 && options.Bind == nil:
		return errors.New("compat: TypeScriptOptions.Binds is set but Bind is not")
	}
	for _, change := range []struct {
		claim tripseal.ClaimSet
		apply func(*tripseal.Binding)
	}{
		{tripseal.ClaimRequest, func(b *tripseal.Binding) { b.Method = "prompts/get" }},
		{tripseal.ClaimRequest, func(b *tripseal.Binding) { b.Target = "other" }},
		{tripseal.ClaimArguments, func(b *tripseal.Binding) { b.Arguments = []byte(`{"a":2}`) }},
		{tripseal.ClaimAudience, func(b *tripseal.Binding) { b.Audience = "other" }},
		{tripseal.ClaimUser, func(b *tripseal.Binding) { b.User = "other" }},
		{tripseal.ClaimUser, func(b *tripseal.Binding) { b.User = "" }},
	} {
		if options.Binds&change.claim == 0 {
			continue
		}
		one := tripseal.Binding{Method: "tools/call", Target: "tool", Arguments: []byte(`{"a":1}`), Audience: "service", User: "user"}
		other := one
		change.apply(&other)
		same, err := alike(options.Bind, one, other)
		if err != nil {
			return err
		}
		if same {
			return fmt.Errorf("compat: TypeScriptOptions.Binds names %v, but Bind returns the same text for two requests that differ in it", change.claim)
		}
	}
	return nil
}

// alike reports whether the function bind returns the same text for two bindings. It returns
// an error if that function fails for the first binding, and false if it fails for the second
// one.
func alike(bind func(*tripseal.Binding) (string, error), one, other tripseal.Binding) (same bool, err error) {
	var a, b string
	if err := tripseal.Guard(func() (err error) { a, err = bind(&one); return err }); err != nil {
		return false, errors.New("compat: TypeScriptOptions.Bind fails for a made-up request with everything set, so Binds cannot be tried")
	}
	if err := tripseal.Guard(func() (err error) { b, err = bind(&other); return err }); err != nil {
		return false, nil
	}
	return a == b, nil
}

type typeScriptFormat struct {
	redacted
	options TypeScriptOptions
	key     mac.Key
}

func (f *typeScriptFormat) Prefix() string             { return typeScriptPrefix }
func (f *typeScriptFormat) Carries() tripseal.ClaimSet { return f.options.Binds }

// Digest returns a claim that binds a token to the text from the option Bind. If this text depends
// on the arguments, the claim binds the token to the arguments too. Digest returns nil if Bind is
// not set.
func (f *typeScriptFormat) Digest(b *tripseal.Binding) ([]byte, error) {
	if f.options.Bind == nil {
		return nil, nil
	}
	if f.options.Binds&tripseal.ClaimArguments != 0 {
		// Refuse arguments that Bind and the handler might read differently.
		if _, err := b.ArgumentsDigest(); err != nil {
			return nil, err
		}
	}
	text, err := f.options.Bind(b)
	if err != nil {
		return nil, err
	}
	sum := f.key.Sum(typeScriptBindLabel, text)
	return b64u.Append(nil, sum[:typeScriptBindSize]), nil
}

const errNotJSON = tripseal.PlainError("the state is not JSON, or has white space around it; the payload of a TypeScript token is JSON: " +
	"write that, or set TypeScriptOptions.Text if the TypeScript servers have strings there")

func (f *typeScriptFormat) Seal(_ context.Context, _ *tripseal.Binding, c *tripseal.Claims) (string, error) {
	exp, err := lastSecond(c)
	if err != nil {
		return "", err
	}
	payload, err := f.envelope(c, exp, string(c.Arguments))
	if err != nil {
		return "", err
	}
	return f.sign(payload), nil
}

var typeScriptStrings = strictjson.StringStyle{Surrogates: true, Short: strictjson.Usual.Short}

// envelope returns the JSON object of a token, byte for byte as JSON.stringify writes it.
func (f *typeScriptFormat) envelope(c *tripseal.Claims, exp int64, tag string) ([]byte, error) {
	buf := append(make([]byte, 0, 96+len(c.State)+len(c.State)/8), '{')
	if c.HasState {
		buf = append(buf, `"p":`...)
		var ok bool
		switch {
		case !f.options.Text:
			buf = append(buf, c.State...)
		default:
			if buf, ok = strictjson.AppendString(buf, c.State, &typeScriptStrings); !ok {
				return nil, errState
			}
		}
		buf = append(buf, ',')
	}
	buf = strconv.AppendInt(append(buf, `"exp":`...), exp, 10)
	if tag != "" {
		buf = append(append(append(buf, `,"b":"`...), tag...), '"')
	}
	buf = append(buf, '}')
	if c.HasState && !f.options.Text {
		// The payload holds the handler's state as it is, so the state must be one JSON value.
		var e envelope
		if !e.read(string(buf)) || e.payload.Raw != c.State {
			return nil, errNotJSON
		}
	}
	return buf, nil
}

func (f *typeScriptFormat) sign(payload []byte) string {
	size := len(typeScriptPrefix) + b64u.EncodedLen(len(payload)) + 1 + b64u.EncodedLen(mac.Size)
	text := b64u.Append(append(make([]byte, 0, size), typeScriptPrefix...), payload)
	sum := f.key.Sum(string(text))
	return string(b64u.Append(append(text, '.'), sum[:]))
}

func (f *typeScriptFormat) Open(_ context.Context, b *tripseal.Binding, token string) (tripseal.Claims, error) {
	payload, err := f.verify(token)
	if err != nil {
		return tripseal.Claims{}, err
	}
	var e envelope
	if !e.read(payload) {
		return tripseal.Claims{}, tripseal.ReasonMalformed
	}
	exp, ok := e.expires.number()
	if !ok {
		return tripseal.Claims{}, tripseal.ReasonMalformed
	}
	tag, err := f.Digest(b)
	if err != nil {
		return tripseal.Claims{}, err
	}
	if tag == nil && !e.bind.absent() || tag != nil && !e.bind.equalsSecret(string(tag)) {
		return tripseal.Claims{}, f.notBound()
	}
	c := tripseal.Claims{Expires: throughSecond(floorSeconds(exp)), Arguments: tag}
	if e.payload.absent() {
		return c, nil
	}
	c.State, c.HasState = e.payload.Raw, true
	if f.options.Text {
		if c.State, ok = e.payload.text(); !ok {
			return tripseal.Claims{}, tripseal.ReasonMalformed
		}
	}
	return c, nil
}

// verify returns the payload of a token, or an error if the token is not genuine.
func (f *typeScriptFormat) verify(token string) (string, error) {
	signed, tag, ok := cutLast(token, '.')
	if !ok || !strings.HasPrefix(signed, typeScriptPrefix) {
		return "", tripseal.ReasonMalformed
	}
	sum, err := b64u.Decode(make([]byte, 0, 2*mac.Size), tag)
	if err != nil {
		return "", tripseal.ReasonMalformed
	}
	if !f.key.Verify(sum, signed) {
		return "", tripseal.ReasonForged
	}
	payload, err := b64u.Decode(nil, signed[len(typeScriptPrefix):])
	if err != nil {
		return "", tripseal.ReasonMalformed
	}
	return string(payload), nil
}

func cutLast(text string, sep byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(text, sep); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}

// floorSeconds rounds a time down to whole seconds, and limits it to the range from
// -maxSeconds to maxSeconds.
func floorSeconds(seconds float64) int64 {
	return int64(math.Floor(min(max(seconds, -maxSeconds), maxSeconds)))
}

// notBound returns the reason for rejecting a token with another binding: ReasonUser if the
// format binds the user, otherwise ReasonRequest.
func (f *typeScriptFormat) notBound() tripseal.Reason {
	if f.options.Binds&tripseal.ClaimUser != 0 {
		return tripseal.ReasonUser
	}
	return tripseal.ReasonRequest
}
