package gosdktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/gosdktest"
	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/sealtest"
)

// failures is a testing.TB that collects the messages of failures.
type failures struct {
	testing.TB
	mu   sync.Mutex
	said []string
}

func (f *failures) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *failures) Fatalf(format string, args ...any) { f.Errorf(format, args...); runtime.Goexit() }
func (f *failures) Fatal(args ...any)                 { f.Fatalf("%s", fmt.Sprint(args...)) }

// failing runs a test that may fail, and returns the messages of its failures.
func failing(t *testing.T, test func(testing.TB)) []string {
	f := &failures{TB: t}
	var group sync.WaitGroup
	group.Go(func() { test(f) })
	group.Wait()
	return f.said
}

// careless is a handler that takes any answer, whatever state it came with.
func careless(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if len(req.Params.InputResponses) > 0 {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "released"}}}, nil
	}
	return &mcp.CallToolResult{RequestState: "asked", InputRequests: mcp.InputRequestMap{"confirm": &mcp.ElicitParams{Message: "?"}}}, nil
}

func serverOf(handler mcp.ToolHandler) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "release", InputSchema: map[string]any{"type": "object"}}, handler)
	return server
}

// raw lists changes to a message. A protected server rejects a message with any one of these
// changes.
var raw = map[string]gosdktest.Change{
	"tampered":        gosdktest.Tamper,
	"another user":    gosdktest.By(gosdktest.Bob),
	"nobody":          gosdktest.By(""),
	"another tool":    gosdktest.To("destroy"),
	"other arguments": gosdktest.With(map[string]any{"version": "6.6.6"}),
	"another token":   func(m *gosdktest.Message) { m.Token = "asked" },
	"another method":  func(m *gosdktest.Message) { m.Method = "prompts/get" },
}

func TestAProtectedServerRejectsRawRoundsAndTakesTheGenuineOne(t *testing.T) {
	server := serverOf(careless)
	gosdk.Protect(server, sealtest.Boundary(t), nil)
	alice := gosdktest.Connect(t, server, nil)
	asked := alice.CallTool("release", version)
	if !asked.Asks() || asked.Token == "asked" || len(asked.Questions) != 1 || asked.Rejected() {
		t.Fatalf("%+v", asked)
	}
	for name, change := range raw {
		if got := asked.Answer(yes, change); !got.Rejected() || got.Result != nil || got.Token != "" {
			t.Errorf("%s: %s", name, got.Text())
		}
	}
	if got := asked.Answer(yes, gosdktest.Strip); !got.Asks() || got.Token == asked.Token {
		t.Errorf("stripped: %s", got.Text())
	}
	for range 2 { // twice, because the token is not for single use
		if got := asked.Answer(yes); got.Text() != "released" || got.Asks() || got.Rejected() {
			t.Errorf("genuine: %s", got.Text())
		}
	}
}

func TestNothingIsRejectedByAServerWithoutProtection(t *testing.T) {
	alice := gosdktest.Connect(t, serverOf(careless), nil)
	asked := alice.CallTool("release", version)
	for name, change := range raw {
		if got := asked.Answer(yes, change); got.Rejected() {
			t.Errorf("%s: an unprotected server seems to reject it", name)
		}
	}
	if got := asked.Answer(yes, gosdktest.Strip); got.Asks() {
		t.Error("the careless handler does not take the answers")
	}
}

// TestABrokenServerDoesNotReject checks that Rejected returns true only for the error of a rejected
// token. The servers of this test fail with other errors.
func TestABrokenServerDoesNotReject(t *testing.T) {
	rejection := tripseal.Wire(tripseal.ErrRejected)
	for name, broken := range map[string]error{
		"plain":            errors.New(rejection.Message),
		"internal":         &jsonrpc.Error{Code: -32603, Message: "Internal error"},
		"another code":     &jsonrpc.Error{Code: -32603, Message: rejection.Message, Data: rejection.Data},
		"another message":  &jsonrpc.Error{Code: rejection.Code, Message: "Invalid requestState", Data: rejection.Data},
		"no data":          &jsonrpc.Error{Code: rejection.Code, Message: rejection.Message},
		"other data":       &jsonrpc.Error{Code: rejection.Code, Message: rejection.Message, Data: json.RawMessage(`{"reason":"forged"}`)},
		"bad params":       &jsonrpc.Error{Code: rejection.Code, Message: "Invalid params"},
		"error in content": nil,
	} {
		server := serverOf(func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if req.Params.RequestState == "" {
				return careless(t.Context(), req)
			}
			if broken == nil {
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: rejection.Message}}}, nil
			}
			return nil, broken
		})
		asked := gosdktest.Connect(t, server, nil).CallTool("release", nil)
		if got := asked.Answer(nil); got.Rejected() || got.Asks() {
			t.Errorf("%s: counts as rejected: %v", name, got.Err)
		}
	}
}

func TestAConnectionThatIsGoneDoesNotReject(t *testing.T) {
	server := serverOf(careless)
	gosdk.Protect(server, sealtest.Boundary(t), nil)
	alice := gosdktest.Connect(t, server, nil)
	asked := alice.CallTool("release", nil)
	alice.Session().Close()
	if got := asked.Answer(yes, gosdktest.Tamper); got.Err == nil || got.Rejected() {
		t.Errorf("%v", got.Err)
	}
}

func TestAttackNoticesEachHole(t *testing.T) {
	protected := func(change func(*tripseal.Config), options *gosdk.Options) func(testing.TB) *mcp.Server {
		return func(t testing.TB) *mcp.Server {
			config := tripseal.Config{}
			change(&config)
			server := serverOf(careless)
			gosdk.Protect(server, sealtest.BoundaryWith(t, config), options)
			return server
		}
	}
	none := func(*tripseal.Config) {}
	// withHole returns a function that makes a protected server with a hole. Middleware in front of
	// the boundary calls the function alter for each tool call. That function changes the params so
	// that an attack gets through.
	withHole := func(alter func(*mcp.CallToolParamsRaw)) func(testing.TB) *mcp.Server {
		return func(t testing.TB) *mcp.Server {
			server := protected(none, nil)(t)
			server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					if call, ok := req.(*mcp.CallToolRequest); ok {
						alter(call.Params)
					}
					return next(ctx, method, req)
				}
			})
			return server
		}
	}
	calls, size := 0, 0
	for name, c := range map[string]struct {
		server func(testing.TB) *mcp.Server
		want   []string // a part of each failure's message, in order; nil if the server withstands all attacks
	}{
		"protected":     {protected(none, nil), nil},
		"single use":    {protected(func(c *tripseal.Config) { c.Replay, _ = replay.NewSingleProcess(replay.Config{}) }, nil), nil},
		"unprotected":   {func(testing.TB) *mcp.Server { return serverOf(careless) }, []string{"first character", "in the middle", "last character", "without its last", "one more", "target", "method", "argument", "another user", "without a user", "do not make the server ask"}},
		"users ignored": {protected(none, &gosdk.Options{User: func(context.Context, *mcp.RequestExtra) (string, error) { return "everybody", nil }}), []string{"of another user", "sent without a user"}},
		"unsolicited":   {protected(none, &gosdk.Options{Unsolicited: []string{"release"}}), []string{"do not make the server ask"}},
		"trims": {withHole(func(p *mcp.CallToolParamsRaw) {
			if size == 0 {
				size = len(p.RequestState) // the first attack changes one character, so its token is as long as the genuine one
			}
			p.RequestState = p.RequestState[:min(size, len(p.RequestState))]
		}), []string{"one more"}},
		"arguments replaced": {withHole(func(p *mcp.CallToolParamsRaw) { p.Arguments = json.RawMessage(`{}`) }), []string{"another argument"}},
		"name replaced":      {withHole(func(p *mcp.CallToolParamsRaw) { p.Name = "release" }), []string{"another target"}},
		"rejects everything": {protected(none, &gosdk.Options{User: func(context.Context, *mcp.RequestExtra) (string, error) {
			calls++
			return fmt.Sprint("user ", calls), nil
		}}), []string{"genuine token is not accepted"}},
	} {
		t.Run(name, func(t *testing.T) {
			said := failing(t, func(f testing.TB) {
				gosdktest.Connect(f, c.server(t), nil).CallTool("release", version).Attack(yes)
			})
			if len(said) != len(c.want) {
				t.Fatalf("%d failures, want %d:\n%s", len(said), len(c.want), strings.Join(said, "\n"))
			}
			for i, want := range c.want {
				if !strings.Contains(said[i], want) {
					t.Errorf("%q does not say %q", said[i], want)
				}
			}
		})
	}
}

// TestEveryMethodIsAttacked attacks a tool, a prompt and a resource, on a server with protection
// and on one without.
func TestEveryMethodIsAttacked(t *testing.T) {
	for _, protect := range []bool{true, false} {
		server := serverOf(careless)
		question := mcp.InputRequestMap{"confirm": &mcp.ElicitParams{Message: "?"}}
		server.AddPrompt(&mcp.Prompt{Name: "p"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			if len(req.Params.InputResponses) == 0 {
				return &mcp.GetPromptResult{InputRequests: question, RequestState: "asked"}, nil
			}
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "done"}}}}, nil
		})
		server.AddResource(&mcp.Resource{URI: "file:///r", Name: "r"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			if len(req.Params.InputResponses) == 0 {
				return &mcp.ReadResourceResult{InputRequests: question, RequestState: "asked"}, nil
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "file:///r", Text: "done"}}}, nil
		})
		if protect {
			gosdk.Protect(server, sealtest.Boundary(t), nil)
		}
		for name, call := range map[string]func(*gosdktest.Client) *gosdktest.Round{
			"tool":                  func(c *gosdktest.Client) *gosdktest.Round { return c.CallTool("release", nil) },
			"prompt":                func(c *gosdktest.Client) *gosdktest.Round { return c.GetPrompt("p", nil) },
			"prompt with arguments": func(c *gosdktest.Client) *gosdktest.Round { return c.GetPrompt("p", map[string]string{"a": "b"}) },
			"resource":              func(c *gosdktest.Client) *gosdktest.Round { return c.ReadResource("file:///r") },
		} {
			done := false
			said := failing(t, func(f testing.TB) {
				round := call(gosdktest.Connect(f, server, nil)).Attack(yes)
				done = round.Text() == "done" || round.Text() == "released"
			})
			if !done || protect == (len(said) > 0) {
				t.Errorf("%s, protected %v: %v, %q", name, protect, done, said)
			}
		}
	}
}

func TestALaterRoundIsAttacked(t *testing.T) {
	server := serverOf(func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		next := map[string]string{"": "confirm", "confirm": "again"}[req.Params.RequestState]
		if next == "" {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "released"}}}, nil
		}
		question := &mcp.ElicitParams{Message: "Release it?", RequestedSchema: map[string]any{"type": "object"}}
		return &mcp.CallToolResult{RequestState: next, InputRequests: mcp.InputRequestMap{next: question}}, nil
	})
	gosdk.Protect(server, sealtest.Boundary(t), nil)
	second := gosdktest.Connect(t, server, nil).CallTool("release", nil).Attack(yes)
	if !second.Asks() || second.Questions["again"] == nil {
		t.Fatal(second.Text())
	}
	if done := second.Attack(gosdktest.Accept("again", nil)); done.Text() != "released" {
		t.Error(done.Text())
	}
}

func TestTheTokenOfNobodyIsNotAnotherUsers(t *testing.T) {
	server := serverOf(careless)
	gosdk.Protect(server, sealtest.Boundary(t), &gosdk.Options{
		User:           func(context.Context, *mcp.RequestExtra) (string, error) { return "", nil },
		AllowAnonymous: true,
	})
	gosdktest.Connect(t, server, nil).As("").CallTool("release", nil).Attack(yes)
}

func TestACallBringsItsUser(t *testing.T) {
	var seen []string
	server := serverOf(func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		user := "nobody"
		if req.Extra != nil {
			user = req.Extra.TokenInfo.UserID
			req.Extra.TokenInfo.UserID = "mallory" // must not reach the next request, which has its own Extra
		}
		seen = append(seen, user)
		return &mcp.CallToolResult{}, nil
	})
	alice := gosdktest.Connect(t, server, nil)
	for _, c := range []*gosdktest.Client{alice, alice, alice.As(gosdktest.Bob), alice.As(""), alice.As("carol"), alice} {
		if round := c.CallTool("release", nil); round.Err != nil {
			t.Fatal(round.Err)
		}
	}
	if want := []string{"alice", "alice", "bob", "nobody", "carol", "alice"}; !slices.Equal(seen, want) {
		t.Error(seen)
	}
}

func TestAnExtraThatIsNilIsNone(t *testing.T) {
	server := serverOf(func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(req.Extra == nil)}}}, nil
	})
	client := gosdktest.Connect(t, server, &gosdktest.Options{Extra: func(string) *mcp.RequestExtra { return nil }})
	if got := client.CallTool("release", nil); got.Text() != "true" {
		t.Error(got.Text())
	}
}

func TestSingleUseIsWonOnceByManyGoroutines(t *testing.T) {
	once, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	server := serverOf(careless)
	gosdk.Protect(server, sealtest.BoundaryWith(t, tripseal.Config{Replay: once}), nil)
	asked := gosdktest.Connect(t, server, nil).CallTool("release", nil)
	rounds := make([]*gosdktest.Round, 16)
	var group sync.WaitGroup
	for i := range rounds {
		group.Go(func() {
			var changes []gosdktest.Change
			if i%4 == 0 { // Bob has no connection yet, and several goroutines need it at once
				changes = append(changes, gosdktest.By(gosdktest.Bob))
			}
			rounds[i] = asked.Answer(yes, changes...)
		})
	}
	group.Wait()
	won := 0
	for _, round := range rounds {
		if round.Text() == "released" {
			won++
		} else if !round.Rejected() {
			t.Error(round.Text())
		}
	}
	if won != 1 {
		t.Errorf("won %d times", won)
	}
}

// TestOlderClientsAreBoundToTheirUser checks that a server gets the user of a call from the access
// token of this call, for older and for newer clients.
func TestOlderClientsAreBoundToTheirUser(t *testing.T) {
	server := serverOf(careless)
	var users []string
	gosdk.Protect(server, sealtest.Boundary(t), &gosdk.Options{User: func(_ context.Context, extra *mcp.RequestExtra) (string, error) {
		users = append(users, extra.TokenInfo.Extra["sub"].(string))
		return users[len(users)-1], nil
	}})
	answering := &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept"}, nil
	}}
	for _, older := range []bool{false, true} {
		users = nil
		client := gosdktest.Connect(t, server, &gosdktest.Options{Older: older, Client: answering, Extra: func(user string) *mcp.RequestExtra {
			return &mcp.RequestExtra{TokenInfo: &auth.TokenInfo{Extra: map[string]any{"sub": "sub-" + user}}}
		}})
		if older != (client.Session().InitializeResult().ProtocolVersion == "2025-11-25") {
			t.Error(older, client.Session().InitializeResult().ProtocolVersion)
		}
		if got := client.As(gosdktest.Bob).CallTool("release", nil); got.Text() != "released" || got.Asks() {
			t.Error(older, got.Text())
		}
		if len(users) == 0 || slices.ContainsFunc(users, func(u string) bool { return u != "sub-bob" }) {
			t.Error(older, users)
		}
	}
}

func TestMisuseEndsTheTest(t *testing.T) {
	plain := serverOf(func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
	})
	stateless := serverOf(func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"confirm": &mcp.ElicitParams{Message: "?"}}}, nil
	})
	for name, c := range map[string]struct {
		test func(testing.TB)
		want string
	}{
		"answer to nothing":  {func(f testing.TB) { gosdktest.Connect(f, plain, nil).CallTool("release", nil).Answer(yes) }, "asks nothing: done"},
		"attack on nothing":  {func(f testing.TB) { gosdktest.Connect(f, plain, nil).CallTool("release", nil).Attack(yes) }, "asks nothing: done"},
		"answer to an error": {func(f testing.TB) { gosdktest.Connect(f, plain, nil).CallTool("none", nil).Answer(yes) }, "asks nothing: calling"},
		"no token to attack": {func(f testing.TB) { gosdktest.Connect(f, stateless, nil).CallTool("release", nil).Attack(yes) }, "is it protected?"},
		"older and raw":      {func(f testing.TB) { gosdktest.Connect(f, plain, &gosdktest.Options{Older: true}) }, "set Options.Client"},
	} {
		ended := true
		said := failing(t, func(f testing.TB) { c.test(f); ended = false })
		if !ended || len(said) != 1 || !strings.Contains(said[0], c.want) {
			t.Errorf("%s: ended %v, %q", name, ended, said)
		}
	}
}

// TestTheContextOfACallReachesLogAndObserver checks that the observer gets the call's context for
// each event. It checks clients of both revisions.
func TestTheContextOfACallReachesLogAndObserver(t *testing.T) {
	var mu sync.Mutex
	var ops []string
	see := func(ctx context.Context, what string) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Value(traceKey{}) != "trace-1" {
			t.Errorf("%s without the call's context", what)
		}
		ops = append(ops, what)
	}
	for _, older := range []bool{false, true} {
		ops = nil
		boundary := sealtest.BoundaryWith(t, tripseal.Config{
			Logger:   sealtest.Logger(t),
			Observer: func(ctx context.Context, e tripseal.Event) { see(ctx, string(e.Op)+string(e.Reason)) },
		})
		server := newServer(boundary, nil)
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				return next(context.WithValue(ctx, traceKey{}, "trace-1"), method, req)
			}
		})
		options := &gosdktest.Options{Older: older}
		if older {
			options.Client = &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
			}}
		}
		asked := gosdktest.Connect(t, server, options).CallTool("release", nil)
		want := []string{"seal", "open"}
		if !older {
			asked.Answer(yes)
			asked.Answer(yes, gosdktest.Tamper)
			asked.Answer(yes, gosdktest.Strip)
			want = append(want, "openforged", "drop", "seal")
		}
		if !slices.Equal(ops, want) {
			t.Errorf("older %v: %v", older, ops)
		}
	}
}

// TestARejectionInATextOfTheServersIsARejection checks that Rejected returns true for a result with
// the text in Options.RejectedText, and for no other text.
func TestARejectionInATextOfTheServersIsARejection(t *testing.T) {
	server := serverOf(careless)
	gosdk.Protect(server, sealtest.Boundary(t), &gosdk.Options{RejectedText: gosdk.StartOver})
	for text, want := range map[string]bool{gosdk.StartOver: true, "another text": false, "": false} {
		alice := gosdktest.Connect(t, server, &gosdktest.Options{RejectedText: text})
		asked := alice.CallTool("release", version)
		if got := asked.Answer(yes, gosdktest.Tamper); got.Rejected() != want || asked.Rejected() {
			t.Errorf("%q: rejected %v: %s", text, got.Rejected(), got.Text())
		}
		if got := asked.Answer(yes); got.Rejected() || got.Text() != "released" {
			t.Errorf("%q: the genuine one: %s", text, got.Text())
		}
	}
	gosdktest.Connect(t, server, &gosdktest.Options{RejectedText: gosdk.StartOver}).CallTool("release", version).Attack(yes)
}
