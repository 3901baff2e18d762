package compat

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/b64u"
)

func mcpdSide(t *testing.T, s *side, encrypted bool) (*mcpdFormat, error) {
	t.Helper()
	bind, ok := map[string]McpDBinding{"none": BindNone, "authSubject": BindSubject, "authSubjectAndTool": BindSubjectAndTool}[s.BindTo]
	if !ok {
		t.Fatalf("the binding %q is unknown here", s.BindTo)
	}
	secret := unhex(t, s.KeyHex)
	if len(secret) == 0 {
		secret = []byte{0} // McpD would replace an empty secret by a random one
	}
	f, err := McpD(secret, McpDOptions{Bind: bind, Encrypted: encrypted})
	if err != nil {
		return nil, err
	}
	return f.(*mcpdFormat), nil
}

func mcpdBinding(s *side) tripseal.Binding {
	return tripseal.Binding{Method: "tools/call", Target: s.Tool, User: s.Subject}
}

func checkMcpD(t *testing.T, c *vector) verdict {
	encrypted := strings.HasPrefix(c.ID, "mde-")
	if !encrypted && !strings.HasPrefix(c.ID, "mds-") {
		t.Fatalf("the id %q does not tell the mode", c.ID)
	}
	if c.VerifyMode != "" {
		encrypted = c.VerifyMode == "encrypted"
	}
	if c.Kind == "roundtrip" && !checkMcpDMint(t, c, encrypted) {
		return verdict{} // we would not mint this token
	}
	f, err := mcpdSide(t, c.Verify, encrypted)
	if err != nil {
		return verdict{}
	}
	state, _, ok := open(t, f, c.Verify.Now, mcpdBinding(c.Verify), c.Token)
	return verdict{ok, state, orEmpty(c.State)}
}

// checkMcpDMint compares the parts of our own token with those of the peer's token, byte for byte.
// It returns false if our code refuses to make this token.
func checkMcpDMint(t *testing.T, c *vector, encrypted bool) bool {
	t.Helper()
	f, err := mcpdSide(t, c.Mint, encrypted)
	if err != nil {
		return false
	}
	binding := mcpdBinding(c.Mint)
	tag, err := f.bindTag(&binding)
	if err != nil {
		return false
	}
	in, secret := c.Internals, unhex(t, c.Mint.KeyHex)
	macKey, err := derive(secret, mcpdMACInfo)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the MAC key", hex.EncodeToString(macKey), in.MACKeyHex)
	equal(t, "the bind tag", tag, in.BindTag)
	material := f.mac.Sum(string(unhex(t, orEmpty(in.MaterialHex))))
	equal(t, "the tag of the material", hex.EncodeToString(material[:]), tag)
	payload, err := mcpdEnvelope(orEmpty(c.Mint.State), int64(c.Mint.Now)+int64(*c.Mint.TTL), tag)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the envelope", string(payload), orEmpty(in.EnvelopeJSON))
	if !encrypted {
		equal(t, "the token", f.sign(payload), c.Token) // nothing in it is random
		sum := f.mac.Sum(string(payload))
		equal(t, "the MAC", hex.EncodeToString(sum[:]), in.MACHex)
		return true
	}
	aesKey, err := derive(secret, mcpdAESInfo)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the AES key", hex.EncodeToString(aesKey), in.AESKeyHex)
	sealed, err := b64u.Decode(nil, strings.TrimPrefix(c.Token, mcpdEncryptedPrefix))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the nonce in the token", hex.EncodeToString(sealed[:nonceSize]), in.NonceHex)
	opened, err := f.open(c.Token, tag)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the payload in the token", opened, string(payload))
	return true
}
