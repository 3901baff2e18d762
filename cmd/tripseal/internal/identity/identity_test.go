package identity

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func fromHeader(t *testing.T, trusted ...string) Identity {
	t.Helper()
	var networks []netip.Prefix
	for _, text := range trusted {
		networks = append(networks, netip.MustParsePrefix(text))
	}
	id, err := FromHeader("x-user", networks)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func request(peer string, users ...string) *http.Request {
	r := httptest.NewRequest("POST", "/mcp", nil)
	r.RemoteAddr = peer
	for _, user := range users {
		r.Header.Add("X-User", user)
	}
	return r
}

func TestTheUserIsTakenFromATrustedPeer(t *testing.T) {
	for peer, network := range map[string]string{
		"127.0.0.1:4000":           "127.0.0.1/32",
		"10.1.2.3:4000":            "10.0.0.0/8",
		"[::1]:4000":               "::1/128",
		"[::ffff:127.0.0.1]:4000":  "127.0.0.1/32",
		"[fe80::1%eth0]:4000":      "fe80::/10",
		"[2001:db8:1::5]:50000":    "2001:db8::/32",
		"[::ffff:10.200.1.2]:4000": "10.0.0.0/8",
	} {
		caller, err := fromHeader(t, "192.0.2.0/24", network).Caller(request(peer, "alice"))
		if err != nil {
			t.Errorf("%s: %v", peer, err)
			continue
		}
		if user, err := caller(context.Background()); user != "alice" || err != nil {
			t.Errorf("%s: %q, %v", peer, user, err)
		}
	}
}

func TestTheUserIsTakenFromAUnixSocket(t *testing.T) {
	r := request("@", "alice")
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.UnixAddr{Name: "s", Net: "unix"})))
	if _, err := fromHeader(t).Caller(r); err != nil {
		t.Error(err)
	}
}

func TestAHeaderThatCannotBeTrustedIsRefused(t *testing.T) {
	id := fromHeader(t, "127.0.0.1/32")
	for name, r := range map[string]*http.Request{
		"untrusted peer":     request("127.0.0.2:4000", "alice"),
		"no peer":            request("", "alice"),
		"socket without one": request("@", "alice"),
		"name of a host":     request("localhost:4000", "alice"),
		"absent":             request("127.0.0.1:4000"),
		"empty":              request("127.0.0.1:4000", ""),
		"white space":        request("127.0.0.1:4000", " \t"),
		"repeated":           request("127.0.0.1:4000", "alice", "bob"),
		"repeated, same":     request("127.0.0.1:4000", "alice", "alice"),
		"too long":           request("127.0.0.1:4000", strings.Repeat("a", maxUser+1)),
	} {
		if caller, err := id.Caller(r); err == nil || caller != nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestWithoutATrustedNetworkEveryPeerIsRefused(t *testing.T) {
	if _, err := fromHeader(t).Caller(request("127.0.0.1:4000", "alice")); err == nil {
		t.Error("accepted")
	}
}

func TestHeadersThatNameNoUserAreRefused(t *testing.T) {
	for _, name := range []string{"", "X User", "X-User:", "Ünser", "authorization", "mcp-session-id"} {
		if _, err := FromHeader(name, nil); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

func TestAnonymousKnowsNobody(t *testing.T) {
	caller, err := Anonymous().Caller(request("192.0.2.1:4000", "alice"))
	if caller != nil || err != nil || len(Anonymous().Headers()) != 0 {
		t.Error(caller, err)
	}
}
