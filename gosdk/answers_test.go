package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

func sampleQuestion() *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: 9, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "?"}}}}
}

// questionOf maps each kind of question to a function that returns such a question.
var questionOf = map[string]func() mcp.InputRequest{
	"form": func() mcp.InputRequest { return form("?") },
	"url": func() mcp.InputRequest {
		return &mcp.ElicitParams{Mode: "url", Message: "?", URL: "https://example.com", ElicitationID: "1"}
	},
	"sampling": func() mcp.InputRequest { return sampleQuestion() },
	"roots":    func() mcp.InputRequest { return &mcp.ListRootsParams{} },
}

// naive registers one tool for each kind of question. Each tool asks its question, and trusts
// that the answer is complete. The result of the tool says what the answer contained.
func naive(server *mcp.Server) {
	for name, question := range questionOf {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: object}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, ok := req.Params.InputResponses["q"]
			if !ok {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": question()}, RequestState: "asked"}, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "read " + readNaively(answer)}}}, nil
		})
	}
}

// readNaively reads an answer and trusts it, as some handlers do: it panics if something is
// missing.
func readNaively(answer mcp.InputResponse) string {
	var b strings.Builder
	switch a := answer.(type) {
	case *mcp.ElicitResult:
		b.WriteString(a.Action)
		for name, value := range a.Content {
			if value == nil {
				panic("nil in the field " + name)
			}
			if list, ok := value.([]any); ok {
				for _, item := range list {
					if item == nil {
						panic("nil in the field " + name)
					}
				}
			}
		}
	case *mcp.CreateMessageWithToolsResult:
		for _, content := range append(a.Content, a.Content[0]) {
			text, err := content.MarshalJSON()
			if err != nil {
				panic(err)
			}
			if embedded, ok := content.(*mcp.EmbeddedResource); ok {
				b.WriteString(embedded.Resource.URI)
			}
			b.Write(text)
		}
	case *mcp.ListRootsResult:
		for _, root := range a.Roots {
			b.WriteString(root.URI)
		}
	default:
		panic(fmt.Sprintf("an answer of type %T", answer))
	}
	return b.String()
}

const everyCapability = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`

// postCall sends a tools/call request of the newest revision, without the SDK's client, and
// returns the body of the response. The last parameter is JSON, which is appended to the
// request's params.
func postCall(t testing.TB, url, tool, more string) string {
	t.Helper()
	return post(t, url, "tools/call", tool, `"name":"`+tool+`","arguments":{}`+more)
}

// post sends a request of the newest revision, without the SDK's client, and returns the body of
// the response. The parameter params is the JSON of the params, without braces and _meta.
func post(t testing.TB, url, method, name, params string) string {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":` + everyCapability + `}}}`
	request, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for header, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": revision2026, "Mcp-Method": method, "Mcp-Name": name} {
		if value != "" {
			request.Header.Set(header, value)
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// stateIn returns the token in the body of a response, or "" if there is none.
func stateIn(answer string) string {
	_, rest, ok := strings.Cut(answer, `"requestState":"`)
	if !ok {
		return ""
	}
	state, _, _ := strings.Cut(rest, `"`)
	return state
}

// unsound has, for each kind of question, answers that must not reach a handler. Such an answer has
// an unknown action, or it has null or an empty list where a handler expects a value.
var unsound = map[string][]string{
	"form": {`{"action":"accept","content":{"value":["a",null]}}`, `{"action":"accept","content":{"other":null,"value":[null]}}`,
		`{"action":"accept","content":{"value":{"a":{"b":[null]}}}}`, `{"action":null}`, `{"action":"ACCEPT"}`},
	"url":   {`{"action":"accept","content":{"value":[null]}}`},
	"roots": {`{"roots":[null]}`, `{"roots":[{"uri":"file:///a"},null]}`},
	"sampling": {`{"role":"assistant","model":"m","content":[]}`, `{"role":"assistant","model":"m","content":null}`,
		`{"role":"assistant","model":"m","content":[null]}`, `{"role":"assistant","model":"m","content":[{"type":"resource","resource":null}]}`},
}

var whole = map[string]string{
	"form":     `{"action":"accept","content":{"value":"x"}}`,
	"url":      `{"action":"accept"}`,
	"roots":    `{"roots":[{"uri":"file:///a"}]}`,
	"sampling": `{"role":"assistant","model":"m","content":[{"type":"text","text":"x"}]}`,
}

func TestAnOlderClientsAnswersWithNilInsideNeverReachAHandler(t *testing.T) {
	b := &book{}
	server := newServer()
	naive(server)
	gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	options := &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"other": []any{nil}}}, nil
		},
		CreateMessageWithToolsHandler: func(context.Context, *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
			return &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", Content: []mcp.Content{}}, nil
		},
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
			Sampling: &mcp.SamplingCapabilities{}, RootsV2: &mcp.RootCapabilities{}},
	}
	for kind := range questionOf {
		if kind == "roots" {
			continue // the SDK's client cannot send a null among its roots
		}
		result, err := callTool(t, connect(t, server, options, revision2025), &mcp.CallToolParams{Name: kind})
		if err == nil || strings.Contains(text(result), "read ") || !strings.Contains(err.Error(), "does not fit what was asked") {
			t.Errorf("%s: %q, %v", kind, text(result), err)
		}
	}
	if strings.Contains(b.String(), "panicked") {
		t.Errorf("a handler panicked: %s", b)
	}
}

// FuzzNaiveHandlers feeds arbitrary answers to handlers that trust them, even without a state.
func FuzzNaiveHandlers(f *testing.F) {
	for _, answers := range unsound {
		for _, answer := range answers {
			f.Add(answer)
		}
	}
	for _, answer := range whole {
		f.Add(answer)
	}
	b := &book{}
	server := newServer()
	naive(server)
	gosdk.Protect(server, boundary(f, b, func(c *tripseal.Config) { c.TTL, c.MaxFlow = 24*time.Hour, tripseal.NoLimit }), &gosdk.Options{
		Logger: b.logger(), Unsolicited: []string{"form", "url", "roots", "sampling"},
	})
	url := serve(f, server, nil)
	tokens := make(map[string]string)
	for kind := range questionOf {
		tokens[kind] = stateIn(postCall(f, url, kind, ""))
	}
	f.Fuzz(func(t *testing.T, answer string) {
		if !json.Valid([]byte(answer)) {
			return
		}
		for kind, token := range tokens {
			for _, state := range []string{token, ""} {
				got := postCall(t, url, kind, `,"requestState":"`+state+`","inputResponses":{"q":`+answer+`}`)
				if log := b.String(); strings.Contains(got, "-32603") || strings.Contains(log, "panicked") {
					t.Fatalf("%s: %s: %s\n%s", kind, answer, got, log)
				}
			}
		}
	})
}

// A client may send null for a field that the user left empty, as the types of the Python SDK do. The answer counts, and
// the handler sees no nil.
func TestANullInAFormIsAFieldThatIsAbsent(t *testing.T) {
	server := newServer()
	tool := addSteps(server, "steps", 1)
	naive(server)
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	url := serve(t, server, nil)
	token := stateIn(postCall(t, url, "form", ""))
	answer := `,"inputResponses":{"q":{"action":"accept","content":{"value":"x","note":null}}}`
	if got := postCall(t, url, "form", `,"requestState":"`+token+`"`+answer); !strings.Contains(got, `"read accept"`) {
		t.Errorf("newer: %s", got)
	}
	options := answering()
	options.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "x", "note": nil}}, nil
	}
	for _, revision := range []string{revision2026, revision2025} {
		if _, err := callTool(t, connect(t, server, options, revision), &mcp.CallToolParams{Name: "steps"}); err != nil {
			t.Errorf("%s: %v", revision, err)
		}
	}
	for _, i := range []int{1, 3} {
		if got, want := tool.log()[i], `"step=1" q1=accept x`; got != want {
			t.Errorf("the handler saw %s", got)
		}
	}
}

// If an older client declines or cancels, the handler gets no content, even if the client sent some.
func TestANoOfAnOlderClientIsANoWhateverComesAlong(t *testing.T) {
	for _, action := range []string{"decline", "cancel"} {
		server := newServer()
		tool := addSteps(server, "steps", 1)
		gosdk.Protect(server, boundary(t, &book{}, nil), nil)
		options := answering()
		options.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: action, Content: map[string]any{"value": "x"}}, nil
		}
		if _, err := callTool(t, connect(t, server, options, revision2025), &mcp.CallToolParams{Name: "steps"}); err != nil {
			t.Error(err)
		}
		if got, want := tool.log()[1], `"step=1" q1=`+action+" <nil>"; got != want {
			t.Errorf("the handler saw %s", got)
		}
	}
}

func TestUnsolicitedIsAboutToolsAlone(t *testing.T) {
	server := newServer()
	var seen []int
	server.AddPrompt(&mcp.Prompt{Name: "same"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		seen = append(seen, len(req.Params.InputResponses))
		return &mcp.GetPromptResult{}, nil
	})
	server.AddTool(&mcp.Tool{Name: "same", InputSchema: object}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		seen = append(seen, len(req.Params.InputResponses))
		return &mcp.CallToolResult{}, nil
	})
	b := &book{}
	gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Unsolicited: []string{"same"}, Logger: b.logger()})
	session := connect(t, server, raw(), revision2026)
	if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "same", InputResponses: accepted}); err != nil {
		t.Fatal(err)
	}
	if _, err := callTool(t, session, &mcp.CallToolParams{Name: "same", InputResponses: accepted}); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(seen) != "[0 1]" {
		t.Errorf("the prompt and the tool saw %v answers", seen)
	}
}
