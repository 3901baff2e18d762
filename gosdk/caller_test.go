package gosdk_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

// meddlers has functions that change what a request says about its sender. They change the
// RequestExtra in place. The adapter has a pointer to the same RequestExtra.
var meddlers = map[string]func(*mcp.RequestExtra){
	"no token":            func(x *mcp.RequestExtra) { x.TokenInfo = nil },
	"another token":       func(x *mcp.RequestExtra) { x.TokenInfo = &auth.TokenInfo{UserID: "carol"} },
	"the token in place":  func(x *mcp.RequestExtra) { *x.TokenInfo = auth.TokenInfo{UserID: "carol"} },
	"another user":        func(x *mcp.RequestExtra) { x.TokenInfo.UserID = "carol" },
	"another issuer":      func(x *mcp.RequestExtra) { x.TokenInfo.Extra["iss"] = "carol" },
	"no claims":           func(x *mcp.RequestExtra) { clear(x.TokenInfo.Extra) },
	"a claim in a claim":  func(x *mcp.RequestExtra) { x.TokenInfo.Extra["act"].(map[string]any)["sub"] = "carol" },
	"a claim in a list":   func(x *mcp.RequestExtra) { x.TokenInfo.Extra["names"].([]any)[0] = "carol" },
	"no header":           func(x *mcp.RequestExtra) { x.Header.Del("Authorization") },
	"another header":      func(x *mcp.RequestExtra) { x.Header.Set("Authorization", "Bearer carol") },
	"the header in place": func(x *mcp.RequestExtra) { x.Header["Authorization"][0] = "Bearer carol" },
	"nothing":             func(x *mcp.RequestExtra) { *x = mcp.RequestExtra{} },
}

// principals has values for Options.Principal. Each function reads the user from a different part
// of the request; nil means the default.
var principals = map[string]func(context.Context, mcp.Request) (string, error){
	"default": nil,
	"header": func(_ context.Context, r mcp.Request) (string, error) {
		return r.GetExtra().Header.Get("Authorization"), nil
	},
	"user": func(_ context.Context, r mcp.Request) (string, error) { return r.GetExtra().TokenInfo.UserID, nil },
	"claims": func(_ context.Context, r mcp.Request) (string, error) {
		claims := r.GetExtra().TokenInfo.Extra
		return fmt.Sprint(claims["iss"], claims["act"].(map[string]any)["sub"], claims["names"].([]any)[0]), nil
	},
}

// meddle adds an inner middleware. It applies a meddler to each request that has an access
// token, either before the handler runs or after.
func meddle(server *mcp.Server, before bool, meddler func(*mcp.RequestExtra)) {
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			extra := req.GetExtra()
			if extra == nil || extra.TokenInfo == nil {
				return next(ctx, method, req)
			}
			if before {
				meddler(extra)
				return next(ctx, method, req)
			}
			result, err := next(ctx, method, req)
			if r, ok := req.(*mcp.CallToolRequest); ok {
				r.Extra = nil // also removes the Extra from the request
			}
			meddler(extra)
			return result, err
		}
	})
}

// A state, a list cursor and the cursor of a paged tool are bound to the user who sent the
// request, even if an inner middleware changes the request.
func TestTheUserThatArrivedIsBound(t *testing.T) {
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour), Extra: map[string]any{
			"iss": token, "act": map[string]any{"sub": token}, "names": []any{token},
		}}, nil
	}
	for how, principal := range principals {
		for what, meddler := range meddlers {
			for _, before := range []bool{true, false} {
				name := fmt.Sprintf("%s, %s, before=%v", how, what, before)
				b := &book{}
				server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: 1})
				meddle(server, before, meddler)
				addSteps(server, "steps", 1)
				protected := gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger(), Principal: principal, AllowAnonymous: true})
				gosdk.AddPagedTool(protected, &mcp.Tool{Name: "pages"}, func(context.Context, *mcp.CallToolRequest, struct{}, *int) ([]int, *int, error) {
					return []int{1}, new(int), nil
				}, nil)
				web := httptest.NewServer(auth.RequireBearerToken(verify, nil)(gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil)))
				alice, bob := dial(t, web.URL, "alice", raw(), revision2026), dial(t, web.URL, "bob", raw(), revision2026)

				asked, err := callTool(t, alice, &mcp.CallToolParams{Name: "steps"})
				if err != nil {
					t.Errorf("%s: alice asks: %v", name, err)
					continue
				}
				page, err := callTool(t, alice, &mcp.CallToolParams{Name: "pages"})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				list, err := alice.ListTools(t.Context(), nil)
				if err != nil || list.NextCursor == "" {
					t.Fatalf("%s: %v, %v", name, list, err)
				}
				for _, who := range []*mcp.ClientSession{bob, alice} {
					for carried, send := range map[string]func() error{
						"state": func() error {
							_, err := callTool(t, who, &mcp.CallToolParams{Name: "steps", RequestState: asked.RequestState, InputResponses: accepted})
							return err
						},
						"page": func() error {
							cursor := page.StructuredContent.(map[string]any)["nextCursor"]
							_, err := callTool(t, who, &mcp.CallToolParams{Name: "pages", Arguments: map[string]any{"cursor": cursor}})
							return err
						},
						"list": func() error {
							_, err := who.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: list.NextCursor})
							return err
						},
					} {
						if err := send(); (err == nil) != (who == alice) {
							t.Errorf("%s: alice's %s, sent by alice %v: %v", name, carried, who == alice, err)
						}
					}
				}

				older := dial(t, web.URL, "alice", answering(), revision2025)
				if result, err := callTool(t, older, &mcp.CallToolParams{Name: "steps"}); err != nil || text(result) != "done after 1" {
					t.Errorf("%s: an older client gets %q, %v", name, text(result), err)
				}
				for _, session := range []*mcp.ClientSession{alice, bob, older} {
					session.Close()
				}
				web.Close()
			}
		}
	}
}

// Options.Principal is called once in each round, and gets the request as it arrived. That also
// holds if the handler changes the request between two rounds of an older client's call.
func TestOptionsPrincipalSeesTheRequestThatArrived(t *testing.T) {
	for _, version := range []string{revision2026, revision2025} {
		var names []string
		server := newServer()
		gosdk.Protect(server, boundary(t, &book{}, nil), &gosdk.Options{AllowAnonymous: true, Principal: func(_ context.Context, req mcp.Request) (string, error) {
			name := req.GetExtra().Header.Get("Authorization")
			names = append(names, name)
			return name, nil
		}})
		s := &steps{n: 3}
		server.AddTool(&mcp.Tool{Name: "steps", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			clear(req.Extra.Header)
			return s.handle(ctx, req)
		})
		if result, err := callTool(t, dial(t, serve(t, server, byName), "alice", answering(), version), &mcp.CallToolParams{Name: "steps"}); err != nil || text(result) != "done after 3" {
			t.Errorf("%s: %q, %v", version, text(result), err)
		}
		for _, name := range names {
			if name != "Bearer alice" {
				t.Errorf("%s: the principal was asked about %q", version, name)
			}
		}
		if want := 4; len(names) != want {
			t.Errorf("%s: the principal was asked %d times, in %d rounds", version, len(names), want)
		}
	}
}

// If an inner middleware replaces the context of a call, a paged tool cannot tell who sent the
// call. So the call is refused.
func TestAPagedToolOutsideItsCallIsRefused(t *testing.T) {
	b := &book{}
	server := newServer()
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/call" {
				ctx = context.Background()
			}
			return next(ctx, method, req)
		}
	})
	protected := gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "pages"}, func(context.Context, *mcp.CallToolRequest, struct{}, *int) ([]int, *int, error) {
		return []int{1}, new(int), nil
	}, nil)
	if _, err := callTool(t, connect(t, server, raw(), revision2026), &mcp.CallToolParams{Name: "pages"}); err == nil {
		t.Error("a cursor was issued to nobody")
	}
	if !strings.Contains(b.String(), "has not come through") {
		t.Errorf("the log: %s", b)
	}
}
