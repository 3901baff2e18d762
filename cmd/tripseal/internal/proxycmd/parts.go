package proxycmd

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/httpcarrier"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/identity"
	"github.com/tripseal/tripseal/internal/strictjson"
	"github.com/tripseal/tripseal/wire"
)

// proxyParts is what a proxy consists of.
type proxyParts struct {
	engine  *wire.Engine
	handler *httpcarrier.Handler // nil over stdio
	tls     *tls.Config          // nil over stdio, and without TLS
	metrics http.Handler
	report  func(context.Context, record) // is called for each request that has ended
	ready   readiness
	ends    []func()
}

func (parts *proxyParts) close() {
	for i := len(parts.ends) - 1; i >= 0; i-- {
		parts.ends[i]()
	}
}

// assemble makes the parts of a proxy from its settings, and serves nothing yet. After each
// part, it calls the function partMade with the part's name, and with the error if the part
// could not be made. assemble stops if partMade returns an error.
func (p *proxying) assemble(ctx context.Context, cmd *cobra.Command, logger *slog.Logger, partMade func(part string, err error) error) (parts *proxyParts, err error) {
	parts = new(proxyParts)
	defer func() {
		if err != nil {
			parts.close()
		}
	}()
	p.boundary.Logger, p.wire.Logger, p.carrier.Logger = logger, logger, logger
	metrics, err := newProxyMetrics(p.labelled)
	if err != nil {
		return parts, cli.Failed("%w", err)
	}
	parts.metrics = metrics.handler
	p.boundary.Observer = metrics.Observe
	p.carrier.Door.Opened = opened
	parts.report = func(ctx context.Context, r record) {
		metrics.count(ctx, r)
		if p.log.access {
			logRequest(ctx, logger, r)
		}
	}
	p.boundary.MaxArguments = min(p.carrier.Door.MaxRequest, strictjson.MaxText)

	source, done, err := p.keys.open(cmd, logger, metrics.ObserveKeys)
	parts.ends = append(parts.ends, done)
	if err == nil {
		p.boundary.Keys = source
		parts.ready.addPart(partKeys, keysReady(source))
	} else {
		// The command "tripseal proxy check" goes on with these keys, to try the other parts. The
		// command "tripseal proxy" ends, because partMade returns the error.
		p.boundary.Keys = tripseal.Ephemeral()
	}
	if err = partMade(partKeys, err); err != nil {
		return parts, err
	}

	if p.used.singleUse {
		store, reachable, done, err := p.used.open(ctx, logger)
		parts.ends = append(parts.ends, done)
		if err == nil {
			p.boundary.Replay = metrics.Store(store)
		}
		parts.ready.addPart(partStore, reachable)
		if err := partMade(partStore, err); err != nil {
			return parts, err
		}
	}

	if p.wire.Boundary, err = tripseal.New(p.boundary); err != nil {
		return parts, cli.Usage("%s", strings.TrimPrefix(err.Error(), "tripseal: "))
	}
	if parts.engine, err = wire.New(p.wire); err != nil {
		return parts, cli.Failed("%s", strings.TrimPrefix(err.Error(), "wire: "))
	}
	if p.upstream == "" {
		return parts, nil
	}
	return parts, p.assembleHTTP(ctx, parts, logger, partMade)
}

func (p *proxying) assembleHTTP(ctx context.Context, parts *proxyParts, logger *slog.Logger, partMade func(string, error) error) error {
	// This context does not end at a signal: while the proxy completes its last requests, it
	// may still have to fetch keys of the issuer.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	parts.ends = append(parts.ends, end)
	known, err := p.users.open(life, &p.carrier, logger)
	if err != nil {
		// The command "tripseal proxy check" goes on with this identity, to try the server. The
		// command "tripseal proxy" ends, because partMade returns the error.
		p.carrier.Identity = identity.Anonymous()
	}
	parts.ready.addPart(partIdentity, known)
	if err := partMade(partIdentity, err); err != nil {
		return err
	}
	if parts.tls, err = p.secure.serverConfig(logger); p.secure.cert != "" || err != nil {
		if err := partMade(partCertificate, err); err != nil {
			return err
		}
	}
	if p.carrier.TLS, err = p.secure.upstreamConfig(logger); err != nil {
		return partMade(partUpstream, err)
	}
	p.carrier.Engine = parts.engine
	if parts.handler, err = httpcarrier.New(p.carrier); err != nil {
		return cli.Usage("%w", err)
	}
	parts.ready.addPart(partUpstream, parts.handler.Look)
	return partMade(partUpstream, nil)
}

// The names of the parts that can fail.
const (
	partKeys        = "keys"
	partStore       = "store of used tokens"
	partIdentity    = "identity"
	partCertificate = "certificate"
	partUpstream    = "upstream"
)

// keysReady returns a function that returns an error if there is no key to seal with.
func keysReady(source tripseal.KeySource) func(context.Context) error {
	return func(context.Context) error {
		if ring := source.Ring(); ring == nil || len(ring.IDs()) == 0 {
			return errors.New("there is no key that seals now: run tripseal keys check")
		}
		return nil
	}
}
