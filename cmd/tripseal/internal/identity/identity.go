// Package identity tells which user sent an HTTP request to the proxy. The proxy binds tokens to
// this user. A mistake here would let one user continue what another user began.
package identity

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"strings"

	"github.com/tripseal/tripseal"
)

// Identity tells who sent a request.
type Identity interface {
	// Caller returns the sender of the request. A nil principal means that the sender is
	// not known. An error means that the request must be refused; its text is for the
	// operator. The status is 503 if the error is [ErrUnavailable], and otherwise 401.
	Caller(r *http.Request) (tripseal.Principal, error)
	// Headers returns the names, in canonical form, of the headers that Caller reads.
	Headers() []string
}

// Challenger is an identity that tells a refused client how to authenticate.
type Challenger interface {
	Identity
	// Challenge returns the value of the header WWW-Authenticate in the answer to a request
	// that Caller refused.
	Challenge(r *http.Request) string
}

// Anonymous returns an Identity that accepts every request and knows no user. Tokens are
// then bound to no user.
func Anonymous() Identity { return anonymous{} }

type anonymous struct{}

func (anonymous) Caller(*http.Request) (tripseal.Principal, error) { return nil, nil }
func (anonymous) Headers() []string                                { return nil }

// maxUser is the maximum length of a user's name in a header, in bytes.
const maxUser = 4096

// FromHeader returns an Identity that takes the user's name from a header. Another proxy sets
// this header after it has authenticated the user. That proxy must replace or remove the
// header if its own client sends one. Only requests over a Unix socket, or from an address in
// a trusted network, are accepted.
func FromHeader(name string, trusted []netip.Prefix) (Identity, error) {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case !isToken(name):
		return nil, fmt.Errorf("%.40q is not the name of a header", name)
	case canonical == "Authorization" || strings.HasPrefix(canonical, "Mcp-"):
		return nil, fmt.Errorf("%s does not hold the name of a user; name a header that only your own proxy sets", canonical)
	}
	return &header{name: canonical, trusted: append([]netip.Prefix(nil), trusted...)}, nil
}

func isToken(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return name != "" && strings.Trim(name, letters+"-_") == ""
}

type header struct {
	name    string
	trusted []netip.Prefix
}

func (h *header) Headers() []string { return []string{h.name} }

func (h *header) Caller(r *http.Request) (tripseal.Principal, error) {
	if !h.trustsPeer(r) {
		return nil, errors.New("the peer is in no trusted network")
	}
	switch values := r.Header[h.name]; {
	case len(values) == 0:
		return nil, fmt.Errorf("the header %s is missing", h.name)
	case len(values) > 1:
		return nil, fmt.Errorf("the header %s is there more than once", h.name)
	case strings.TrimSpace(values[0]) == "":
		return nil, fmt.Errorf("the header %s is empty", h.name)
	case len(values[0]) > maxUser:
		return nil, fmt.Errorf("the header %s is longer than %d bytes", h.name, maxUser)
	default:
		return tripseal.User(values[0]), nil
	}
}

// trustsPeer reports whether the peer that sent the request may say who the user is. Every peer
// on a Unix socket may, because the permissions of the socket's file decide who can connect.
func (h *header) trustsPeer(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && local.Network() == "unix" {
		return true
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	address := peer.Addr().Unmap().WithZone("")
	for _, network := range h.trusted {
		if network.Contains(address) {
			return true
		}
	}
	return false
}
