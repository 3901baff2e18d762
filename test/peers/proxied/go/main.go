// Command go is an MCP server on the official Go SDK, or on mcp-go with the flag -mcp-go. The tests of the proxy put the
// proxy in front of it. With the flag -door, package wire protects it in this process; without it, nothing does. It has
// the tools and the prompt for the input-required-result scenarios of the conformance suite, a resource that asks the
// user, and a list of tools on several pages. Its handlers believe every state.
//
// Every state and cursor contains a random part and the text of the environment variable CANARY. If
// the environment variable JOURNAL has the path of a file, the server writes a line of JSON to this
// file for each state and cursor that it issues or gets.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/wire"
)

const prefix = "test_input_required_result_"

var tools = []string{
	"elicitation", "sampling", "list_roots", "request_state", "multiple_inputs", "multi_round", "tampered_state",
	"capabilities",
}

func main() {
	port := flag.Int("port", 0, "`port` to listen on; 0 means a free one")
	answers := flag.String("answers", "sse", "json or sse")
	stdio := flag.Bool("stdio", false, "serve on stdin and stdout instead")
	other := flag.Bool("mcp-go", false, "serve with mcp-go")
	sessions := flag.Bool("sessions", false, "give clients of older revisions sessions; mcp-go always does")
	closed := flag.Bool("door", false, "put the server behind a door of package wire")
	flag.Parse()
	var engine *wire.Engine
	if *closed {
		engine = newEngine()
	}
	var handler http.Handler
	switch {
	case *other && *stdio:
		fatal(serveMCPGo(engine))
		return
	case *other:
		handler = mcpgoHandler(engine, *answers == "sse")
	case *stdio:
		var transport mcp.Transport = &mcp.StdioTransport{}
		if engine != nil {
			in, out := engine.Stdio(os.Stdin, os.Stdout, owner)
			transport = &mcp.IOTransport{Reader: in, Writer: out}
		}
		fatal(newServer().Run(context.Background(), transport))
		return
	default:
		server := newServer()
		handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
			&mcp.StreamableHTTPOptions{Stateless: !*sessions, JSONResponse: *answers == "json"})
		if engine != nil {
			handler = engine.Handler(handler, doorOptions)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", recorded(handler))
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	fatal(err)
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(web.Serve(listener))
}

func fatal(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// round is one round of a call.
type round struct {
	name    string // the tool's or prompt's name without the prefix, or the resource's URI
	value   string // the first part of the state; "" if there is no state
	answers mcp.InputResponseMap
	can     *mcp.ClientCapabilities
}

// reply is the result of a round: a text, or questions.
type reply struct {
	text      string
	questions mcp.InputRequestMap
	value     string // the first part of the next state; "" if there is no next state
	announce  bool   // announce that the list of prompts has changed
}

func (r round) form(key, field string) any {
	answer, _ := r.answers[key].(*mcp.ElicitResult)
	if answer == nil || answer.Action != "accept" {
		return nil
	}
	return answer.Content[field]
}

func (r round) text(key, field string) string {
	text, _ := r.form(key, field).(string)
	return text
}

func (r round) sample(key string) string {
	answer, _ := r.answers[key].(*mcp.CreateMessageWithToolsResult)
	if answer == nil || len(answer.Content) == 0 {
		return ""
	}
	text, _ := answer.Content[0].(*mcp.TextContent)
	if text == nil {
		return ""
	}
	return text.Text
}

func (r round) roots(key string) (uris []string, ok bool) {
	answer, _ := r.answers[key].(*mcp.ListRootsResult)
	if answer == nil {
		return nil, false
	}
	for _, root := range answer.Roots {
		uris = append(uris, root.URI)
	}
	return uris, true
}

func form(message, field, kind string) mcp.InputRequest {
	return &mcp.ElicitParams{Message: message, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{field: map[string]any{"type": kind}}, "required": []string{field},
	}}
}

func sample(message string) mcp.InputRequest {
	return &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: message}}}}
}

// play runs one round of a tool, the prompt or the resource.
func play(r round) reply {
	for _, answer := range r.answers {
		if form, _ := answer.(*mcp.ElicitResult); form != nil && form.Action != "accept" {
			return reply{text: "nothing was done"}
		}
	}
	switch r.name {
	case "elicitation":
		if name := r.text("user_name", "name"); name != "" {
			return reply{text: "Hello, " + name + "!"}
		}
		return reply{questions: mcp.InputRequestMap{"user_name": form("What is your name?", "name", "string")}}
	case "sampling":
		if text := r.sample("capital_question"); text != "" {
			return reply{text: text}
		}
		return reply{questions: mcp.InputRequestMap{"capital_question": sample("What is the capital of France?")}}
	case "list_roots":
		if uris, ok := r.roots("client_roots"); ok {
			return reply{text: fmt.Sprintf("%d roots: %s", len(uris), strings.Join(uris, " "))}
		}
		return reply{questions: mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}}}
	case "multiple_inputs":
		uris, ok := r.roots("client_roots")
		if name, greeting := r.text("user_name", "name"), r.sample("greeting"); ok && name != "" && greeting != "" {
			return reply{text: fmt.Sprintf("%s %s, with %d roots", greeting, name, len(uris))}
		}
		return reply{value: "all three", questions: mcp.InputRequestMap{
			"user_name": form("What is your name?", "name", "string"), "greeting": sample("Generate a greeting"), "client_roots": &mcp.ListRootsParams{},
		}}
	case "multi_round":
		if color := r.text("step2", "color"); color != "" {
			return reply{text: r.value + " likes " + color}
		}
		if name := r.text("step1", "name"); name != "" {
			return reply{value: name, questions: mcp.InputRequestMap{"step2": form("Step 2: What is your favorite color?", "color", "string")}}
		}
		return reply{value: "step 1", questions: mcp.InputRequestMap{"step1": form("Step 1: What is your name?", "name", "string")}}
	case "capabilities":
		questions, answered := mcp.InputRequestMap{}, true
		if r.can != nil && r.can.Elicitation != nil {
			questions["user_name"] = form("What is your name?", "name", "string")
			answered = r.text("user_name", "name") != ""
		}
		if r.can != nil && r.can.Sampling != nil {
			questions["greeting"] = sample("Generate a greeting")
			answered = answered && r.sample("greeting") != ""
		}
		if len(questions) == 0 || answered {
			return reply{text: "thank you"}
		}
		return reply{questions: questions}
	case "prompt":
		if context := r.text("user_context", "context"); context != "" {
			return reply{text: "With this in mind: " + context}
		}
		return reply{questions: mcp.InputRequestMap{"user_context": form("What context should the prompt use?", "context", "string")}}
	}
	// The code below is for the tools request_state and tampered_state, and for the resource.
	if ok, answered := r.form("confirm", "ok").(bool); answered && r.value != "" {
		return reply{text: fmt.Sprintf("state-ok: %s, %t", r.value, ok)}
	}
	return reply{value: "asked", questions: mcp.InputRequestMap{"confirm": form("Please confirm", "ok", "boolean")}}
}

var journalMutex sync.Mutex

// journal writes a line about a state or cursor to the file whose path is in JOURNAL. The event is
// "issued" or "got". The parameter request says which call the state is for.
func journal(event, kind, text, method, request string, extra *mcp.RequestExtra) {
	path := os.Getenv("JOURNAL")
	if path == "" {
		return
	}
	user := ""
	if extra != nil {
		user = extra.Header.Get("X-User")
	}
	line, err := json.Marshal(map[string]string{"event": event, "kind": kind, "text": text, "method": method, "request": request, "user": user})
	if err != nil {
		log.Fatal(err)
	}
	journalMutex.Lock()
	defer journalMutex.Unlock()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	file.Write(append(line, '\n'))
}

// secret returns a text that begins with the given value and ends with a random part and the
// canary.
func secret(value string) string { return value + "|" + rand.Text() + "|" + os.Getenv("CANARY") }

// serve runs one round. It returns the reply and the next state; "" means that there is no next
// state.
func serve(method, name string, arguments any, state string, answers mcp.InputResponseMap, can *mcp.ClientCapabilities, extra *mcp.RequestExtra) (r reply, next string) {
	given, _ := json.Marshal(arguments)
	request := name + " " + string(given)
	value, _, _ := strings.Cut(state, "|")
	if state != "" {
		journal("got", "state", state, method, request, extra)
	}
	r = play(round{strings.TrimPrefix(name, prefix), value, answers, can})
	r.announce = r.questions == nil && strings.Contains(string(given), `"announce"`)
	if r.value != "" {
		next = secret(r.value)
		journal("issued", "state", next, method, request, extra)
	}
	return r, next
}

func newServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "go-backend", Version: "1"}, &mcp.ServerOptions{PageSize: 3})
	var prompt mcp.PromptHandler = func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		p := req.Params
		r, next := serve("prompts/get", p.Name, p.Arguments, p.RequestState, p.InputResponses, req.ClientCapabilities(), req.Extra)
		if r.questions != nil {
			return &mcp.GetPromptResult{InputRequests: r.questions, RequestState: next}, nil
		}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: r.text}}}}, nil
	}
	// A prompt that is added again makes the SDK tell every session that the list has changed.
	announce := func() { server.AddPrompt(&mcp.Prompt{Name: prefix + "prompt"}, prompt) }
	announce()
	for _, name := range tools {
		server.AddTool(&mcp.Tool{Name: prefix + name, InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			p := req.Params
			r, next := serve("tools/call", p.Name, p.Arguments, p.RequestState, p.InputResponses, req.ClientCapabilities(), req.Extra)
			if r.announce {
				announce()
			}
			if r.questions != nil {
				return &mcp.CallToolResult{InputRequests: r.questions, RequestState: next}, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.text}}}, nil
		})
	}
	server.AddResource(&mcp.Resource{URI: "test://asks", Name: "asks"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		p := req.Params
		r, next := serve("resources/read", p.URI, nil, p.RequestState, p.InputResponses, req.ClientCapabilities(), req.Extra)
		if r.questions != nil {
			return &mcp.ReadResourceResult{InputRequests: r.questions, RequestState: next}, nil
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: p.URI, Text: r.text}}}, nil
	})
	server.AddReceivingMiddleware(cursors)
	return server
}

// cursors is middleware that adds the canary to every cursor that the SDK makes.
func cursors(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if params, ok := req.GetParams().(*mcp.ListToolsParams); ok && params != nil && params.Cursor != "" {
			journal("got", "cursor", params.Cursor, method, "", req.GetExtra())
			params.Cursor, _, _ = strings.Cut(params.Cursor, "|")
		}
		result, err := next(ctx, method, req)
		if page, ok := result.(*mcp.ListToolsResult); ok && page != nil && page.NextCursor != "" {
			page.NextCursor = secret(page.NextCursor)
			journal("issued", "cursor", page.NextCursor, method, "", req.GetExtra())
		}
		return result, err
	}
}
