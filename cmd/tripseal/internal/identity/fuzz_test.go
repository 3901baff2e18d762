package identity

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

var headerPattern = regexp.MustCompile(`^(?i:bearer) ([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)$`)

// FuzzAuthorization checks that bearer() accepts only headers that match headerPattern. It also
// checks that the only accepted token is the one that the provider made. In the input, TOKEN,
// HEADER, CLAIMS and SIGNATURE stand for that token and its parts.
func FuzzAuthorization(f *testing.F) {
	p := startProvider()
	f.Cleanup(p.Close)
	tokens, err := JWT(f.Context(), JWTConfig{Issuer: p.Issuer, Audience: []string{testAudience}})
	if err != nil {
		f.Fatal(err)
	}
	claims := p.Claims("alice", time.Now())
	claims["exp"] = time.Now().Add(24 * time.Hour).Unix()
	token := p.Sign(claims)
	part := strings.Split(token, ".")
	names := strings.NewReplacer("TOKEN", token, "HEADER", part[0], "CLAIMS", part[1], "SIGNATURE", part[2])
	if err := tokens.Ready(f.Context()); err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"Bearer TOKEN", "bearer HEADER.CLAIMS.SIGNATURE", "Bearer HEADER.e30.SIGNATURE", "Bearer eyJhbGciOiJub25lIn0.CLAIMS."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		value = names.Replace(value)
		got, err := bearer([]string{value})
		want := headerPattern.FindStringSubmatch(value)
		if fits := want != nil && len(want[1]) <= maxToken && strings.IndexByte(want[1], '.') <= maxHeader; fits != (err == nil) || fits && got != want[1] {
			t.Fatalf("%q is read as %q, %v", value, got, err)
		}
		request := withToken()
		request.Header["Authorization"] = []string{value}
		caller, err := tokens.Caller(request)
		switch {
		case err != nil && caller != nil:
			t.Fatal("a principal beside an error")
		case err != nil && (len(err.Error()) > 300 || strings.ContainsAny(err.Error(), "\r\n")):
			t.Fatalf("%q", err)
		case err == nil && !sameBytes(got, token):
			t.Fatalf("%q is accepted", value)
		}
		tokens.Challenge(request)
	})
}

// sameBytes reports whether two tokens are equal. It ignores the last character of each part,
// because base64 ignores the last bits of that character.
func sameBytes(a, b string) bool {
	one, other := strings.Split(a, "."), strings.Split(b, ".")
	for i := range one {
		if len(one[i]) != len(other[i]) || one[i][:len(one[i])-1] != other[i][:len(one[i])-1] {
			return false
		}
	}
	return true
}

// FuzzKeys checks that verifying a token with an accepted key never panics.
func FuzzKeys(f *testing.F) {
	p := startProvider()
	f.Cleanup(p.Close)
	id := p.Newest()
	header, payload := `{"alg":"ES256","kid":"`+id+`"}`, "{}"
	token := compact(p.Key(id), "ES256", header, payload)
	f.Add([]byte(text(publicJWK(p.Key(id).Public()))))
	f.Add([]byte(`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`))
	f.Add([]byte(`{"kty":"RSA","n":"AQAB","e":"AQAB"}`))
	f.Add([]byte(`{"kty":"RSA","n":"` + strings.Repeat("_", 342) + `","e":"AQ"}`))
	reader := &provider{algorithms: asymmetricAlgorithms}
	f.Fuzz(func(t *testing.T, jwk []byte) {
		k, ok := reader.read(jwk)
		if !ok {
			return
		}
		if len(k.algorithms) == 0 || k.public == nil || len(k.id) > maxKeyID {
			t.Fatalf("%+v", k)
		}
		verifyAll(k, token)
	})
}

// verifyAll verifies a token once for each algorithm of a key, as if the token were signed with
// that algorithm.
func verifyAll(k key, token string) {
	_, rest, _ := strings.Cut(token, ".")
	for _, algorithm := range k.algorithms {
		header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"` + string(algorithm) + `"}`))
		if signed, err := jose.ParseSignedCompact(header+"."+rest, asymmetricAlgorithms); err == nil {
			signed.Verify(k.public)
		}
	}
}
