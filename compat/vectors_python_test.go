package compat

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/b64u"
)

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func pythonKeys(t *testing.T, keys []string, options PythonOptions) (*pythonFormat, error) {
	t.Helper()
	secrets := make([][]byte, len(keys))
	for i, key := range keys {
		secrets[i] = unhex(t, key)
	}
	f, err := Python(secrets, options)
	if err != nil {
		return nil, err
	}
	return f.(*pythonFormat), nil
}

func mustPython(t *testing.T, keys []string, options PythonOptions) *pythonFormat {
	t.Helper()
	f, err := pythonKeys(t, keys, options)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func checkPythonConstruct(t *testing.T, c *vector) verdict {
	_, err := pythonKeys(t, c.MintKeys, PythonOptions{})
	return verdict{accepted: err == nil}
}

func checkPythonCodec(t *testing.T, c *vector) verdict {
	checkPythonInternals(t, c)
	minting := mustPython(t, c.MintKeys, PythonOptions{})
	if c.OriginalToken == "" {
		// Our own token differs from the peer's in the nonce, but has the same payload.
		again, err := minting.open(minting.seal(unhex(t, c.PayloadInHex)))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "the payload of a token of ours", hex.EncodeToString([]byte(again)), c.PayloadInHex)
	}
	payload, err := mustPython(t, c.OpenKeys, PythonOptions{}).open(c.Token)
	return verdict{err == nil, hex.EncodeToString([]byte(payload)), orEmpty(c.PayloadHex)}
}

// checkPythonInternals compares keys and key ids with the peer's, byte for byte.
func checkPythonInternals(t *testing.T, c *vector) {
	t.Helper()
	if c.Internals == nil {
		return
	}
	for _, key := range c.Internals.Keys {
		derived, err := derive(unhex(t, key.KeyHex), pythonKeyInfo)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "the derived key", hex.EncodeToString(derived), key.DerivedHex)
		id := pythonKeyID(derived)
		equal(t, "the key's id", hex.EncodeToString(id[:]), key.KeyIDHex)
		made, err := newPythonKey(unhex(t, key.KeyHex))
		if err != nil {
			t.Fatal(err)
		}
		if key.KeyIDHex == c.Internals.KeyIDHex {
			equal(t, "the additional data", hex.EncodeToString(made.additional), c.Internals.AdditionalHex)
		}
	}
	sealed, err := b64u.Decode(nil, strings.TrimPrefix(c.Token, pythonPrefix))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the key's id in the token", hex.EncodeToString(sealed[:4]), c.Internals.KeyIDHex)
	equal(t, "the nonce in the token", hex.EncodeToString(sealed[4:16]), c.Internals.NonceHex)
	equal(t, "KeyID", (&pythonFormat{}).KeyID(c.Token), c.Internals.KeyIDHex)
}

// refusedOnTop names cases whose arguments the peer accepts, but our format refuses. In such
// arguments, Go would read something that no digest covers.
var refusedOnTop = []string{"args: dup-keys", "args: nested-dup", "args: lone-surrogate-key", "args: nan-literal", "args: inf-literal",
	"args: key-escapes", "args: prefix-keys", `args: {"a":1,"a":2}`, `args: {"k\u0000":1,"k":2,"K":3}`, `fingerprint: {"a":1,"a":2}`}

// checkRefused checks that arguments of one of these cases have no digest.
func checkRefused(t *testing.T, err error) verdict {
	if err == nil {
		t.Error("these arguments have a digest")
	}
	return verdict{accepted: true}
}

func checkPythonArguments(t *testing.T, c *vector) verdict {
	text := orEmpty(c.ArgumentsJSON)
	if c.ArgumentsNote != "" && c.ArgumentsJSON == nil {
		if !strings.Contains(c.ArgumentsNote, "5000 [") {
			t.Fatalf("the arguments %q are unknown here", c.ArgumentsNote)
		}
		text = `{"d":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}"
	}
	if c.Method == methodReadResource {
		text = ""
	}
	digest, err := new(pythonFormat).Digest(&tripseal.Binding{Method: c.Method, Arguments: []byte(text)})
	if slices.Contains(refusedOnTop, c.Name) {
		return checkRefused(t, err)
	}
	if err != nil {
		return verdict{}
	}
	equal(t, "the digest", string(digest), c.Digest)
	sum := sha256.Sum256([]byte(c.CanonicalJSON))
	return verdict{true, string(digest), string(b64u.Append(nil, sum[:pythonDigestSize]))}
}

func checkPythonBoundary(t *testing.T, c *vector) verdict {
	checkPythonInternals(t, c)
	if c.Mint.Crafted == nil {
		checkPythonMint(t, c)
	}
	if c.WireState != nil {
		// This request never reaches a boundary. Its requestState is not a JSON string, so decoding
		// the request fails.
		var params struct {
			RequestState string `json:"requestState"`
		}
		wire, _ := json.Marshal(map[string]any{"requestState": json.RawMessage(wireText(t, c.WireState))})
		return verdict{accepted: json.Unmarshal(wire, &params) == nil}
	}
	binding, options := pythonSide(t, c.Verify)
	want := orEmpty(c.State)
	if c.StateJSON != nil {
		want = textOf(t, *c.StateJSON)
	}
	state, hasState, ok := open(t, mustPython(t, c.Verify.KeysHex, options), c.Verify.Now, binding, c.Token)
	return verdict{ok && hasState, state, want}
}

func wireText(t *testing.T, wire any) string {
	if text, ok := wire.(string); ok {
		return text
	}
	text, err := json.Marshal(wire)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pythonSide returns the request of one side, and the options that the format needs for it.
func pythonSide(t *testing.T, s *side) (tripseal.Binding, PythonOptions) {
	t.Helper()
	var params struct {
		Name, URI any
		Arguments json.RawMessage
	}
	if err := json.Unmarshal([]byte(s.ParamsJSON), &params); err != nil {
		t.Fatal(err)
	}
	target, _ := params.Name.(string)
	if s.Method == methodReadResource {
		target, _ = params.URI.(string)
	}
	var options PythonOptions
	if s.Audience != nil && *s.Audience == "" {
		options.ClaimEmpty |= tripseal.ClaimAudience
	}
	if s.Principal != nil && *s.Principal == "" {
		options.ClaimEmpty |= tripseal.ClaimUser
	}
	return tripseal.Binding{
		Method: s.Method, Target: target, Arguments: params.Arguments,
		Audience: orEmpty(s.Audience), User: orEmpty(s.Principal),
	}, options
}

// checkPythonMint compares the parts of our own token with those of the peer's, byte for byte.
func checkPythonMint(t *testing.T, c *vector) {
	t.Helper()
	binding, options := pythonSide(t, c.Mint)
	in := c.Internals
	if in.Target != nil {
		equal(t, "the target", binding.Target, *in.Target)
	}
	if len(c.Mint.Components) > 0 {
		principal, err := PythonUser(orEmpty(c.Mint.Components[0]), orEmpty(c.Mint.Components[1]), orEmpty(c.Mint.Components[2]))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "the principal", principal, binding.User)
	}
	digest, err := new(pythonFormat).Digest(&binding)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the digest", string(digest), in.ArgsDigest)
	sum := sha256.Sum256([]byte(in.CanonicalArgs))
	equal(t, "the digest of the canonical arguments", string(digest), string(b64u.Append(nil, sum[:pythonDigestSize])))
	salt := unhex(t, in.PrincipalSalt)
	if in.PrincipalClaim != "" {
		equal(t, "the principal's claim", pythonUser(binding.User, salt), in.PrincipalClaim)
	}
	state := orEmpty(c.Mint.State)
	if c.Mint.StateJSON != nil {
		state = textOf(t, *c.Mint.StateJSON)
	}
	claims := tripseal.Claims{
		Issued:  int64(c.Mint.Now * 1000),
		Expires: int64((c.Mint.Now + *c.Mint.TTL) * 1000),
		State:   state, HasState: true, Arguments: digest,
	}
	f := mustPython(t, c.Mint.KeysHex, options)
	payload, err := f.envelope(&binding, &claims, salt)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the envelope", string(payload), orEmpty(in.EnvelopeJSON))

	// The verifying side accepts our token exactly if it accepts the peer's.
	token, err := f.Seal(t.Context(), &binding, &claims)
	if err != nil {
		t.Fatal(err)
	}
	verifying, options := pythonSide(t, c.Verify)
	_, _, theirs := open(t, mustPython(t, c.Verify.KeysHex, options), c.Verify.Now, verifying, c.Token)
	_, _, ours := open(t, mustPython(t, c.Verify.KeysHex, options), c.Verify.Now, verifying, token)
	if ours != theirs {
		t.Errorf("our token opens: %v, the peer's: %v", ours, theirs)
	}
}
