package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/tripseal/tripseal"
)

// JWTConfig says which tokens [JWT] accepts.
type JWTConfig struct {
	// Issuer is the provider that signs the tokens, spelt exactly as in their claim iss.
	// It is an https address, or an http address of a loopback host. Required.
	Issuer string
	// Audience lists the names of this service. A token must have one of them in its claim
	// aud. Use the address at which clients know the service. Never use the id of a client:
	// ID tokens have it as their audience, and would be accepted as access tokens. Required.
	Audience []string
	// Algorithms lists the algorithms that may have signed a token. Empty means RS256,
	// PS256, ES256 and EdDSA.
	Algorithms []string
	// JWKS is the address of the provider's keys. Empty means the address that the
	// provider's metadata names.
	JWKS string
	// ResourceMetadata is the address of this service's RFC 9728 metadata, where a refused
	// client reads how to get a token. Empty means that refused clients get no address.
	ResourceMetadata string
	// Client is the HTTP client that fetches the metadata and the keys. JWT uses a copy of
	// it, with limits on time, size and redirects. Nil means a new client.
	Client *http.Client
	// Logger gets a record when the keys cannot be fetched (at most once a minute), when they
	// can be fetched again, and when none of them is usable. Nil means [slog.Default].
	Logger *slog.Logger
}

const (
	maxSubject = 1024
	maxKeyID   = 1024
	// leeway is how far the provider's clock may be ahead of this machine's clock. A token
	// that has expired gets no leeway, because clients renew their tokens in time. But a
	// new token must work at once.
	leeway = time.Minute
	// patience is the longest time that a request waits for the keys to be fetched.
	patience = 5 * time.Second
)

// ErrUnavailable means that no token can be checked now, because the provider's keys are not
// there. The client did nothing wrong.
var ErrUnavailable = errors.New("the provider's keys are not available")

// Tokens is an Identity that takes the user from a JSON Web Token. Make one with [JWT]. It is
// safe for concurrent use.
type Tokens struct {
	issuer     string
	audience   []string
	algorithms []jose.SignatureAlgorithm
	challenge  string
	keys       *keySet
	now        func() time.Time
	patience   time.Duration
}

// asymmetricAlgorithms lists the algorithms that verify a signature with a public key. Tokens
// signed with any other algorithm are refused.
var asymmetricAlgorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// JWT returns an Identity that takes the user from the bearer token of a request. The token
// must be a JSON Web Token that the issuer made for this service. The issuer, the token's subject
// and its client together name the user. So what one client of a user was given, another client of
// the same user cannot use. JWT cannot read opaque tokens. For those, use [FromHeader],
// and let another proxy ask the issuer for the name of the user.
//
// JWT itself fetches nothing: [Tokens.Ready] or the first request fetches the keys. To check at
// the start that the provider answers, call Ready. When ctx ends, a running fetch is canceled,
// and every later fetch fails.
func JWT(ctx context.Context, config JWTConfig) (*Tokens, error) {
	return newTokens(ctx, config, time.Now)
}

func newTokens(ctx context.Context, config JWTConfig, now func() time.Time) (*Tokens, error) {
	t := &Tokens{issuer: config.Issuer, audience: slices.Clone(config.Audience), now: now, patience: patience, challenge: "Bearer"}
	switch _, err := parseAddress(config.Issuer); {
	case err != nil:
		return nil, fmt.Errorf("the issuer %w", err)
	case len(config.Audience) == 0:
		return nil, errors.New("an audience is required: the address that clients know this service by, which tokens for it have in their claim aud")
	}
	for _, name := range config.Algorithms {
		algorithm := jose.SignatureAlgorithm(name)
		if !slices.Contains(asymmetricAlgorithms, algorithm) {
			return nil, fmt.Errorf("tokens must not be signed with %.40q; use some of %s", name, asymmetricAlgorithms)
		}
		t.algorithms = append(t.algorithms, algorithm)
	}
	if t.algorithms == nil {
		t.algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA}
	}
	if config.JWKS != "" {
		if _, err := parseAddress(config.JWKS); err != nil {
			return nil, fmt.Errorf("the address of the keys %w", err)
		}
	}
	if config.ResourceMetadata != "" {
		t.challenge = `Bearer resource_metadata="` + config.ResourceMetadata + `"`
	}
	provider := &provider{issuer: config.Issuer, jwks: config.JWKS, client: withLimits(config.Client), algorithms: t.algorithms}
	t.keys = &keySet{fetch: provider.keys, life: ctx, logger: cmp.Or(config.Logger, slog.Default()), now: now}
	return t, nil
}

// Headers returns the name of the header that holds the token.
func (t *Tokens) Headers() []string { return []string{"Authorization"} }

// Ready returns nil if there are keys to check tokens with. It fetches the keys if they are
// missing or old. The error says why there are no keys.
func (t *Tokens) Ready(ctx context.Context) error {
	keys, err := t.keys.get(ctx)
	if err == nil && len(keys) == 0 {
		err = fmt.Errorf("%w: %s lists no key for the algorithms %s", ErrUnavailable, t.issuer, t.algorithms)
	}
	return err
}

// Challenge returns the value of the header WWW-Authenticate in the answer to a request that
// Caller refused. It does not tell the client what is wrong with its token.
func (t *Tokens) Challenge(r *http.Request) string {
	sent := slices.ContainsFunc(r.Header["Authorization"], func(value string) bool {
		scheme, _, _ := strings.Cut(value, " ")
		return strings.EqualFold(scheme, "Bearer")
	})
	switch {
	case !sent:
		return t.challenge
	case t.challenge == "Bearer":
		return `Bearer error="invalid_token"`
	default:
		return t.challenge + `, error="invalid_token"`
	}
}

// Caller returns the user whom the request's token names.
func (t *Tokens) Caller(r *http.Request) (tripseal.Principal, error) {
	token, err := bearer(r.Header["Authorization"])
	if err != nil {
		return nil, err
	}
	claims, err := t.verify(r.Context(), token)
	if err != nil {
		return nil, err
	}
	return tripseal.User("jwt:" + framed(t.issuer) + framed(claims.Subject) + claims.client()), nil
}

// framed returns a text with its length in bytes before it, so that the end of the text is clear.
func framed(text string) string { return strconv.Itoa(len(text)) + ":" + text }

// verify checks a token and returns its claims. Its errors never repeat an error of the
// library, because the library quotes the token.
func (t *Tokens) verify(ctx context.Context, token string) (*claims, error) {
	signed, err := jose.ParseSignedCompact(token, t.algorithms)
	if other := (*jose.ErrUnexpectedSignatureAlgorithm)(nil); errors.As(err, &other) {
		return nil, fmt.Errorf("the token is signed with %s, which is not in the list of algorithms", tripseal.PlainText(string(other.Got)))
	}
	if err != nil || len(signed.Signatures) != 1 {
		return nil, errors.New("the token's header cannot be read")
	}
	header := signed.Signatures[0].Protected
	if err := checkHeader(header); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	key, err := t.keys.find(ctx, header.KeyID, jose.SignatureAlgorithm(header.Algorithm))
	if err != nil {
		return nil, err
	}
	payload, err := signed.Verify(key)
	if err != nil {
		t.keys.renew() // fetch the keys again: the provider may have given this id to another key
		return nil, errors.New("the token's signature is wrong")
	}
	var c claims
	if !utf8.Valid(payload) || json.Unmarshal(payload, &c) != nil {
		return nil, errors.New("the token's claims cannot be read")
	}
	if err := t.check(&c); err != nil {
		return nil, err
	}
	return &c, nil
}

// checkHeader returns an error if the header says that the token is not an access token, or
// that it must be read in a special way. The proxy never uses a key that is in the header,
// or at an address in the header.
func checkHeader(header jose.Header) error {
	if len(header.KeyID) > maxKeyID {
		return fmt.Errorf("the token's key id has more than %d bytes", maxKeyID)
	}
	for _, name := range []jose.HeaderKey{"crit", "b64"} {
		if _, ok := header.ExtraHeaders[name]; ok {
			return fmt.Errorf("the token's header has %s, which no access token needs", name)
		}
	}
	typ, ok := header.ExtraHeaders["typ"]
	if !ok {
		return nil
	}
	text, _ := typ.(string)
	switch strings.TrimPrefix(strings.ToLower(text), "application/") {
	case "jwt", "at+jwt":
		return nil
	}
	return fmt.Errorf("the token has the type %s, which is not that of an access token", tripseal.PlainText(text))
}

// claims holds the claims that the proxy reads from a token.
type claims struct {
	jwt.Claims
	Confirmation json.RawMessage `json:"cnf"`
	// RFC 9068 has the id of the client in client_id, and OpenID Connect has it in azp.
	ClientID *string `json:"client_id"`
	Party    *string `json:"azp"`
	// Access tokens do not have the following four claims. ID tokens and logout tokens may
	// have them.
	AccessTokenHash json.RawMessage `json:"at_hash"`
	CodeHash        json.RawMessage `json:"c_hash"`
	StateHash       json.RawMessage `json:"s_hash"`
	Events          json.RawMessage `json:"events"`
	// Keycloak writes the kind of a token into the claim typ, and Cognito writes it into
	// the claim token_use.
	Type any `json:"typ"`
	Use  any `json:"token_use"`
}

// isOther reports whether the token is an ID token, a refresh token or a logout token. It
// ignores the claim nonce, because older versions of Keycloak write it into access tokens too.
func (c *claims) isOther() bool {
	return c.AccessTokenHash != nil || c.CodeHash != nil || c.StateHash != nil || c.Events != nil ||
		c.Use == "id" || c.Type == "ID" || c.Type == "Refresh" || c.Type == "Offline" || c.Type == "Logout"
}

// client returns the id of the client after a plus sign, or a minus sign if the token names no client.
func (c *claims) client() string {
	if id := cmp.Or(c.ClientID, c.Party); id != nil {
		return "+" + *id
	}
	return "-"
}

func (t *Tokens) check(c *claims) error {
	now := t.now()
	switch {
	case c.Issuer != t.issuer:
		return fmt.Errorf("the token is of another issuer, %s", tripseal.PlainText(c.Issuer))
	case !slices.ContainsFunc(t.audience, c.Audience.Contains):
		return fmt.Errorf("the token is for another audience, %s", tripseal.PlainText(strings.Join(c.Audience[:min(len(c.Audience), 8)], " ")))
	case c.Expiry == nil:
		return errors.New("the token has no expiry")
	case !now.Before(c.Expiry.Time()):
		return errors.New("the token has expired")
	case c.NotBefore != nil && c.NotBefore.Time().After(now.Add(leeway)):
		return errors.New("the token is not valid yet")
	case c.IssuedAt != nil && c.IssuedAt.Time().After(now.Add(leeway)):
		return errors.New("the token was issued in the future: compare the clocks")
	case c.Confirmation != nil:
		return errors.New("the token is bound to a key of its client (cnf), which the proxy cannot check: make the provider issue plain bearer tokens")
	case c.isOther():
		return errors.New("the token is not an access token, but one for another purpose such as an ID token")
	case c.Subject == "":
		return errors.New("the token has no subject")
	case !isPlain(c.Subject, maxSubject):
		return fmt.Errorf("the token's subject has more than %d bytes, or is not plain text", maxSubject)
	case c.client() != "-" && !isPlain(c.client()[1:], maxSubject):
		return fmt.Errorf("the token's client is empty, has more than %d bytes, or is not plain text", maxSubject)
	}
	return nil
}

// isPlain reports whether a name is not blank, has at most the given number of bytes, and has
// no control character and no U+FFFD. Decoders write U+FFFD in place of bytes that they
// cannot read, so two different names could both become one name with U+FFFD.
func isPlain(name string, most int) bool {
	return strings.TrimSpace(name) != "" && len(name) <= most && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError })
}
