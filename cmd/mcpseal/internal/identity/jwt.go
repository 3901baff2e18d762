package identity

import (
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
	"github.com/mcpseal/mcpseal"
)

// JWTConfig says which tokens [JWT] accepts.
type JWTConfig struct {
	// Issuer is the provider that signs the tokens, spelt exactly as in their claim iss.
	// It is an https address, or an http address of a loopback host. Required.
	Issuer string
	// Audience lists the names of this service. A token must be meant for one of them. Use
	// the address that clients know the service by, never the id of a client: with that,
	// ID tokens pass for access tokens. Required.
	Audience []string
	// Algorithms lists the algorithms that may have signed a token. Empty means RS256,
	// PS256, ES256 and EdDSA.
	Algorithms []string
	// JWKS is the address of the provider's keys. Empty means the address that the
	// provider's metadata names.
	JWKS string
	// ResourceMetadata is the address of this service's RFC 9728 metadata. A refused
	// client reads there how to get a token. Empty means that it is not told.
	ResourceMetadata string
	// Client fetches the metadata and the keys. Nil means a client of its own. A copy is
	// used, with limits on time, size and redirects.
	Client *http.Client
	// Logger gets a record, at most once a minute, when the keys cannot be fetched. Nil
	// means [slog.Default].
	Logger *slog.Logger
}

const (
	maxIssuer  = 1024
	maxSubject = 1024
	maxKeyID   = 1024
	// leeway is how far the provider's clock may be ahead. There is none for the expiry:
	// a client renews a token early, but it cannot use a new one late.
	leeway = time.Minute
	// patience is how long a request waits for keys.
	patience = 5 * time.Second
)

// ErrUnavailable says that a user cannot be known because the provider's keys are missing,
// whatever the token. The client did nothing wrong.
var ErrUnavailable = errors.New("the provider's keys are not available")

// Tokens is the identity of the users whom JSON Web Tokens name. It is safe for concurrent
// use.
type Tokens struct {
	issuer     string
	audience   []string
	algorithms []jose.SignatureAlgorithm
	challenge  string
	keys       *keySet
	now        func() time.Time
	patience   time.Duration
}

// asymmetric has the algorithms whose keys may be public. None can be used with the key of
// another one.
var asymmetric = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// JWT takes the user from the bearer token of a request: a JSON Web Token of one issuer for
// this service. The issuer and the subject together name the user. Opaque tokens cannot be
// read here: they need a proxy that resolves them, and [FromHeader].
//
// JWT fetches nothing. Call [Tokens.Ready] to learn whether the provider answers. The first
// request fetches the keys if nobody did before. The end of ctx ends fetches.
func JWT(ctx context.Context, config JWTConfig) (*Tokens, error) {
	return newTokens(ctx, config, time.Now)
}

func newTokens(ctx context.Context, config JWTConfig, now func() time.Time) (*Tokens, error) {
	t := &Tokens{issuer: config.Issuer, audience: slices.Clone(config.Audience), now: now, patience: patience, challenge: "Bearer"}
	issuer, err := parseAddress(config.Issuer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the issuer %w", err)
	case issuer.RawQuery != "" || issuer.ForceQuery:
		return nil, errors.New("the issuer must not have a query")
	case len(config.Issuer) > maxIssuer:
		return nil, fmt.Errorf("the issuer has more than %d bytes", maxIssuer)
	case len(config.Audience) == 0:
		return nil, errors.New("an audience is required: the address that clients know this service by, which tokens for it have in their claim aud")
	}
	for _, name := range config.Audience {
		if !isPlain(name, maxSubject) {
			return nil, fmt.Errorf("the audience %.80q is empty, too long or not plain text", name)
		}
	}
	for _, name := range config.Algorithms {
		algorithm := jose.SignatureAlgorithm(name)
		if !slices.Contains(asymmetric, algorithm) {
			return nil, fmt.Errorf("tokens must not be signed with %.40q; use some of %s", name, asymmetric)
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
		address, err := parseAddress(config.ResourceMetadata)
		if err != nil {
			return nil, fmt.Errorf("the address of the resource's metadata %w", err)
		}
		t.challenge = `Bearer resource_metadata="` + address.String() + `"`
	}
	logger := config.Logger
	if logger == nil {
		logger = slog.Default()
	}
	provider := &provider{issuer: config.Issuer, jwks: config.JWKS, client: bounded(config.Client), algorithms: t.algorithms}
	t.keys = &keySet{fetch: provider.keys, life: ctx, logger: logger, now: now}
	return t, nil
}

// Headers names the header that has the token.
func (t *Tokens) Headers() []string { return []string{"Authorization"} }

// Ready fetches the provider's keys if none are there. The error says why there are none.
func (t *Tokens) Ready(ctx context.Context) error {
	keys, err := t.keys.get(ctx)
	if err == nil && len(keys) == 0 {
		err = fmt.Errorf("%w: %s lists none for the algorithms %s", ErrUnavailable, t.issuer, t.algorithms)
	}
	return err
}

// Challenge returns the value of WWW-Authenticate for a request that Caller refused. It
// does not say what is wrong with a token.
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
func (t *Tokens) Caller(r *http.Request) (mcpseal.Principal, error) {
	token, err := bearer(r.Header["Authorization"])
	if err != nil {
		return nil, err
	}
	subject, err := t.verify(r.Context(), token)
	if err != nil {
		return nil, err
	}
	return mcpseal.User("jwt:" + strconv.Itoa(len(t.issuer)) + ":" + t.issuer + subject), nil
}

// verify returns the subject of a token. No error shows a text of the library: those quote
// the token.
func (t *Tokens) verify(ctx context.Context, token string) (subject string, err error) {
	signed, err := jose.ParseSignedCompact(token, t.algorithms)
	if other := (*jose.ErrUnexpectedSignatureAlgorithm)(nil); errors.As(err, &other) {
		return "", fmt.Errorf("the token is signed with %s, which is not in the list of algorithms", mcpseal.PlainText(string(other.Got)))
	}
	if err != nil || len(signed.Signatures) != 1 {
		return "", errors.New("the token's header cannot be read")
	}
	header := signed.Signatures[0].Protected
	if err := checkHeader(header); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, t.patience)
	defer cancel()
	key, err := t.keys.find(ctx, header.KeyID, jose.SignatureAlgorithm(header.Algorithm))
	if err != nil {
		return "", err
	}
	payload, err := signed.Verify(key)
	if err != nil {
		t.keys.renew() // the provider may have given the key's id to another key
		return "", errors.New("the token's signature is wrong")
	}
	var c claims
	if !utf8.Valid(payload) || json.Unmarshal(payload, &c) != nil {
		return "", errors.New("the token's claims cannot be read")
	}
	if err := t.check(&c); err != nil {
		return "", err
	}
	return c.Subject, nil
}

// checkHeader refuses tokens that are for another purpose, or that must not be read like
// all others. The keys that a header names or holds are never used.
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
	return fmt.Errorf("the token has the type %s, which is not that of an access token", mcpseal.PlainText(text))
}

// claims has what the proxy reads of a token.
type claims struct {
	jwt.Claims
	Confirmation json.RawMessage `json:"cnf"`
	// Only tokens for other purposes have these.
	AccessTokenHash json.RawMessage `json:"at_hash"`
	CodeHash        json.RawMessage `json:"c_hash"`
	StateHash       json.RawMessage `json:"s_hash"`
	Events          json.RawMessage `json:"events"`
	// Keycloak and Cognito write here what a token is for.
	Type any `json:"typ"`
	Use  any `json:"token_use"`
}

// isOther reports whether the token is an ID token, a refresh token or a logout token. A
// nonce is no mark: older versions of Keycloak write it into access tokens.
func (c *claims) isOther() bool {
	return c.AccessTokenHash != nil || c.CodeHash != nil || c.StateHash != nil || c.Events != nil ||
		c.Use == "id" || c.Type == "ID" || c.Type == "Refresh" || c.Type == "Offline" || c.Type == "Logout"
}

func (t *Tokens) check(c *claims) error {
	now := t.now()
	switch {
	case c.Issuer != t.issuer:
		return fmt.Errorf("the token is of another issuer, %s", mcpseal.PlainText(c.Issuer))
	case !slices.ContainsFunc(t.audience, c.Audience.Contains):
		return fmt.Errorf("the token is for another audience, %s", mcpseal.PlainText(strings.Join(c.Audience[:min(len(c.Audience), 8)], " ")))
	case c.Expiry == nil:
		return errors.New("the token has no expiry")
	case !now.Before(c.Expiry.Time()):
		return errors.New("the token has expired")
	case c.NotBefore != nil && c.NotBefore.Time().After(now.Add(leeway)):
		return errors.New("the token is not valid yet")
	case c.IssuedAt != nil && c.IssuedAt.Time().After(now.Add(leeway)):
		return errors.New("the token was issued in the future: compare the clocks")
	case c.Confirmation != nil:
		return errors.New("the token is bound to a key of its client (cnf), which the proxy cannot check: have the provider issue plain bearer tokens")
	case c.isOther():
		return errors.New("the token is not an access token, but one for another purpose such as an ID token")
	case c.Subject == "":
		return errors.New("the token has no subject")
	case !isPlain(c.Subject, maxSubject):
		return fmt.Errorf("the token's subject has more than %d bytes, or is not plain text", maxSubject)
	}
	return nil
}

// isPlain reports whether a name has a visible character and no control character.
// Decoders put U+FFFD in the place of what they cannot read, so that names with it could
// be equal without need.
func isPlain(name string, most int) bool {
	return strings.TrimSpace(name) != "" && len(name) <= most && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError })
}
