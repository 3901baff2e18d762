package gosdk_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// becomeCarol changes all that a request says about its sender, first in place and then by leaving it out.
func becomeCarol(x *mcp.RequestExtra) {
	x.Header["Authorization"][0] = "Bearer carol"
	claims := x.TokenInfo.Extra
	claims["act"].(map[string]any)["sub"], claims["names"].([]any)[0] = "carol", "carol"
	claims["list"].([]string)[0], claims["iss"], x.TokenInfo.UserID = "carol", "carol", "carol"
	*x.TokenInfo = auth.TokenInfo{UserID: "carol"}
	*x = mcp.RequestExtra{}
}

func onePage(context.Context, *mcp.CallToolRequest, struct{}, *int) ([]int, *int, error) {
	return []int{1}, new(int), nil
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
			b := &book{}
			options := &gosdk.Options{AllowAnonymous: true, Logger: b.logger()}
			if read != nil {
				options.Principal = func(_ context.Context, req mcp.Request) (string, error) {
					user := read(req.GetExtra())
					if strings.Contains(user, "carol") {
						t.Errorf("%s, before %v: the principal sees %s", how, before, user)
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
			gosdk.AddPagedTool(gosdk.Protect(server, boundary(t, b, nil), options), &mcp.Tool{Name: "pages"}, onePage, nil)
			handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil)
			web := httptest.NewServer(auth.RequireBearerToken(verify, nil)(handler))
			t.Cleanup(web.Close)
			alice, bob := dial(t, web.URL, "alice", raw(), revision2026), dial(t, web.URL, "bob", raw(), revision2026)

			asked, err := callTool(t, alice, &mcp.CallToolParams{Name: "steps"})
			page, err2 := callTool(t, alice, &mcp.CallToolParams{Name: "pages"})
			list, err3 := alice.ListTools(t.Context(), nil)
			if err != nil || err2 != nil || err3 != nil {
				t.Fatalf("%s, before %v: %v, %v, %v", how, before, err, err2, err3)
			}
			cursor := map[string]any{"cursor": page.StructuredContent.(map[string]any)["nextCursor"]}
			retry := &mcp.CallToolParams{Name: "steps", RequestState: asked.RequestState, InputResponses: accepted}
			for _, who := range []*mcp.ClientSession{bob, alice} {
				_, state := callTool(t, who, retry)
				_, page := callTool(t, who, &mcp.CallToolParams{Name: "pages", Arguments: cursor})
				_, list := who.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: list.NextCursor})
				for what, err := range map[string]error{"state": state, "page": page, "list": list} {
					if (err == nil) != (who == alice) {
						t.Errorf("%s, before %v: alice's %s, sent by alice %v: %v", how, before, what, who == alice, err)
					}
				}
			}
			older := dial(t, web.URL, "alice", answering(), revision2025)
			result, err := callTool(t, older, &mcp.CallToolParams{Name: "steps"})
			if err != nil || text(result) != "done after 3" {
				t.Errorf("%s, before %v: an older client gets %q, %v", how, before, text(result), err)
			}
		}
	}
}

// For an older client, the SDK runs the handler, asks, and runs it again with the same params. If the second run asks
// too, the package asks. Then the handler gets the arguments that arrived, even if it has changed them in place.
func TestAnOlderClientsCallKeepsTheArgumentsThatArrived(t *testing.T) {
	server := newServer()
	var seen []string
	addTool(server, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if seen = append(seen, string(req.Params.Arguments)); len(seen) == 5 {
			return says("done"), nil
		}
		if len(seen)%2 == 0 { // the second of the two runs that the SDK makes with the same params
			copy(req.Params.Arguments, `{"region":"us"}`)
		}
		return asks("?", "s"), nil
	})
	prompt := func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if seen = append(seen, req.Params.Arguments["region"]); len(seen) == 10 {
			return &mcp.GetPromptResult{}, nil
		}
		if len(seen)%2 == 1 {
			delete(req.Params.Arguments, "region")
		}
		return &mcp.GetPromptResult{InputRequests: asks("?", "").InputRequests, RequestState: "s"}, nil
	}
	server.AddPrompt(&mcp.Prompt{Name: "p"}, prompt)
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	session := connect(t, server, answering(), revision2025)
	eu := map[string]string{"region": "eu"}
	_, err := callTool(t, session, &mcp.CallToolParams{Name: "tool", Arguments: eu})
	_, err2 := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p", Arguments: eu})
	want := append(slices.Repeat([]string{`{"region":"eu"}`}, 5), slices.Repeat([]string{"eu"}, 5)...)
	if err != nil || err2 != nil || !slices.Equal(seen, want) {
		t.Errorf("%v, %v: the runs saw %q", err, err2, seen)
	}
}

// A goroutine of a handler asks after the call has ended, or has not got its answer by then. Its question is answered,
// but is not part of the call: nothing is sealed or opened with the arguments of the call, whose memory others use now.
func TestAQuestionAfterTheCallIsNotPartOfIt(t *testing.T) {
	for name, isOpen := range map[string]bool{"asked after the call": false, "open at the end of the call": true} {
		var ended atomic.Bool
		arrived, returned, got := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		options := answering()
		options.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			close(arrived)
			<-returned
			return &mcp.ElicitResult{Action: "decline"}, nil
		}
		server := newServer()
		addTool(server, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			go func() {
				if !isOpen {
					<-returned
				}
				_, err := req.Session.Elicit(context.WithoutCancel(ctx), form("later?"))
				got <- err
			}()
			if isOpen {
				<-arrived
			}
			return says("done"), nil
		})
		gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) {
			c.Observer = func(_ context.Context, e tripseal.Event) {
				if ended.Load() {
					t.Errorf("%s: after the call: %+v", name, e)
				}
			}
		}), nil)
		session := connect(t, server, options, revision2025)
		if _, err := callTool(t, session, &mcp.CallToolParams{Name: "tool", Arguments: object}); err != nil {
			t.Fatal(err)
		}
		ended.Store(true)
		close(returned)
		if err := <-got; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A handler asks directly, and returns other questions before the direct one has its answer. The flow completes all the
// same, although each token works only once.
func TestADirectQuestionLeftOpenDoesNotEndTheFlow(t *testing.T) {
	b, server := &book{}, newServer()
	var once sync.Once
	arrived, first, second := make(chan struct{}), make(chan struct{}), make(chan struct{})
	addTool(server, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		once.Do(func() {
			go func() { req.Session.Elicit(ctx, form("direct?")); close(second) }()
			<-arrived // the client has the direct question
		})
		if state := req.Params.RequestState; len(state) < 3 {
			return asks("after "+state, state+"x"), nil
		}
		return says("done"), nil
	})
	gosdk.Protect(server, boundary(t, b, singleUse(t)), nil)
	options := answering()
	options.ElicitationHandler = func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		switch req.Params.Message {
		case "direct?":
			close(arrived)
			<-first
		case "after x":
			close(first)
			<-second
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "x"}}, nil
	}
	result, err := callTool(t, connect(t, server, options, revision2025), &mcp.CallToolParams{Name: "tool"})
	if err != nil || text(result) != "done" {
		t.Errorf("%q, %v\n%s", text(result), err, b)
	}
}
