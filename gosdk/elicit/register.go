package elicit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/internal/passage"
)

// ToolHandler is a tool that can ask the user questions. Its result is sent like that of
// the SDK's typed tools. Its error becomes a tool error, unless it is a *jsonrpc.Error.
// Pass a ToolHandler to [AddTool].
type ToolHandler[In, Out any] func(ctx context.Context, ask *Asker, in In) (Out, error)

// AddTool registers a tool on a protected server. It panics, as mcp.AddTool does, when
// the tool cannot be registered. Use AddTool in place of mcp.AddTool for a tool that asks
// the user questions.
func AddTool[In, Out any](p *gosdk.Protected, tool *mcp.Tool, handler ToolHandler[In, Out]) {
	AddResultTool(p, tool, func(ctx context.Context, ask *Asker, in In) (*mcp.CallToolResult, Out, error) {
		out, err := handler(ctx, ask, in)
		return nil, out, err
	})
}

// ResultToolHandler is a tool that can ask the user questions and returns a full result:
// its own content beside the structured output, for example. It returns the same three
// values as a typed tool of the SDK. Pass a ResultToolHandler to [AddResultTool].
type ResultToolHandler[In, Out any] func(ctx context.Context, ask *Asker, in In) (*mcp.CallToolResult, Out, error)

// AddResultTool is [AddTool] for tools that return a full result. Use it if the tool
// makes its own content.
func AddResultTool[In, Out any](p *gosdk.Protected, tool *mcp.Tool, handler ResultToolHandler[In, Out]) {
	server := serverOf(p)
	mcp.AddTool(server, tool, func(ctx context.Context, req *mcp.CallToolRequest, in In) (result *mcp.CallToolResult, out Out, err error) {
		var none Out
		ask := askerOf(ctx, p, req)
		pending, err := ask.run(ctx, func() (err error) { result, out, err = handler(ctx, ask, in); return err })
		if err != nil {
			return nil, none, err
		}
		if pending != nil {
			return pending.ToolResult(), none, nil
		}
		return result, out, nil
	})
}

// PromptHandler is a prompt that can ask the user questions. Its errors are sent like
// those of the SDK's own prompts, but a *[RefusedError] or a *[MisfitError], even a
// wrapped one, gets the code -32602. Pass a PromptHandler to [AddPrompt].
type PromptHandler func(ctx context.Context, ask *Asker, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error)

// AddPrompt registers a prompt on a protected server. Use it in place of the AddPrompt of
// mcp.Server for a prompt that asks the user questions.
func AddPrompt(p *gosdk.Protected, prompt *mcp.Prompt, handler PromptHandler) {
	server := serverOf(p)
	server.AddPrompt(prompt, func(ctx context.Context, req *mcp.GetPromptRequest) (result *mcp.GetPromptResult, err error) {
		ask := askerOf(ctx, p, req)
		pending, err := ask.run(ctx, func() (err error) { result, err = handler(ctx, ask, req); return err })
		if err != nil {
			return nil, withCode(err)
		}
		if pending != nil {
			return pending.PromptResult(), nil
		}
		return result, nil
	})
}

// ResourceHandler is a resource that can ask the user questions. Its errors are sent
// like those of a [PromptHandler]. Pass a ResourceHandler to [AddResource] or
// [AddResourceTemplate].
type ResourceHandler func(ctx context.Context, ask *Asker, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error)

// AddResource registers a resource on a protected server. Use it in place of the
// AddResource of mcp.Server for a resource that asks the user questions.
func AddResource(p *gosdk.Protected, resource *mcp.Resource, handler ResourceHandler) {
	server := serverOf(p)
	server.AddResource(resource, handler.serve(p))
}

// AddResourceTemplate registers a resource template on a protected server. Use it in
// place of the AddResourceTemplate of mcp.Server for resources that ask the user
// questions.
func AddResourceTemplate(p *gosdk.Protected, template *mcp.ResourceTemplate, handler ResourceHandler) {
	server := serverOf(p)
	server.AddResourceTemplate(template, handler.serve(p))
}

func (handler ResourceHandler) serve(p *gosdk.Protected) mcp.ResourceHandler {
	return func(ctx context.Context, req *mcp.ReadResourceRequest) (result *mcp.ReadResourceResult, err error) {
		ask := askerOf(ctx, p, req)
		pending, err := ask.run(ctx, func() (err error) { result, err = handler(ctx, ask, req); return err })
		if err != nil {
			return nil, withCode(err)
		}
		if pending != nil {
			return pending.ResourceResult(), nil
		}
		return result, nil
	}
}

const noWording = "tokens of the boundary's format cannot say that elicit wrote a state, so another handler of the same name " +
	"could pass off its own state as one of elicit's: use the native format. " +
	"If the format seals states, you can also waive the check: name tripseal.ClaimElicit in tripseal.Config.Waive"

func lacksWording(b *tripseal.Boundary) bool { return b.Missing(tripseal.ClaimElicit) != 0 }

func serverOf(p *gosdk.Protected) *mcp.Server {
	if p == nil || p.Server() == nil {
		panic("elicit: it needs the value that gosdk.Protect returned")
	}
	if lacksWording(p.Boundary()) {
		panic("elicit: " + noWording)
	}
	return p.Server()
}

// askerOf returns the Asker for a call of a tool, prompt or resource that was
// registered with p.
func askerOf(ctx context.Context, p *gosdk.Protected, req mcp.Request) *Asker {
	by := passage.ProtectionOf(p).(*gosdk.Protection)
	passing := passage.From(ctx)
	if passing != nil && passing.By != any(by) {
		passing = nil
	}
	a := newAsker(passing, by, req)
	a.own = true
	if passing != nil {
		_, state, answers := inputOf(req)
		passing.Begun(req, state, answers, a) // so that a call of Within in this handler uses the same Asker
	}
	return a
}

func newAsker(passing *passage.Call, by *gosdk.Protection, req mcp.Request) *Asker {
	name, text, answers := inputOf(req)
	lent := false
	if passing != nil && text == "" && len(answers) == 0 { // a state that elicit wrote is not in the request, but in the passage.Call
		var ok bool
		text, answers, ok = passing.Input(req)
		lent = !ok
	}
	a := &Asker{
		by: by, passing: passing, req: req, name: tripseal.PlainText(name), state: state{Version: stateVersion}, fresh: make(mcp.InputResponseMap),
		made: make(map[string]made), onces: make(map[string]reflect.Type), questions: make(mcp.InputRequestMap),
		read: make(map[string]bool),
	}
	if lent {
		a.recordMistake("the request of the handler is not the one that arrived with the answers: " +
			"a tool that calls other tools must not pass its context to them, and inner middleware that changes the arguments must change them in place, " +
			"not on a copy of the request")
	}
	if passing != nil {
		if s, ok := readState(text); ok && passing.Written(text, s.wording()) {
			a.state = s
		}
		passing.Began()
	}
	// Record the answers to the last round's questions now, whether or not the handler
	// reads them.
	for key, asked := range a.state.Asked {
		if recorded, ok := recordOf(answers[key], asked); ok {
			if a.state.Answers == nil {
				a.state.Answers = make(map[string]answer)
			}
			a.state.Answers[key] = recorded
			a.fresh[key] = answers[key]
		}
	}
	a.state.Asked = nil
	return a
}

// inputOf returns the state and the answers of a request, and a name of the tool, prompt
// or resource for the log.
func inputOf(req mcp.Request) (name, state string, answers mcp.InputResponseMap) {
	switch r := req.(type) {
	case *mcp.CallToolRequest:
		return r.Params.Name, r.Params.RequestState, r.Params.InputResponses
	case *mcp.GetPromptRequest:
		return r.Params.Name, r.Params.RequestState, r.Params.InputResponses
	case *mcp.ReadResourceRequest:
		return "a resource", r.Params.RequestState, r.Params.InputResponses
	}
	return "", "", nil
}

// recordOf returns an answer in the form that the state stores. It returns false if the
// answer is not valid for the question.
func recordOf(response mcp.InputResponse, asked question) (answer, bool) {
	if !canAnswer(asked.Digest, response) {
		return answer{}, false
	}
	var content any = response
	if r, ok := response.(*mcp.ElicitResult); ok {
		if action := Action(r.Action); action != Accept {
			return answer{question: asked, Action: action}, action.valid()
		}
		content = r.Content
		if r.Content == nil {
			content = map[string]any{}
		}
	}
	text, err := json.Marshal(content)
	return answer{question: asked, Action: Accept, Content: text}, err == nil
}

// run calls the handler. If the handler tried to read an answer that has not arrived yet, run
// returns the questions to send in place of a result. It returns a nil Pending if the call is done
// or has failed.
func (a *Asker) run(ctx context.Context, handler func() error) (*Pending, error) {
	if a.passing == nil {
		a.log(ctx, "elicit: the call has not passed the middleware of its server, so its state and answers cannot be trusted: "+
			"register the tool with the value that gosdk.Protect returned for this server")
		return nil, internalError()
	}
	err := handler()
	if err == nil && !a.asks && a.misfit == nil {
		a.checkRefusals()
	}
	switch {
	case a.mistake != "":
		a.log(ctx, "elicit: "+a.mistake)
		return nil, internalError()
	case a.misfit != nil:
		return nil, a.misfit
	case !a.asks:
		return nil, err
	}
	if a.checkQuestions(); a.mistake != "" {
		a.log(ctx, "elicit: "+a.mistake)
		return nil, internalError()
	}
	if a.passing.Older != nil { // an older client: check here, because the SDK would refuse the questions with its own error; for newer clients the middleware checks
		if err := passage.CheckCapabilities(a.req, a.questions); err != nil {
			return nil, err
		}
	}
	state, err := a.state.text()
	if most := a.maxState(); err == nil && len(state) > most {
		a.log(ctx, fmt.Sprintf("elicit: the answers so far have %d bytes as a state, tripseal.Config.MaxState is %d: ask for less, or raise it", len(state), most))
		return nil, internalError()
	}
	if err != nil {
		a.log(ctx, "elicit: the state cannot be written")
		return nil, internalError()
	}
	a.passing.Wrote(state, a.state.wording())
	return &Pending{questions: a.questions, state: state}, nil
}

// withCode gives the code -32602 to a *RefusedError or *MisfitError of a prompt or a
// resource. Prompts and resources have no tool errors, and without a code the SDK would
// send code 0.
func withCode(err error) error {
	var (
		wire    *jsonrpc.Error
		refused *RefusedError
		misfit  *MisfitError
	)
	if !errors.As(err, &wire) && (errors.As(err, &refused) || errors.As(err, &misfit)) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return err
}

// maxState returns how many bytes a state may have. There is no limit in a test that
// calls a handler directly.
func (a *Asker) maxState() int {
	if a.by == nil {
		return math.MaxInt
	}
	return a.by.Boundary().Config().MaxState
}

func (a *Asker) log(ctx context.Context, message string) {
	logger := slog.Default()
	if a.by != nil {
		logger = passage.LoggerOf(a.by)
	}
	logger.ErrorContext(ctx, message, "name", a.name)
}

func internalError() error {
	wire := tripseal.Wire(nil)
	return &jsonrpc.Error{Code: wire.Code, Message: wire.Message}
}
