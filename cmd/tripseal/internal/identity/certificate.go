package identity

import (
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
)

// generalNames has the kinds of names that FromCertificate accepts. Each value is the ASN.1 tag of
// a kind.
var generalNames = map[string]int{"email": 1, "dns": 2, "uri": 6}

// maxName is the maximum length of a name in a certificate, in bytes.
const maxName = 1024

// FromCertificate returns an Identity that takes the user from the client's certificate. The
// kind is uri, dns or email. The user is the certificate's only subject alternative name of
// this kind. The HTTP server must verify client certificates against the authorities that may
// name users. A request whose certificate was not verified is refused.
//
// Names are compared byte by byte, but the letters of a dns name are first made lower case. A
// certificate with several names of the kind is refused, because it does not say which of
// them is the user.
func FromCertificate(kind string) (Identity, error) {
	tag, ok := generalNames[kind]
	if !ok {
		return nil, fmt.Errorf("%.40q is not a kind of name in a certificate: use uri, dns or email", kind)
	}
	return &certificate{kind: kind, tag: tag, now: time.Now}, nil
}

type certificate struct {
	kind string
	tag  int
	now  func() time.Time
}

func (c *certificate) Headers() []string { return nil }

func (c *certificate) Caller(r *http.Request) (tripseal.Principal, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil, errors.New("the client has no certificate that was verified")
	}
	// Check the dates for each request, because a connection may stay open after the
	// certificate expires.
	if !slices.ContainsFunc(r.TLS.VerifiedChains, c.inForce) {
		return nil, errors.New("the client's certificate, or one that vouches for it, has expired or is not valid yet")
	}
	name, err := c.name(r.TLS.VerifiedChains[0][0])
	if err != nil {
		return nil, err
	}
	return tripseal.User("mtls:" + c.kind + ":" + name), nil
}

func (c *certificate) inForce(chain []*x509.Certificate) bool {
	now := c.now()
	for _, of := range chain {
		if now.Before(of.NotBefore) || now.After(of.NotAfter) {
			return false
		}
	}
	return len(chain) > 0
}

// name returns the certificate's only name of the kind c.kind. It decodes the raw extension,
// because package x509 keeps only the parsed form of a URI. Two different URIs can have the same
// parsed form.
func (c *certificate) name(leaf *x509.Certificate) (string, error) {
	var names []string
	for _, extension := range leaf.Extensions {
		if !extension.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) {
			continue
		}
		var values []asn1.RawValue
		if rest, err := asn1.Unmarshal(extension.Value, &values); err != nil || len(rest) > 0 {
			return "", errors.New("the names in the client's certificate cannot be read")
		}
		for _, value := range values {
			if value.Class == asn1.ClassContextSpecific && value.Tag == c.tag {
				names = append(names, string(value.Bytes))
			}
		}
	}
	switch {
	case len(names) == 0:
		return "", fmt.Errorf("the client's certificate has no %s name", c.kind)
	case len(names) > 1:
		return "", fmt.Errorf("the client's certificate has %d %s names, so it does not say which one is the user", len(names), c.kind)
	case !isPlain(names[0], maxName):
		return "", fmt.Errorf("the %s name in the client's certificate is empty, has more than %d bytes or is not plain text", c.kind, maxName)
	case c.kind == "dns" && strings.Contains(names[0], "*"):
		return "", errors.New("the dns name in the client's certificate stands for many hosts")
	case c.kind == "dns":
		return strings.ToLower(names[0]), nil
	}
	return names[0], nil
}
