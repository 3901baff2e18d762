package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// authority signs the certificates of a test.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{t, certificate, key}
}

// name is a subject alternative name.
type name struct{ kind, text string }

// issue returns the certificate of a client with these names. It is valid for an hour.
func (a *authority) issue(names ...name) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "alice"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if len(names) > 0 {
		values := []asn1.RawValue{}
		for _, n := range names {
			values = append(values, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: generalNames[n.kind], Bytes: []byte(n.text)})
		}
		text, err := asn1.Marshal(values)
		if err != nil {
			a.t.Fatal(err)
		}
		template.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: text}}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// This method returns the request of a client with this certificate, as if the TLS server had
// verified the certificate.
func (a *authority) over(certificate tls.Certificate) *http.Request {
	r := httptest.NewRequest("POST", "https://mcp.example.com/mcp", nil)
	r.TLS = &tls.ConnectionState{
		PeerCertificates: []*x509.Certificate{certificate.Leaf},
		VerifiedChains:   [][]*x509.Certificate{{certificate.Leaf, a.certificate}},
	}
	return r
}

func fromCertificate(t *testing.T, kind string) *certificate {
	t.Helper()
	id, err := FromCertificate(kind)
	if err != nil {
		t.Fatal(err)
	}
	return id.(*certificate)
}

func TestTheUserIsTheNameInTheCertificate(t *testing.T) {
	a := newAuthority(t)
	all := []name{{"uri", "spiffe://Example.com/%41lice#"}, {"dns", "Build-7.Example.com"}, {"email", "Alice@Example.com"}}
	for kind, want := range map[string]string{
		"uri": "mtls:uri:spiffe://Example.com/%41lice#", "dns": "mtls:dns:build-7.example.com", "email": "mtls:email:Alice@Example.com",
	} {
		caller, err := fromCertificate(t, kind).Caller(a.over(a.issue(all...)))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if user, err := caller(t.Context()); user != want || err != nil {
			t.Errorf("%q, %v; want %q", user, err, want)
		}
	}
}

func TestCertificatesThatNameNoSingleUserAreRefused(t *testing.T) {
	a := newAuthority(t)
	for why, c := range map[string]struct {
		kind  string
		names []name
	}{
		"no names":            {"uri", nil},
		"another kind":        {"uri", []name{{"dns", "a.example.com"}, {"email", "a@example.com"}}},
		"two":                 {"uri", []name{{"uri", "spiffe://a"}, {"uri", "spiffe://b"}}},
		"twice the same":      {"dns", []name{{"dns", "a.example.com"}, {"dns", "a.example.com"}}},
		"empty":               {"email", []name{{"email", ""}}},
		"a wildcard":          {"dns", []name{{"dns", "*.example.com"}}},
		"a long one":          {"dns", []name{{"dns", strings.Repeat("a.", maxName/2) + "example"}}},
		"a control character": {"email", []name{{"email", "a\nb@example.com"}}},
	} {
		if caller, err := fromCertificate(t, c.kind).Caller(a.over(a.issue(c.names...))); err == nil || caller != nil {
			t.Errorf("%s is accepted", why)
		}
	}
}

func TestCertificatesThatWereNotVerifiedAreRefused(t *testing.T) {
	a := newAuthority(t)
	id := fromCertificate(t, "uri")
	good := a.issue(name{"uri", "spiffe://example.com/alice"})
	for why, change := range map[string]func(*http.Request){
		"no TLS":         func(r *http.Request) { r.TLS = nil },
		"no certificate": func(r *http.Request) { r.TLS = &tls.ConnectionState{} },
		"not verified":   func(r *http.Request) { r.TLS.VerifiedChains = nil },
		"an empty chain": func(r *http.Request) { r.TLS.VerifiedChains = [][]*x509.Certificate{{}} },
	} {
		r := a.over(good)
		if _, err := id.Caller(r); err != nil {
			t.Fatal(err)
		}
		change(r)
		if caller, err := id.Caller(r); err == nil || caller != nil {
			t.Errorf("%s is accepted", why)
		}
	}
}

// TestACertificateThatExpiresOnAnOpenConnectionIsRefused checks that a certificate is refused after
// it has expired, although it was verified before. The same holds if its authority has expired.
func TestACertificateThatExpiresOnAnOpenConnectionIsRefused(t *testing.T) {
	a := newAuthority(t)
	id := fromCertificate(t, "uri")
	r := a.over(a.issue(name{"uri", "spiffe://example.com/alice"}))
	leaf := r.TLS.VerifiedChains[0][0]
	for why, c := range map[string]struct {
		now time.Time
		ok  bool
	}{
		"at its end":    {leaf.NotAfter, true},
		"after its end": {leaf.NotAfter.Add(time.Second), false},
		"too early":     {leaf.NotBefore.Add(-time.Second), false},
	} {
		id.now = func() time.Time { return c.now }
		if _, err := id.Caller(r); (err == nil) != c.ok {
			t.Errorf("%s: %v", why, err)
		}
	}
	id.now = time.Now
	short := *a.certificate
	short.NotAfter = time.Now().Add(-time.Second)
	r.TLS.VerifiedChains = [][]*x509.Certificate{{leaf, &short}}
	if _, err := id.Caller(r); err == nil {
		t.Error("an authority that has expired still vouches")
	}
	r.TLS.VerifiedChains = [][]*x509.Certificate{{leaf, &short}, {leaf, a.certificate}}
	if _, err := id.Caller(r); err != nil {
		t.Errorf("the other authority does not vouch: %v", err)
	}
}

func TestOtherKindsOfNamesAreRefused(t *testing.T) {
	for _, kind := range []string{"", "cn", "URI", "ip", "san"} {
		if _, err := FromCertificate(kind); err == nil {
			t.Errorf("%q is accepted", kind)
		}
	}
}

// TestOverTLSOnlyVerifiedClientsAreKnown checks with real TLS connections that a client is a known
// user only if the server has verified its certificate.
func TestOverTLSOnlyVerifiedClientsAreKnown(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	id := fromCertificate(t, "uri")
	authorities := x509.NewCertPool()
	authorities.AddCert(a.certificate)
	serve := func(w http.ResponseWriter, r *http.Request) {
		caller, err := id.Caller(r)
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		user, _ := caller(r.Context())
		io.WriteString(w, user)
	}
	alice := name{"uri", "spiffe://example.com/alice"}
	for _, c := range []struct {
		auth         tls.ClientAuthType
		certificates []tls.Certificate
		user         string
	}{
		{tls.VerifyClientCertIfGiven, []tls.Certificate{a.issue(alice)}, "mtls:uri:" + alice.text},
		{tls.VerifyClientCertIfGiven, nil, ""},
		{tls.VerifyClientCertIfGiven, []tls.Certificate{stranger.issue(alice)}, ""},
		{tls.RequireAnyClientCert, []tls.Certificate{stranger.issue(alice)}, ""},
		{tls.RequireAnyClientCert, []tls.Certificate{a.issue(alice)}, ""}, // with RequireAnyClientCert, the server does not verify the certificate
	} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(serve))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.TLS = &tls.Config{ClientAuth: c.auth, ClientCAs: authorities}
		server.StartTLS()
		transport := server.Client().Transport.(*http.Transport).Clone()
		transport.DisableKeepAlives = true
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if len(c.certificates) == 0 {
				return new(tls.Certificate), nil
			}
			return &c.certificates[0], nil
		}
		user := ""
		if answer, err := (&http.Client{Transport: transport}).Get(server.URL); err == nil {
			if body, _ := io.ReadAll(answer.Body); answer.StatusCode == http.StatusOK {
				user = string(body)
			}
			answer.Body.Close()
		}
		server.Close()
		if user != c.user {
			t.Errorf("%v: %q, want %q", c.auth, user, c.user)
		}
	}
}

func TestCertificatesOfTwoKindsAreTwoUsers(t *testing.T) {
	a := newAuthority(t)
	users := map[string]bool{}
	for _, kind := range []string{"uri", "dns", "email"} {
		caller, err := fromCertificate(t, kind).Caller(a.over(a.issue(name{kind, "alice"})))
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		user, _ := caller(t.Context())
		users[user] = true
	}
	if len(users) != 3 {
		t.Error(users)
	}
}
