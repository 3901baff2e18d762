package gosdk_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/internal/revision"
)

// silent returns the options of a client that answers the first n questions, and none after
// them.
func silent(n int) *mcp.ClientOptions {
	options := answering()
	answer := options.ElicitationHandler
	options.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if n--; n < 0 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return answer(ctx, req)
	}
	return options
}

// If an older client does not answer a question, its call fails when the token of the question
// expires. The SDK itself asks the first and the third question, and this package asks the
// second.
func TestAnOlderClientThatNeverAnswersEndsWithItsToken(t *testing.T) {
	for answered := range 3 {
		t.Run(fmt.Sprint(answered, " answered"), func(t *testing.T) {
			gosdk.Bubble(t, func(t *testing.T) {
				b := &book{}
				server := newServer()
				tool := addSteps(server, "steps", 3)
				gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
				session := connectFor(t, server, silent(answered), revision2025, time.Hour)
				start := time.Now()
				_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "steps"})
				if waited := time.Since(start); wireText(err) != invalidState || waited != 10*time.Minute {
					t.Errorf("after %v: %v", waited, err)
				}
				if !strings.Contains(b.String(), "not answered in time") {
					t.Errorf("the log: %s", b)
				}
				if runs := len(tool.log()); runs != answered+1 {
					t.Errorf("the handler ran %d times", runs)
				}
				session.Close()
			})
		})
	}
}

func TestAQuestionThatAHandlerAsksItselfHasADeadlineToo(t *testing.T) {
	gosdk.Bubble(t, func(t *testing.T) {
		server := newServer()
		var asked []error
		server.AddTool(&mcp.Tool{Name: "tool", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for range 2 {
				_, err := req.Session.Elicit(ctx, form("?"))
				asked = append(asked, err)
			}
			return &mcp.CallToolResult{}, nil
		})
		gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.TTL = time.Minute }), nil)
		session := connectFor(t, server, silent(1), revision2025, time.Hour)
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "tool"}); err != nil {
			t.Fatal(err)
		}
		if len(asked) != 2 || asked[0] != nil || asked[1] == nil {
			t.Errorf("%v", asked)
		}
		session.Close()
	})
}

// connectFor is like the function connect, but for a test in a bubble. The parameter limit is
// the maximum lifetime of the connection.
func connectFor(t *testing.T, server *mcp.Server, options *mcp.ClientOptions, version string, limit time.Duration) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	clientSide, serverSide := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, serverSide, nil); err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, options)
	session, err := revision.Connect(ctx, client, clientSide, version)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// A question with a URL waits for URLTTL, and any other question for TTL.
func TestAQuestionOfAnOlderClientWaitsAsLongAsItsToken(t *testing.T) {
	for name, c := range map[string]struct {
		question string
		answer   time.Duration
		done     bool
	}{
		"form": {"form", 9 * time.Second, true}, "form, too late": {"form", 11 * time.Second, false},
		"url": {"url", 59 * time.Second, true}, "url, too late": {"url", 61 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			gosdk.Bubble(t, func(t *testing.T) {
				server := newServer()
				addTool(server, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					if req.Params.RequestState != "" {
						return &mcp.CallToolResult{}, nil
					}
					return &mcp.CallToolResult{RequestState: "s", InputRequests: mcp.InputRequestMap{"q": questionOf[c.question]()}}, nil
				})
				gosdk.Protect(server, boundary(t, &book{}, func(config *tripseal.Config) {
					config.TTL, config.URLTTL, config.MaxFlow = 10*time.Second, time.Minute, tripseal.NoLimit
				}), nil)
				options := answering()
				options.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}}
				options.ElicitationHandler = func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-time.After(c.answer):
						return &mcp.ElicitResult{Action: "accept"}, nil
					}
				}
				session := connectFor(t, server, options, revision2025, time.Hour)
				_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "tool"})
				if (err == nil) != c.done || err != nil && wireText(err) != invalidState {
					t.Errorf("%v", err)
				}
				session.Close()
			})
		})
	}
}

// The handler of a protected server has a client of its own. It connects this client to another
// server, and the other server asks the client a question. The question belongs to no round of the
// handler's call.
func TestAQuestionOnAnotherSessionIsNoRoundOfThisCall(t *testing.T) {
	inner := newServer()
	inner.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "ping" {
				if _, err := req.GetSession().(*mcp.ServerSession).Elicit(ctx, form("?")); err != nil {
					return nil, err
				}
			}
			return next(ctx, method, req)
		}
	})
	gosdk.Protect(inner, boundary(t, &book{}, nil), nil)
	outer := newServer()
	outer.AddTool(&mcp.Tool{Name: "outer", InputSchema: object}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		clientSide, serverSide := mcp.NewInMemoryTransports()
		if _, err := inner.Connect(ctx, serverSide, nil); err != nil {
			return nil, err
		}
		client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, answering())
		back, err := revision.Connect(ctx, client, clientSide, revision2025)
		if err != nil {
			return nil, err
		}
		defer back.Close()
		return &mcp.CallToolResult{}, back.Ping(ctx, nil)
	})
	var sealed atomic.Int32
	gosdk.Protect(outer, boundary(t, &book{}, func(c *tripseal.Config) {
		c.Observer = func(context.Context, tripseal.Event) { sealed.Add(1) }
	}), nil)
	if _, err := callTool(t, connect(t, outer, answering(), revision2025), &mcp.CallToolParams{Name: "outer"}); err != nil {
		t.Fatal(err)
	}
	if n := sealed.Load(); n != 0 {
		t.Errorf("the outer boundary sealed or opened %d times", n)
	}
}

// A handler of completion/complete asks a question, with its own context or with
// context.Background. It stops waiting for the answer after the lifetime of a token.
func TestAQuestionOutsideACallEndsToo(t *testing.T) {
	for name, of := range map[string]func(context.Context) context.Context{
		"its own":    func(ctx context.Context) context.Context { return ctx },
		"background": func(context.Context) context.Context { return context.Background() },
	} {
		gosdk.Bubble(t, func(t *testing.T) {
			server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{
				CompletionHandler: func(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
					_, err := req.Session.Elicit(of(ctx), form("?"))
					return &mcp.CompleteResult{}, err
				},
			})
			gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.TTL = time.Minute }), nil)
			session := connectFor(t, server, silent(0), revision2025, time.Hour)
			start := time.Now()
			_, err := session.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "p"}, Argument: mcp.CompleteParamsArgument{Name: "a", Value: "b"}})
			if waited := time.Since(start); err == nil || waited != time.Minute {
				t.Errorf("%s: after %v: %v", name, waited, err)
			}
			session.Close()
		})
	}
}

// A client that sends initialize is served as an older client, whichever revision it asks for:
// the server answers with a revision that has sessions, and asks in the middle of the call.
func TestAClientThatInitializesIsOlderWhateverItAskedFor(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28", "2027-01-01", "DRAFT"} {
		server := newServer()
		addSteps(server, "steps", 3)
		gosdk.Protect(server, boundary(t, &book{}, nil), nil)
		client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, raw())
		client.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if params, ok := req.GetParams().(*mcp.InitializeParams); ok {
					params.ProtocolVersion = version
				}
				return next(ctx, method, req)
			}
		})
		clientSide, serverSide := mcp.NewInMemoryTransports()
		if _, err := server.Connect(t.Context(), serverSide, nil); err != nil {
			t.Fatal(err)
		}
		session, err := revision.Connect(t.Context(), client, clientSide, revision2025)
		if err != nil {
			t.Fatal(err)
		}
		if got := session.InitializeResult().ProtocolVersion; got != "2025-11-25" {
			t.Errorf("%s: the server answers %s", version, got)
		}
		if result, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"}); err != nil || text(result) != "done after 3" {
			t.Errorf("%s: %q, state %q, %v", version, text(result), result.RequestState, err)
		}
		session.Close()
	}
}

// A call that waits for its user holds its arguments once: every run of the handler reads the same memory.
func TestAWaitingCallHoldsItsArgumentsOnce(t *testing.T) {
	server := newServer()
	s, seen := addSteps(newServer(), "steps", 4), map[*byte]int{}
	server.AddTool(&mcp.Tool{Name: "steps", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		seen[&req.Params.Arguments[0]]++
		return s.handle(ctx, req)
	})
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	call := &mcp.CallToolParams{Name: "steps", Arguments: map[string]any{"text": strings.Repeat("x", 1<<20)}}
	if result, err := callTool(t, connect(t, server, answering(), revision2025), call); err != nil || text(result) != "done after 4" {
		t.Fatalf("%q, %v", text(result), err)
	}
	if len(seen) != 1 {
		t.Errorf("the runs of the handler saw the arguments in %d places", len(seen))
	}
}
