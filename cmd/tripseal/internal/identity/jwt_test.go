package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// rig has a provider, and the identity under test, which reads the provider's tokens.
type rig struct {
	*testProvider
	t      *testing.T
	tokens *Tokens
	clock  *clock
	log    *records
}

func newRig(t *testing.T, change ...func(*JWTConfig)) *rig {
	t.Helper()
	provider := startProvider()
	t.Cleanup(provider.Close)
	r := &rig{testProvider: provider, t: t, clock: &clock{now: time.Now().Truncate(time.Second)}, log: new(records)}
	config := JWTConfig{Issuer: provider.Issuer, Audience: []string{testAudience}, Logger: slog.New(r.log)}
	for _, f := range change {
		f(&config)
	}
	tokens, err := newTokens(t.Context(), config, r.clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	r.tokens = tokens
	return r
}

// records is a log handler that keeps the message of each record.
type records struct {
	mu    sync.Mutex
	texts []string
}

func (l *records) Enabled(context.Context, slog.Level) bool { return true }
func (l *records) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *records) WithGroup(string) slog.Handler            { return l }
func (l *records) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, r.Message)
	return nil
}

func (l *records) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, record := range l.texts {
		if strings.Contains(record, text) {
			n++
		}
	}
	return n
}

func withToken(tokens ...string) *http.Request {
	r := httptest.NewRequest("POST", "/mcp", nil)
	for _, token := range tokens {
		r.Header.Add("Authorization", "Bearer "+token)
	}
	return r
}

func (r *rig) user(token string) (string, error) {
	caller, err := r.tokens.Caller(withToken(token))
	if err != nil {
		if caller != nil {
			r.t.Error("a principal beside an error")
		}
		return "", err
	}
	return caller(context.Background())
}

func (r *rig) accepts(token string) {
	r.t.Helper()
	if user, err := r.user(token); err != nil || user == "" {
		r.t.Errorf("refused: %v", err)
	}
}

func (r *rig) refuses(token, why string) {
	r.t.Helper()
	if _, err := r.user(token); err == nil {
		r.t.Error("accepted")
	} else if !strings.Contains(err.Error(), why) {
		r.t.Errorf("refused because %q, not because of %q", err, why)
	}
}

// claims returns good claims with the given changes. The value nil removes a claim.
func (r *rig) claims(change map[string]any) map[string]any {
	claims := r.Claims("alice", r.clock.Now())
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

func (r *rig) header(change map[string]any) map[string]any {
	header := map[string]any{"alg": "ES256", "kid": r.Newest(), "typ": "at+jwt"}
	maps.Copy(header, change)
	maps.DeleteFunc(header, func(_ string, value any) bool { return value == nil })
	return header
}

func text(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func TestAGoodTokenNamesItsIssuerSubjectAndClient(t *testing.T) {
	r := newRig(t)
	for client, change := range map[string]map[string]any{
		"-":     nil,
		"+web":  {"client_id": "web", "azp": "other"},
		"+desk": {"azp": "desk"},
	} {
		user, err := r.user(r.Sign(r.claims(change)))
		if want := fmt.Sprintf("jwt:%d:%s5:alice", len(r.Issuer), r.Issuer) + client; user != want || err != nil {
			t.Errorf("%q, %v; want %q", user, err, want)
		}
	}
}

func TestTokensOfEachAlgorithmAreAccepted(t *testing.T) {
	r := newRig(t)
	for _, algorithm := range []string{"RS256", "PS256", "ES256", "EdDSA"} {
		t.Run(algorithm, func(t *testing.T) {
			r.t = t
			r.AddKey(algorithm)
			r.clock.advance(fetchSpacing)
			r.accepts(r.Sign(r.claims(nil)))
		})
	}
}

// Some of these triples of issuer, subject and client give the same text if you append one to the other.
func TestNoTwoTriplesOfIssuerSubjectAndClientAreOneUser(t *testing.T) {
	p := startProvider()
	defer p.Close()
	users := make(map[string]string)
	for _, triple := range [][3]string{
		{p.Issuer, "/a"}, {p.Issuer + "/", "a"}, {p.Issuer + "/a", "a"}, {p.Issuer, "/aa"}, {p.Issuer, "a"},
		{p.Issuer, "a", "b"}, {p.Issuer, "a+b"}, {p.Issuer, "a+", "b"}, {p.Issuer, "a-"}, {p.Issuer, "a", "-"}, {p.Issuer, "a", "b-"},
	} {
		tokens, err := JWT(t.Context(), JWTConfig{Issuer: triple[0], Audience: []string{testAudience}, JWKS: p.Issuer + jwksPath})
		if err != nil {
			t.Fatal(err)
		}
		claims := p.Claims(triple[1], time.Now())
		claims["iss"] = triple[0]
		if triple[2] != "" {
			claims["client_id"] = triple[2]
		}
		caller, err := tokens.Caller(withToken(p.Sign(claims)))
		if err != nil {
			t.Fatal(err)
		}
		user, _ := caller(t.Context())
		if other, ok := users[user]; ok {
			t.Errorf("%q is %v and %s", user, triple, other)
		}
		users[user] = fmt.Sprint(triple)
	}
}

func TestTokensWithWrongClaimsAreRefused(t *testing.T) {
	r := newRig(t)
	now := r.clock.Now()
	for name, c := range map[string]struct {
		change map[string]any
		why    string
	}{
		"another issuer":             {map[string]any{"iss": "https://other.example.com"}, "another issuer"},
		"an issuer with a slash":     {map[string]any{"iss": r.Issuer + "/"}, "another issuer"},
		"an issuer in capitals":      {map[string]any{"iss": strings.ToUpper(r.Issuer)}, "another issuer"},
		"an issuer without scheme":   {map[string]any{"iss": strings.TrimPrefix(r.Issuer, "http://")}, "another issuer"},
		"no issuer":                  {map[string]any{"iss": nil}, "another issuer"},
		"another audience":           {map[string]any{"aud": "https://mcp.example.com/other"}, "another audience"},
		"an audience that is longer": {map[string]any{"aud": testAudience + "/"}, "another audience"},
		"other audiences":            {map[string]any{"aud": []string{"a", "b"}}, "another audience"},
		"no audience":                {map[string]any{"aud": nil}, "another audience"},
		"an empty list":              {map[string]any{"aud": []string{}}, "another audience"},
		"an audience of 5":           {map[string]any{"aud": 5}, "claims cannot be read"},
		"expired":                    {map[string]any{"exp": now.Add(-time.Second).Unix()}, "has expired"},
		"expires now":                {map[string]any{"exp": now.Unix()}, "has expired"},
		"no expiry":                  {map[string]any{"exp": nil}, "no expiry"},
		"expiry in words":            {map[string]any{"exp": "2099-01-01"}, "claims cannot be read"},
		"expiry beyond time":         {map[string]any{"exp": 1e300}, "claims cannot be read"},
		"not valid yet":              {map[string]any{"nbf": now.Add(leeway + 2*time.Second).Unix()}, "not valid yet"},
		"not valid for ages":         {map[string]any{"nbf": 1e15}, "not valid yet"},
		"from the future":            {map[string]any{"iat": now.Add(leeway + 2*time.Second).Unix()}, "in the future"},
		"no subject":                 {map[string]any{"sub": nil}, "no subject"},
		"an empty subject":           {map[string]any{"sub": ""}, "no subject"},
		"a subject of blanks":        {map[string]any{"sub": " \u00a0"}, "subject"},
		"an empty client":            {map[string]any{"client_id": "", "azp": "web"}, "client"},
		"a client of 5":              {map[string]any{"azp": 5}, "claims cannot be read"},
		"a long client":              {map[string]any{"azp": strings.Repeat("a", maxSubject+1)}, "client"},
		"a client with a newline":    {map[string]any{"client_id": "web\n"}, "client"},
		"a subject of 5":             {map[string]any{"sub": 5}, "claims cannot be read"},
		"a long subject":             {map[string]any{"sub": strings.Repeat("a", maxSubject+1)}, "subject"},
		"a subject with a newline":   {map[string]any{"sub": "alice\n"}, "subject"},
		"a subject with a NUL":       {map[string]any{"sub": "alice\x00"}, "subject"},
		"a subject with C1":          {map[string]any{"sub": "alice\u0085"}, "subject"},
		"a subject with U+FFFD":      {map[string]any{"sub": "alice\ufffd"}, "subject"},
		"a key of the client":        {map[string]any{"cnf": map[string]any{"jkt": "x"}}, "cnf"},
		"an ID token by hash":        {map[string]any{"at_hash": "x"}, "another purpose"},
		"an ID token of Keycloak":    {map[string]any{"typ": "ID"}, "another purpose"},
		"a refresh token":            {map[string]any{"typ": "Refresh"}, "another purpose"},
		"an ID token of Cognito":     {map[string]any{"token_use": "id"}, "another purpose"},
		"a logout token":             {map[string]any{"events": map[string]any{}}, "another purpose"},
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			r.refuses(r.Sign(r.claims(c.change)), c.why)
		})
	}
}

func TestTokensWithUnusualClaimsAreAccepted(t *testing.T) {
	r := newRig(t)
	now := r.clock.Now()
	for name, change := range map[string]map[string]any{
		"several audiences":        {"aud": []string{"a", testAudience}},
		"a clock ahead":            {"iat": now.Add(leeway - 5*time.Second).Unix(), "nbf": now.Add(leeway - 5*time.Second).Unix()},
		"no iat and nbf":           {"iat": nil, "nbf": nil},
		"a fraction":               {"exp": float64(now.Unix()) + 60.5},
		"the longest subject":      {"sub": strings.Repeat("a", maxSubject)},
		"a subject in Greek":       {"sub": "Ελένη|42"},
		"a nonce":                  {"nonce": "x"},
		"an access token, by name": {"typ": "Bearer", "token_use": "access"},
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			r.accepts(r.Sign(r.claims(change)))
		})
	}
	for _, typ := range []any{nil, "JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"} {
		r.t = t
		r.accepts(r.SignWith(r.Newest(), r.header(map[string]any{"typ": typ}), r.claims(nil)))
	}
}

func TestTokensWithWrongHeadersAreRefused(t *testing.T) {
	r := newRig(t)
	r.AddKey("RS256")
	ec := r.AddKey("ES256")
	for name, c := range map[string]struct {
		change map[string]any
		why    string
	}{
		"another type":            {map[string]any{"typ": "dpop+jwt"}, "type"},
		"the type of logout":      {map[string]any{"typ": "logout+jwt"}, "type"},
		"a type of 5":             {map[string]any{"typ": 5}, "type"},
		"an unknown critical one": {map[string]any{"crit": []string{"exp"}, "exp": 1}, "crit"},
		"a critical b64":          {map[string]any{"crit": []string{"b64"}, "b64": true}, "needs"},
		"b64":                     {map[string]any{"b64": false}, "b64"},
		"no key id":               {map[string]any{"kid": nil}, "names no key"},
		"another key's id":        {map[string]any{"kid": "ES256-1"}, "signature"},
		"an id of another kind":   {map[string]any{"kid": "RS256-2"}, "not for ES256"},
		"an id of 5":              {map[string]any{"kid": 5}, "header"},
		"an id of 10 KB":          {map[string]any{"kid": strings.Repeat("k", 10_000)}, "header has more than"},
		"an id of 1 KiB and more": {map[string]any{"kid": strings.Repeat("k", maxKeyID+1)}, "key id has more than"},
		"many parameters":         {map[string]any{"x": strings.Split(strings.Repeat("x", 1000), "")}, "header has more than"},
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			r.refuses(r.SignWith(ec, r.header(c.change), r.claims(nil)), c.why)
		})
	}
}

// TestTheKeysInATokensHeaderAreNotUsed checks that a key in the header of a token, or at an address
// in the header, is not used. Otherwise everybody could sign tokens.
func TestTheKeysInATokensHeaderAreNotUsed(t *testing.T) {
	r := newRig(t)
	attacker := startProvider()
	defer attacker.Close()
	id := attacker.Newest()
	key := attacker.Key(id)
	jwk := publicJWK(key.Public())
	jwk["kid"] = id
	for name, c := range map[string]struct {
		change map[string]any
		why    string
	}{
		"jwk":                {map[string]any{"jwk": jwk}, "signature"},
		"jwk, no key id":     {map[string]any{"jwk": jwk, "kid": nil}, "signature"},
		"jwk, its own id":    {map[string]any{"jwk": jwk, "kid": "x"}, "no key with the id"},
		"jku":                {map[string]any{"jku": attacker.Issuer + jwksPath}, "signature"},
		"x5u":                {map[string]any{"x5u": attacker.Issuer + jwksPath}, "signature"},
		"nothing, right id":  {nil, "signature"},
		"x5c that is broken": {map[string]any{"x5c": []string{"AAAA"}}, "header"},
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			r.refuses(compact(key, "ES256", text(r.header(c.change)), text(r.claims(nil))), c.why)
		})
	}
	if n := attacker.Fetches(jwksPath); n != 0 {
		t.Errorf("%d fetches at the address in the token", n)
	}
	// The provider's own tokens may have such headers.
	r.accepts(r.SignWith(r.Newest(), r.header(map[string]any{"jku": attacker.Issuer, "jwk": jwk}), r.claims(nil)))
}

func TestTokensWithAnotherAlgorithmAreRefused(t *testing.T) {
	r := newRig(t)
	id := r.AddKey("RS256")
	public, err := x509.MarshalPKIXPublicKey(r.Key(id).Public())
	if err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string][]byte{
		"DER": public, "PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), "JWK": []byte(text(publicJWK(r.Key(id).Public()))),
	} {
		t.Run("HS256 with the public key as "+name, func(t *testing.T) {
			r.t = t
			signed := base64.RawURLEncoding.EncodeToString([]byte(text(r.header(map[string]any{"alg": "HS256"})))) + "." +
				base64.RawURLEncoding.EncodeToString([]byte(text(r.claims(nil))))
			mac := hmac.New(sha256.New, secret)
			mac.Write([]byte(signed))
			r.refuses(signed+"."+base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), "list of algorithms")
		})
	}
	good := r.Sign(r.claims(nil))
	for _, algorithm := range []any{"none", "None", "", nil, "HS512", "RS384", "ES256K", "rs256", "RSA-OAEP", 5} {
		t.Run(fmt.Sprint(algorithm), func(t *testing.T) {
			r.t = t
			header := base64.RawURLEncoding.EncodeToString([]byte(text(r.header(map[string]any{"alg": algorithm}))))
			_, rest, _ := strings.Cut(good, ".")
			r.refuses(header+"."+rest, "")
			claims, _, _ := strings.Cut(rest, ".")
			r.refuses(header+"."+claims+".", "base64url")
		})
	}
	t.Run("a key for RS256 with PS256", func(t *testing.T) {
		r.t = t
		r.Answer(jwksPath, func(w http.ResponseWriter, _ *http.Request) {
			jwk := publicJWK(r.Key(id).Public())
			jwk["kid"], jwk["alg"] = id, "RS256"
			fmt.Fprint(w, text(map[string]any{"keys": []any{jwk}}))
		})
		r.clock.advance(trustFor)
		r.accepts(r.SignWith(id, r.header(map[string]any{"alg": "RS256"}), r.claims(nil)))
		r.refuses(r.SignWith(id, r.header(map[string]any{"alg": "PS256"}), r.claims(nil)), "not for PS256")
	})
}

func TestOnlyTheListedAlgorithmsAreAccepted(t *testing.T) {
	r := newRig(t, func(c *JWTConfig) { c.Algorithms = []string{"EdDSA"} })
	r.refuses(r.Token("alice"), "list of algorithms")
	r.AddKey("EdDSA")
	r.accepts(r.Token("alice"))
}

func TestTokensThatAreNotExactAreRefused(t *testing.T) {
	r := newRig(t)
	key, id := r.Key(r.Newest()), r.Newest()
	good := r.Sign(r.claims(nil))
	part := strings.Split(good, ".")
	claims := text(r.claims(nil))
	with := func(extra string) string { return strings.TrimSuffix(claims, "}") + "," + extra + "}" }
	header := text(r.header(nil))
	sign := func(header, claims string) string { return compact(key, "ES256", header, claims) }
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"":                          "",
		"opaque":                    "mF_9.B5f-4.1JqM-opaque",
		"one part":                  "abc",
		"two parts":                 part[0] + "." + part[1],
		"four parts":                good + ".AAAA",
		"five parts":                good + "..",
		"a dot at the end":          good + ".",
		"junk at the end":           good + "AAAA",
		"padding":                   good + "=",
		"a blank at the end":        good + " ",
		"two blanks":                " " + good,
		"a second token":            good + ", Bearer " + good,
		"a newline":                 part[0] + ".\n" + part[1] + "." + part[2],
		"no signature":              part[0] + "." + part[1] + ".",
		"a signature of zeros":      part[0] + "." + part[1] + "." + strings.Repeat("A", 86),
		"another key":               compact(other, "ES256", header, claims),
		"other claims":              part[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(with(`"x":1`))) + "." + part[2],
		"JSON serialization":        `{"payload":"` + part[1] + `","protected":"` + part[0] + `","signature":"` + part[2] + `"}`,
		"claims with two subjects":  sign(header, with(`"sub":"bob"`)),
		"claims with two clients":   sign(header, with(`"azp":"web","azp":"desk"`)),
		"claims with two issuers":   sign(header, with(`"iss":"https://other.example.com"`)),
		"claims with a \\u subject": sign(header, with(`"s\u0075b":"bob"`)),
		"half a surrogate pair":     sign(header, strings.Replace(claims, `"alice"`, `"\ud800"`, 1)),
		"claims that are not UTF-8": sign(header, strings.Replace(claims, `"alice"`, "\"\xff\"", 1)),
		"a claim that is not UTF-8": sign(header, with("\"x\":\"\xff\"")),
		"claims and more":           sign(header, claims+"{}"),
		"a list of claims":          sign(header, "["+claims+"]"),
		"null":                      sign(header, "null"),
		"a header with two key ids": sign(strings.TrimSuffix(header, "}")+`,"kid":"`+id+`"}`, claims),
		"a header with two algs":    sign(`{"alg":"none",`+strings.TrimPrefix(header, "{"), claims),
		"a header and more":         sign(header+"{}", claims),
		"a header that is not JSON": sign("alg: ES256", claims),
		"a header that is a list":   sign("[]", claims),
		"more than 16 KiB":          sign(header, with(`"x":"`+strings.Repeat("x", maxToken)+`"`)),
		"a subject in another case": sign(header, strings.Replace(claims, `"sub"`, `"Sub"`, 1)),
		"an alg in another case":    sign(strings.Replace(header, `"alg"`, `"Alg"`, 1), claims),
		"an expiry in another case": sign(header, strings.Replace(claims, `"exp"`, `"EXP"`, 1)),
		"many levels":               sign(header, strings.Repeat("[", 6000)+strings.Repeat("]", 6000)),
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			if name == "other claims" && token == good {
				t.Fatal("the token was not changed")
			}
			r.refuses(token, "")
		})
	}
	r.accepts(good)
}

// TestAnUnknownClaimInAnotherCaseChangesNothing checks that a claim such as Sub is not read as the
// subject. A decoder that ignores case would read Sub as sub.
func TestAnUnknownClaimInAnotherCaseChangesNothing(t *testing.T) {
	r := newRig(t)
	user, err := r.user(r.Sign(r.claims(map[string]any{"Sub": "bob", "SUB": "bob", "ſub": "bob"})))
	if err != nil || !strings.HasSuffix(user, ":alice-") {
		t.Error(user, err)
	}
}

func TestOnlyOneBearerTokenIsTaken(t *testing.T) {
	r := newRig(t)
	good := r.Token("alice")
	for name, values := range map[string][]string{
		"none":                 {},
		"empty":                {""},
		"two":                  {"Bearer " + good, "Bearer " + r.Token("bob")},
		"twice the same":       {"Bearer " + good, "Bearer " + good},
		"and an empty one":     {"Bearer " + good, ""},
		"two in one":           {"Bearer " + good + ",Bearer " + good},
		"Basic":                {"Basic " + good},
		"DPoP":                 {"DPoP " + good},
		"no scheme":            {good},
		"no blank":             {"Bearer" + good},
		"two blanks":           {"Bearer  " + good},
		"a tab":                {"Bearer\t" + good},
		"a blank before":       {" Bearer " + good},
		"the scheme only":      {"Bearer"},
		"a parameter":          {"Bearer token=" + good},
		"a Kelvin-like letter": {"Bearer\u212a " + good},
	} {
		request := withToken()
		request.Header["Authorization"] = values
		if caller, err := r.tokens.Caller(request); err == nil || caller != nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for _, scheme := range []string{"Bearer", "bearer", "BEARER"} {
		request := withToken()
		request.Header.Set("Authorization", scheme+" "+good)
		if _, err := r.tokens.Caller(request); err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

func TestTokensElsewhereAreNotRead(t *testing.T) {
	r := newRig(t)
	token := r.Token("alice")
	request := httptest.NewRequest("POST", "/mcp?access_token="+token, strings.NewReader("access_token="+token))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Cookie", "access_token="+token)
	request.Header.Set("Proxy-Authorization", "Bearer "+token)
	if _, err := r.tokens.Caller(request); err == nil {
		t.Error("accepted")
	}
}

// TestErrorsShowNothingOfAToken checks that each error is one short line, and that it repeats neither
// the token nor the marker (canary) inside some tokens. This matters because errors go to the log.
func TestErrorsShowNothingOfAToken(t *testing.T) {
	r := newRig(t)
	const canary = "canary-81b2"
	long := strings.Repeat("k", 5000)
	for name, token := range map[string]string{
		"broken x5c":     r.SignWith(r.Newest(), r.header(map[string]any{"x5c": canary}), r.claims(nil)),
		"broken kid":     r.SignWith(r.Newest(), r.header(map[string]any{"kid": []string{canary}}), r.claims(nil)),
		"broken claims":  r.Sign(r.claims(map[string]any{"sub": []string{canary}})),
		"broken times":   r.Sign(r.claims(map[string]any{"exp": canary})),
		"wrong subject":  r.Sign(r.claims(map[string]any{"sub": canary + "\n"})),
		"opaque":         canary,
		"long issuer":    r.Sign(r.claims(map[string]any{"iss": long})),
		"long audience":  r.Sign(r.claims(map[string]any{"aud": long})),
		"many audiences": r.Sign(r.claims(map[string]any{"aud": strings.Split(long, "")})),
		"long type":      r.SignWith(r.Newest(), r.header(map[string]any{"typ": long[:1000]}), r.claims(nil)),
		"unknown key":    r.SignWith(r.Newest(), r.header(map[string]any{"kid": long[:1000]}), r.claims(nil)),
		"newline":        r.SignWith(r.Newest(), r.header(map[string]any{"kid": "a\nb"}), r.claims(nil)),
		"algorithm":      base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"`+long[:1000]+`"}`)) + ".e30.e30",
	} {
		_, err := r.user(token)
		if err == nil {
			t.Errorf("%s is accepted", name)
			continue
		}
		if said := err.Error(); strings.Contains(said, canary) || len(said) > 300 || strings.ContainsAny(said, "\n\r") || strings.Contains(said, token) {
			t.Errorf("%s: %q", name, said)
		}
	}
}

func TestTheChallengeNamesTheMetadataAndNoReason(t *testing.T) {
	const metadata = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
	r := newRig(t, func(c *JWTConfig) { c.ResourceMetadata = metadata })
	bad := `Bearer resource_metadata="` + metadata + `", error="invalid_token"`
	basic := withToken()
	basic.Header.Set("Authorization", "Basic abc")
	for name, c := range map[string]struct {
		request *http.Request
		want    string
	}{
		"no token":      {withToken(), `Bearer resource_metadata="` + metadata + `"`},
		"no bearer":     {basic, `Bearer resource_metadata="` + metadata + `"`},
		"nonsense":      {withToken("x"), bad},
		"expired":       {withToken(r.Sign(r.claims(map[string]any{"exp": 1}))), bad},
		"no subject":    {withToken(r.Sign(r.claims(map[string]any{"sub": nil}))), bad},
		"two tokens":    {withToken("a", "b"), bad},
		"unknown key":   {withToken(r.SignWith(r.Newest(), r.header(map[string]any{"kid": "x"}), r.claims(nil))), bad},
		"wrong in case": {withToken(strings.ToUpper(r.Token("alice"))), bad},
	} {
		if _, err := r.tokens.Caller(c.request); err == nil {
			t.Errorf("%s is accepted", name)
		}
		if got := r.tokens.Challenge(c.request); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	plain := newRig(t)
	if got := plain.tokens.Challenge(withToken()); got != "Bearer" {
		t.Error(got)
	}
	if got := plain.tokens.Challenge(withToken("x")); got != `Bearer error="invalid_token"` {
		t.Error(got)
	}
	var _ Challenger = r.tokens
}

func TestTheHeaderWithTheTokenIsNamed(t *testing.T) {
	if got := newRig(t).tokens.Headers(); len(got) != 1 || got[0] != "Authorization" {
		t.Error(got)
	}
}

func TestConfigurationsThatAreNotSafeAreRefused(t *testing.T) {
	for name, change := range map[string]func(*JWTConfig){
		"no issuer":             func(c *JWTConfig) { c.Issuer = "" },
		"http":                  func(c *JWTConfig) { c.Issuer = "http://login.example.com" },
		"http, like loopback":   func(c *JWTConfig) { c.Issuer = "http://127.0.0.1.example.com" },
		"http, below localhost": func(c *JWTConfig) { c.Issuer = "http://localhost.example.com" },
		"another scheme":        func(c *JWTConfig) { c.Issuer = "file:///etc/keys" },
		"no scheme":             func(c *JWTConfig) { c.Issuer = "login.example.com" },
		"no host":               func(c *JWTConfig) { c.Issuer = "https://:443/" },
		"a password":            func(c *JWTConfig) { c.Issuer = "https://a:b@login.example.com" },
		"a fragment":            func(c *JWTConfig) { c.Issuer = "https://login.example.com#" },
		"no audience":           func(c *JWTConfig) { c.Audience = nil },
		"none":                  func(c *JWTConfig) { c.Algorithms = []string{"RS256", "none"} },
		"HS256":                 func(c *JWTConfig) { c.Algorithms = []string{"HS256"} },
		"an unknown algorithm":  func(c *JWTConfig) { c.Algorithms = []string{"ES256K"} },
		"an algorithm in lower": func(c *JWTConfig) { c.Algorithms = []string{"rs256"} },
		"an empty algorithm":    func(c *JWTConfig) { c.Algorithms = []string{""} },
		"keys over http":        func(c *JWTConfig) { c.JWKS = "http://login.example.com/keys" },
		"keys in a file":        func(c *JWTConfig) { c.JWKS = "keys.json" },
	} {
		config := JWTConfig{Issuer: "https://login.example.com", Audience: []string{"a"}}
		if _, err := JWT(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		change(&config)
		if _, err := JWT(t.Context(), config); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestAMissingProviderIsToldFromABadToken checks that the error is ErrUnavailable if the provider
// cannot be reached, because that is not the client's fault. A bad token gets another error.
func TestAMissingProviderIsToldFromABadToken(t *testing.T) {
	r := newRig(t)
	token := r.Token("alice")
	if _, err := r.user(token + "A"); err == nil || errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	r = newRig(t)
	r.Close()
	if _, err := r.user(token); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
}
