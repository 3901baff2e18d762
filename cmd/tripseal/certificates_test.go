package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority issues certificates.
type authority struct {
	PEM  []byte // its own certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// leaf says for whom a certificate is issued, and when it is valid.
type leaf struct {
	DNS      []string
	URIs     []string
	Emails   []string
	NotAfter time.Time // the zero time means an hour from now

	NotBefore time.Time // the zero time means yesterday
}

// newAuthority makes an authority with a new key. The authority signs its own certificate.
func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// Issue returns a certificate and its key in PEM form, for servers and clients alike. An IP
// address in of.DNS becomes an address in the certificate, not a host name.
func (a *authority) Issue(t testing.TB, of leaf) (cert, key []byte) {
	t.Helper()
	if of.NotAfter.IsZero() {
		of.NotAfter = time.Now().Add(time.Hour)
	}
	if of.NotBefore.IsZero() {
		of.NotBefore = time.Now().Add(-24 * time.Hour)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "test"},
		NotBefore: of.NotBefore, NotAfter: of.NotAfter,
		KeyUsage:       x509.KeyUsageDigitalSignature,
		ExtKeyUsage:    []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		EmailAddresses: of.Emails,
	}
	for _, name := range of.DNS {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	for _, text := range of.URIs {
		uri, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, uri)
	}
	private := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// Files writes a new certificate, its key, and the authority into a new directory, and
// returns the names of the files.
func (a *authority) Files(t testing.TB, of leaf) (cert, key, authority string) {
	t.Helper()
	dir := t.TempDir()
	certPEM, keyPEM := a.Issue(t, of)
	for name, text := range map[string][]byte{"cert.pem": certPEM, "key.pem": keyPEM, "ca.pem": a.PEM} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "ca.pem")
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
