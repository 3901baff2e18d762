package compat

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"testing"

	"github.com/tripseal/tripseal"
)

func typeScriptSide(t *testing.T, s *side) (*typeScriptFormat, error) {
	t.Helper()
	var options TypeScriptOptions
	if s.Bind != nil {
		options.Bind = func(*tripseal.Binding) (string, error) { return *s.Bind, nil }
	}
	f, err := TypeScript(unhex(t, s.KeyHex), options)
	if err != nil {
		return nil, err
	}
	return f.(*typeScriptFormat), nil
}

func checkTypeScriptMintError(t *testing.T, c *vector) verdict {
	_, err := typeScriptSide(t, c.Mint)
	return verdict{accepted: err == nil}
}

func checkTypeScript(t *testing.T, c *vector) verdict {
	if c.Kind == "roundtrip" {
		checkTypeScriptMint(t, c)
	}
	f, err := typeScriptSide(t, c.Verify)
	if err != nil {
		return verdict{}
	}
	state, hasState, ok := open(t, f, c.Verify.Now, tripseal.Binding{Method: "tools/call", Target: "tool"}, c.Token)
	if !ok || !hasState {
		return verdict{accepted: ok, opened: "", want: orEmpty(c.PayloadJSON)}
	}
	if c.PayloadUndefined {
		t.Error("no payload came back as one")
	}
	return verdict{true, compact(t, state), orEmpty(c.PayloadJSON)}
}

func compact(t *testing.T, text string) string {
	t.Helper()
	var buf bytes.Buffer
	if err := json.Compact(&buf, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// checkTypeScriptMint compares our own token and its parts with the peer's, byte for byte. This
// works because nothing in the token is random.
func checkTypeScriptMint(t *testing.T, c *vector) {
	t.Helper()
	f, err := typeScriptSide(t, c.Mint)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := f.Digest(&tripseal.Binding{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the bind tag", string(tag), c.Internals.BindTag)
	// The token holds the payload as JSON.stringify writes it, for example 1e+21 for 1e21. The
	// payload that the peer opened has this form.
	state := c.PayloadJSON
	if state == nil {
		state = c.Mint.PayloadJSON
	}
	ttl := *c.Mint.TTL
	payload := []byte(orEmpty(c.Internals.EnvelopeJSON))
	if ttl == math.Trunc(ttl) { // we seal whole seconds only
		claims := tripseal.Claims{State: orEmpty(state), HasState: state != nil}
		if payload, err = f.envelope(&claims, int64(c.Mint.Now)+int64(ttl), string(tag)); err != nil {
			t.Fatal(err)
		}
		equal(t, "the envelope", string(payload), orEmpty(c.Internals.EnvelopeJSON))
	}
	token := f.sign(payload)
	equal(t, "the token", token, c.Token)
	sum := f.key.Sum(token[:len(token)-44])
	equal(t, "the MAC", hex.EncodeToString(sum[:]), c.Internals.MACHex)
}
