package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
)

// TestInspectKnowsTheUsersOfTheProxy gets a token from the proxy, with each way to identify users.
// With the right --user, tripseal inspect must accept the token. With another user, it must reject it.
func TestInspectKnowsTheUsersOfTheProxy(t *testing.T) {
	t.Parallel()
	keyFile := filepath.Join(t.TempDir(), "keys")
	if code := run([]string{"keys", "new", keyFile}, strings.NewReader(""), new(bytes.Buffer), new(bytes.Buffer)); code != 0 {
		t.Fatal(code)
	}
	provider := startIssuer()
	defer provider.Close()
	authority := newAuthority(t)
	cert, key, ca := authority.Files(t, leaf{DNS: []string{"127.0.0.1"}})
	certPEM, keyPEM := authority.Issue(t, leaf{URIs: []string{"spiffe://example.com/alice"}})
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.PEM)
	withCertificate := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}}

	for name, c := range map[string]struct {
		flags  []string
		client *rawClient
		user   string
	}{
		"header": {
			[]string{"--identity", "header", "--header", "X-User", "--trust", "127.0.0.1/32"},
			&rawClient{header: http.Header{"X-User": {"alice"}}}, "alice",
		},
		"jwt": {
			[]string{"--identity", "jwt", "--jwt-issuer", provider.Issuer, "--resource", testAudience},
			&rawClient{header: withBearer(provider.Token("alice"))}, fmt.Sprintf("jwt:%d:%s5:alice-", len(provider.Issuer), provider.Issuer),
		},
		"mtls": {
			[]string{"--identity", "mtls", "--san", "uri", "--tls-cert", cert, "--tls-key", key, "--client-ca", ca},
			&rawClient{Client: http.Client{Transport: withCertificate}}, "mtls:uri:spiffe://example.com/alice",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, append(c.flags, "--listen", "127.0.0.1:0", "--keys", keyFile, "--audience", "release.example.com", "--upstream", newCountedUpstream(t).url)...)
			c.client.address = p.address
			token := c.client.mustDeploy(t, "", 0).state
			for user, accepted := range map[string]int{c.user: 0, c.user + "x": cli.ExitNo} {
				var out, errs bytes.Buffer
				code := run([]string{"inspect", "--keys", keyFile, "--target", "deploy", "--args", `{"service":"web","version":"1"}`,
					"--user", user, "--audience", "release.example.com"}, strings.NewReader(token), &out, &errs)
				if code != accepted {
					t.Errorf("--user %s: exit code %d\n%s%s", user, code, &out, &errs)
				}
			}
		})
	}
}
