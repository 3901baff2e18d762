package gosdk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/wire"
)

type chosen struct {
	Yes bool `json:"yes"`
}

type removed struct {
	Done string `json:"done"`
}

type dirIn struct {
	Dir string `json:"dir"`
}

const secret = "kept by Once"

func remove(_ context.Context, ask *elicit.Asker, in dirIn) (removed, error) {
	id, err := elicit.Once(ask, "id", func() (string, error) { return secret, nil })
	if err != nil {
		return removed{}, err
	}
	for _, key := range []string{"ok", "sure"} {
		if _, err := elicit.Form[chosen](ask, key, "Delete "+in.Dir+"?").Value(); err != nil {
			return removed{}, err
		}
	}
	return removed{fmt.Sprintf("deleted %s with %d", in.Dir, len(id))}, nil
}

// deep asks without being handed the asker.
func deep(ctx context.Context) error {
	_, err := elicit.Form[chosen](elicit.From(ctx), "ok", "Sure?").Value()
	return err
}

func askingServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "remove"}, gosdk.AskingTool(remove))
	mcp.AddTool(server, &mcp.Tool{Name: "deep"}, gosdk.WithAsker(func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if elicit.From(ctx).Request() != any(req) || !elicit.From(ctx).Can(tripseal.KindForm) || elicit.From(ctx).Can(tripseal.KindRoots) {
			return nil, nil, errors.New("another request, or other capabilities")
		}
		deep(ctx) // the call asks, whatever the handler returns
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "asked deep inside"}}}, nil, nil
	}))
	server.AddTool(&mcp.Tool{Name: "raw", InputSchema: json.RawMessage(`{"type":"object"}`)}, gosdk.RawToolWithAsker(
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "asked"}}}, deep(ctx)
		}))
	mcp.AddTool(server, &mcp.Tool{Name: "many"}, gosdk.AskingTool(func(_ context.Context, ask *elicit.Asker, _ struct{}) (removed, error) {
		url, roots := elicit.URL(ask, "url", "Pay", "https://pay.example"), elicit.Roots(ask, "roots")
		tools := elicit.Sample[mcp.CreateMessageWithToolsResult](ask, "tools", &mcp.CreateMessageWithToolsParams{MaxTokens: 8, Tools: []*mcp.Tool{{Name: "x", InputSchema: json.RawMessage(`{"type":"object"}`)}}, Messages: []*mcp.SamplingMessageV2{}})
		poem, err := elicit.Sample[mcp.CreateMessageResult](ask, "poem", &mcp.CreateMessageParams{
			MaxTokens: 7, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "a poem"}}},
		}).Value()
		if err != nil {
			return removed{}, err
		}
		_, errURL := url.Value()
		where, errRoots := roots.Value()
		used, errTools := tools.Value()
		if err := errors.Join(errURL, errRoots, errTools); err != nil {
			return removed{}, err
		}
		return removed{fmt.Sprint(poem.Model, " ", where[0].URI, " ", used.Model)}, nil
	}))
	server.AddPrompt(&mcp.Prompt{Name: "deep"}, gosdk.PromptWithAsker(func(ctx context.Context, _ *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Description: "prompted"}, deep(ctx)
	}))
	read := gosdk.ResourceWithAsker(func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "read"}}}, deep(ctx)
	})
	server.AddResource(&mcp.Resource{Name: "deep", URI: "test://deep"}, read)
	server.AddResourceTemplate(&mcp.ResourceTemplate{Name: "deeper", URITemplate: "test://deeper/{x}"}, read)
	return server
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":`

// call returns a message that calls a method with this target, a member as JSON.
func toolCall(method, target, more string) string {
	capabilities := `{"elicitation":{}}`
	if strings.Contains(target, "many") {
		capabilities = `{"elicitation":{"url":{}},"sampling":{"tools":{}},"roots":{}}`
	}
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + target + `,` + meta + capabilities + `}` + more + `}}`
}

type caller func(message string) string

func overHTTP(t *testing.T, handler http.Handler) caller {
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return func(message string) string {
		var head struct {
			Method string
			Params struct{ Name, URI string }
		}
		if err := json.Unmarshal([]byte(message), &head); err != nil {
			t.Fatal(err, message)
		}
		q, err := http.NewRequest("POST", web.URL, strings.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Accept": "application/json, text/event-stream", "Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28",
			"Mcp-Method": head.Method, "Mcp-Name": head.Params.Name + head.Params.URI,
		} {
			q.Header.Set(name, value)
		}
		response, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if data, ok := strings.CutPrefix(line, "data:"); ok {
				text = []byte(data)
			}
		}
		return string(text)
	}
}

func newEngine(t *testing.T) *wire.Engine {
	quiet := slog.New(slog.DiscardHandler)
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := wire.New(wire.Config{Boundary: boundary, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func httpOf(server *mcp.Server) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
}

func overStdio(t *testing.T, server *mcp.Server, through func(io.Reader, io.Writer) (io.ReadCloser, io.WriteCloser)) caller {
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	in, out := through(fromClient, toClient)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Run(t.Context(), &mcp.IOTransport{Reader: in, Writer: out})
	}()
	t.Cleanup(func() {
		toServer.Close()
		go io.Copy(io.Discard, fromServer)
		<-ended
	})
	lines := bufio.NewScanner(fromServer)
	return func(message string) string {
		fmt.Fprintln(toServer, message)
		if !lines.Scan() {
			t.Fatal("the output has ended")
		}
		return lines.Text()
	}
}

var doors = map[string]func(*testing.T, *mcp.Server) caller{
	"HTTP": func(t *testing.T, server *mcp.Server) caller {
		return overHTTP(t, newEngine(t).Handler(httpOf(server), wire.Options{AllowAnonymous: true}))
	},
	"stdio": func(t *testing.T, server *mcp.Server) caller {
		engine := newEngine(t)
		return overStdio(t, server, func(r io.Reader, w io.Writer) (io.ReadCloser, io.WriteCloser) {
			return engine.Stdio(r, w, tripseal.User("owner"))
		})
	},
}

// state returns the member with the state of an answer that asks.
func state(t *testing.T, answer string) string {
	t.Helper()
	var m struct{ Result struct{ RequestState string } }
	if err := json.Unmarshal([]byte(answer), &m); err != nil || !strings.HasPrefix(m.Result.RequestState, "ms1.") || strings.Contains(answer, secret) {
		t.Fatalf("no token in %s", answer)
	}
	return `,"requestState":"` + m.Result.RequestState + `"`
}

func answer(key, content string) string {
	return `,"inputResponses":{"` + key + `":{"action":"accept","content":` + content + `},"ghost":{"action":"accept"}}`
}

func TestAHandlerAsksInTheMiddleOfItsCode(t *testing.T) {
	for name, open := range doors {
		t.Run(name, func(t *testing.T) {
			send := open(t, askingServer())
			tool := func(more string) string {
				return toolCall("tools/call", `"name":"remove","arguments":{"dir":"/tmp"}`, more)
			}
			first := send(tool(answer("ok", `{"yes":true}`)))
			if !strings.Contains(first, `"ok":{"method":"elicitation/create"`) || !strings.Contains(first, `Delete /tmp?`) {
				t.Fatalf("the first round: %s", first)
			}
			second := send(tool(state(t, first) + answer("ok", `{"yes":true}`)))
			if !strings.Contains(second, `"sure":{"method":`) || strings.Contains(second, `"ok":{"method"`) {
				t.Fatalf("the second round: %s", second)
			}
			again := send(tool(state(t, second) + answer("ok", `{"yes":true}`)))
			if last := send(tool(state(t, again) + answer("sure", `{"yes":true,"more":null}`))); !strings.Contains(last, `"done":"deleted /tmp with 12"`) {
				t.Errorf("the last round: %s", last)
			}
			if got := send(tool(state(t, first) + answer("ok", `{"yes":"hush"}`))); !strings.Contains(got, "does not fit") || !strings.Contains(got, `"isError":true`) || strings.Contains(got, "hush") {
				t.Errorf("a misfit: %s", got)
			}
			refused := strings.Replace(answer("ok", `{}`), "accept", "decline", 1)
			for _, c := range [][4]string{
				{"tools/call", `"name":"deep"`, "asked deep inside", "-32603"}, // it does not read the refusal
				{"tools/call", `"name":"raw"`, `"asked"`, "the question ok was declined"},
				{"prompts/get", `"name":"deep"`, "prompted", "-32602"}, {"resources/read", `"uri":"test://deep"`, `"read"`, "-32602"},
				{"resources/read", `"uri":"test://deeper/1"`, `"read"`, "-32602"},
			} {
				if got := send(toolCall(c[0], c[1], state(t, send(toolCall(c[0], c[1], "")))+answer("ok", `{"yes":true}`))); !strings.Contains(got, c[2]) {
					t.Errorf("%s: %s", c, got)
				}
				got := send(toolCall(c[0], c[1], state(t, send(toolCall(c[0], c[1], "")))+refused))
				if c[1] == `"name":"deep"` && c[0] == "tools/call" {
					if !strings.Contains(got, "asked deep inside") { // it has read the refusal, and goes on
						t.Errorf("%s, refused: %s", c, got)
					}
				} else if !strings.Contains(got, c[3]) || !strings.Contains(got, "the question ok was declined") {
					t.Errorf("%s, refused: %s", c, got)
				}
			}
		})
	}
}

func TestEveryKindOfQuestionIsAsked(t *testing.T) {
	send := doors["HTTP"](t, askingServer())
	asked := send(toolCall("tools/call", `"name":"many"`, ""))
	for _, want := range []string{`"maxTokens":7`, `"mode":"url"`, `"url":"https://pay.example"`, `"method":"roots/list"`, `"elicitationId":"`, `"tools":[`, `"content":{"type":"text"`} {
		if !strings.Contains(asked, want) {
			t.Errorf("%s is not in %s", want, asked)
		}
	}
	given := `,"inputResponses":{"url":{"action":"accept"},"roots":{"roots":[{"uri":"file:///a"}]},"poem":{"role":"assistant","model":"m","content":{"type":"text","text":"x"}},` +
		`"tools":{"role":"assistant","model":"n","content":[{"type":"text","text":"x"}]}}`
	if got := send(toolCall("tools/call", `"name":"many"`, state(t, asked)+given)); !strings.Contains(got, `"done":"m file:///a n"`) {
		t.Error(got)
	}
}

func TestWithoutADoorACallThatWouldAskFails(t *testing.T) {
	for name, send := range map[string]caller{
		"HTTP": overHTTP(t, httpOf(askingServer())),
		"stdio": overStdio(t, askingServer(), func(r io.Reader, w io.Writer) (io.ReadCloser, io.WriteCloser) {
			return io.NopCloser(r), w.(io.WriteCloser)
		}),
	} {
		for _, message := range []string{
			toolCall("tools/call", `"name":"remove","arguments":{"dir":"/tmp"}`, ""), toolCall("tools/call", `"name":"raw"`, `,"requestState":"x"`+answer("ok", `{"yes":true}`)),
			toolCall("prompts/get", `"name":"deep"`, ""), toolCall("resources/read", `"uri":"test://deep"`, ""),
		} {
			if got := send(message); !strings.Contains(got, `"code":-32603,"message":"Internal error"`) || strings.Contains(got, "requestState") {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// TestAToolThatCallsAnotherLendsItNothing passes the context of an answered call on to another tool.
func TestAToolThatCallsAnotherLendsItNothing(t *testing.T) {
	server := askingServer()
	mcp.AddTool(server, &mcp.Tool{Name: "gateway"}, gosdk.AskingTool(func(ctx context.Context, a *elicit.Asker, _ struct{}) (removed, error) {
		if _, err := elicit.Form[chosen](a, "ok", "Delete ?").Value(); err != nil {
			return removed{}, err
		}
		result, _, err := gosdk.AskingTool(remove)(ctx, &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "remove"}}, dirIn{})
		if result != nil || err == nil {
			t.Errorf("the other tool: %v, %v", result, err)
		}
		return removed{"done"}, nil
	}))
	send := doors["HTTP"](t, server)
	asked := send(toolCall("tools/call", `"name":"gateway"`, ""))
	if got := send(toolCall("tools/call", `"name":"gateway"`, state(t, asked)+answer("ok", `{"yes":true}`))); !strings.Contains(got, `"done":"done"`) {
		t.Error(got)
	}
}
