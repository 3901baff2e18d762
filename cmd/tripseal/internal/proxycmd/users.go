package proxycmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/httpcarrier"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/identity"
)

// proxyUsers holds the settings that say how the proxy learns who the user is.
type proxyUsers struct {
	identity   string
	header     string
	trusted    []netip.Prefix
	issuer     string
	audiences  []string
	algorithms []string
	jwks       string
	resource   string
	san        string

	resourceURL *url.URL // the field resource, parsed
}

func (u *proxyUsers) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&u.identity, "identity", "", "how users are known: header, jwt, mtls or anonymous")
	f.StringVar(&u.header, "header", "", "header: the `HEADER` that names the user")
	f.Var(cli.Each("NETWORK", u.trust), "trust", "header: a network, such as 10.0.0.0/8, whose requests may name the user; may be repeated")
	f.StringVar(&u.issuer, "jwt-issuer", "", "jwt: the `URL` of the issuer, as in the claim iss")
	f.StringArrayVar(&u.audiences, "jwt-audience", nil, "jwt: another `AUDIENCE` than --resource that access tokens may be for; may be repeated")
	f.StringArrayVar(&u.algorithms, "jwt-algorithm", nil, "jwt: an `ALGORITHM` that signs access tokens; may be repeated (default RS256, PS256, ES256 and EdDSA)")
	f.StringVar(&u.jwks, "jwt-jwks", "", "jwt: the `URL` of the issuer's keys, if the issuer has no discovery document")
	f.StringVar(&u.resource, "resource", "", "jwt: the public `URL` of this service, for clients that need an access token")
	f.StringVar(&u.san, "san", "", "mtls: the `KIND` of name in the certificate that names the user: uri, dns or email")
}

func (u *proxyUsers) trust(text string) error {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		if address, addressErr := netip.ParseAddr(text); addressErr == nil {
			return fmt.Errorf("not a network; for this one address write %s/%d", address, address.BitLen())
		}
		return errors.New("not a network such as 10.0.0.0/8 or 127.0.0.1/32")
	}
	u.trusted = append(u.trusted, network.Masked())
	return nil
}

// check returns an error that says which setting is missing or wrong.
func (u *proxyUsers) check(p *proxying) (err error) {
	switch u.identity {
	case "header":
		switch {
		case u.header == "":
			return errors.New("--header is missing: the header that names the user")
		case len(u.trusted) == 0 && !strings.HasPrefix(p.listen, "unix:"):
			return errors.New("--trust is missing: the network of the proxy that sets the header, such as 127.0.0.1/32")
		}
	case "jwt":
		switch {
		case u.issuer == "":
			return errors.New("--jwt-issuer is missing: the URL in the claim iss of your users' access tokens")
		case u.resource == "":
			return errors.New("--resource is missing: the URL at which clients reach this service, such as https://release.example.com/mcp")
		}
		if u.resourceURL, err = url.Parse(u.resource); err != nil || u.resourceURL.Host == "" || u.resourceURL.Scheme != "https" && u.resourceURL.Scheme != "http" ||
			u.resourceURL.User != nil || u.resourceURL.RawQuery != "" || u.resourceURL.Fragment != "" {
			return errors.New("--resource is not a URL such as https://release.example.com/mcp")
		}
		if p.secure.cert != "" && u.resourceURL.Scheme == "https" {
			p.secure.host = u.resourceURL.Hostname()
		}
	case "mtls":
		if p.secure.clientCA == "" {
			return errors.New("--client-ca is missing: the file with the authorities that sign your users' certificates")
		}
		if u.san == "" {
			return errors.New("--san is missing: uri, dns or email")
		}
	case "anonymous":
	case "":
		return errors.New("--identity is missing: choose header, jwt or mtls, or anonymous if there are no users")
	default:
		return fmt.Errorf("--identity %s is none of header, jwt, mtls and anonymous", cli.QuotedArgument(u.identity))
	}
	return nil
}

// open sets the carrier's field Identity. For JWTs, it also sets Metadata and MetadataPath. The
// function ready returns an error while the proxy cannot find out who a user is. If ready is nil,
// the proxy always can.
func (u *proxyUsers) open(ctx context.Context, carrier *httpcarrier.Config, logger *slog.Logger) (ready func(context.Context) error, err error) {
	switch u.identity {
	case "header":
		if carrier.Identity, err = identity.FromHeader(u.header, u.trusted); err != nil {
			return nil, cli.Usage("--header: %w", err)
		}
	case "mtls":
		if carrier.Identity, err = identity.FromCertificate(u.san); err != nil {
			return nil, cli.Usage("--san: %w", err)
		}
	case "jwt":
		if carrier.Metadata, err = httpcarrier.Metadata(u.resourceURL, u.issuer); err != nil {
			return nil, err
		}
		users, err := identity.JWT(ctx, identity.JWTConfig{
			Issuer: u.issuer, Audience: append([]string{u.resourceURL.String()}, u.audiences...), Algorithms: u.algorithms, JWKS: u.jwks,
			ResourceMetadata: httpcarrier.MetadataURL(u.resourceURL), Logger: logger,
		})
		if err != nil {
			return nil, cli.Usage("--identity jwt: %w", err)
		}
		carrier.Identity, carrier.MetadataPath, ready = users, u.resourceURL.Path, users.Ready
	default:
		carrier.Identity = identity.Anonymous()
	}
	return ready, nil
}
