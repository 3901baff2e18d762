// Package certs reads certificates from files. It reads a certificate and its key again when
// their files change, so that they can be renewed without a restart.
package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// lookEvery is the minimum time between two checks for changed files.
const lookEvery = 10 * time.Second

// Pair is a certificate and its private key, in two PEM files. It is safe for concurrent use.
type Pair struct {
	certFile, keyFile string
	host              string // the host name that the certificate must be for; "" means any
	logger            *slog.Logger
	now               func() time.Time

	mu     sync.Mutex
	loaded *tls.Certificate
	sum    [sha256.Size]byte // of the texts of both files, when the certificate was read
	looked time.Time
}

// Load reads the two files. It returns an error if they cannot be used, or if host is not ""
// and the certificate is for another host. Afterwards, the logger gets a record whenever Current
// loads changed files, and whenever Current finds that it cannot use the files.
func Load(certFile, keyFile, host string, logger *slog.Logger) (*Pair, error) {
	p := &Pair{certFile: certFile, keyFile: keyFile, host: host, logger: logger, now: time.Now}
	p.looked = p.now()
	if _, err := p.read(); err != nil {
		return nil, err
	}
	return p, nil
}

// Current returns the certificate. If the files have changed and cannot be used now, it
// returns the certificate that it loaded before.
func (p *Pair) Current() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if elapsed := now.Sub(p.looked); elapsed >= 0 && elapsed < lookEvery {
		return p.loaded
	}
	p.looked = now
	switch changed, err := p.read(); {
	case err != nil: // somebody may be replacing the files just now; the next check reads them again
		p.logger.Error("proxy: a changed certificate cannot be used; the old one stays in use", "cause", err.Error())
	case changed:
		p.logger.Info("proxy: a certificate was renewed", "file", p.certFile, "expires", p.loaded.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return p.loaded
}

// Server returns the current certificate. Use it as tls.Config.GetCertificate.
func (p *Pair) Server(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.Current(), nil }

// Client returns the current certificate. Use it as tls.Config.GetClientCertificate.
func (p *Pair) Client(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return p.Current(), nil
}

// read loads the certificate if one of the two files changed.
func (p *Pair) read() (changed bool, err error) {
	cert, err := os.ReadFile(p.certFile)
	if err != nil {
		return false, err
	}
	key, err := os.ReadFile(p.keyFile)
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(slices.Concat(cert, []byte{0}, key))
	if p.loaded != nil && sum == p.sum {
		return false, nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err == nil && pair.Leaf == nil { // happens only with GODEBUG=x509keypairleaf=0
		pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0])
	}
	if err != nil { // an error of package tls quotes nothing from the files
		return false, fmt.Errorf("%s and %s are not a certificate and its key: %s", p.certFile, p.keyFile, strings.TrimPrefix(err.Error(), "tls: "))
	}
	if now := p.now(); now.After(pair.Leaf.NotAfter) || now.Before(pair.Leaf.NotBefore) {
		return false, fmt.Errorf("the certificate in %s is valid only from %s to %s", p.certFile, pair.Leaf.NotBefore.UTC().Format(time.DateTime), pair.Leaf.NotAfter.UTC().Format(time.DateTime))
	}
	if p.host != "" {
		if err := pair.Leaf.VerifyHostname(p.host); err != nil {
			return false, fmt.Errorf("the certificate in %s is for another host: %w", p.certFile, err)
		}
	}
	p.loaded, p.sum = &pair, sum
	return true, nil
}

// Pool returns the certificates of the authorities in a PEM file.
func Pool(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM form", file)
	}
	return pool, nil
}
