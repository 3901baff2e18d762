package compat

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/b64u"
	"github.com/tripseal/tripseal/internal/strictjson"
)

const (
	pythonPrefix        = "v1."
	pythonKeyInfo       = "mcp/request-state/v1/aes-256-gcm"
	pythonKeyIDLabel    = "mcp/request-state/v1/kid:"
	pythonUserLabel     = "mcp/request-state/principal:"
	pythonKeyIDSize     = 4
	pythonSaltSize      = 8
	pythonDigestSize    = 16
	pythonDigestText    = 22 // the length of a digest in base64url
	methodReadResource  = "resources/read"
	pythonMaxTimeMillis = 1 << 53
)

// PythonOptions holds the settings of your Python servers, except the keys. Copy the
// settings from those servers.
type PythonOptions struct {
	// ClaimEmpty is the set of claims that tokens hold even if the claims are empty:
	// ClaimAudience, ClaimUser or both. A Python server writes an empty claim if it was
	// given "" instead of None. Zero means that tokens hold no empty claims.
	ClaimEmpty tripseal.ClaimSet
}

// Python returns the format of the Python SDK (mcp 2.x), AES-256-GCM over JSON claims.
// The secrets are those of the Python servers, in the same order: the first seals tokens,
// and all of them open tokens. If the Python servers have a secret as text, pass its UTF-8
// bytes. Use this format while a fleet moves from the Python SDK to Go.
//
// The format carries the request, the arguments, the audience and the user, but neither
// questions nor flow nor single use. It ignores the arguments of resources/read. If a
// handler wrote no state, the state comes back as "".
//
// The boundary's principals must return the same names as the principals of the Python
// servers. [PythonUser] returns the name that the SDK gives a user by default.
func Python(secrets [][]byte, options PythonOptions) (tripseal.Format, error) {
	if len(secrets) == 0 {
		return nil, errors.New("compat: the Python format needs at least one secret, the first seals")
	}
	if unknown := options.ClaimEmpty &^ (tripseal.ClaimAudience | tripseal.ClaimUser); unknown != 0 {
		return nil, fmt.Errorf("compat: PythonOptions.ClaimEmpty cannot name %v", unknown)
	}
	f := &pythonFormat{
		redacted: redacted(fmt.Sprintf("Python(%d secrets)", len(secrets))),
		options:  options,
		keys:     make(map[[pythonKeyIDSize]byte]*pythonKey, len(secrets)),
	}
	for i, secret := range secrets {
		if err := checkSecret("the Python format", secret); err != nil {
			return nil, fmt.Errorf("%w (secret %d)", err, i+1)
		}
		key, err := newPythonKey(secret)
		if err != nil {
			return nil, err
		}
		if f.keys[key.id] != nil {
			return nil, fmt.Errorf("compat: secret %d has the key id of an earlier one, %x; drop it", i+1, key.id)
		}
		f.keys[key.id] = key
		if f.first == nil {
			f.first = key
		}
	}
	return f, nil
}

// pythonKey holds the values that are derived from one secret.
type pythonKey struct {
	id         [pythonKeyIDSize]byte
	additional []byte
	*sealer
}

func newPythonKey(secret []byte) (*pythonKey, error) {
	key, err := derive(secret, pythonKeyInfo)
	if err != nil {
		return nil, err
	}
	sealer, err := newSealer(key)
	if err != nil {
		return nil, err
	}
	k := &pythonKey{id: pythonKeyID(key), sealer: sealer}
	k.additional = append([]byte(pythonPrefix), k.id[:]...)
	return k, nil
}

func pythonKeyID(key []byte) [pythonKeyIDSize]byte {
	sum := sha256.Sum256(append([]byte(pythonKeyIDLabel), key...))
	return [pythonKeyIDSize]byte(sum[:])
}

type pythonFormat struct {
	redacted
	options PythonOptions
	first   *pythonKey
	keys    map[[pythonKeyIDSize]byte]*pythonKey
}

func (f *pythonFormat) Prefix() string { return pythonPrefix }

func (f *pythonFormat) Carries() tripseal.ClaimSet {
	return tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimUser
}

// KeyID returns the key id that a token holds, whether the token is genuine or not. It
// returns "" if the token holds none.
func (f *pythonFormat) KeyID(token string) string {
	text, ok := strings.CutPrefix(token, pythonPrefix)
	if !ok || len(text) < 8 {
		return ""
	}
	id, err := b64u.Decode(nil, text[:8]) // eight characters hold six bytes; the id is the first four
	if err != nil {
		return ""
	}
	return hex.EncodeToString(id[:pythonKeyIDSize])
}

// Digest returns the digest of the arguments, as a Python server writes it into a token.
func (f *pythonFormat) Digest(b *tripseal.Binding) ([]byte, error) {
	text := b.Arguments
	if b.Method == methodReadResource {
		text = nil
	}
	sum, err := pythonStyle.Sum(text)
	if err != nil {
		return nil, err
	}
	return b64u.Append(make([]byte, 0, pythonDigestText), sum[:pythonDigestSize]), nil
}

func (f *pythonFormat) Seal(_ context.Context, b *tripseal.Binding, c *tripseal.Claims) (string, error) {
	var salt [pythonSaltSize]byte
	rand.Read(salt[:]) // never fails
	payload, err := f.envelope(b, c, salt[:])
	if err != nil {
		return "", err
	}
	return f.seal(payload), nil
}

func (f *pythonFormat) seal(payload []byte) string {
	return f.first.seal(pythonPrefix, f.first.id[:], payload, f.first.additional)
}

// envelope returns the JSON object of a token, byte for byte as a Python server writes it.
func (f *pythonFormat) envelope(b *tripseal.Binding, c *tripseal.Claims, salt []byte) ([]byte, error) {
	buf := append(make([]byte, 0, 256+len(c.State)+len(c.State)/8), `{"v":1,"iat":`...)
	buf = pythonFloat(buf, float64(c.Issued)/1000)
	buf = append(buf, `,"exp":`...)
	buf = pythonFloat(buf, float64(c.Expires)/1000)
	ok := true
	member := func(start, text string) {
		if ok {
			buf, ok = strictjson.AppendString(append(buf, start...), text, &pythonStrings)
		}
	}
	member(`,"m":`, b.Method)
	member(`,"t":`, b.Target)
	member(`,"a":`, string(c.Arguments))
	if !ok {
		return nil, errName
	}
	member(`,"s":`, c.State)
	if !ok {
		return nil, errState
	}
	if f.hasAudience(b) {
		member(`,"aud":`, b.Audience)
	}
	if f.hasPrincipal(b) {
		member(`,"p":`, pythonUser(b.User, salt))
	}
	if !ok {
		return nil, errName
	}
	return append(buf, '}'), nil
}

func (f *pythonFormat) hasAudience(b *tripseal.Binding) bool {
	return b.Audience != "" || f.options.ClaimEmpty&tripseal.ClaimAudience != 0
}

func (f *pythonFormat) hasPrincipal(b *tripseal.Binding) bool {
	return b.User != "" || f.options.ClaimEmpty&tripseal.ClaimUser != 0
}

func (f *pythonFormat) Open(_ context.Context, b *tripseal.Binding, token string) (tripseal.Claims, error) {
	payload, err := f.open(token)
	if err != nil {
		return tripseal.Claims{}, err
	}
	var e envelope
	if !e.read(payload) {
		return tripseal.Claims{}, tripseal.ReasonMalformed
	}
	if v, ok := e.version.integer(); !ok || v != 1 {
		return tripseal.Claims{}, tripseal.ReasonVersion
	}
	state, hasState := e.state.text()
	arguments, hasArguments := e.arguments.text()
	issued, hasIssued := e.issued.millis(math.Ceil)
	expires, hasExpires := e.expires.millis(math.Floor)
	switch {
	case !hasState || !hasArguments || !hasIssued || !hasExpires:
		return tripseal.Claims{}, tripseal.ReasonMalformed
	case !e.method.equalsPublic(b.Method) || !e.target.equalsPublic(b.Target):
		return tripseal.Claims{}, tripseal.ReasonRequest
	case !f.sameAudience(&e, b):
		return tripseal.Claims{}, tripseal.ReasonAudience
	case !f.samePrincipal(&e, b):
		return tripseal.Claims{}, tripseal.ReasonUser
	}
	return tripseal.Claims{Issued: issued, Expires: expires, Arguments: []byte(arguments), State: state, HasState: true}, nil
}

// open returns the payload of a token, or an error if the token is not genuine.
func (f *pythonFormat) open(token string) (string, error) {
	text, ok := strings.CutPrefix(token, pythonPrefix)
	if !ok {
		return "", tripseal.ReasonMalformed
	}
	s := scratches.Get().(*scratch)
	defer s.release()
	if !s.decode(text, pythonKeyIDSize) {
		return "", tripseal.ReasonMalformed
	}
	key := f.keys[[pythonKeyIDSize]byte(s.sealed)]
	if key == nil {
		return "", tripseal.ReasonUnknownKey
	}
	return key.open(s, s.sealed[pythonKeyIDSize:], key.additional)
}

// millis converts a claim from seconds to milliseconds. It returns false if the claim is not
// a time. Pass math.Ceil for the claim iat and math.Floor for the claim exp, so that rounding
// never makes a token live longer.
func (c *claim) millis(round func(float64) float64) (int64, bool) {
	if c.IsNumber() {
		if millis, ok := wholeMillis(c.Text); ok {
			return millis, true
		}
	}
	seconds, ok := c.number()
	millis := round(seconds * 1000)
	if !ok || math.Abs(millis) > pythonMaxTimeMillis {
		return 0, false
	}
	return int64(millis), true
}

// wholeMillis converts a time from seconds to milliseconds. It is fast, but handles only the
// usual texts: ten digits, and at most three more after a point. It returns false for other
// texts.
func wholeMillis(text string) (millis int64, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if len(whole) != 10 || len(fraction) > 3 {
		return 0, false
	}
	for _, digits := range []string{whole, fraction} {
		for i := range len(digits) {
			if digits[i] < '0' || digits[i] > '9' {
				return 0, false
			}
			millis = millis*10 + int64(digits[i]-'0')
		}
	}
	for range 3 - len(fraction) {
		millis *= 10
	}
	return millis, true
}

func (f *pythonFormat) sameAudience(e *envelope, b *tripseal.Binding) bool {
	if !f.hasAudience(b) {
		return e.audience.isNone()
	}
	return e.audience.equalsPublic(b.Audience)
}

func (f *pythonFormat) samePrincipal(e *envelope, b *tripseal.Binding) bool {
	if !f.hasPrincipal(b) {
		return e.payload.isNone()
	}
	text, ok := e.payload.text()
	if !ok {
		return false
	}
	user, err := b64u.Decode(make([]byte, 0, 64), text)
	if err != nil || len(user) != pythonSaltSize+pythonDigestSize {
		return false
	}
	want := pythonUserDigest(b.User, user[:pythonSaltSize])
	return subtle.ConstantTimeCompare(user[pythonSaltSize:], want[:]) == 1
}
