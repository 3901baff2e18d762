// Package identity tells who sent an HTTP request to the proxy. Tokens are bound to that
// user, so a wrong answer here lets one user continue what another one began.
package identity

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"strings"

	"github.com/mcpseal/mcpseal"
)

// Identity tells who sent a request.
type Identity interface {
	// Caller returns the sender of the request. A nil principal means that nobody is known.
	// An error means that the request must be refused with 401; its text is for the operator.
	Caller(r *http.Request) (mcpseal.Principal, error)
	// Headers names the headers that Caller reads, in canonical form.
	Headers() []string
}

// Challenger is an identity that tells a refused client how to authenticate.
type Challenger interface {
	Identity
	// Challenge returns the value of WWW-Authenticate for a request that Caller refused.
	Challenge(r *http.Request) string
}

// Anonymous knows nobody, and refuses nobody: tokens are bound to no user.
func Anonymous() Identity { return anonymous{} }

type anonymous struct{}

func (anonymous) Caller(*http.Request) (mcpseal.Principal, error) { return nil, nil }
func (anonymous) Headers() []string                               { return nil }

// maxUser is the longest name of a user that a principal may return.
const maxUser = 4096

// FromHeader takes the user's name from a header that another proxy sets after it has
// authenticated the user. The header counts only in requests over a Unix socket, and in
// requests of peers in a trusted network. That proxy must replace or remove the header in the
// requests that it gets.
func FromHeader(name string, trusted []netip.Prefix) (Identity, error) {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case !isToken(name):
		return nil, fmt.Errorf("%.40q is not the name of a header", name)
	case unfit[canonical] || strings.HasPrefix(canonical, "Mcp-"):
		return nil, fmt.Errorf("%s does not hold the name of a user; name a header that only your own proxy sets", canonical)
	}
	for _, network := range trusted {
		if !network.IsValid() {
			return nil, errors.New("a trusted network is not valid")
		}
	}
	return &header{name: canonical, trusted: append([]netip.Prefix(nil), trusted...)}, nil
}

// unfit has headers that every client sends for another purpose, that hold credentials, or
// that ReverseProxy removes.
var unfit = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Accept-Language": true, "Authorization": true, "Connection": true,
	"Content-Encoding": true, "Content-Length": true, "Content-Type": true, "Cookie": true, "Expect": true, "Forwarded": true,
	"Host": true, "Keep-Alive": true, "Last-Event-Id": true, "Origin": true, "Proxy-Authorization": true, "Proxy-Connection": true,
	"Referer": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "User-Agent": true,
	"X-Forwarded-For": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true,
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

func (h *header) Caller(r *http.Request) (mcpseal.Principal, error) {
	if !h.trusts(r) {
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
		return mcpseal.User(values[0]), nil
	}
}

// trusts reports whether the peer may say who the user is. What permits somebody to connect
// to a Unix socket is the permissions of its file.
func (h *header) trusts(r *http.Request) bool {
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
