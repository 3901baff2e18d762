package gosdk_test

import (
	"context"
	"fmt"
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
	askingResult struct {
		mcp.ResultBase
		Questions mcp.InputRequestMap `json:"inputRequests,omitempty"`
	}
	ownResult struct {
		mcp.ResultBase
		secret string
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
	addMethod[*plainParams](t, server, "acme/tool", &mcp.CallToolResult{RequestState: "hush"}, &calls)
	addMethod[*plainParams](t, server, "acme/asks", &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": form("?")}}, &calls)
	addMethod[*plainParams](t, server, "acme/own", &statefulResult{inner: &inner{State: "hush"}}, &calls)
	addMethod[*plainParams](t, server, "acme/questions", &askingResult{Questions: asks("?", "").InputRequests}, &calls)
	addMethod[*answeredParams](t, server, "acme/answers", &plainResult{}, &calls)
	addMethod[*plainParams](t, server, "acme/marshals", &ownResult{secret: "hush"}, &calls)
	addMethod[*mcp.CallToolParamsRaw](t, server, "acme/raw", &plainResult{}, &calls)
	addMethod[*statefulParams](t, server, "acme/state", &plainResult{}, &calls)
	gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	url := serve(t, server, nil)
	for _, c := range []struct {
		method, params string
		passes, runs   bool
	}{
		{"acme/plain", `"query":"q"`, true, true},
		{"acme/plain", `"query":"q","requestState":"ignored"`, true, true},
		{"acme/tool", `"query":"q"`, false, true},
		{"acme/asks", `"query":"q"`, false, true},
		{"acme/own", `"query":"q"`, false, true},
		{"acme/marshals", `"query":"q"`, false, true},
		{"acme/raw", `"name":"x"`, true, true},
		{"acme/raw", `"name":"x","requestState":"forged"`, false, false},
		{"acme/raw", `"name":"x","inputResponses":{"q":{"action":"accept"}}`, false, false},
		{"acme/state", `"requestState":"forged"`, false, false},
		{"acme/questions", `"query":"q"`, false, true},
		{"acme/answers", `"InputResponses":{"q":1}`, false, false},
	} {
		before := calls
		got := post(t, url, c.method, "", c.params)
		passes := !strings.Contains(got, `"error"`)
		if passes != c.passes || !passes && !strings.Contains(got, `"Internal error"`) || strings.Contains(got+b.String(), "hush") {
			t.Errorf("%s with %s: %s", c.method, c.params, got)
		}
		if runs := calls > before; runs != c.runs {
			t.Errorf("%s with %s: the handler ran: %v", c.method, c.params, runs)
		}
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

// A panic tells the client nothing, where the suite of all protections does not look: in calls of older clients,
// in paged tools and in custom methods.
func TestAPanicIsAnInternalErrorAndLeaksNothing(t *testing.T) {
	b := &book{}
	server := newServer()
	server.AddTool(&mcp.Tool{Name: "tool", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("hush") })
	server.AddPrompt(&mcp.Prompt{Name: "prompt"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { panic(fmt.Errorf("hush")) })
	server.AddResource(&mcp.Resource{URI: "test:r", Name: "r"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) { panic("hush") })
	if err := mcp.AddReceivingCustomMethod(server, "acme/panic", func(context.Context, *mcp.ServerSession, *plainParams) (*plainResult, error) { panic("hush") }); err != nil {
		t.Fatal(err)
	}
	protected := gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "paged"}, func(context.Context, *mcp.CallToolRequest, struct{}, *int) ([]int, *int, error) { panic("hush") }, nil)
	session := connect(t, server, raw(), revision2025)
	_, toolErr := callTool(t, session, &mcp.CallToolParams{Name: "tool"})
	_, pagedErr := callTool(t, session, &mcp.CallToolParams{Name: "paged"})
	_, promptErr := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "prompt"})
	_, resourceErr := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test:r"})
	for name, err := range map[string]error{"tool": toolErr, "paged tool": pagedErr, "prompt": promptErr, "resource": resourceErr} {
		if wire(err) != internal {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := post(t, serve(t, server, nil), "acme/panic", "", `"query":"q"`); !strings.Contains(got, `"Internal error"`) {
		t.Errorf("a custom method: %s", got)
	}
	if log := b.String(); !strings.Contains(log, "other_test.go") || strings.Contains(log, "hush") {
		t.Errorf("the log does not say where, or repeats the panic: %s", log)
	}
}
