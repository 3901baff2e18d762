package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// testAudience is the audience of the tokens that [testProvider.Token] returns.
const testAudience = "https://mcp.example.com/mcp"

// testProvider is an OpenID Connect provider on the loopback interface. It issues tokens, and serves its metadata and its public keys over HTTP. It is safe
// for concurrent use. It signs tokens with the standard library only, so that the library that verifies them
// is not tested against itself.
type testProvider struct {
	// Issuer is the address of the provider, and the claim iss of its tokens.
	Issuer string

	server  *httptest.Server
	mu      sync.Mutex
	keys    map[string]crypto.Signer
	newest  string
	made    int
	fetches map[string]int // how often each path was requested
	instead map[string]http.HandlerFunc
}

// The paths at which the provider serves its metadata and its public keys.
const (
	metadataPath = "/.well-known/openid-configuration"
	jwksPath     = "/keys"
)

// startProvider starts a provider that has one key, for ES256.
func startProvider() *testProvider {
	p := &testProvider{keys: make(map[string]crypto.Signer), fetches: make(map[string]int), instead: make(map[string]http.HandlerFunc)}
	p.server = httptest.NewServer(p)
	p.Issuer = p.server.URL
	p.AddKey("ES256")
	return p
}

// Close stops the provider.
func (p *testProvider) Close() { p.server.Close() }

// AddKey makes a key for the algorithm RS256, PS256, ES256 or EdDSA, publishes the key, and
// returns its id. From now on, the provider signs with this key.
func (p *testProvider) AddKey(algorithm string) string {
	var signer crypto.Signer
	var err error
	switch algorithm {
	case "RS256", "PS256":
		signer, err = rsa.GenerateKey(rand.Reader, 2048)
	case "ES256":
		signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "EdDSA":
		_, signer, err = ed25519.GenerateKey(rand.Reader)
	default:
		panic("no key for the algorithm " + algorithm)
	}
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	id := fmt.Sprintf("%s-%d", algorithm, p.made)
	p.keys[id], p.newest = signer, id
	return id
}

// RemoveKey removes a key from the published keys.
func (p *testProvider) RemoveKey(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, id)
}

// Key returns the key with this id, or nil if there is none or it was removed.
func (p *testProvider) Key(id string) crypto.Signer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[id]
}

// Newest returns the id of the key that was added last.
func (p *testProvider) Newest() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest
}

// Answer makes the handler answer all requests for the path from now on. With a nil
// handler, the provider answers them itself, as it did in the beginning.
func (p *testProvider) Answer(path string, handler http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.instead[path] = handler
}

// Fetches returns how often the path was requested.
func (p *testProvider) Fetches(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches[path]
}

func (p *testProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.fetches[r.URL.Path]++
	instead := p.instead[r.URL.Path]
	p.mu.Unlock()
	switch {
	case instead != nil:
		instead(w, r)
	case r.URL.Path == metadataPath:
		json.NewEncoder(w).Encode(map[string]any{"issuer": p.Issuer, "jwks_uri": p.Issuer + jwksPath})
	case r.URL.Path == jwksPath:
		w.Write(p.JWKS())
	default:
		http.NotFound(w, r)
	}
}

// JWKS returns the public keys as a JSON Web Key Set.
func (p *testProvider) JWKS() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	set := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(p.keys)) {
		jwk := publicJWK(p.keys[id].Public())
		jwk["kid"], jwk["use"] = id, "sig"
		set = append(set, jwk)
	}
	text, err := json.Marshal(map[string]any{"keys": set})
	if err != nil {
		panic(err)
	}
	return text
}

// publicJWK returns a public key as the members of a JSON Web Key.
func publicJWK(public crypto.PublicKey) map[string]any {
	switch public := public.(type) {
	case *rsa.PublicKey:
		return map[string]any{"kty": "RSA", "n": encode(public.N.Bytes()), "e": encode([]byte{byte(public.E >> 16), byte(public.E >> 8), byte(public.E)})}
	case *ecdsa.PublicKey:
		point, err := public.Bytes()
		if err != nil {
			panic(err)
		}
		size := (len(point) - 1) / 2
		return map[string]any{"kty": "EC", "crv": public.Params().Name, "x": encode(point[1 : 1+size]), "y": encode(point[1+size:])}
	case ed25519.PublicKey:
		return map[string]any{"kty": "OKP", "crv": "Ed25519", "x": encode(public)}
	}
	panic(fmt.Sprintf("no JWK for a %T", public))
}

// Claims returns the claims of an access token that is valid for an hour.
func (p *testProvider) Claims(subject string, now time.Time) map[string]any {
	return map[string]any{
		"iss": p.Issuer, "sub": subject, "aud": testAudience,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

// Token returns an access token that is valid for an hour, signed with the newest key.
func (p *testProvider) Token(subject string) string {
	return p.Sign(p.Claims(subject, time.Now()))
}

// Sign returns a token with these claims, signed with the newest key.
func (p *testProvider) Sign(claims map[string]any) string {
	id := p.Newest()
	algorithm, _, _ := strings.Cut(id, "-")
	return p.SignWith(id, map[string]any{"alg": algorithm, "kid": id, "typ": "at+jwt"}, claims)
}

// SignWith returns a token with this header and these claims, signed with the key that has
// this id. The header's member alg names the algorithm.
func (p *testProvider) SignWith(id string, header, claims map[string]any) string {
	texts := make([][]byte, 2)
	for i, value := range []map[string]any{header, claims} {
		var err error
		if texts[i], err = json.Marshal(value); err != nil {
			panic(err)
		}
	}
	algorithm, _ := header["alg"].(string)
	return compact(p.Key(id), algorithm, string(texts[0]), string(texts[1]))
}

// compact returns a token with exactly this header and this payload. The token is signed with
// this algorithm, even if the header names another one.
func compact(key crypto.Signer, algorithm, header, payload string) string {
	text := encode([]byte(header)) + "." + encode([]byte(payload))
	return text + "." + encode(signature(key, algorithm, []byte(text)))
}

func signature(key crypto.Signer, algorithm string, text []byte) []byte {
	digest := sha256.Sum256(text)
	var signed []byte
	var err error
	switch algorithm {
	case "RS256":
		signed, err = key.Sign(rand.Reader, digest[:], crypto.SHA256)
	case "PS256":
		signed, err = key.Sign(rand.Reader, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256})
	case "EdDSA":
		signed, err = key.Sign(rand.Reader, text, crypto.Hash(0))
	case "ES256":
		r, s, failed := ecdsa.Sign(rand.Reader, key.(*ecdsa.PrivateKey), digest[:])
		if err = failed; err == nil {
			signed = make([]byte, 64)
			r.FillBytes(signed[:32])
			s.FillBytes(signed[32:])
		}
	default:
		panic("no signature for the algorithm " + strconv.Quote(algorithm))
	}
	if err != nil {
		panic(err)
	}
	return signed
}

func encode(text []byte) string { return base64.RawURLEncoding.EncodeToString(text) }
