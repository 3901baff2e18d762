package gosdk_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// fixedKey returns a key that is made from a text, so that it is the same in every run.
func fixedKey(t testing.TB, text string) tripseal.Key {
	t.Helper()
	secret := sha256.Sum256([]byte(text))
	key, err := tripseal.NewKey(secret[:])
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// nameBoth names the sender of a request with Users.Principal and with Users.HTTPPrincipal,
// which must agree.
func nameBoth(t testing.TB, users gosdk.Users, header http.Header, info *auth.TokenInfo) (string, error) {
	t.Helper()
	name, err := users.Principal(t.Context(), &mcp.CallToolRequest{Extra: &mcp.RequestExtra{Header: header, TokenInfo: info}})
	// Only the SDK's middleware can put a token into a context.
	var byHTTP string
	var failed error
	asked := false
	handler := http.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		r.Header, asked = header, true
		byHTTP, failed = users.HTTPPrincipal(r)
	}))
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	if info != nil {
		r.Header.Set("Authorization", "Bearer x")
		handler = auth.RequireBearerToken(func(context.Context, string, *http.Request) (*auth.TokenInfo, error) { return info, nil },
			&auth.RequireBearerTokenOptions{})(handler)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if !asked || byHTTP != name || fmt.Sprint(failed) != fmt.Sprint(err) {
		t.Errorf("over HTTP %q, %v; in a call %q, %v (%d %s)", byHTTP, failed, name, err, w.Code, w.Body)
	}
	if err != nil && name != "" {
		t.Errorf("%q beside %v", name, err)
	}
	return name, err
}

func authorization(values ...string) http.Header { return http.Header{"Authorization": values} }

// The holder of a token has the same name on every replica and in every release. So the test
// compares this name with a fixed text.
func TestTheHolderOfATokenHasOneNameOnEveryReplica(t *testing.T) {
	name := func(key, value string) string {
		t.Helper()
		name, err := nameBoth(t, gosdk.BearerUsers(fixedKey(t, key)), authorization(value), nil)
		if err != nil || name == "" {
			t.Fatalf("%q, %v", name, err)
		}
		return name
	}
	const want = "bearer:3jKO12rboH_CxFJRI1cB1swb-Iy_6_g00or0povXNd8"
	for _, value := range []string{"Bearer token-a", "bearer token-a", "BEARER   token-a"} {
		if got := name("key", value); got != want {
			t.Errorf("%s: %q", value, got)
		}
	}
	for what, other := range map[string]string{
		"another token": name("key", "Bearer token-b"), "another case": name("key", "Bearer Token-a"),
		"a longer token": name("key", "Bearer token-a="), "a shorter token": name("key", "Bearer token-"), "another key": name("other", "Bearer token-a"),
	} {
		if other == want {
			t.Errorf("%s has the same name", what)
		}
	}
}

func TestNothingShowsTheTokenOrTheKeyOfAUser(t *testing.T) {
	const token = "hush-0123456789"
	key := fixedKey(t, "key")
	users := gosdk.FirstOf(gosdk.VerifiedUsers(), gosdk.BearerUsers(key))
	plain := sha256.Sum256([]byte(token))
	secret := sha256.Sum256([]byte("key"))
	hidden := []string{token, fmt.Sprintf("%x", plain), base64.RawURLEncoding.EncodeToString(plain[:]), key.Reveal(),
		fmt.Sprintf("%x", secret), fmt.Sprint(secret[:]), base64.RawURLEncoding.EncodeToString(secret[:])}
	name, err := nameBoth(t, users, authorization("Bearer "+token), nil)
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{name}
	for _, value := range []any{users, &users, []gosdk.Users{users}, struct{ U gosdk.Users }{users}} {
		b := &book{}
		slog.New(slog.NewJSONHandler(b, nil)).Info("x", "users", value)
		b.logger().Info("x", "users", value)
		shown = append(shown, fmt.Sprintf("%v %+v %#v %s %x %d", value, value, value, value, value, value), b.String())
	}
	for _, header := range []http.Header{
		authorization("Bearer "+token, "Bearer "+token), authorization("Basic " + token), authorization("Bearer " + token + " x"), authorization(token),
		authorization("Bearer " + strings.Repeat(token, 2000)), authorization("Bearer" + token),
	} {
		_, err := nameBoth(t, users, header, nil)
		if err == nil {
			t.Errorf("%.60q is taken", header)
		}
		shown = append(shown, fmt.Sprintf("%v %+v %#v", err, err, err))
	}
	for _, text := range shown {
		for _, secret := range hidden {
			if strings.Contains(text, secret) {
				t.Errorf("%q shows %q", text, secret)
			}
		}
	}
}

func TestAMalformedAuthorizationHeaderIsAnErrorAndNotNobody(t *testing.T) {
	key := fixedKey(t, "key")
	for name, users := range map[string]gosdk.Users{
		"bearer": gosdk.BearerUsers(key), "verified first": gosdk.FirstOf(gosdk.VerifiedUsers(), gosdk.BearerUsers(key)),
	} {
		for _, values := range [][]string{
			{""}, {" "}, {"Bearer"}, {"Bearer "}, {"Bearer   "}, {"token"}, {"Basic YTpi"}, {"Bearer a b"}, {"Bearer a "}, {" Bearer a"}, {"Bearer\ta"}, {"Bearer a\t"},
			{"Bearer a", "Bearer a"}, {"Bearer a", "Bearer b"}, {"Bearer a", ""}, {"", "Bearer a"}, {"Bearer a, Bearer b"}, {"Bearer a,Bearer b"}, {"Bearer: a"}, {"Bearera"},
			{"Bearer ä"}, {"Bearer a\x00"}, {"Bearer a\x7f"}, {"Bearer a\xff"}, {"Bearer \u00a0a"}, {"Bearer a\r\nX: b"}, {"Bearer " + strings.Repeat("a", 16<<10+1)}, {"Béarer a"},
		} {
			if got, err := nameBoth(t, users, authorization(values...), nil); err == nil {
				t.Errorf("%s: %.60q is %q", name, values, got)
			}
		}
		if _, err := nameBoth(t, users, authorization("Bearer "+strings.Repeat("a", 16<<10)), nil); err != nil {
			t.Error(err)
		}
	}
}

func TestNoAuthorizationHeaderIsNobody(t *testing.T) {
	key := fixedKey(t, "key")
	for _, users := range []gosdk.Users{gosdk.BearerUsers(key), gosdk.VerifiedUsers(), gosdk.FirstOf(gosdk.VerifiedUsers(), gosdk.BearerUsers(key))} {
		for _, header := range []http.Header{{}, {"X-User": {"alice"}}, {"Authorization": nil}} {
			if name, err := nameBoth(t, users, header, nil); name != "" || err != nil {
				t.Errorf("%v: %q, %v", header, name, err)
			}
		}
		for _, extra := range []*mcp.RequestExtra{nil, {}} { // as over stdio
			if name, err := users.Principal(t.Context(), &mcp.CallToolRequest{Extra: extra}); name != "" || err != nil {
				t.Errorf("%v: %q, %v", extra, name, err)
			}
		}
	}
}

// Over the older SSE transport, a call comes without the headers of its request. If a handler asks
// something in such a call, the call fails: the user who opened the connection may not be the user
// who sent the call.
func TestACallWithoutTheHeadersOfItsRequestIsAnError(t *testing.T) {
	key := fixedKey(t, "key")
	for kind, users := range map[string]gosdk.Users{
		"bearer": gosdk.BearerUsers(key), "verified": gosdk.VerifiedUsers(), "both": gosdk.FirstOf(gosdk.VerifiedUsers(), gosdk.BearerUsers(key)),
	} {
		for transport, wrap := range map[string]func(http.Handler) http.Handler{
			"SSE": func(h http.Handler) http.Handler { return h }, "SSE with a verified token": auth.RequireBearerToken(byName, nil),
		} {
			b, server := &book{}, newServer()
			addSteps(server, "steps", 1)
			gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger(), Principal: users.Principal, AllowAnonymous: true})
			web := httptest.NewServer(wrap(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil)))
			t.Cleanup(web.Close)
			client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, answering())
			session, err := client.Connect(t.Context(), &mcp.SSEClientTransport{Endpoint: web.URL, HTTPClient: &http.Client{Transport: bearer("alice")}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if result, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"}); err == nil || !strings.Contains(b.String(), "does not pass on the headers") {
				t.Errorf("%s, %s: %v, %v\n%s", kind, transport, result, err, b)
			}
			session.Close()
		}
	}
}

func verified(user string, extra map[string]any) *auth.TokenInfo {
	info, _ := byName(context.Background(), user, nil)
	info.Extra = extra
	return info
}

func TestVerifiedUsersHaveTheNamesThatTheyHaveByDefault(t *testing.T) {
	key := fixedKey(t, "key")
	for _, users := range []gosdk.Users{gosdk.VerifiedUsers(), gosdk.FirstOf(gosdk.VerifiedUsers(), gosdk.BearerUsers(key))} {
		for _, info := range []*auth.TokenInfo{verified("alice", nil), verified("alice", map[string]any{"iss": "https://a", "client_id": "c"})} {
			want, _ := gosdk.TokenUser(info)
			for _, header := range []http.Header{{}, authorization("Bearer token-a"), authorization("Bearer a", "Bearer b")} {
				if name, err := nameBoth(t, users, header, info); err != nil || name != want {
					t.Errorf("%q, %v, not %q", name, err, want)
				}
			}
		}
	}
}

func TestAVerifiedTokenThatFailsDoesNotBecomeAnOpaqueOne(t *testing.T) {
	users := gosdk.FirstOf(gosdk.VerifiedUsers(), gosdk.BearerUsers(fixedKey(t, "key")))
	for _, info := range []*auth.TokenInfo{verified("", nil), verified("alice", map[string]any{"iss": 5})} {
		if name, err := nameBoth(t, users, authorization("Bearer token-a"), info); err == nil {
			t.Errorf("%+v is %q", info, name)
		}
	}
}

func TestAVerifiedUserNeverHasTheNameOfATokensHolder(t *testing.T) {
	users := gosdk.FirstOf(gosdk.VerifiedUsers(), gosdk.BearerUsers(fixedKey(t, "key")))
	holder, err := nameBoth(t, users, authorization("Bearer token-a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{holder, holder[1:], strings.TrimPrefix(holder, "bearer:"), "token-a"} {
		if name, err := nameBoth(t, users, authorization("Bearer token-a"), verified(user, nil)); err != nil || name[0] == holder[0] {
			t.Errorf("%q is named %q, %v", user, name, err)
		}
	}
}

func TestUsersWithoutAKindOrAKeyAreRefused(t *testing.T) {
	for name, make := range map[string]func(){
		"no key":     func() { gosdk.BearerUsers(tripseal.Key{}) },
		"no kinds":   func() { gosdk.FirstOf() },
		"a zero one": func() { gosdk.FirstOf(gosdk.VerifiedUsers(), gosdk.Users{}) },
	} {
		if text := panicOf(make); !strings.HasPrefix(text, "gosdk: ") {
			t.Errorf("%s: %q", name, text)
		}
	}
	if name, err := nameBoth(t, gosdk.Users{}, authorization("Bearer a"), verified("alice", nil)); err == nil {
		t.Errorf("the zero value: %q", name)
	}
	kinds := []gosdk.Users{gosdk.VerifiedUsers()}
	users := gosdk.FirstOf(kinds...)
	kinds[0] = gosdk.Users{} // must not change what FirstOf returned
	if name, err := nameBoth(t, users, http.Header{}, verified("alice", nil)); err != nil || name == "" {
		t.Errorf("%q, %v", name, err)
	}
}

// serveUsers serves over HTTP, and returns the URL. It sets both methods of gosdk.Users as options:
// one names the user of a call, the other names the user of a session.
func serveUsers(t *testing.T, b *book, users gosdk.Users, anonymous bool) string {
	t.Helper()
	server := newServer()
	addSteps(server, "steps", 1)
	protected := gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger(), Principal: users.Principal, AllowAnonymous: anonymous})
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list_rows"}, listRows, nil)
	web := httptest.NewServer(gosdk.Handler(func(*http.Request) *mcp.Server { return server }, &gosdk.HandlerOptions{Logger: b.logger(), Principal: users.HTTPPrincipal}))
	t.Cleanup(func() {
		for session := range server.Sessions() {
			session.Close()
		}
		web.Close()
	})
	return web.URL
}

// postOlder sends a request on a session of an older client, and returns the status.
func postOlder(t *testing.T, url, session, body string, authorization ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": authorization}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

func TestAnOlderClientIsAskedOnTheSessionOfItsToken(t *testing.T) {
	b := &book{}
	url := serveUsers(t, b, gosdk.FirstOf(gosdk.VerifiedUsers(), gosdk.BearerUsers(fixedKey(t, "key"))), false)
	alice := dial(t, url, "token-alice", answering(), revision2025)
	result, err := callTool(t, alice, &mcp.CallToolParams{Name: "steps"})
	if err != nil || text(result) != "done after 1" {
		t.Fatalf("%s, %v\n%s", text(result), err, b)
	}
	for want, values := range map[int][][]string{
		http.StatusOK:       {{"Bearer token-alice"}, {"bearer  token-alice"}},
		http.StatusNotFound: {{"Bearer token-bob"}, {"Bearer token-alice-refreshed"}, nil, {""}, {"Basic token-alice"}, {"Bearer token-alice", "Bearer token-alice"}},
	} {
		for _, value := range values {
			if got := postOlder(t, url, alice.ID(), ping, value...); got != want {
				t.Errorf("%q: %d, not %d", value, got, want)
			}
		}
	}
	if got := postOlder(t, url, "", initialize, "Basic YTpi"); got != http.StatusForbidden {
		t.Errorf("a malformed header opens a session: %d", got)
	}
	if log := b.String(); strings.Contains(log, "token-") || strings.Contains(log, "set HandlerOptions") || strings.Contains(log, "same name") {
		t.Errorf("the log: %s", log)
	}
}

// FuzzAuthorizationHeader checks BearerUsers against a regular expression for the header.
func FuzzAuthorizationHeader(f *testing.F) {
	f.Add("Bearer token-a", "", false)
	f.Add("bearer  a", "Bearer a", true)
	pattern := regexp.MustCompile(`^(?:[Bb][Ee][Aa][Rr][Ee][Rr]) +([!-~]+)$`)
	users := gosdk.BearerUsers(fixedKey(f, "key"))
	f.Fuzz(func(t *testing.T, value, second string, twice bool) {
		header := authorization(value)
		if twice {
			header.Add("Authorization", second)
		}
		name, err := users.HTTPPrincipal(&http.Request{Header: header})
		match := pattern.FindStringSubmatch(value)
		if good := match != nil && len(match[1]) <= 16<<10 && !twice; good != (err == nil) || good != (name != "") {
			t.Fatalf("%q: %q, %v", header, name, err)
		}
		if err != nil {
			return
		}
		if again, err := users.HTTPPrincipal(&http.Request{Header: authorization("Bearer " + match[1])}); err != nil || again != name {
			t.Fatalf("%q: %q, then %q, %v", value, name, again, err)
		}
		if other, err := users.HTTPPrincipal(&http.Request{Header: authorization("Bearer x" + match[1][1:])}); err == nil && (other == name) != (match[1][0] == 'x') {
			t.Fatalf("%q and another token have the name %q", value, name)
		}
	})
}
