package gosdk_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

// These are params and results of custom methods, as an author might define them.
type (
	plainParams struct {
		mcp.ParamsBase
		Query string `json:"query"`
	}
	statefulParams struct {
		mcp.ParamsBase
		State string `json:"requestState"`
	}
	answeredParams struct {
		mcp.ParamsBase
		InputResponses map[string]any
	}
	plainResult struct {
		mcp.ResultBase
		Hits []string `json:"hits"`
	}
	statefulResult struct {
		mcp.ResultBase
		*inner
	}
	inner struct {
		State string `json:"requestState,omitempty"`
	}
	valueResult struct {
		*mcp.ResultBase
		State string `json:"requestState"`
	}
	wrappedResult struct{ *mcp.CallToolResult }
	hidingResult  struct {
		*mcp.CallToolResult
		RequestState string `json:"-"`
	}
	ownResult struct {
		mcp.ResultBase
		secret string
	}
	askingResult struct {
		mcp.ResultBase
		Questions mcp.InputRequestMap `json:"inputRequests,omitempty"`
	}
)

func (r *ownResult) MarshalJSON() ([]byte, error) {
	return []byte(`{"requestState":"` + r.secret + `"}`), nil
}

// addMethod registers a custom method that returns the given result, and counts its calls.
func addMethod[P interface {
	mcp.Params
	*T
}, R mcp.Result, T any](t *testing.T, server *mcp.Server, method string, result R, calls *int) {
	t.Helper()
	err := mcp.AddReceivingCustomMethod(server, method, func(context.Context, *mcp.ServerSession, P) (R, error) {
		*calls++
		return result, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// For a custom method, nothing is sealed. So a result with a state or questions is refused, and
// so are params with a state or answers.
func TestAnyOtherMethodCarriesNoInput(t *testing.T) {
	b := &book{}
	server := newServer()
	var calls int
	addMethod[*plainParams](t, server, "acme/plain", &plainResult{Hits: []string{"a"}}, &calls)
	addMethod[*plainParams](t, server, "acme/none", &statefulResult{}, &calls)
	addMethod[*plainParams](t, server, "acme/tool", &mcp.CallToolResult{RequestState: "hush"}, &calls)
	addMethod[*plainParams](t, server, "acme/asks", &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": form("?")}}, &calls)
	addMethod[*plainParams](t, server, "acme/own", &statefulResult{inner: &inner{State: "hush"}}, &calls)
	addMethod[*plainParams](t, server, "acme/questions", &askingResult{Questions: mcp.InputRequestMap{"q": form("?")}}, &calls)
	stateful := &mcp.CallToolResult{RequestState: "hush"}
	addMethod[*plainParams](t, server, "acme/value", valueResult{&mcp.ResultBase{}, "hush"}, &calls)
	addMethod[*plainParams](t, server, "acme/wrapped", wrappedResult{stateful}, &calls)
	addMethod[*plainParams](t, server, "acme/hiding", hidingResult{stateful, ""}, &calls)
	addMethod[*plainParams](t, server, "acme/marshals", &ownResult{secret: "hush"}, &calls)
	addMethod[*plainParams](t, server, "acme/list", &mcp.ListToolsResult{Tools: []*mcp.Tool{}}, &calls)
	addMethod[*mcp.ListToolsParams](t, server, "acme/lists", &plainResult{}, &calls)
	addMethod[*mcp.CallToolParamsRaw](t, server, "acme/raw", &plainResult{}, &calls)
	addMethod[*statefulParams](t, server, "acme/state", &plainResult{}, &calls)
	addMethod[*answeredParams](t, server, "acme/answers", &plainResult{}, &calls)
	gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	url := serve(t, server, nil)
	send := func(method, params string) string {
		return post(t, url, method, "", params)
	}
	for _, c := range []struct {
		method, params string
		passes         bool
		runs           bool
	}{
		{"acme/plain", `"query":"q"`, true, true},
		{"acme/plain", `"query":"q","requestState":"ignored"`, true, true},
		{"acme/none", `"query":"q"`, true, true},
		{"acme/tool", `"query":"q"`, false, true},
		{"acme/asks", `"query":"q"`, false, true},
		{"acme/own", `"query":"q"`, false, true},
		{"acme/questions", `"query":"q"`, false, true},
		{"acme/value", `"query":"q"`, false, true},
		{"acme/wrapped", `"query":"q"`, false, true},
		{"acme/hiding", `"query":"q"`, false, true},
		{"acme/marshals", `"query":"q"`, false, true},
		{"acme/list", `"query":"q"`, true, true},
		{"acme/lists", `"cursor":"any"`, true, true},
		{"acme/raw", `"name":"x"`, true, true},
		{"acme/raw", `"name":"x","requestState":"forged"`, false, false},
		{"acme/raw", `"name":"x","inputResponses":{"q":{"action":"accept"}}`, false, false},
		{"acme/state", `"requestState":"forged"`, false, false},
		{"acme/state", `"requestState":""`, true, true},
		{"acme/answers", `"InputResponses":{"q":1}`, false, false},
	} {
		before := calls
		got := send(c.method, c.params)
		if passes := !strings.Contains(got, `"error"`); passes != c.passes || !passes && !strings.Contains(got, `"code":-32603,"message":"Internal error"`) || strings.Contains(got, "hush") {
			t.Errorf("%s with %s: %s", c.method, c.params, got)
		}
		if runs := calls > before; runs != c.runs {
			t.Errorf("%s with %s: the handler ran: %v", c.method, c.params, runs)
		}
	}
	if log := b.String(); !strings.Contains(log, "method=acme/tool") || !strings.Contains(log, "method=acme/raw") || strings.Contains(log, "hush") {
		t.Errorf("the log: %s", log)
	}
}

// Inner middleware answers tools/list with a result that is no list but has a state. The result is
// refused, even if list cursors are not sealed.
func TestAListCarriesNoInput(t *testing.T) {
	for _, plain := range []bool{false, true} {
		b := &book{}
		server := newServer()
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "tools/list" {
					return &statefulResult{inner: &inner{State: "hush"}}, nil
				}
				return next(ctx, method, req)
			}
		})
		gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger(), PlainLists: plain})
		got := post(t, serve(t, server, nil), "tools/list", "", `"cursor":""`)
		if !strings.Contains(got, `"code":-32603,"message":"Internal error"`) || strings.Contains(got+b.String(), "hush") {
			t.Errorf("with PlainLists %v: %s", plain, got)
		}
	}
}

// A client may send a state and answers with any method. The SDK drops both if the Go type of the
// params has no fields for them, as the docs say.
func TestTheSDKDropsInputThatItsOwnMethodsDoNotHave(t *testing.T) {
	b := &book{}
	var seen string
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			seen = fmt.Sprintf("%+v", req.Params)
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"x"}}}, nil
		},
	})
	gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger(), AllowAnonymous: true})
	url := serve(t, server, nil)
	const input = `"requestState":"forged","inputResponses":{"q":{"action":"accept"}}`
	for method, params := range map[string]string{
		"completion/complete": `,"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}`,
		"tools/list":          "",
	} {
		if got := post(t, url, method, "", input+params); !strings.Contains(got, `"result"`) || strings.Contains(got, "forged") {
			t.Errorf("%s: %s", method, got)
		}
	}
	if seen == "" || strings.Contains(seen, "forged") || strings.Contains(seen, "accept") {
		t.Errorf("the handler gets %s", seen)
	}
}

// This test fails when a newer SDK adds a field to a type that the adapter copies, rebuilds or
// checks. Then find out whether the field carries a state, questions, answers or a cursor, and
// whether the adapter copies the field.
func TestTheSDKHasNoFieldThatWeDoNotKnow(t *testing.T) {
	for value, want := range map[any]string{
		mcp.CallToolRequest{}:              "Session Params Extra",
		mcp.GetPromptRequest{}:             "Session Params Extra",
		mcp.ReadResourceRequest{}:          "Session Params Extra",
		mcp.ListToolsRequest{}:             "Session Params Extra",
		mcp.ListPromptsRequest{}:           "Session Params Extra",
		mcp.ListResourcesRequest{}:         "Session Params Extra",
		mcp.ListResourceTemplatesRequest{}: "Session Params Extra",
		&mcp.CallToolParamsRaw{}:           "Meta Name Arguments InputResponses RequestState",
		&mcp.GetPromptParams{}:             "Meta Arguments Name InputResponses RequestState",
		&mcp.ReadResourceParams{}:          "Meta URI InputResponses RequestState",
		&mcp.ListToolsParams{}:             "Meta Cursor",
		&mcp.ListPromptsParams{}:           "Meta Cursor",
		&mcp.ListResourcesParams{}:         "Meta Cursor",
		&mcp.ListResourceTemplatesParams{}: "Meta Cursor",
		&mcp.CallToolResult{}:              "Meta Content StructuredContent IsError InputRequests RequestState resultType err",
		&mcp.GetPromptResult{}:             "Meta Description Messages InputRequests RequestState resultType",
		&mcp.ReadResourceResult{}:          "Meta Cacheable Contents InputRequests RequestState resultType",
		&mcp.ListToolsResult{}:             "completeResultWithType Meta Cacheable NextCursor Tools",
		&mcp.ListPromptsResult{}:           "completeResultWithType Meta Cacheable NextCursor Prompts",
		&mcp.ListResourcesResult{}:         "completeResultWithType Meta Cacheable NextCursor Resources",
		&mcp.ListResourceTemplatesResult{}: "completeResultWithType Meta Cacheable NextCursor ResourceTemplates",
		&mcp.CreateMessageParams{}:         "Meta IncludeContext MaxTokens Messages Metadata ModelPreferences StopSequences SystemPrompt Temperature",
		&mcp.CreateMessageWithToolsParams{}: "Meta IncludeContext MaxTokens Messages Metadata ModelPreferences StopSequences SystemPrompt Temperature " +
			"Tools ToolChoice",
		&mcp.SamplingMessage{}:              "Content Role",
		&mcp.SamplingMessageV2{}:            "Content Role",
		&mcp.ElicitParams{}:                 "Meta Mode Message RequestedSchema URL ElicitationID",
		&mcp.ElicitResult{}:                 "Meta Action Content",
		&mcp.CreateMessageResult{}:          "Meta Content Model Role StopReason",
		&mcp.CreateMessageWithToolsResult{}: "Meta Content Model Role StopReason",
		&mcp.ListRootsParams{}:              "Meta",
		&mcp.ListRootsResult{}:              "Meta Roots",
		&mcp.EmbeddedResource{}:             "Resource Meta Annotations",
		&mcp.ToolResultContent{}:            "ToolUseID Content StructuredContent IsError Meta",
	} {
		typ := reflect.TypeOf(value)
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		var fields []string
		for i := range typ.NumField() {
			fields = append(fields, typ.Field(i).Name)
		}
		if got := strings.Join(fields, " "); got != want {
			t.Errorf("%v has the fields %s, and we know %s", typ, got, want)
		}
	}
}

func TestAPanicIsAnInternalErrorAndLeaksNothing(t *testing.T) {
	b := &book{}
	server := newServer()
	server.AddTool(&mcp.Tool{Name: "tool", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("hush") })
	server.AddPrompt(&mcp.Prompt{Name: "prompt"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { panic(fmt.Errorf("hush")) })
	server.AddResource(&mcp.Resource{URI: "test:r", Name: "r"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		var none *mcp.ReadResourceResult
		return none, fmt.Errorf("%s", none.RequestState)
	})
	if err := mcp.AddReceivingCustomMethod(server, "acme/panic", func(context.Context, *mcp.ServerSession, *plainParams) (*plainResult, error) { panic("hush") }); err != nil {
		t.Fatal(err)
	}
	protected := gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "paged"}, func(context.Context, *mcp.CallToolRequest, struct{}, *int) ([]int, *int, error) { panic("hush") }, nil)
	for _, revision := range []string{revision2026, revision2025} {
		session := connect(t, server, raw(), revision)
		_, toolErr := callTool(t, session, &mcp.CallToolParams{Name: "tool"})
		_, pagedErr := callTool(t, session, &mcp.CallToolParams{Name: "paged"})
		_, promptErr := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "prompt"})
		_, resourceErr := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test:r"})
		for name, err := range map[string]error{"tool": toolErr, "paged tool": pagedErr, "prompt": promptErr, "resource": resourceErr} {
			if wire(err) != internal {
				t.Errorf("%s: %s: %v", revision, name, err)
			}
		}
	}
	if got := post(t, serve(t, server, nil), "acme/panic", "", `"query":"q"`); !strings.Contains(got, `"Internal error"`) {
		t.Errorf("a custom method: %s", got)
	}
	log := b.String()
	if n := strings.Count(log, "a handler panicked"); n != 9 || !strings.Contains(log, "panic of type string") || !strings.Contains(log, "other_test.go") || strings.Contains(log, "hush") {
		t.Errorf("%d panics in the log: %s", n, log)
	}
}

// typedNil is an error whose Error method panics if the pointer is nil.
type typedNil struct{ text string }

func (e *typedNil) Error() string { return e.text }

// The SDK reads errors and writes contents after the middleware has returned, and nothing would
// recover from a panic there. So errors and contents that would panic are refused.
func TestWhatTheSDKWouldPanicOnIsRefused(t *testing.T) {
	b := &book{}
	server := newServer()
	results := map[string]*mcp.CallToolResult{
		"nil":        {Content: []mcp.Content{nil}},
		"typed nil":  {Content: []mcp.Content{(*mcp.TextContent)(nil)}},
		"nil inside": {Content: []mcp.Content{&mcp.ToolResultContent{Content: []mcp.Content{nil}}}},
	}
	for name, result := range results {
		server.AddTool(&mcp.Tool{Name: strings.ReplaceAll(name, " ", "_"), InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return result, nil })
	}
	server.AddTool(&mcp.Tool{Name: "error", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, (*typedNil)(nil) })
	server.AddPrompt(&mcp.Prompt{Name: "error"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return nil, (*typedNil)(nil)
	})
	server.AddPrompt(&mcp.Prompt{Name: "nil"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: (*mcp.TextContent)(nil)}}}, nil
	})
	server.AddResource(&mcp.Resource{URI: "test:nil", Name: "nil"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{nil}}, nil
	})
	gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	for _, revision := range []string{revision2026, revision2025} {
		session := connect(t, server, raw(), revision)
		for _, name := range []string{"nil", "typed_nil", "nil_inside", "error"} {
			if _, err := callTool(t, session, &mcp.CallToolParams{Name: name}); wire(err) != internal {
				t.Errorf("%s: the tool %s: %v", revision, name, err)
			}
		}
		for _, name := range []string{"nil", "error"} {
			if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name}); wire(err) != internal {
				t.Errorf("%s: the prompt %s: %v", revision, name, err)
			}
		}
		if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test:nil"}); err == nil {
			t.Errorf("%s: the resource was read", revision)
		}
	}
}

type panickingHandler struct{ slog.Handler }

func (panickingHandler) Handle(context.Context, slog.Record) error { panic("log") }

func TestALoggerThatPanicsEndsNothing(t *testing.T) {
	server := newServer()
	server.AddTool(&mcp.Tool{Name: "tool", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("hush") })
	gosdk.Protect(server, boundary(t, &book{}, nil), &gosdk.Options{Logger: slog.New(panickingHandler{slog.NewTextHandler(io.Discard, nil)})})
	for _, revision := range []string{revision2026, revision2025} {
		if _, err := callTool(t, connect(t, server, raw(), revision), &mcp.CallToolParams{Name: "tool"}); wire(err) != internal {
			t.Errorf("%v", err)
		}
	}
}
