// Package certs reads certificates from files. A certificate with its key is read again
// when its files change, so that it can be renewed without a restart.
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

// maxFile is the most bytes of a file that is read.
const maxFile = 1 << 20

// lookEvery is how often the files are looked at, at most.
const lookEvery = 10 * time.Second

// Pair is a certificate and its private key, in two PEM files. It is safe for concurrent use.
type Pair struct {
	certFile, keyFile string
	host              string // what the certificate must be for; "" if it may be for any
	logger            *slog.Logger
	now               func() time.Time

	mu     sync.Mutex
	loaded *tls.Certificate
	stamp  string // the sizes and times of the files that loaded came from
	looked time.Time
}

// Load reads the two files. If host is not "", the certificate must be for it. The logger gets a record when the files changed, and when they
// changed to something that cannot be used.
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

// Current returns the certificate. If the files cannot be used now, it returns the one that
// they had before.
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
		// The files may be half-way through a change. They are read again at the next look.
		p.logger.Error("proxy: a certificate cannot be read again, the one before stays in use", "cause", err.Error())
		return p.loaded
	}
	p.loaded, p.stamp = loaded, stamp
	p.logger.Info("proxy: a certificate was renewed", "file", p.certFile, "expires", loaded.Leaf.NotAfter.UTC().Format(time.RFC3339))
	return p.loaded
}

// Server is for tls.Config.GetCertificate.
func (p *Pair) Server(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.Current(), nil }

// Client is for tls.Config.GetClientCertificate.
func (p *Pair) Client(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return p.Current(), nil
}

// look returns a text that changes when one of the files does.
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
		// The texts of package tls say what is wrong, and repeat nothing of the files.
		why := strings.TrimPrefix(err.Error(), "tls: ")
		if strings.Contains(why, "does not match") {
			why = "the key is that of another certificate"
		}
		return nil, fmt.Errorf("%s and %s are not a certificate and its key: %s", p.certFile, p.keyFile, why)
	}
	if pair.Leaf == nil { // with GODEBUG=x509keypairleaf=0
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, err
		}
	}
	return &pair, p.verify(pair.Leaf, cert)
}

// verify returns an error if clients would refuse the certificate, or if the file with it is
// not complete.
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

// Pool reads the certificates of the authorities in a PEM file.
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
