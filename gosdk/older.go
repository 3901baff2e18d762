package gosdk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/internal/through"
)

const (
	firstStateless = "2026-07-28" // the first revision of the protocol that has no sessions
	lastStateful   = "2025-11-25"
)

// isOlder reports whether the client's revision has no multi round-trip requests. It decides as the SDK does.
func isOlder(req mcp.Request) bool {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || session == nil {
		return false
	}
	params := session.InitializeParams()
	return params != nil && params.ProtocolVersion < firstStateless
}

// serveOther serves the methods for which nothing is sealed.
func (p *Protector) serveOther(
	ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request,
) (mcp.Result, error) {
	if method == "subscriptions/listen" && isOlder(req) {
		// No older revision has this method, and some releases of the SDK never end a session on which it was sent.
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found"}
	}
	r, ok := req.(*mcp.ServerRequest[*mcp.InitializeParams])
	if ok && r.Params != nil && r.Params.ProtocolVersion >= firstStateless {
		// A revision that has no sessions has no initialize either. The SDK would agree on an older revision, but serve
		// the client by the rules of the revision that it asked for.
		params := *r.Params
		params.ProtocolVersion = lastStateful
		req = &mcp.ServerRequest[*mcp.InitializeParams]{Session: r.Session, Params: &params, Extra: r.Extra}
	}
	return next(ctx, method, req)
}

// olderCall is a call of an older client while it runs. Its state stays in the process.
type olderCall struct {
	through.Call
	protector *Protector

	mu    sync.Mutex // the SDK asks the questions of a round from several goroutines
	round tripseal.Round
	asked bool // true if the call has asked something
	asks  bool // true if this run of the SDK has asked something
	ended bool
}

// serveOlder serves a client that does not know multi round-trip requests. In the function next, the SDK itself asks
// the questions of one round, and then runs the handler again. If the handler has more questions, serveOlder asks them,
// for as many rounds as the boundary allows. What the client itself sends as a state is opened before.
func (p *Protector) serveOlder(
	ctx context.Context, next mcp.MethodHandler, req mcp.Request, c *call,
) (mcp.Result, error) {
	session := req.GetSession().(*mcp.ServerSession)
	o := &olderCall{Call: p.begin(ctx, req, c), protector: p}
	o.Older = o
	defer o.end()
	if err := p.open(o, &o.round, c, c.token); err != nil {
		return nil, err
	}
	state, answers := p.input(&o.Call, &o.round, c)
	for {
		result, err := next(o, c.method, withInput(req, state, answers))
		switch sent := o.answered(); {
		case err != nil && sent:
			return nil, o.withoutAnswer(err)
		case err != nil: // also the SDK's error for a client that cannot be asked, which tells why
			return nil, err
		}
		a, ok := readResult(result)
		switch {
		case !ok:
			return nil, p.refuse(ctx, c.method, "a result that is nil or of an unknown type was refused")
		case a.questions == nil:
			if o.asked {
				result = uncached(result)
			}
			return p.complete(ctx, c, result, &a), nil
		case len(a.questions) == 0:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server is busy, retry later"}
		}
		if answers, err = o.askAll(session, a); err != nil {
			return nil, o.withoutAnswer(err)
		}
		state = a.state
	}
}

func (o *olderCall) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
}

// begin begins a round with these questions.
func (o *olderCall) begin(state string, questions ...tripseal.Question) error {
	if err := o.protector.boundary.AskNow(o, &o.round, state, questions...); err != nil {
		return clientError(err)
	}
	o.asked, o.asks = true, true
	return nil
}

// answered ends the round that the SDK or this package has asked. It returns false if there is none.
func (o *olderCall) answered() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.asks {
		return false
	}
	o.asks = false
	o.round.Answered(o)
	return true
}

// askAll asks all questions of a round at once. If one fails, it stops waiting for the others.
func (o *olderCall) askAll(session *mcp.ServerSession, a asking) (mcp.InputResponseMap, error) {
	questions, err := pin(a.questions, nil)
	if err != nil {
		return nil, o.protector.refuse(o, "", err.Error())
	}
	if err := checkDeclared(session, nil, a.questions); err != nil {
		return nil, &ownError{seen: err}
	}
	o.mu.Lock()
	err = o.begin(a.state, questions...)
	o.mu.Unlock()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(o)
	defer cancel(nil)
	var group sync.WaitGroup
	var mu sync.Mutex
	answers := make(mcp.InputResponseMap, len(questions))
	for key, question := range a.questions {
		group.Go(func() {
			answer, err := askOne(ctx, session, question)
			if err != nil {
				cancel(fmt.Errorf("%s %q: %w", misfit, key, err))
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answers[key] = answer
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	o.answered()
	return answers, nil
}

func askOne(
	ctx context.Context, session *mcp.ServerSession, question mcp.InputRequest,
) (answer mcp.InputResponse, err error) {
	panicked := tripseal.Guard(func() error { // the SDK may dereference a nil in the question
		switch q := question.(type) {
		case *mcp.ElicitParams:
			answer, err = session.Elicit(ctx, q)
		case *mcp.CreateMessageParams:
			answer, err = session.CreateMessageWithTools(ctx, withTools(q))
		case *mcp.CreateMessageWithToolsParams:
			answer, err = session.CreateMessageWithTools(ctx, q)
		case *mcp.ListRootsParams:
			answer, err = session.ListRoots(ctx, q)
		}
		return nil
	})
	if panicked != nil {
		return nil, panicked
	}
	return answer, err
}

// withTools converts a sampling question to the type for questions with tools, but adds no tools. The answer may then
// have several contents.
func withTools(q *mcp.CreateMessageParams) *mcp.CreateMessageWithToolsParams {
	messages := make([]*mcp.SamplingMessageV2, len(q.Messages))
	for i, m := range q.Messages {
		messages[i] = &mcp.SamplingMessageV2{Role: m.Role, Content: []mcp.Content{m.Content}}
	}
	return &mcp.CreateMessageWithToolsParams{
		Meta: q.Meta, Messages: messages, MaxTokens: q.MaxTokens, Metadata: q.Metadata, IncludeContext: q.IncludeContext,
		ModelPreferences: q.ModelPreferences, StopSequences: q.StopSequences, SystemPrompt: q.SystemPrompt,
		Temperature: q.Temperature,
	}
}

// misfit begins the errors of questions that were not answered, as those of the SDK do.
const misfit = "multi-round-trip: fulfilling input request"

// withoutAnswer returns the error to send for a call that failed. The SDK's error about an answer that does not fit
// repeats the answer, which the model might read.
func (o *olderCall) withoutAnswer(err error) error {
	var own *ownError
	if errors.As(err, &own) || !strings.HasPrefix(err.Error(), misfit) || o.Context.Err() != nil {
		return err
	}
	return o.protector.misfit(o)
}

func (p *Protector) misfit(ctx context.Context) error {
	p.logger().WarnContext(ctx, "gosdk: an answer was not accepted: it does not fit what was asked, or the client failed")
	return &ownError{seen: &jsonrpc.Error{
		Code: jsonrpc.CodeInvalidParams, Message: "an answer does not fit what was asked",
	}}
}

// sends is called for each question of the call that is sent, by this package, by the SDK or by the handler itself. The
// first one that the SDK sends in a run of the handler begins a round. It returns until when to wait for the answer.
func (o *olderCall) sends(kind tripseal.Kind) (until time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.asks && !o.ended {
		if err := o.begin("", tripseal.Question{Kind: kind}); err != nil {
			return until, err
		}
	}
	until = time.Now().Add(o.protector.patience(kind))
	if ends := o.round.FlowEnds(); !o.ended && !ends.IsZero() && ends.Before(until) {
		until = ends
	}
	return until, nil
}

// patience returns how long a question of this kind waits for its answer.
func (p *Protector) patience(kind tripseal.Kind) time.Duration {
	if kind == tripseal.KindURL && p.policy.URLTTL != 0 {
		return p.policy.URLTTL
	}
	return p.policy.TTL
}

// send is the sending middleware. It refuses a question if the client has not declared that it can answer it, screens
// the answer, and limits how long to wait for it: outside a call of an older client, if the context has no deadline.
func (p *Protector) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		question, ok := req.GetParams().(mcp.InputRequest)
		if method == "roots/list" {
			question, ok = &mcp.ListRootsParams{}, true // roots/list may have no params
		}
		session, serving := req.GetSession().(*mcp.ServerSession)
		if !ok || !serving {
			return next(ctx, method, req)
		}
		if err := checkDeclared(session, nil, mcp.InputRequestMap{"": question}); err != nil {
			return nil, &ownError{seen: err}
		}
		until, limited := ctx.Deadline()
		if !limited {
			until = time.Now().Add(p.patience(kindOf(question)))
		}
		if call := through.From(ctx, session); call != nil && call.Older != nil {
			var err error
			if until, err = call.Older.(*olderCall).sends(kindOf(question)); err != nil {
				return nil, err
			}
		}
		waiting, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		result, err := next(waiting, method, req)
		answer, ok := result.(mcp.InputResponse)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err() // the call was cancelled, so nobody waits for what the handler would do
		case err != nil && waiting.Err() != nil:
			p.logger().WarnContext(ctx, "gosdk: a question was not answered in time", "method", method)
			return nil, clientError(tripseal.ErrRejected)
		case err != nil || !ok:
			return result, err
		}
		if answer = screened(answer); answer == nil {
			return nil, p.misfit(ctx)
		}
		return answer.(mcp.Result), nil
	}
}
