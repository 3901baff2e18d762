package gosdk_test

import (
	"context"
	"encoding"
	"encoding/json"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("unwritable") }

// unwritable has questions that cannot be written as JSON. On some of them, the SDK would panic and
// end the process. The others would never be sent, and the client would wait for ever.
var unwritable = map[string]mcp.InputRequest{
	"NaN":           &mcp.ElicitParams{Message: "m", RequestedSchema: map[string]any{"type": "object", "default": math.NaN()}},
	"a channel":     &mcp.ElicitParams{Message: "m", RequestedSchema: make(chan int)},
	"broken JSON":   &mcp.ElicitParams{Message: "m", RequestedSchema: json.RawMessage(`{`)},
	"a panic":       &mcp.ElicitParams{Message: "m", RequestedSchema: panicking{}},
	"in its meta":   &mcp.ElicitParams{Message: "m", RequestedSchema: object, Meta: mcp.Meta{"x": math.Inf(1)}},
	"roots":         &mcp.ListRootsParams{Meta: mcp.Meta{"x": make(chan int)}},
	"a nil content": &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{{Role: "user"}}},
	"a nil in a tool's result": &mcp.CreateMessageWithToolsParams{Messages: []*mcp.SamplingMessageV2{
		{Role: "user", Content: []mcp.Content{&mcp.ToolResultContent{Content: []mcp.Content{nil}}}}}},
	"a tool's schema": &mcp.CreateMessageWithToolsParams{Messages: []*mcp.SamplingMessageV2{}, Tools: []*mcp.Tool{{Name: "x", InputSchema: math.NaN()}}},
	"metadata":        &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{}, Metadata: make(chan int)},
}

func TestAQuestionThatCannotBeWrittenIsRefused(t *testing.T) {
	for name, question := range unwritable {
		for _, version := range []string{revision2026, revision2025} {
			for round := 1; round <= 2; round++ {
				b := &book{}
				server := newServer()
				server.AddTool(&mcp.Tool{Name: "asks", InputSchema: object}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					state := req.Params.RequestState + "x"
					if len(state) == round {
						return &mcp.CallToolResult{RequestState: state, InputRequests: mcp.InputRequestMap{"q": question}}, nil
					}
					return &mcp.CallToolResult{RequestState: state, InputRequests: mcp.InputRequestMap{"q": form("?")}}, nil
				})
				gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
				options := answering()
				options.Capabilities = &mcp.ClientCapabilities{
					Sampling: &mcp.SamplingCapabilities{Tools: &mcp.SamplingToolsCapabilities{}}, RootsV2: &mcp.RootCapabilities{},
				}
				options.CreateMessageWithToolsHandler = func(context.Context, *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
					return nil, nil
				}
				if _, err := callTool(t, connect(t, server, options, version), &mcp.CallToolParams{Name: "asks"}); wire(err) != internal {
					t.Errorf("%s, %s, round %d: %v", name, version, round, err)
				}
				if !strings.Contains(b.String(), "level=ERROR") {
					t.Errorf("%s, %s, round %d: the log: %s", name, version, round, b)
				}
			}
		}
	}
}

// In questions of these two types, the adapter checks only the fields Meta and RequestedSchema,
// because all other fields are texts. So this test fails if the SDK adds a field that is not a
// text. It also fails if one of these types gets a MarshalJSON or MarshalText method.
func TestTheFieldsOfQuestionsThatAreNotCheckedAreTexts(t *testing.T) {
	for _, question := range []mcp.InputRequest{&mcp.ElicitParams{}, &mcp.ListRootsParams{}} {
		switch any(question).(type) {
		case json.Marshaler, encoding.TextMarshaler:
			t.Errorf("%T writes itself", question)
		}
		for _, field := range reflect.VisibleFields(reflect.TypeOf(question).Elem()) {
			if isChecked := field.Name == "Meta" || field.Name == "RequestedSchema"; !isChecked && field.Type.Kind() != reflect.String {
				t.Errorf("%s of %T is a %s and is not checked", field.Name, question, field.Type)
			}
		}
	}
}

// A result with questions is refused if its _meta cannot be written as JSON. Otherwise the client
// would wait for ever.
func TestAResultThatAsksAndCannotBeWrittenIsRefused(t *testing.T) {
	b := &book{}
	server := newServer()
	server.AddTool(&mcp.Tool{Name: "asks", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": form("?")}, Meta: mcp.Meta{"x": math.NaN()}}, nil
	})
	gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	if _, err := callTool(t, connect(t, server, raw(), revision2026), &mcp.CallToolParams{Name: "asks"}); wire(err) != internal {
		t.Errorf("%v", err)
	}
}

// If a handler ends its goroutine with runtime.Goexit, its call cannot be answered any more, but
// the log has an error.
func TestAHandlerThatEndsItsGoroutineIsSaid(t *testing.T) {
	b := &book{}
	receiving, _ := gosdk.Middleware(boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	handler := receiving(func(context.Context, string, mcp.Request) (mcp.Result, error) {
		runtime.Goexit()
		return nil, nil
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		handler(t.Context(), "tools/call", &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "x"}})
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the goroutine goes on")
	}
	if !strings.Contains(b.String(), "level=ERROR") || !strings.Contains(b.String(), "Goexit") {
		t.Errorf("the log: %s", b)
	}
}
