package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// files describes the files of a certificate and its key.
type files struct {
	cert, key string // the paths of the files
}

func newFiles(t *testing.T) *files {
	t.Helper()
	dir := t.TempDir()
	f := &files{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	f.renew(t, "first.example.com")
	return f
}

// renew writes a new certificate with a new key.
func (f *files) renew(t *testing.T, name string) {
	t.Helper()
	cert, key := selfSigned(t, name, time.Hour)
	write(t, f.cert, cert)
	write(t, f.key, key)
}

// selfSigned returns a certificate for a host and its key, in PEM form. The certificate is valid for a day, until the
// given time from now.
func selfSigned(t *testing.T, host string, end time.Duration) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(end)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: until.Add(-24 * time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, f *files) (p *Pair, clock *time.Time, log *bytes.Buffer) {
	t.Helper()
	log = new(bytes.Buffer)
	p, err := Load(f.cert, f.key, "", slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	p.now = func() time.Time { return now }
	return p, &now, log
}

func nameOf(p *Pair) string { return p.Current().Leaf.DNSNames[0] }

func TestARenewedCertificateIsUsedWithoutARestart(t *testing.T) {
	f := newFiles(t)
	p, clock, log := load(t, f)
	f.renew(t, "second.example.com")
	if nameOf(p) != "first.example.com" {
		t.Error("the files are looked at again at once")
	}
	*clock = clock.Add(lookEvery)
	if nameOf(p) != "second.example.com" {
		t.Error("the renewed certificate is not in use")
	}
	if !strings.Contains(log.String(), "a certificate was renewed") {
		t.Errorf("log: %s", log)
	}
}

func TestACertificateStaysInUseWhileItsFilesCannotBeUsed(t *testing.T) {
	f := newFiles(t)
	p, clock, log := load(t, f)
	_, other := selfSigned(t, "other.example.com", time.Hour)
	for name, change := range map[string]func(){
		"another key": func() { write(t, f.key, other) },
		"empty":       func() { write(t, f.cert, nil) },
		"gone":        func() { os.Remove(f.cert) },
	} {
		change()
		*clock = clock.Add(lookEvery)
		if nameOf(p) != "first.example.com" {
			t.Errorf("%s: the certificate is no longer in use", name)
		}
		if !strings.Contains(log.String(), "the old one stays in use") {
			t.Errorf("%s: %s", name, log)
		}
		log.Reset()
	}
	old, oldKey := selfSigned(t, "old.example.com", -time.Hour)
	write(t, f.cert, old)
	write(t, f.key, oldKey)
	*clock = clock.Add(lookEvery)
	if nameOf(p) != "first.example.com" {
		t.Error("a certificate that has expired is in use")
	}
	f.renew(t, "third.example.com")
	*clock = clock.Add(lookEvery)
	if nameOf(p) != "third.example.com" {
		t.Error("the files are good again, and the certificate is not in use")
	}
}

func TestFilesThatAreNoCertificateAreRefused(t *testing.T) {
	f := newFiles(t)
	old, oldKey := selfSigned(t, "old.example.com", -time.Hour)
	early, earlyKey := selfSigned(t, "early.example.com", 48*time.Hour)
	_, otherKey := selfSigned(t, "other.example.com", time.Hour)
	cert, err := os.ReadFile(f.cert)
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(f.key)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cert, key []byte
		want      string
	}{
		"another key":  {cert, otherKey, "are not a certificate and its key"},
		"expired":      {old, oldKey, "is valid only from"},
		"swapped":      {key, cert, "are not a certificate and its key"},
		"no PEM":       {[]byte("x"), key, "are not a certificate and its key"},
		"no key there": {cert, nil, "are not a certificate and its key"},
		"not yet":      {early, earlyKey, "is valid only from"},
	} {
		write(t, f.cert, c.cert)
		write(t, f.key, c.key)
		if _, err := Load(f.cert, f.key, "", slog.Default()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none"), f.key, "", slog.Default()); err == nil {
		t.Error("a file that is not there is accepted")
	}
}

func TestACertificateMustBeForItsHost(t *testing.T) {
	f := newFiles(t)
	if _, err := Load(f.cert, f.key, "first.example.com", slog.Default()); err != nil {
		t.Error(err)
	}
	if _, err := Load(f.cert, f.key, "second.example.com", slog.Default()); err == nil || !strings.Contains(err.Error(), "is for another host") {
		t.Error(err)
	}
}

func TestAPoolNeedsACertificate(t *testing.T) {
	f := newFiles(t)
	if _, err := Pool(f.cert); err != nil {
		t.Error(err)
	}
	if _, err := Pool(f.key); err == nil {
		t.Error("a key is accepted as a certificate")
	}
	if _, err := Pool(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is accepted")
	}
}
