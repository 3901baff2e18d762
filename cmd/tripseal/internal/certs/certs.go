// Package certs reads certificates from files. It reads a certificate and its key again when
// their files change, so that they can be renewed without a restart.
package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// maxFile is the maximum length of a file, in bytes. A longer file is refused.
const maxFile = 1 << 20

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
	stamp  string // the sizes and times that the files had when the certificate was read
	looked time.Time
}

// Load reads the two files. It returns an error if they cannot be used, or if host is not ""
// and the certificate is for another host. Afterwards, the logger gets a record whenever Current
// loads changed files, and whenever Current finds that it cannot use the files.
func Load(certFile, keyFile, host string, logger *slog.Logger) (*Pair, error) {
	p := &Pair{certFile: certFile, keyFile: keyFile, host: host, logger: logger, now: time.Now}
	stamp, err := p.look()
	if err != nil {
		return nil, err
	}
	loaded, err := p.read()
	if err != nil {
		return nil, err
	}
	p.loaded, p.stamp, p.looked = loaded, stamp, p.now()
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
	stamp, err := p.look()
	if err == nil && stamp == p.stamp {
		return p.loaded
	}
	var loaded *tls.Certificate
	if err == nil {
		loaded, err = p.read()
	}
	if err != nil {
		// Somebody may be replacing the files just now. The next check reads them again.
		p.logger.Error("proxy: a changed certificate cannot be used; the old one stays in use", "cause", err.Error())
		return p.loaded
	}
	p.loaded, p.stamp = loaded, stamp
	p.logger.Info("proxy: a certificate was renewed", "file", p.certFile, "expires", loaded.Leaf.NotAfter.UTC().Format(time.RFC3339))
	return p.loaded
}

// Server returns the current certificate. Use it as tls.Config.GetCertificate.
func (p *Pair) Server(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.Current(), nil }

// Client returns the current certificate. Use it as tls.Config.GetClientCertificate.
func (p *Pair) Client(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return p.Current(), nil
}

// look returns a text that changes when one of the two files changes.
func (p *Pair) look() (stamp string, err error) {
	for _, name := range []string{p.certFile, p.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return "", err
		}
		stamp += fmt.Sprint(info.Size(), info.ModTime().UnixNano(), ";")
	}
	return stamp, nil
}

func (p *Pair) read() (*tls.Certificate, error) {
	cert, err := readFile(p.certFile)
	if err != nil {
		return nil, err
	}
	key, err := readFile(p.keyFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		// An error of package tls may be shown: it quotes nothing from the files.
		why := strings.TrimPrefix(err.Error(), "tls: ")
		if strings.Contains(why, "does not match") {
			why = "the key is that of another certificate"
		}
		return nil, fmt.Errorf("%s and %s are not a certificate and its key: %s", p.certFile, p.keyFile, why)
	}
	if pair.Leaf == nil { // happens only with GODEBUG=x509keypairleaf=0
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, err
		}
	}
	return &pair, p.verify(pair.Leaf, cert)
}

// verify returns an error if the certificate is not valid now or is for another host. It also
// returns an error if the text of the certificate's file ends with something that is not PEM.
func (p *Pair) verify(leaf *x509.Certificate, text []byte) error {
	for block, rest := pem.Decode(text); ; block, rest = pem.Decode(rest) {
		if block != nil {
			continue
		}
		if len(bytes.TrimSpace(rest)) > 0 {
			return fmt.Errorf("%s ends with something that is not a certificate", p.certFile)
		}
		break
	}
	switch now := p.now(); {
	case !now.Before(leaf.NotAfter):
		return fmt.Errorf("the certificate in %s expired on %s", p.certFile, leaf.NotAfter.UTC().Format(time.DateTime))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate in %s is valid only from %s", p.certFile, leaf.NotBefore.UTC().Format(time.DateTime))
	}
	if p.host != "" {
		if err := leaf.VerifyHostname(p.host); err != nil {
			return fmt.Errorf("the certificate in %s is for another host: %w", p.certFile, err)
		}
	}
	return nil
}

// Pool returns the certificates of the authorities in a PEM file.
func Pool(file string) (*x509.CertPool, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM form", file)
	}
	return pool, nil
}

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, errors.New(name + " is longer than 1 MiB")
	}
	return text, nil
}
