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

// becomeCarol changes all that a request says about its sender, first in place and then by leaving it out.
func becomeCarol(x *mcp.RequestExtra) {
	x.Header["Authorization"][0] = "Bearer carol"
	claims := x.TokenInfo.Extra
	claims["act"].(map[string]any)["sub"], claims["names"].([]any)[0], claims["list"].([]string)[0] = "carol", "carol", "carol"
	claims["iss"], x.TokenInfo.UserID = "carol", "carol"
	*x.TokenInfo = auth.TokenInfo{UserID: "carol"}
	*x = mcp.RequestExtra{}
}

// A state, a list cursor and the cursor of a paged tool are bound to the user who sent the request, even if the
// handler or inner middleware changes the request.
func TestTheUserThatArrivedIsBound(t *testing.T) {
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour), Extra: map[string]any{
			"iss": token, "act": map[string]any{"sub": token}, "names": []any{token}, "list": []string{token},
		}}, nil
	}
	for how, read := range map[string]func(*mcp.RequestExtra) string{
		"default": nil,
		"header":  func(x *mcp.RequestExtra) string { return x.Header.Get("Authorization") },
		"token": func(x *mcp.RequestExtra) string {
			claims := x.TokenInfo.Extra
			return fmt.Sprint(x.TokenInfo.UserID, claims["iss"], claims["act"], claims["names"], claims["list"])
		},
	} {
		for _, before := range []bool{true, false} {
			name := fmt.Sprintf("%s, before the handler %v", how, before)
			b := &book{}
			options := &gosdk.Options{AllowAnonymous: true, Logger: b.logger()}
			if read != nil {
				options.Principal = func(_ context.Context, req mcp.Request) (string, error) {
					user := read(req.GetExtra())
					if strings.Contains(user, "carol") {
						t.Errorf("%s: the principal sees %s", name, user)
					}
					return user, nil
				}
			}
			server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: 1})
			server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					if x := req.GetExtra(); x != nil && x.TokenInfo != nil && before {
						becomeCarol(x)
					} else if x != nil && x.TokenInfo != nil {
						defer becomeCarol(x)
					}
					return next(ctx, method, req)
				}
			})
			addSteps(server, "steps", 3)
			protected := gosdk.Protect(server, boundary(t, b, nil), options)
			gosdk.AddPagedTool(protected, &mcp.Tool{Name: "pages"}, func(context.Context, *mcp.CallToolRequest, struct{}, *int) ([]int, *int, error) {
				return []int{1}, new(int), nil
			}, nil)
			handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil)
			web := httptest.NewServer(auth.RequireBearerToken(verify, nil)(handler))
			t.Cleanup(web.Close)
			alice, bob := dial(t, web.URL, "alice", raw(), revision2026), dial(t, web.URL, "bob", raw(), revision2026)

			asked, failed := callTool(t, alice, &mcp.CallToolParams{Name: "steps"})
			page, err := callTool(t, alice, &mcp.CallToolParams{Name: "pages"})
			list, err2 := alice.ListTools(t.Context(), nil)
			if failed != nil || err != nil || err2 != nil {
				t.Errorf("%s: %v, %v, %v", name, failed, err, err2)
				continue
			}
			next := map[string]any{"cursor": page.StructuredContent.(map[string]any)["nextCursor"]}
			for _, who := range []*mcp.ClientSession{bob, alice} {
				_, state := callTool(t, who, &mcp.CallToolParams{Name: "steps", RequestState: asked.RequestState, InputResponses: accepted})
				_, page := callTool(t, who, &mcp.CallToolParams{Name: "pages", Arguments: next})
				_, list := who.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: list.NextCursor})
				for what, err := range map[string]error{"state": state, "page": page, "list": list} {
					if (err == nil) != (who == alice) {
						t.Errorf("%s: alice's %s, sent by alice %v: %v", name, what, who == alice, err)
					}
				}
			}
			older := dial(t, web.URL, "alice", answering(), revision2025)
			if result, err := callTool(t, older, &mcp.CallToolParams{Name: "steps"}); err != nil || text(result) != "done after 3" {
				t.Errorf("%s: an older client gets %q, %v", name, text(result), err)
			}
		}
	}
}
