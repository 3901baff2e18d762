package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

func TestAProviderWithWrongMetadataIsRefused(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Error("a request to ", r.URL) }))
	defer elsewhere.Close()
	var r *rig
	answer := func(format string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.NewReplacer("ISSUER", r.Issuer, "ELSEWHERE", elsewhere.URL).Replace(format))
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		why    string
	}{
		"another issuer":       {answer(`{"issuer":"ELSEWHERE","jwks_uri":"ISSUER/keys"}`), "exactly"},
		"an issuer with slash": {answer(`{"issuer":"ISSUER/","jwks_uri":"ISSUER/keys"}`), "exactly"},
		"no issuer":            {answer(`{"jwks_uri":"ISSUER/keys"}`), "exactly"},
		"an issuer in capital": {answer(`{"Issuer":"ISSUER","jwks_uri":"ISSUER/keys"}`), "exactly"},
		"two issuers":          {answer(`{"issuer":"ELSEWHERE","issuer":"ISSUER","jwks_uri":"ISSUER/keys"}`), "JSON"},
		"no keys":              {answer(`{"issuer":"ISSUER"}`), "jwks_uri"},
		"keys over http":       {answer(`{"issuer":"ISSUER","jwks_uri":"http://192.0.2.1/keys"}`), "jwks_uri"},
		"keys in a file":       {answer(`{"issuer":"ISSUER","jwks_uri":"file:///keys"}`), "jwks_uri"},
		"nonsense":             {answer(`<html>`), "JSON"},
		"and more":             {answer(`{"issuer":"ISSUER","jwks_uri":"ISSUER/keys"}{}`), "JSON"},
		"too much":             {answer(`{"issuer":"ISSUER","jwks_uri":"ISSUER/keys","x":"` + strings.Repeat("x", maxDocument) + `"}`), "more than"},
		"a redirect": {func(w http.ResponseWriter, request *http.Request) {
			http.Redirect(w, request, elsewhere.URL, http.StatusFound)
		}, "another host"},
		"a redirect to itself": {func(w http.ResponseWriter, request *http.Request) {
			http.Redirect(w, request, request.URL.Path, http.StatusFound)
		}, "too often"},
		"a redirect to a file": {func(w http.ResponseWriter, request *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}, "another host"},
		"not there": {http.NotFound, "404"},
	} {
		t.Run(name, func(t *testing.T) {
			r = newRig(t)
			r.Answer(metadataPath, c.answer)
			r.refuses(r.Token("alice"), c.why)
			if err := r.tokens.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("ready: %v", err)
			}
		})
	}
}

func TestAnHTTPSIssuerNeedsHTTPSKeys(t *testing.T) {
	var issuer string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != metadataPath {
			t.Error("a request to ", r.URL)
		}
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"http://127.0.0.1:1/keys"}`, issuer)
	}))
	defer server.Close()
	issuer = server.URL
	tokens, err := JWT(t.Context(), JWTConfig{Issuer: issuer, Audience: []string{"a"}, Client: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	if err := tokens.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "http address") {
		t.Error(err)
	}
}

func TestAProviderIsFoundByEitherKindOfMetadata(t *testing.T) {
	p := startProvider()
	defer p.Close()
	for issuer, path := range map[string]string{
		p.Issuer + "/tenant":  "/tenant/.well-known/openid-configuration",
		p.Issuer + "/tenant/": "/tenant/.well-known/openid-configuration",
		p.Issuer + "/a/b":     "/.well-known/oauth-authorization-server/a/b",
		p.Issuer + "/":        "/.well-known/oauth-authorization-server",
	} {
		p.Answer(metadataPath, http.NotFound)
		p.Answer(path, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"%s/keys"}`, issuer, p.Issuer)
		})
		tokens, err := JWT(t.Context(), JWTConfig{Issuer: issuer, Audience: []string{"a"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := tokens.Ready(t.Context()); err != nil {
			t.Errorf("%s: %v", issuer, err)
		}
	}
}

func TestConfiguredKeysNeedNoMetadata(t *testing.T) {
	p := startProvider()
	defer p.Close()
	tokens, err := JWT(t.Context(), JWTConfig{Issuer: p.Issuer, Audience: []string{testAudience}, JWKS: p.Issuer + jwksPath})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Caller(withToken(p.Token("alice"))); err != nil {
		t.Error(err)
	}
	if n := p.Fetches(metadataPath); n != 0 {
		t.Errorf("%d fetches of the metadata", n)
	}
}

// TestKeysThatMovedAreFound checks that the address of the keys is looked up again in the metadata
// after a fetch from the old address failed.
func TestKeysThatMovedAreFound(t *testing.T) {
	r := newRig(t)
	r.accepts(r.Token("alice"))
	r.Answer(jwksPath, http.NotFound)
	r.Answer("/moved", func(w http.ResponseWriter, _ *http.Request) { w.Write(r.JWKS()) })
	r.Answer(metadataPath, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"%s/moved"}`, r.Issuer, r.Issuer)
	})
	id := r.AddKey("ES256")
	token := r.SignWith(id, r.header(nil), r.claims(nil))
	r.clock.advance(fetchSpacing)
	r.refuses(token, "no key with the id")
	r.clock.advance(fetchSpacing)
	r.accepts(token)
}

func TestOnlyKeysForSignaturesAreTaken(t *testing.T) {
	small := map[string]any{"kty": "RSA", "e": "AQAB", "n": base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, 128))}
	large := map[string]any{"kty": "RSA", "e": "AQAB", "n": base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, 2048))}
	p := startProvider()
	defer p.Close()
	good := publicJWK(p.Key(p.Newest()).Public())
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change map[string]any) map[string]any {
		jwk := maps.Clone(good)
		maps.Copy(jwk, change)
		return jwk
	}
	reader := &provider{algorithms: []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.EdDSA}}
	for name, jwk := range map[string]any{
		"for encryption":        with(map[string]any{"use": "enc"}),
		"for another operation": with(map[string]any{"key_ops": []string{"sign"}}),
		"for no operation":      with(map[string]any{"key_ops": []string{}}),
		"for another algorithm": with(map[string]any{"alg": "ES384"}),
		"for an unknown one":    with(map[string]any{"alg": "none"}),
		"not on the curve":      with(map[string]any{"y": good["x"]}),
		"a private key":         with(map[string]any{"d": good["x"]}),
		"a long id":             with(map[string]any{"kid": strings.Repeat("k", maxKeyID+1)}),
		"an id of 5":            with(map[string]any{"kid": 5}),
		"symmetric":             map[string]any{"kty": "oct", "k": "AAAA"},
		"a curve not listed":    publicJWK(p384.Public()),
		"short RSA":             small,
		"long RSA":              large,
		"no RSA":                map[string]any{"kty": "RSA"},
		"a short Ed25519 key":   map[string]any{"kty": "OKP", "crv": "Ed25519", "x": "AAAA"},
		"X25519":                map[string]any{"kty": "OKP", "crv": "X25519", "x": strings.Repeat("A", 43)},
		"no kind":               map[string]any{},
		"null":                  nil,
		"a list":                []any{},
	} {
		if k, ok := reader.read([]byte(text(jwk))); ok {
			t.Errorf("%s is taken: %v", name, k)
		}
	}
	for name, jwk := range map[string]any{
		"bare":                   good,
		"for signatures":         with(map[string]any{"use": "sig", "alg": "ES256", "key_ops": []string{"verify"}}),
		"with odd certificates":  with(map[string]any{"x5c": []string{"AAAA"}, "x5t": "!", "x5u": ":"}),
		"with members of others": with(map[string]any{"exp": 5, "status": "active"}),
	} {
		if k, ok := reader.read([]byte(text(jwk))); !ok || len(k.algorithms) != 1 {
			t.Errorf("%s is not taken: %v", name, k)
		}
	}
}
