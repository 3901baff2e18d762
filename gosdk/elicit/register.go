package elicit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk"
	"github.com/mcpseal/mcpseal/gosdk/internal/passage"
)

// ToolHandler is a tool that can ask. Its result is sent like that of the SDK's
// typed tools; an error becomes a tool error, unless it is a *jsonrpc.Error.
type ToolHandler[In, Out any] func(ctx context.Context, ask *Asker, in In) (Out, error)

// AddTool registers a tool on a protected server. It panics, as mcp.AddTool does,
// when the tool cannot be registered.
func AddTool[In, Out any](p *gosdk.Protected, tool *mcp.Tool, handler ToolHandler[In, Out]) {
	server := serverOf(p)
	mcp.AddTool(server, tool, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		var out, none Out
		ask := newAsker(ctx, p, req, tool.Name, req.Params.RequestState, req.Params.InputResponses)
		asked, err := ask.run(ctx, func() (err error) { out, err = handler(ctx, ask, in); return err })
		if err != nil {
			return nil, none, err
		}
		if asked != nil {
			return &mcp.CallToolResult{InputRequests: asked.questions, RequestState: asked.state}, none, nil
		}
		return nil, out, nil
	})
}

// PromptHandler is a prompt that can ask. An error is sent as the SDK writes it; a
// *[RefusedError] or a *[MisfitError], even wrapped, has the code -32602.
type PromptHandler func(ctx context.Context, ask *Asker, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error)

// AddPrompt registers a prompt on a protected server.
func AddPrompt(p *gosdk.Protected, prompt *mcp.Prompt, handler PromptHandler) {
	server := serverOf(p)
	server.AddPrompt(prompt, func(ctx context.Context, req *mcp.GetPromptRequest) (result *mcp.GetPromptResult, err error) {
		ask := newAsker(ctx, p, req, prompt.Name, req.Params.RequestState, req.Params.InputResponses)
		asked, err := ask.run(ctx, func() (err error) { result, err = handler(ctx, ask, req); return err })
		if err != nil {
			return nil, coded(err)
		}
		if asked != nil {
			return &mcp.GetPromptResult{InputRequests: asked.questions, RequestState: asked.state}, nil
		}
		return result, nil
	})
}

// ResourceHandler is a resource that can ask. Its errors are sent like a prompt's.
type ResourceHandler func(ctx context.Context, ask *Asker, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error)

// AddResource registers a resource on a protected server.
func AddResource(p *gosdk.Protected, resource *mcp.Resource, handler ResourceHandler) {
	server := serverOf(p)
	server.AddResource(resource, handler.serve(p))
}

// AddResourceTemplate registers a template of resources on a protected server.
func AddResourceTemplate(p *gosdk.Protected, template *mcp.ResourceTemplate, handler ResourceHandler) {
	server := serverOf(p)
	server.AddResourceTemplate(template, handler.serve(p))
}

func (handler ResourceHandler) serve(p *gosdk.Protected) mcp.ResourceHandler {
	return func(ctx context.Context, req *mcp.ReadResourceRequest) (result *mcp.ReadResourceResult, err error) {
		ask := newAsker(ctx, p, req, "a resource", req.Params.RequestState, req.Params.InputResponses)
		asked, err := ask.run(ctx, func() (err error) { result, err = handler(ctx, ask, req); return err })
		if err != nil {
			return nil, coded(err)
		}
		if asked != nil {
			// For older clients the SDK requires contents even in a result that asks.
			return &mcp.ReadResourceResult{InputRequests: asked.questions, RequestState: asked.state, Contents: []*mcp.ResourceContents{}}, nil
		}
		return result, nil
	}
}

func serverOf(p *gosdk.Protected) *mcp.Server {
	if p == nil || p.Server() == nil {
		panic("elicit: it needs the value that gosdk.Protect returned")
	}
	if p.Boundary().Missing(mcpseal.ClaimWording) != 0 {
		panic("elicit: tokens of the boundary's format cannot say that elicit wrote a state, so another handler of the same name " +
			"could pass its own off as one: use the native format, or, unless its states are unsealed, do without by naming " +
			"mcpseal.ClaimWording in mcpseal.Config.Waive")
	}
	return p.Server()
}

func newAsker(ctx context.Context, p *gosdk.Protected, req mcp.Request, name, text string, answers mcp.InputResponseMap) *Asker {
	a := &Asker{
		p: p, req: req, name: mcpseal.PlainText(name), state: state{Version: stateVersion}, fresh: make(mcp.InputResponseMap),
		digests: make(map[string]string), onces: make(map[string]reflect.Type), questions: make(mcp.InputRequestMap),
		read: make(map[string]bool),
	}
	if passing := passage.From(ctx); passing != nil && passing.By == passage.ProtectionOf(p) {
		a.passing = passing
		if s, ok := readState(text); ok && passing.Written(text, s.wording()) {
			a.state = s
		}
		passing.Began()
	}
	// Answers to what the last round asked are recorded; the handler decides
	// whether to read them.
	for key, digest := range a.state.Asked {
		if recorded, ok := recordOf(answers[key], digest); ok {
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

// recordOf returns an answer as the state keeps it.
func recordOf(response mcp.InputResponse, digest string) (answer, bool) {
	if !takes(digest, response) {
		return answer{}, false
	}
	var content any = response
	if r, ok := response.(*mcp.ElicitResult); ok {
		if action := Action(r.Action); action != Accept {
			return answer{digest, action, nil}, action.valid()
		}
		content = r.Content
		if r.Content == nil {
			content = map[string]any{}
		}
	}
	text, err := json.Marshal(content)
	return answer{digest, Accept, text}, err == nil
}

// asking is what a call sends instead of its result.
type asking struct {
	questions mcp.InputRequestMap
	state     string
}

// run calls the handler, and finds out whether it asks.
func (a *Asker) run(ctx context.Context, handler func() error) (*asking, error) {
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
	if a.passing.Older != nil { // the SDK would refuse with its own error; for newer clients the middleware checks
		if err := passage.CheckCapabilities(a.req, a.questions); err != nil {
			return nil, err
		}
	}
	state, err := a.state.text()
	if most := a.p.Boundary().Config().MaxState; err == nil && len(state) > most {
		a.log(ctx, fmt.Sprintf("elicit: the answers so far have %d bytes as a state, mcpseal.Config.MaxState is %d: ask for less, or raise it", len(state), most))
		return nil, internalError()
	}
	if err != nil {
		a.log(ctx, "elicit: the state cannot be written")
		return nil, internalError()
	}
	a.passing.Wrote(state, a.state.wording())
	return &asking{a.questions, state}, nil
}

// coded gives an error about an answer a JSON-RPC code, for prompts and resources:
// they have no tool errors, and the SDK would send code 0.
func coded(err error) error {
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

func (a *Asker) log(ctx context.Context, message string) {
	passage.LoggerOf(a.p).ErrorContext(ctx, message, "name", a.name)
}

func internalError() error {
	wire := mcpseal.Wire(nil)
	return &jsonrpc.Error{Code: wire.Code, Message: wire.Message}
}
