package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// testAudience is the audience of the tokens that [issuer.Token] returns.
const testAudience = "https://mcp.example.com/mcp"

// issuer is an OpenID Connect provider on the loopback interface, with one key for ES256.
type issuer struct {
	Issuer string // its address, and the claim iss of its tokens
	*httptest.Server
	key *ecdsa.PrivateKey
}

func startIssuer() *issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"issuer": i.Issuer, "jwks_uri": i.Issuer + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Use: "sig"}}})
	})
	i.Server = httptest.NewServer(mux)
	i.Issuer = i.URL
	return i
}

// Claims returns the claims of an access token that is valid for an hour.
func (i *issuer) Claims(subject string) map[string]any {
	now := time.Now()
	return map[string]any{
		"iss": i.Issuer, "sub": subject, "aud": testAudience,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

// Token returns an access token that is valid for an hour.
func (i *issuer) Token(subject string) string { return i.Sign(i.Claims(subject)) }

// Sign returns a token with these claims.
func (i *issuer) Sign(claims map[string]any) string { return signed(jose.ES256, i.key, claims) }

// signRS256 returns a token that names the issuer's key, and that another key signed, for another algorithm.
func (i *issuer) signRS256(claims map[string]any) string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return signed(jose.RS256, key, claims)
}

func signed(algorithm jose.SignatureAlgorithm, key crypto.Signer, claims map[string]any) string {
	options := (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", "1")
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		panic(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		panic(err)
	}
	return text
}
