package identity_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/httpcarrier"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/identity"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/identity/identitytest"
	"github.com/tripseal/tripseal/proxy"
)

// TestABadTokenNeverReachesTheServer checks that a request with a bad token is answered with 401 and
// does not reach the server. A request with a good token reaches it, but without the token.
func TestABadTokenNeverReachesTheServer(t *testing.T) {
	var reached atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		if len(r.Header["Authorization"]) > 0 {
			t.Error("the server gets the token")
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}))
	defer server.Close()
	p := identitytest.Start()
	defer p.Close()
	quiet := slog.New(slog.DiscardHandler)
	tokens, err := identity.JWT(t.Context(), identity.JWTConfig{Issuer: p.Issuer, Audience: []string{identitytest.Audience}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(carrier(t, server.URL+"/mcp", tokens, quiet))
	defer front.Close()

	with := func(claim string, value any) string {
		claims := p.Claims("alice", time.Now())
		claims[claim] = value
		return "Bearer " + p.Sign(claims)
	}
	id := p.Newest()
	unsigned := p.SignWith(id, map[string]any{"alg": "ES256", "kid": id}, p.Claims("alice", time.Now()))
	for name, c := range map[string]struct {
		authorization string
		status        int
	}{
		"no token":         {"", http.StatusUnauthorized},
		"another issuer":   {with("iss", "https://other.example.com"), http.StatusUnauthorized},
		"another audience": {with("aud", "https://other.example.com"), http.StatusUnauthorized},
		"expired":          {with("exp", time.Now().Add(-time.Minute).Unix()), http.StatusUnauthorized},
		"no subject":       {with("sub", ""), http.StatusUnauthorized},
		"no algorithm":     {"Bearer eyJhbGciOiJub25lIn0." + strings.Split(unsigned, ".")[1] + ".AA", http.StatusUnauthorized},
		"good":             {"Bearer " + p.Token("alice"), http.StatusOK},
	} {
		before := reached.Load()
		r, err := http.NewRequest("POST", front.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if c.authorization != "" {
			r.Header.Set("Authorization", c.authorization)
		}
		answer, err := front.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.status || (reached.Load() != before) != (c.status == http.StatusOK) {
			t.Errorf("%s: status %d, %d requests to the server", name, answer.StatusCode, reached.Load()-before)
		}
	}
}

func carrier(t *testing.T, upstream string, id identity.Identity, logger *slog.Logger) http.Handler {
	t.Helper()
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "test", Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	core, err := proxy.New(proxy.Config{Boundary: boundary, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := httpcarrier.New(httpcarrier.Config{Proxy: core, Upstream: address, Identity: id, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}
