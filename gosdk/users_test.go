package gosdk_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/wire"
)

func bearerUsers(t testing.TB) func(context.Context, *mcp.RequestExtra) (string, error) {
	return gosdk.HeaderUsers(wire.SecretUsers(tripseal.GenerateKey(), "bearer", wire.BearerToken))
}

func authorization(values ...string) http.Header { return http.Header{"Authorization": values} }

// The older SSE transport passes on neither headers nor token, and whoever posts there may be another user than the one
// whom the context names.
func TestACallWithoutTheHeadersOfItsRequestIsAnError(t *testing.T) {
	users := gosdk.FirstOf(gosdk.TokenUsers, bearerUsers(t))
	overHTTP := context.WithValue(t.Context(), http.ServerContextKey, &http.Server{})
	for name, c := range map[string]struct {
		ctx    context.Context
		extra  mcp.RequestExtra
		failed bool
	}{
		"over stdio":              {ctx: t.Context()},
		"no headers over HTTP":    {ctx: overHTTP, failed: true},
		"headers over HTTP":       {ctx: overHTTP, extra: mcp.RequestExtra{Header: http.Header{}}},
		"a malformed header":      {ctx: overHTTP, extra: mcp.RequestExtra{Header: authorization("Basic x")}, failed: true},
		"a token without a user":  {ctx: overHTTP, extra: mcp.RequestExtra{Header: authorization("Bearer x"), TokenInfo: &auth.TokenInfo{}}, failed: true},
		"an issuer that is a map": {ctx: overHTTP, extra: mcp.RequestExtra{TokenInfo: &auth.TokenInfo{UserID: "u", Extra: map[string]any{"iss": map[string]any{}}}}, failed: true},
	} {
		if user, err := users(c.ctx, &c.extra); user != "" || (err != nil) != c.failed {
			t.Errorf("%s: %q, %v", name, user, err)
		}
	}
}

func TestAVerifiedUserNeverHasTheNameOfATokensHolder(t *testing.T) {
	users := gosdk.FirstOf(gosdk.TokenUsers, bearerUsers(t))
	names := map[string]string{}
	for what, extra := range map[string]*mcp.RequestExtra{
		"verified":            {TokenInfo: &auth.TokenInfo{UserID: "a"}},
		"of an issuer":        {TokenInfo: &auth.TokenInfo{UserID: "a", Extra: map[string]any{"iss": ""}}},
		"of a client":         {TokenInfo: &auth.TokenInfo{UserID: "a", Extra: map[string]any{"client_id": ""}}},
		"of another issuer":   {TokenInfo: &auth.TokenInfo{UserID: "a", Extra: map[string]any{"iss": "x"}}},
		"opaque":              {Header: authorization("Bearer a")},
		"an opaque one's own": {Header: authorization("Bearer b")},
	} {
		name, err := users(t.Context(), extra)
		if name == "" || err != nil {
			t.Errorf("%s: %q, %v", what, name, err)
		}
		if other, ok := names[name]; ok {
			t.Errorf("%s and %s are both %q", what, other, name)
		}
		names[name] = what
	}
	for name, what := range names {
		if stolen, _ := users(t.Context(), &mcp.RequestExtra{TokenInfo: &auth.TokenInfo{UserID: name}}); names[stolen] != "" {
			t.Errorf("a verified user has the name of %s", what)
		}
	}
}

func TestAServerThatAuthenticatesNobodyOverHTTPIsTold(t *testing.T) {
	for _, meant := range []bool{false, true} {
		b := &book{}
		server := newServer()
		addSteps(server, "steps", 1)
		gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger(), AllowAnonymous: meant})
		url := serve(t, server, nil)
		for range 2 {
			postCall(t, url, "steps", "")
		}
		if n := strings.Count(b.String(), "nobody is authenticated"); n != map[bool]int{false: 1, true: 0}[meant] {
			t.Errorf("allowed %v: told %d times", meant, n)
		}
	}
}

// A panic tells the client nothing, where the suite of all protections does not look: in calls of older clients, in
// paged tools and in custom methods.
func TestAPanicIsAnInternalErrorAndLeaksNothing(t *testing.T) {
	b := &book{}
	server := newServer()
	addTool(server, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("hush") })
	server.AddPrompt(&mcp.Prompt{Name: "prompt"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { panic("hush") })
	server.AddResource(&mcp.Resource{URI: "test:r", Name: "r"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) { panic("hush") })
	protected := gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "paged"}, func(context.Context, *mcp.CallToolRequest, struct{}, *int) ([]int, *int, error) { panic("hush") }, nil)
	session := connect(t, server, raw(), revision2025)
	_, toolErr := callTool(t, session, &mcp.CallToolParams{Name: "tool"})
	_, pagedErr := callTool(t, session, &mcp.CallToolParams{Name: "paged"})
	_, promptErr := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "prompt"})
	_, resourceErr := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test:r"})
	for name, err := range map[string]error{"tool": toolErr, "paged tool": pagedErr, "prompt": promptErr, "resource": resourceErr} {
		if wireText(err) != internal {
			t.Errorf("%s: %v", name, err)
		}
	}
	if log := b.String(); !strings.Contains(log, "users_test.go") || strings.Contains(log, "hush") {
		t.Errorf("the log does not say where, or repeats the panic: %s", log)
	}
}
