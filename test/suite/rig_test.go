package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/sealtest"
)

// carrier is a kind of request that carries states.
type carrier struct {
	name, method  string
	target, other string // two targets that the server has
	missing       string // a target that the server does not have
}

const host = "test://host/"

var (
	toolCarrier     = carrier{"tool", "tools/call", "steps", "other", "missing"}
	promptCarrier   = carrier{"prompt", "prompts/get", "steps", "other", "missing"}
	resourceCarrier = carrier{"resource", "resources/read", host + "steps", host + "other", host + "missing"}
	templateCarrier = carrier{"template", "resources/read", host + "items/1", host + "items/2", host + "missing"}

	allCarriers       = []carrier{toolCarrier, promptCarrier, resourceCarrier, templateCarrier}
	withArguments     = []carrier{toolCarrier, promptCarrier}
	itemsTemplate     = host + "items/{id}"
	everyCapability   = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`
	secretState       = "hush: step=1"
	accepted          = `{"action":"accept","content":{"value":"yes"}}`
	confirmedByAnswer = `{"confirm":` + accepted + `}`
)

// confirm is a handler that asks one question. When it has the answer, it returns the
// text "done".
func confirm(_ context.Context, call Call) (Result, error) {
	if _, answered := call.Answers["confirm"]; answered {
		return Result{Text: "done"}, nil
	}
	return Result{State: secretState, Questions: map[string]tripseal.Kind{"confirm": tripseal.KindForm}}, nil
}

// rig is a server under test, and what its handlers, its log and its observer saw.
type rig struct {
	*trial
	client Client
	events *sealtest.Events
	log    *logBook

	mu   sync.Mutex
	seen []seenCall
}

// seenCall is what a handler was given, recorded when it was called.
type seenCall struct {
	state, arguments string
	answers          map[string]string
}

// logBook keeps the text of a log, so that a test can read it.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

type rigOption func(*tripseal.Config, *Server)

func anonymous(_ *tripseal.Config, s *Server) { s.AllowAnonymous = true }

// serve starts a server on which every target has this handler.
func (a *trial) serve(handler Handler, options ...rigOption) *rig {
	rig := &rig{trial: a, events: &sealtest.Events{}, log: &logBook{}}
	logger := slog.New(slog.NewTextHandler(rig.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	seeing := func(ctx context.Context, call Call) (Result, error) {
		rig.see(call)
		return handler(ctx, call)
	}
	both := func(c carrier) map[string]Handler {
		return map[string]Handler{c.target: seeing, c.other: seeing}
	}
	config := tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: "test", Logger: logger, Observer: rig.events.Observe,
	}
	server := Server{
		Tools: both(toolCarrier), Prompts: both(promptCarrier), Resources: both(resourceCarrier),
		Templates: map[string]Handler{itemsTemplate: seeing},
		Principal: func(_ context.Context, user string) (string, error) { return user, nil },
		Logger:    logger,
	}
	for _, option := range options {
		option(&config, &server)
	}
	boundary, err := tripseal.New(config)
	if err != nil {
		a.t.Fatal(err)
	}
	server.Boundary = boundary
	rig.client = a.start(a.t, server)
	return rig
}

func (r *rig) see(call Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, seenCall{call.State, textOf(call.Arguments), call.Answers})
}

func (r *rig) runCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

// lastCall returns what the last handler was given, or the zero value if no handler ran.
func (r *rig) lastCall() seenCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == 0 {
		return seenCall{}
	}
	return r.seen[len(r.seen)-1]
}

// textOf returns the arguments as JSON text, or "" if they are nil.
func textOf(arguments any) string {
	if arguments == nil {
		return ""
	}
	text, err := json.Marshal(arguments)
	if bytes, ok := arguments.([]byte); ok {
		text, err = bytes, nil
	}
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// request is one request. Its arguments, answers and capabilities are JSON text.
type request struct {
	carrier
	user, token, arguments, answers, capabilities string
	fields                                        string // further members of params, sent unchanged
}

// This method returns a user's first request, without a token.
func (c carrier) from(user string) request {
	r := request{carrier: c, user: user, capabilities: everyCapability}
	if c.takesArguments() {
		r.arguments = `{"region":"eu"}`
	}
	return r
}

func (c carrier) takesArguments() bool { return c.method != "resources/read" }

func (r request) as(user string) request        { r.user = user; return r }
func (r request) to(target string) request      { r.target = target; return r }
func (r request) with(arguments string) request { r.arguments = arguments; return r }
func (r request) answering(answers string) request {
	r.answers = answers
	return r
}
func (r request) bringing(token string) request { r.token = token; return r }
func (r request) more(fields string) request    { r.fields = fields; return r }

func (r request) params() string {
	key := "name"
	if !r.takesArguments() {
		key = "uri"
	}
	params := strconv.Quote(key) + ":" + quoted(r.target)
	for _, field := range []struct{ name, text string }{{"arguments", r.arguments}, {"inputResponses", r.answers}} {
		if field.text != "" {
			params += "," + strconv.Quote(field.name) + ":" + field.text
		}
	}
	if r.token != "" {
		params += `,"requestState":` + quoted(r.token)
	}
	if r.fields != "" {
		params += "," + r.fields
	}
	return params
}

func quoted(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

// response is a response, with the members that the tests read.
type response struct {
	raw    string
	Result *struct {
		RequestState  string                     `json:"requestState"`
		InputRequests map[string]json.RawMessage `json:"inputRequests"`
		IsError       bool                       `json:"isError"`
		Content       []struct{ Text string }    `json:"content"`
		Messages      []struct {
			Content struct{ Text string } `json:"content"`
		} `json:"messages"`
		Contents []struct{ Text string } `json:"contents"`

		NextCursor string                         `json:"nextCursor"`
		Tools      []struct{ Name string }        `json:"tools"`
		Prompts    []struct{ Name string }        `json:"prompts"`
		Resources  []struct{ URI string }         `json:"resources"`
		Templates  []struct{ URITemplate string } `json:"resourceTemplates"`
	} `json:"result"`
	Error *struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// token returns the token in the result, or "" if there is none.
func (r *response) token() string {
	if r.Result == nil {
		return ""
	}
	return r.Result.RequestState
}

// text returns the text in the result, or "" if there is none.
func (r *response) text() string {
	switch {
	case r.Result == nil:
	case len(r.Result.Content) > 0:
		return r.Result.Content[0].Text
	case len(r.Result.Messages) > 0:
		return r.Result.Messages[0].Content.Text
	case len(r.Result.Contents) > 0:
		return r.Result.Contents[0].Text
	}
	return ""
}

func (r *rig) send(request request) *response {
	return r.post(request.user, request.method, request.params(), request.capabilities)
}

func (r *rig) post(user, method, params, capabilities string) *response {
	if params != "" {
		params += ","
	}
	message := `{"jsonrpc":"2.0","id":7,"method":` + quoted(method) + `,"params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"suite","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}}`
	response := &response{raw: string(r.client(user, []byte(message)))}
	err := json.Unmarshal([]byte(response.raw), response)
	if err != nil || (response.Result == nil) == (response.Error == nil) {
		r.failf("not a response: %.500q", response.raw)
	}
	return response
}

// begin sends a first request. It returns the next request, with the token and an answer.
func (r *rig) begin(request request) request {
	response := r.send(request)
	if response.token() == "" || response.Result.InputRequests == nil {
		r.stopf("%s does not ask: %.500s", request.target, response.raw)
	}
	return request.bringing(response.token()).answering(confirmedByAnswer)
}

// This method sends the request. It fails the trial unless the result is complete and its
// text is "done".
func (r *rig) completes(request request) {
	if response := r.send(request); response.text() != "done" || response.token() != "" || response.Result.IsError {
		r.failf("%s as %q with a good state: %.500s", request.target, request.user, response.raw)
	}
}

// This method sends a request that must be rejected. It fails the trial if the response is not
// the error that all rejections share, or if a handler runs.
func (r *rig) rejects(what string, request request) {
	before := r.runCount()
	response := r.send(request)
	r.isRefusal(what, response, tripseal.Wire(tripseal.ErrRejected))
	if r.runCount() != before {
		r.failf("%s: the handler ran", what)
	}
}

// isRefusal fails the trial if the response is not an error with the wanted message, or if it
// differs from the first response with this message.
func (r *rig) isRefusal(what string, response *response, want tripseal.WireError) {
	if response.Error == nil || response.Error.Message != want.Message || response.Error.Code != want.Code {
		r.failf("%s is not rejected with %q: %.500s", what, want.Message, response.raw)
		return
	}
	r.trial.mu.Lock()
	defer r.trial.mu.Unlock()
	if r.refusal == nil {
		r.refusal = map[string]string{}
	}
	first, known := r.refusal[want.Message]
	if !known {
		r.refusal[want.Message] = response.raw
	} else if first != response.raw {
		r.failures = append(r.failures, what+": the rejection differs from the others: "+response.raw+" and "+first)
	}
}

// This method fails the trial unless the response is an error that reveals no secret.
func (r *rig) fails(what string, response *response) {
	if response.token() != "" || response.Error == nil && (response.Result == nil || !response.Result.IsError) {
		r.failf("%s is not answered with an error: %.500s", what, response.raw)
	}
	r.tellsNothing(what, response)
}

func (r *rig) tellsNothing(what string, response *response) {
	if strings.Contains(response.raw, "hush") {
		r.failf("%s: the client sees what it must not: %.500s", what, response.raw)
	}
}
