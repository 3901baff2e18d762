package compat

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"

	"github.com/tripseal/tripseal"
)

// rubyDigested is the Ruby format with a fixed digest, because the vectors hold only the digest of a
// request's arguments.
type rubyDigested struct {
	*rubyFormat
	digest string
}

func (f *rubyDigested) Digest(*tripseal.Binding) ([]byte, error) { return []byte(f.digest), nil }

func rubySide(t *testing.T, s *side) (*rubyDigested, tripseal.Binding, error) {
	t.Helper()
	f, err := Ruby(unhex(t, s.KeyHex))
	if err != nil {
		return nil, tripseal.Binding{}, err
	}
	return &rubyDigested{f.(*rubyFormat), s.Digest}, tripseal.Binding{Method: s.Method, Target: s.Target, Audience: orEmpty(s.Audience)}, nil
}

func checkRubySealError(t *testing.T, c *vector) verdict {
	f, binding, err := rubySide(t, c.Mint)
	if err != nil {
		return verdict{}
	}
	now := int64(c.Mint.Now * 1000)
	_, err = f.Seal(t.Context(), &binding, &tripseal.Claims{Issued: now, Expires: now + int64(*c.Mint.TTL*1000), Arguments: []byte(f.digest)})
	return verdict{accepted: err == nil}
}

func checkRuby(t *testing.T, c *vector) verdict {
	if c.Kind == "roundtrip" {
		f, binding, err := rubySide(t, c.Mint)
		if err != nil {
			t.Fatal(err)
		}
		// Two kinds of envelope are not compared: those whose exp is a float, which the peer
		// itself rejects, and those with an empty audience, which we do not write.
		ttl := *c.Mint.TTL
		whole := !isFloatTTL(c)
		if whole && (c.Mint.Audience == nil || *c.Mint.Audience != "") {
			payload, err := rubyEnvelope(&binding, orEmpty(c.Mint.State), int64(c.Mint.Now)+int64(ttl), f.digest)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "the envelope", string(payload), orEmpty(c.Internals.EnvelopeJSON))
		}
	}
	f, binding, err := rubySide(t, c.Verify)
	if err != nil {
		return verdict{}
	}
	state, _, ok := open(t, f, c.Verify.Now, binding, c.Token)
	want := orEmpty(c.State)
	if c.StateHex != nil {
		want = string(unhex(t, *c.StateHex))
	}
	return verdict{ok, state, want}
}

// isFloatTTL reports whether the TTL was a float in Ruby, so that the token's exp is a float too.
func isFloatTTL(c *vector) bool {
	var envelope struct{ Exp json.Number }
	if err := json.Unmarshal([]byte(orEmpty(c.Internals.EnvelopeJSON)), &envelope); err != nil {
		return true
	}
	_, err := envelope.Exp.Int64()
	return err != nil
}

func checkRubyArguments(t *testing.T, c *vector) verdict {
	var params struct {
		Name      string
		Arguments json.RawMessage
	}
	if err := json.Unmarshal([]byte(c.ParamsJSON), &params); err != nil {
		return verdict{} // the peer's parser refuses this text too
	}
	sum, err := rubyStyle.Sum(params.Arguments)
	if slices.Contains(refusedOnTop, c.Name) {
		return checkRefused(t, err)
	}
	if err != nil {
		return verdict{}
	}
	equal(t, "the target", params.Name, c.Target)
	want := sha256.Sum256([]byte(c.CanonicalJSON))
	equal(t, "the digest", hex.EncodeToString(sum[:]), c.Digest)
	return verdict{true, string(sum[:]), string(want[:])}
}
