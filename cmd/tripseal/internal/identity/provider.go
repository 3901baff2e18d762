package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

const (
	fetchTimeout = 10 * time.Second
	maxDocument  = 1 << 20
	maxKeys      = 100
	maxRedirects = 3
	leastRSA     = 2048 // in bits; the library refuses keys of more than 4096 bits
)

// provider fetches the keys of an issuer.
type provider struct {
	issuer     string
	jwks       string // the configured address of the keys; "" if none is configured
	client     *http.Client
	algorithms []jose.SignatureAlgorithm

	discovered string // the jwks_uri that the metadata gives; "" if the metadata must be fetched
}

// keys fetches the keys. If their address is not known, it fetches the metadata first.
func (p *provider) keys(ctx context.Context) ([]key, error) {
	address := p.jwks
	if address == "" {
		if p.discovered == "" {
			discovered, err := p.discover(ctx)
			if err != nil {
				return nil, err
			}
			p.discovered = discovered
		}
		address = p.discovered
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	err := p.get(ctx, address, &set)
	switch {
	case err == nil && set.Keys == nil:
		err = fmt.Errorf("%s is not a set of keys", address)
	case err == nil && len(set.Keys) > maxKeys:
		err = fmt.Errorf("%s has more than %d keys", address, maxKeys)
	}
	if err != nil {
		p.discovered = "" // fetch the metadata again next time: the keys may have a new address
		return nil, err
	}
	keys := []key{}
	for _, text := range set.Keys {
		if k, ok := p.read(text); ok {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// discover returns the address of the keys from the issuer's metadata. It fetches the OpenID
// Connect metadata. If the issuer has none, it fetches the RFC 8414 metadata instead.
func (p *provider) discover(ctx context.Context) (string, error) {
	issuer, err := parseAddress(p.issuer)
	if err != nil {
		return "", err
	}
	path := strings.TrimSuffix(issuer.EscapedPath(), "/")
	host := issuer.Scheme + "://" + issuer.Host
	var metadata struct {
		Issuer string `json:"issuer"`
		JWKS   string `json:"jwks_uri"`
	}
	err = p.get(ctx, host+path+"/.well-known/openid-configuration", &metadata)
	if errors.Is(err, errStatus) {
		if p.get(ctx, host+"/.well-known/oauth-authorization-server"+path, &metadata) == nil {
			err = nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w; check the issuer and that it can be reached from here, or configure the address of its keys", err)
	}
	if metadata.Issuer != p.issuer {
		return "", fmt.Errorf("the provider at %s calls itself %.200q; configure the issuer exactly as tokens have it", p.issuer, metadata.Issuer)
	}
	address, err := parseAddress(metadata.JWKS)
	if err == nil && address.Scheme == "http" && issuer.Scheme != "http" {
		err = errors.New("must not be an http address")
	}
	if err != nil {
		return "", fmt.Errorf("the provider's metadata is wrong: jwks_uri %w", err)
	}
	return metadata.JWKS, nil
}

var errStatus = errors.New("the provider does not have this document")

// get fetches a JSON document of the provider, and decodes it into target, which must be a
// pointer.
func (p *provider) get(ctx context.Context, address string, target any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := p.client.Do(request)
	if err != nil {
		var withAddress *url.Error
		if errors.As(err, &withAddress) {
			err = withAddress.Err // leave out the address, because its query may hold a secret
		}
		return fmt.Errorf("%s: %w", withoutQuery(address), err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers with status %d: %w", withoutQuery(address), answer.StatusCode, errStatus)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read: %w", withoutQuery(address), err)
	case len(text) > maxDocument:
		return fmt.Errorf("%s has more than %d bytes", withoutQuery(address), maxDocument)
	case json.Unmarshal(text, target) != nil:
		return fmt.Errorf("%s is not the JSON document that it should be", withoutQuery(address))
	}
	return nil
}

// withoutQuery returns an address without its query, for the text of an error. The query may
// hold a secret.
func withoutQuery(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}

// read reads one key of a JSON Web Key Set. It returns false if the key cannot be used here.
// RFC 7517 says to ignore such keys. The members about certificates are ignored too.
func (p *provider) read(text json.RawMessage) (k key, ok bool) {
	var jwk struct {
		Type       string   `json:"kty"`
		ID         string   `json:"kid,omitempty"`
		Curve      string   `json:"crv,omitempty"`
		N          string   `json:"n,omitempty"`
		E          string   `json:"e,omitempty"`
		X          string   `json:"x,omitempty"`
		Y          string   `json:"y,omitempty"`
		Use        string   `json:"use,omitempty"`
		Algorithm  string   `json:"alg,omitempty"`
		Operations []string `json:"key_ops,omitempty"`
		Private    any      `json:"d,omitempty"` // the private key; if the provider publishes it, anybody can sign, so the key is ignored
	}
	switch {
	case json.Unmarshal(text, &jwk) != nil,
		len(jwk.ID) > maxKeyID,
		jwk.Use != "" && jwk.Use != "sig",
		jwk.Operations != nil && !slices.Contains(jwk.Operations, "verify"),
		jwk.Private != nil:
		return key{}, false
	}
	plain, err := json.Marshal(jwk)
	if err != nil {
		return key{}, false
	}
	var parsed jose.JSONWebKey
	if parsed.UnmarshalJSON(plain) != nil || !parsed.Valid() {
		return key{}, false
	}
	k = key{id: parsed.KeyID, public: parsed.Key}
	for _, algorithm := range algorithmsOf(parsed.Key) {
		if slices.Contains(p.algorithms, algorithm) && (jwk.Algorithm == "" || jwk.Algorithm == string(algorithm)) {
			k.algorithms = append(k.algorithms, algorithm)
		}
	}
	return k, len(k.algorithms) > 0
}

// algorithmsOf returns the algorithms that a public key can be used with.
func algorithmsOf(public any) []jose.SignatureAlgorithm {
	switch public := public.(type) {
	case *rsa.PublicKey:
		if public.N.BitLen() >= leastRSA {
			return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}
		}
	case *ecdsa.PublicKey:
		switch public.Curve {
		case elliptic.P256():
			return []jose.SignatureAlgorithm{jose.ES256}
		case elliptic.P384():
			return []jose.SignatureAlgorithm{jose.ES384}
		case elliptic.P521():
			return []jose.SignatureAlgorithm{jose.ES512}
		}
	case ed25519.PublicKey:
		return []jose.SignatureAlgorithm{jose.EdDSA}
	}
	return nil
}

// withLimits returns a copy of the client, or a new client if the given one is nil. The returned
// client has a time limit, and follows only redirects to the same host.
func withLimits(client *http.Client) *http.Client {
	var b http.Client
	if client != nil {
		b = *client
	}
	if b.Transport == nil {
		b.Transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			ForceAttemptHTTP2:      true,
		}
	}
	if b.Timeout <= 0 || b.Timeout > fetchTimeout {
		b.Timeout = fetchTimeout
	}
	b.CheckRedirect = func(next *http.Request, before []*http.Request) error {
		first := before[0].URL
		switch {
		case next.URL.Scheme != first.Scheme || next.URL.Host != first.Host:
			return errors.New("it redirects to another host")
		case len(before) > maxRedirects:
			return errors.New("it redirects too often")
		}
		return nil
	}
	return &b
}

// parseAddress parses an address. It must be an https address, so that nobody on the network
// can change the data that is fetched. A loopback host may also have an http address.
func parseAddress(text string) (*url.URL, error) {
	address, err := url.Parse(text)
	switch {
	case text == "":
		return nil, errors.New("is missing")
	case err != nil || !isPlain(text, 4096) || strings.ContainsAny(text, "\"\\ #") || address.Hostname() == "" || address.User != nil:
		return nil, errors.New("must be an address such as https://login.example.com, without a user, a password or a fragment")
	case address.Scheme == "https" || address.Scheme == "http" && isLoopback(address.Hostname()):
		return address, nil
	}
	return nil, errors.New("must be an https address; only loopback hosts may use http")
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
