package gosdk_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("unwritable") }

// On each of these questions and results the SDK would panic, which ends the process, or would never answer the client.
// They are refused, in the first round and in a later one, and the log says so.
func TestWhatTheSDKCannotWriteIsRefused(t *testing.T) {
	nan := mcp.Meta{"x": math.NaN()}
	formOf := func(schema any) *mcp.ElicitParams { return &mcp.ElicitParams{Message: "m", RequestedSchema: schema} }
	sample := func(messages ...*mcp.SamplingMessage) *mcp.CreateMessageParams {
		return &mcp.CreateMessageParams{MaxTokens: 1, Messages: messages}
	}
	sampleV2 := func(tool *mcp.Tool, contents ...mcp.Content) *mcp.CreateMessageWithToolsParams {
		messages := []*mcp.SamplingMessageV2{{Role: "user", Content: contents}}
		return &mcp.CreateMessageWithToolsParams{MaxTokens: 1, Messages: messages, Tools: []*mcp.Tool{tool}}
	}
	toolX, hi := &mcp.Tool{Name: "x", InputSchema: object}, &mcp.TextContent{Text: "hi"}
	nilInside := &mcp.ToolResultContent{Content: []mcp.Content{nil}}
	results := map[string]*mcp.CallToolResult{
		"error": nil, "meta": {InputRequests: asks("?", "").InputRequests, Meta: nan},
		"result": {Content: []mcp.Content{nil}}, "result's content": {Content: []mcp.Content{nilInside}},
		"typed nil": {Content: []mcp.Content{(*mcp.TextContent)(nil)}},
	}
	for name, question := range map[string]mcp.InputRequest{
		"*nil": nil, "*nil form": (*mcp.ElicitParams)(nil), "*nil sample": (*mcp.CreateMessageParams)(nil),
		"*key\xff": form("?"), "*nil message": sample(nil), "nil tool": sampleV2(nil, hi),
		"NaN": formOf(nan), "broken JSON": formOf(json.RawMessage(`{`)), "panic": formOf(panicking{}),
		"form's meta": &mcp.ElicitParams{Message: "m", RequestedSchema: object, Meta: nan},
		"roots' meta": &mcp.ListRootsParams{Meta: nan}, "metadata": &mcp.CreateMessageParams{Metadata: make(chan int)},
		"no content":  sample(&mcp.SamplingMessage{Role: "user"}),
		"nil content": sample(&mcp.SamplingMessage{Role: "user", Content: (*mcp.TextContent)(nil)}),
		"nil hint":    &mcp.CreateMessageParams{ModelPreferences: &mcp.ModelPreferences{Hints: []*mcp.ModelHint{nil}}},
		"tool's NaN":  sampleV2(&mcp.Tool{Name: "x", InputSchema: nan}, hi), "no contents": sampleV2(toolX),
		"nil contents": sampleV2(toolX, (*mcp.TextContent)(nil)), "nil inside": sampleV2(toolX, nilInside),
	} {
		results[name] = &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{name: question}, RequestState: "x"}
	}
	options := answering()
	sampling := &mcp.SamplingCapabilities{Tools: &mcp.SamplingToolsCapabilities{}}
	options.Capabilities = &mcp.ClientCapabilities{Sampling: sampling, RootsV2: &mcp.RootCapabilities{}}
	for name, result := range results {
		for _, version := range []string{revision2026, revision2025} {
			for round := range 2 {
				if strings.HasPrefix(name, "*") && version == revision2025 && round == 0 {
					continue // the SDK itself asks this question, before any middleware can look at it
				}
				b, server := &book{}, newServer()
				addTool(server, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					if state := req.Params.RequestState; len(state) < round {
						return asks("?", state+"x"), nil
					}
					if result == nil {
						return nil, (*json.SyntaxError)(nil) // its method Error panics
					}
					return result, nil
				})
				gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
				_, err := callTool(t, connect(t, server, options, version), &mcp.CallToolParams{Name: "tool"})
				if wire(err) != internal || !strings.Contains(b.String(), "level=ERROR") {
					t.Errorf("%s, %s, round %d: %v; the log: %s", name, version, round+1, err, b)
				}
			}
		}
	}
}

func TestAPromptWithANilInsideIsRefused(t *testing.T) {
	server := newServer()
	server.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: (*mcp.TextContent)(nil)}}}, nil
	})
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	session := connect(t, server, raw(), revision2026)
	if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"}); wire(err) != internal {
		t.Error(err)
	}
}

// A server with both halves of Middleware serves clients of both revisions. With one half, with swapped halves or with
// two pairs, whatever needs a half that is not in place fails, and the log says why.
func TestMiddlewareServesOnlyWithBothHalvesInPlace(t *testing.T) {
	const noReceiving, noSending = "receiving middleware is not installed", "sending middleware is not installed"
	for _, c := range []struct {
		install      string // R and S install the two halves in their places, r and s each in the place of the other
		newer, older string // what the log says if clients are refused; "" if they are served
	}{
		{"RS", "", ""},
		{"R", "", noSending},
		{"S", "-", noReceiving}, // newer clients get plaintext, as the comment of Middleware says
		{"rs", "swapped", "swapped"},
		{"r", "-", "swapped"},
		{"s", "swapped", "swapped"},
		{"RSRS", "twice", "twice"},
	} {
		for version, want := range map[string]string{revision2026: c.newer, revision2025: c.older} {
			if want == "-" {
				continue
			}
			b, server := &book{}, newServer()
			tool, p := addSteps(server, "steps", 3), boundary(t, b, nil)
			var receiving, sending mcp.Middleware
			for i, half := range c.install {
				if i%2 == 0 {
					receiving, sending = gosdk.Middleware(p, &gosdk.Options{Logger: b.logger()})
				}
				switch half {
				case 'R':
					server.AddReceivingMiddleware(receiving)
				case 'S':
					server.AddSendingMiddleware(sending)
				case 'r':
					server.AddSendingMiddleware(receiving)
				case 's':
					server.AddReceivingMiddleware(sending)
				}
			}
			session := connect(t, server, answering(), version)
			result, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"})
			_, listErr := session.ListTools(t.Context(), nil)
			served := err == nil && text(result) == "done after 3"
			if served != (want == "") || !strings.Contains(b.String(), want) || !served && len(tool.log()) > 1 ||
				(listErr != nil) != strings.Contains(c.install, "s") {
				t.Errorf("%s, %s: %v, %v, ran %v\n%s", c.install, version, err, listErr, tool.log(), b)
			}
		}
	}
}

// A call whose handler ends its goroutine cannot be answered any more, but the log says so: the default log of that
// time, if Options has none.
func TestAHandlerThatEndsItsGoroutineIsSaid(t *testing.T) {
	receiving, _ := gosdk.Middleware(boundary(t, &book{}, nil), nil)
	handler := receiving(func(context.Context, string, mcp.Request) (mcp.Result, error) {
		runtime.Goexit()
		return nil, nil
	})
	b, ended := &book{}, make(chan struct{})
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(b.logger())
	go func() {
		defer close(ended)
		handler(t.Context(), "tools/call", &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "x"}})
	}()
	if <-ended; !strings.Contains(b.String(), "level=ERROR") || !strings.Contains(b.String(), "Goexit") {
		t.Errorf("the log: %s", b)
	}
}

// A handler that seals by itself fails on a protected server, which would seal its state once more.
func TestSealingByItselfOnAProtectedServerIsRefused(t *testing.T) {
	b, user := &book{}, "alice"
	s, server := newSealer(t, b, &user)
	s.Install(server)
	_, err := callTool(t, connect(t, server, answering(), revision2026), &mcp.CallToolParams{Name: "seals"})
	if wire(err) != internal || !strings.Contains(b.String(), "would seal it twice") {
		t.Errorf("%v\n%s", err, b)
	}
}

// If inner middleware replaces the context of a call, a paged tool cannot tell who sent it, and issues no cursor.
func TestAPagedToolOutsideItsCallIssuesNoCursor(t *testing.T) {
	b, server := &book{}, newServer()
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(_ context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return next(context.Background(), method, req)
		}
	})
	protected := gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "pages"}, onePage, nil)
	result, err := callTool(t, connect(t, server, raw(), revision2026), &mcp.CallToolParams{Name: "pages"})
	if err == nil || !strings.Contains(b.String(), "has not come through") {
		t.Errorf("%v, %v; the log: %s", result, err, b)
	}
}

// A list whose cursor nobody can seal does not leave, and neither does a list with a state, sealed cursors or not.
func TestAListThatNobodyCanLookIntoDoesNotLeave(t *testing.T) {
	wrapped := struct{ *mcp.ListToolsResult }{&mcp.ListToolsResult{NextCursor: "hush"}}
	stateful := &statefulResult{inner: &inner{State: "hush"}}
	for i, result := range []mcp.Result{wrapped, (*mcp.ListToolsResult)(nil), stateful, stateful} {
		b, server := &book{}, newServer()
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "tools/list" {
					return result, nil
				}
				return next(ctx, method, req)
			}
		})
		gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger(), PlainLists: i == 3})
		got := post(t, serve(t, server, nil), "tools/list", "", `"cursor":""`)
		if !strings.Contains(got, `"code":-32603,"message":"Internal error"`) || strings.Contains(got+b.String(), "hush") {
			t.Errorf("%T, plain %v: %s", result, i == 3, got)
		}
	}
}
