package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/probe"
)

// countedUpstream is a server that counts its requests, and those with the header Authorization.
type countedUpstream struct {
	url      string
	requests atomic.Int64
	bearers  atomic.Int64
}

func newCountedUpstream(t *testing.T) *countedUpstream {
	t.Helper()
	u := new(countedUpstream)
	server := release.NewServer()
	next := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.requests.Add(1)
		if r.Header.Get("Authorization") != "" {
			u.bearers.Add(1)
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	u.url = web.URL + "/mcp"
	return u
}

// jwtFlags returns the flags of a proxy that identifies users by access tokens from the provider.
// The parameter more has further flags.
func jwtFlags(provider *issuer, more ...string) []string {
	return append([]string{"--listen", "127.0.0.1:0", "--ephemeral", "--identity", "jwt", "--jwt-issuer", provider.Issuer, "--resource", testAudience}, more...)
}

func withBearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

func TestTwoUsersOfEveryIdentityAreKeptApart(t *testing.T) {
	t.Parallel()
	provider := startIssuer()
	defer provider.Close()
	other := startIssuer()
	defer other.Close()
	users := newAuthority(t)
	cert, key, ca := users.Files(t, leaf{DNS: []string{"127.0.0.1"}})
	withCertificate := func(uri string) *rawClient {
		certPEM, keyPEM := users.Issue(t, leaf{URIs: []string{uri}})
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(users.PEM)
		return &rawClient{Client: http.Client{Transport: &http.Transport{
			ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}},
		}}}
	}
	for name, c := range map[string]struct {
		flags      []string
		alice, bob *rawClient
	}{
		"header": {
			[]string{"--listen", "127.0.0.1:0", "--ephemeral", "--identity", "header", "--header", "X-User", "--trust", "127.0.0.1/32"},
			&rawClient{header: http.Header{"X-User": {"alice"}}}, &rawClient{header: http.Header{"X-User": {"bob"}}},
		},
		"jwt": {
			jwtFlags(provider),
			&rawClient{header: withBearer(provider.Token("alice"))}, &rawClient{header: withBearer(provider.Token("bob"))},
		},
		"mtls": {
			[]string{"--listen", "127.0.0.1:0", "--ephemeral", "--identity", "mtls", "--san", "uri", "--tls-cert", cert, "--tls-key", key, "--client-ca", ca},
			withCertificate("spiffe://example.com/alice"), withCertificate("spiffe://example.com/bob"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			upstream := newCountedUpstream(t)
			p := startProxy(t, append(c.flags, "--upstream", upstream.url)...)
			c.alice.address, c.bob.address = p.address, p.address
			for who, client := range map[string]*rawClient{"alice": c.alice, "bob": c.bob} {
				if err := client.flow(); err != nil {
					t.Errorf("%s: %v", who, err)
				}
			}
			if upstream.bearers.Load() > 0 {
				t.Error("the server got access tokens")
			}
			token := c.alice.mustDeploy(t, "", 0).state
			before := upstream.requests.Load()
			if got := c.bob.mustDeploy(t, token, 1); got.state != "" || got.done || !strings.Contains(got.body, "Invalid or expired requestState") {
				t.Errorf("bob uses the token of alice: %s", got.body)
			}
			if upstream.requests.Load() != before {
				t.Error("the token of alice, sent by bob, reached the server")
			}
			if got := c.alice.mustDeploy(t, token, 1); got.state == "" {
				t.Errorf("alice cannot use her own token: %s", got.body)
			}
			nobody := &rawClient{address: p.address}
			if name == "mtls" {
				nobody.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.alice.Transport.(*http.Transport).TLSClientConfig.RootCAs}}
			}
			if got, err := nobody.deploy("", 0); err == nil && got.status != http.StatusUnauthorized {
				t.Errorf("without a user: %d", got.status)
			}
		})
	}
}

func TestTheProbeCanBeAUserOfAHeader(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "--upstream", leaky(t), "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "header", "--header", "X-User", "--trust", "127.0.0.1/32", "--single-use")
	report, text := probeAt(t, p.address, probe.Options{UserHeader: "X-User", Bearer: "alice", OtherBearer: "bob", SingleUse: true, Only: []string{"other-user", "used-again"}})
	if report.Exit != probe.ExitNothing {
		t.Error(text)
	}
}

func TestAccessTokensThatMustNotCountAre401(t *testing.T) {
	t.Parallel()
	provider := startIssuer()
	defer provider.Close()
	stranger := startIssuer()
	defer stranger.Close()
	upstream := newCountedUpstream(t)
	p := startProxy(t, jwtFlags(provider, "--upstream", upstream.url)...)
	with := func(change func(claims map[string]any)) string {
		claims := provider.Claims("alice")
		change(claims)
		return provider.Sign(claims)
	}
	for name, header := range map[string]http.Header{
		"none":            {},
		"wrong issuer":    withBearer(with(func(c map[string]any) { c["iss"] = stranger.Issuer })),
		"wrong signer":    withBearer(stranger.Sign(provider.Claims("alice"))),
		"wrong audience":  withBearer(with(func(c map[string]any) { c["aud"] = "https://other.example.com/mcp" })),
		"wrong algorithm": withBearer(provider.signRS256(provider.Claims("alice"))),
		"expired":         withBearer(with(func(c map[string]any) { c["exp"] = time.Now().Add(-2 * time.Minute).Unix() })),
		"no expiry":       withBearer(with(func(c map[string]any) { delete(c, "exp") })),
		"no subject":      withBearer(with(func(c map[string]any) { delete(c, "sub") })),
		"empty subject":   withBearer(with(func(c map[string]any) { c["sub"] = "" })),
		"opaque":          withBearer("an-opaque-token"),
		"basic":           {"Authorization": {"Basic YWxpY2U6c2VzYW1l"}},
	} {
		client := &rawClient{address: p.address, header: header}
		got := client.mustDeploy(t, "", 0)
		challenge := got.header.Get("Www-Authenticate")
		if got.status != http.StatusUnauthorized || !strings.HasPrefix(challenge, "Bearer ") ||
			!strings.Contains(challenge, `resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`) {
			t.Errorf("%s: %d, %s", name, got.status, challenge)
		}
		if strings.Contains(got.body, "alice") {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	if n := upstream.requests.Load(); n != 0 {
		t.Errorf("%d requests reached the server", n)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if text := p.log.String(); strings.Contains(text, "eyJ") || !strings.Contains(text, "status=401") {
		t.Errorf("log: %s", text)
	}
}

func TestTheMetadataTellsWhereToGetAnAccessToken(t *testing.T) {
	t.Parallel()
	provider := startIssuer()
	defer provider.Close()
	upstream := newCountedUpstream(t)
	p := startProxy(t, jwtFlags(provider, "--upstream", upstream.url)...)
	for path, want := range map[string]int{
		"/.well-known/oauth-protected-resource/mcp":   http.StatusOK,
		"/.well-known/oauth-protected-resource/out":   http.StatusNotFound,
		"/.well-known/oauth-protected-resource":       http.StatusOK,
		"/.well-known/oauth-protected-resource/other": http.StatusNotFound,
	} {
		res, err := http.Get(strings.TrimSuffix(p.address, "/mcp") + path)
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, 1000)
		n, _ := res.Body.Read(body)
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %s", path, res.Status)
		}
		if want == http.StatusOK && string(body[:n]) != `{"authorization_servers":["`+provider.Issuer+`"],"bearer_methods_supported":["header"],"resource":"https://mcp.example.com/mcp"}` {
			t.Errorf("%s: %s", path, body[:n])
		}
	}
	if upstream.requests.Load() != 0 {
		t.Error("the server was asked")
	}
}

// Behind a gateway that changes paths, clients reach the resource at another path than the one that
// the proxy serves. The proxy must serve the metadata at the path that its challenge names.
func TestTheMetadataIsServedAtThePathOfTheResource(t *testing.T) {
	t.Parallel()
	provider := startIssuer()
	defer provider.Close()
	p := startProxy(t, "--upstream", newCountedUpstream(t).url, "--listen", "127.0.0.1:0", "--ephemeral", "--identity", "jwt", "--jwt-issuer", provider.Issuer,
		"--resource", "https://mcp.example.com/tools/release")
	got := (&rawClient{address: p.address}).mustDeploy(t, "", 0)
	_, at, _ := strings.Cut(got.header.Get("Www-Authenticate"), "https://mcp.example.com")
	at, _, _ = strings.Cut(at, `"`)
	if status, body := get(t, strings.TrimSuffix(p.address, "/mcp")+at); status != http.StatusOK || !strings.Contains(body, "/tools/release") {
		t.Errorf("%s: %d %s", at, status, body)
	}
}

func TestAnotherAudienceDoesNotReplaceTheResource(t *testing.T) {
	t.Parallel()
	provider := startIssuer()
	defer provider.Close()
	p := startProxy(t, jwtFlags(provider, "--upstream", newCountedUpstream(t).url, "--jwt-audience", "api://other")...)
	for _, audience := range []string{testAudience, "api://other"} {
		claims := provider.Claims("alice")
		claims["aud"] = audience
		if err := (&rawClient{address: p.address, header: withBearer(provider.Sign(claims))}).flow(); err != nil {
			t.Errorf("%s: %v", audience, err)
		}
	}
}

func TestNewKeysOfTheIssuerWorkWhileTheProxyEnds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs signals")
	}
	provider := startIssuer()
	defer provider.Close()
	p := startProcess(t, "--upstream", newCountedUpstream(t).url, "--ephemeral", "--identity", "jwt", "--jwt-issuer", provider.Issuer, "--resource", testAudience,
		"--drain-delay", "1m")
	p.cmd.Process.Signal(os.Interrupt)
	eventually(t, "the proxy is about to end", func() bool {
		_, body := get(t, p.admin+"/readyz")
		return strings.Contains(body, "about to end")
	})
	if err := (&rawClient{address: p.address, header: withBearer(provider.Token("alice"))}).flow(); err != nil {
		t.Error(err)
	}
}

// The address of the provider's keys may have a secret in its query.
func TestASecretInTheAddressOfTheKeysIsNotShown(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "--upstream", newCountedUpstream(t).url, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--ephemeral", "--identity", "jwt",
		"--jwt-issuer", "http://127.0.0.1:1", "--jwt-jwks", "http://127.0.0.1:1/keys?api_key="+secretState, "--resource", testAudience)
	(&rawClient{address: p.address, header: withBearer("a.b.c")}).mustDeploy(t, "", 0)
	status, body := get(t, p.admin+"/readyz")
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "127.0.0.1:1/keys") || strings.Contains(body+p.log.String(), secretState) {
		t.Errorf("%d %s\n%s", status, body, p.log)
	}
}

func TestAccessTokensAreForwardedOnlyIfAsked(t *testing.T) {
	t.Parallel()
	provider := startIssuer()
	defer provider.Close()
	upstream := newCountedUpstream(t)
	p := startProxy(t, jwtFlags(provider, "--upstream", upstream.url, "--forward-identity")...)
	if err := (&rawClient{address: p.address, header: withBearer(provider.Token("alice"))}).flow(); err != nil {
		t.Error(err)
	}
	if upstream.bearers.Load() != 3 {
		t.Errorf("%d requests had an access token", upstream.bearers.Load())
	}
}

// If the provider cannot be reached, the client's token is not at fault. So the client gets 503,
// and not 401, which would tell it to log in again.
func TestWithoutTheProvidersKeysARequestIs503(t *testing.T) {
	t.Parallel()
	provider := startIssuer()
	token := provider.Token("alice")
	flags := jwtFlags(provider, "--upstream", newCountedUpstream(t).url, "--admin", "127.0.0.1:0")
	provider.Close()
	p := startProxy(t, flags...)
	got := (&rawClient{address: p.address, header: withBearer(token)}).mustDeploy(t, "", 0)
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("%d, %v", got.status, got.header)
	}
}
