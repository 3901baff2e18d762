package proxycmd

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/certs"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
)

// proxyTLS holds the settings of TLS towards clients and towards the server.
type proxyTLS struct {
	cert, key, clientCA                     string
	host                                    string // the host name for which the certificate in the file cert must be valid; "" means any
	upstreamCert, upstreamKey, upstreamRoot string
}

func (s *proxyTLS) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.cert, "tls-cert", "", "serve TLS with the certificate in this PEM `FILE`, which may change")
	f.StringVar(&s.key, "tls-key", "", "the PEM `FILE` with the key of --tls-cert")
	f.StringVar(&s.clientCA, "client-ca", "", "let in only clients with a certificate of an authority in this PEM `FILE`")
	f.StringVar(&s.upstreamRoot, "upstream-ca", "", "the PEM `FILE` with the authorities of the server's certificate (default the system's)")
	f.StringVar(&s.upstreamCert, "upstream-cert", "", "show the server the certificate in this PEM `FILE`, which may change")
	f.StringVar(&s.upstreamKey, "upstream-key", "", "the PEM `FILE` with the key of --upstream-cert")
}

func (s *proxyTLS) check(upstream *url.URL) error {
	switch {
	case (s.cert == "") != (s.key == ""):
		return errors.New("--tls-cert and --tls-key belong together: give both")
	case s.clientCA != "" && s.cert == "":
		return errors.New("--client-ca needs TLS: give --tls-cert and --tls-key")
	case (s.upstreamCert == "") != (s.upstreamKey == ""):
		return errors.New("--upstream-cert and --upstream-key belong together: give both")
	case (s.upstreamCert != "" || s.upstreamRoot != "") && upstream.Scheme != "https":
		return errors.New("--upstream-ca and --upstream-cert need TLS: let the address of --upstream begin with https://")
	}
	return nil
}

// serverConfig returns the settings of TLS with clients, or nil if the proxy does not use TLS
// with them. The settings exclude HTTP/2, because one connection of HTTP/2 could hold hundreds
// of requests.
func (s *proxyTLS) serverConfig(logger *slog.Logger) (*tls.Config, error) {
	if s.cert == "" {
		return nil, nil
	}
	pair, err := certs.Load(s.cert, s.key, s.host, logger)
	if err != nil {
		return nil, cli.Failed("--tls-cert: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.Server, NextProtos: []string{"http/1.1"}}
	if s.clientCA != "" {
		if config.ClientCAs, err = certs.Pool(s.clientCA); err != nil {
			return nil, cli.Failed("--client-ca: %w", err)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// upstreamConfig returns the TLS settings for connections to the server.
func (s *proxyTLS) upstreamConfig(logger *slog.Logger) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.upstreamRoot != "" {
		pool, err := certs.Pool(s.upstreamRoot)
		if err != nil {
			return nil, cli.Failed("--upstream-ca: %w", err)
		}
		config.RootCAs = pool
	}
	if s.upstreamCert != "" {
		pair, err := certs.Load(s.upstreamCert, s.upstreamKey, "", logger)
		if err != nil {
			return nil, cli.Failed("--upstream-cert: %w", err)
		}
		config.GetClientCertificate = pair.Client
	}
	return config, nil
}
