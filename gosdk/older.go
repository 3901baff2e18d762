package gosdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/internal/passage"
)

// isOlder reports whether the client's protocol revision has no multi round-trip
// requests. It decides as the SDK does.
func isOlder(req mcp.Request) bool {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || session == nil {
		return false
	}
	params := session.InitializeParams()
	return params != nil && params.ProtocolVersion < firstStateless
}

// lastStateful is the last revision of the protocol that has sessions.
const lastStateful = "2025-11-25"

// withSessions lowers the revision in an initialize request to the last revision that has sessions.
// Without this, the SDK would agree on a revision with sessions, but would serve the client by the
// rules of the revision that the client asked for.
func withSessions(req mcp.Request) mcp.Request {
	r, ok := req.(*mcp.ServerRequest[*mcp.InitializeParams])
	if !ok || r == nil || r.Params == nil || r.Params.ProtocolVersion < firstStateless {
		return req
	}
	params := *r.Params
	params.ProtocolVersion = lastStateful
	return &mcp.ServerRequest[*mcp.InitializeParams]{Session: r.Session, Params: &params, Extra: r.Extra}
}

// olderCall is a call of an older client while it runs. Between two rounds the state
// stays in the process, but every round is sealed and opened as if the state had left
// the process, so that the boundary's bindings and limits hold.
type olderCall struct {
	passingCall
	p   *Protection
	req mcp.Request
	c   call

	mu    sync.Mutex // a handler may ask questions from several goroutines, even after it has returned
	round tripseal.Round
	sdk   *sdkRound // the SDK's round in this run of the handler; nil before the first question of the run
	asked bool      // true if the client was asked something, or the call came with a token
	over  bool      // true after the call has ended
}

// olderOf returns the call that a question to an older client belongs to, or nil if
// there is none. The call must be on the same session as the question: a handler may use
// the context of its call to connect to another server, and that server's questions do not
// belong to the call.
func olderOf(ctx context.Context, session *mcp.ServerSession) *olderCall {
	passing := passage.From(ctx)
	if passing == nil || passing.Session != mcp.Session(session) {
		return nil
	}
	o, _ := passing.Older.(*olderCall)
	return o
}

// bridge serves a client that does not know multi round-trip requests. For such a
// client, the SDK itself (in the function next) asks the questions of one round, and
// then runs the handler again. If the handler has more questions, bridge asks them, for
// as many rounds as needed.
func (p *Protection) bridge(ctx context.Context, next mcp.MethodHandler, req mcp.Request, c call) (mcp.Result, error) {
	if !p.paired.Load() {
		return nil, p.refuse(ctx, c.method, "the sending middleware is not installed, so older clients cannot be served: install both middlewares that Middleware returned, on one server")
	}
	c.promptArgs = maps.Clone(c.promptArgs)
	session := req.GetSession().(*mcp.ServerSession)
	o := &olderCall{p: p, req: req, c: c, asked: c.token != ""}
	p.begin(&o.passingCall, ctx, req)
	o.Older = o
	p.warnHalfNamed(ctx, &o.caller)
	var err error
	if o.round, err = p.open(&o.passingCall, c, c.token); err != nil {
		return nil, err
	}
	defer o.markEnded()
	state, answers := p.input(ctx, &o.round, c)
	for {
		round := o.enter()
		// Each run gets a copy of the params: a handler may change them, and the next
		// round needs them as they arrived.
		result, a, err := p.run(&o.passingCall, round, next, o.handOver(round, o.pristineRequest(), state, answers), c)
		if err != nil {
			return nil, o.withoutAnswer(err)
		}
		if a.questions == nil {
			if o.hasAsked() {
				result = withoutCaching(result)
			}
			return result, nil
		}
		if state, answers, err = o.ask(session, a); err != nil {
			return nil, o.withoutAnswer(err)
		}
	}
}

// enter begins a run of the handler, and returns its round.
func (o *olderCall) enter() *tripseal.Round {
	o.mu.Lock()
	defer o.mu.Unlock()
	entered := o.round // a copy, because an earlier run that was abandoned may still read its own round
	o.sdk = nil
	return &entered
}

// markEnded marks the call as ended. A handler may still run after that. Its questions are then
// part of no round: a round is bound to the arguments of the call, and the memory of the arguments
// is reused after the call.
func (o *olderCall) markEnded() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
}

func (o *olderCall) hasAsked() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked
}

// pristineRequest returns the request with a fresh copy of its arguments as they
// arrived.
func (o *olderCall) pristineRequest() mcp.Request {
	switch r := o.req.(type) {
	case *mcp.CallToolRequest:
		copied := copyRequest(r)
		copied.Params.Arguments = bytes.Clone(o.c.arguments)
		return copied
	case *mcp.GetPromptRequest:
		copied := copyRequest(r)
		copied.Params.Arguments = maps.Clone(o.c.promptArgs)
		return copied
	}
	return o.req
}

// withoutAnswer returns the error to send for a call that failed. It replaces the SDK's
// error about an answer that does not fit, because that error repeats the answer. The
// SDK's error stays if the questions are not from a handler of package elicit.
func (o *olderCall) withoutAnswer(err error) error {
	var own *ownError
	if !o.Asking() || errors.As(err, &own) || !o.hasAsked() || o.Context.Err() != nil {
		return err
	}
	o.p.logger().WarnContext(o, "gosdk: a client's answer was not accepted: it does not fit what was asked, or the client failed")
	return errMisfit()
}

func errMisfit() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "an answer does not fit what was asked"}
}

// ask sends the questions of a result to the client, and returns the state and the
// answers for the next round. It waits for the answers until the round's token expires.
func (o *olderCall) ask(session *mcp.ServerSession, a asking) (state string, answers mcp.InputResponseMap, err error) {
	questions, err := o.p.pinQuestions(&o.Call, o.c, a, nil)
	if err != nil {
		return "", nil, &ownError{err}
	}
	if err := checkDeclared(declaredBy(session), a.questions); err != nil {
		return "", nil, &ownError{err}
	}
	token, expires, err := o.sealRound(a.state, questions)
	if err != nil {
		return "", nil, &ownError{err}
	}
	// The sending middleware finds no call in o.Context, so it does not begin a second
	// round for these questions.
	ctx, cancel := context.WithDeadline(o.Context, expires)
	defer cancel()
	if answers, err = askAll(ctx, session, a.questions); err != nil && ctx.Err() == nil {
		return "", nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if expired := o.reopen(token); expired != nil {
		return "", nil, &ownError{expired}
	}
	if err != nil {
		return "", nil, err
	}
	state, _ = o.round.State()
	return state, keep(answers, o.round.Accepts), nil
}

// sealRound begins a round whose questions this package asks, not the SDK. It returns
// the round's token and the expiry time of the token. It also ends the SDK's round: if a
// question of that round has no answer yet, the question belongs to no round from then
// on.
func (o *olderCall) sealRound(state string, questions []tripseal.Question) (token string, expires time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = true
	if o.sdk != nil {
		o.sdk.ended = true
	}
	token, err = o.p.seal(&o.passingCall, &o.round, state, questions)
	return token, o.round.Expires(), err
}

// reopen opens a token that this call sealed. A rejected token is an error even if
// tripseal.Config.AskAgain is set, because the client has answered already. If the call
// was cancelled, reopen does not open the token, so that no rejection is reported.
func (o *olderCall) reopen(token string) error {
	if err := o.Context.Err(); err != nil {
		return err
	}
	round, err := o.p.open(&o.passingCall, o.c, token)
	if err == nil && round.First() {
		err = wireError(tripseal.ErrRejected)
	}
	if err == nil {
		o.round = round
	}
	return err
}

// askAll sends all questions to the client at once, and returns the answers. If one
// question fails, it stops waiting for the others.
func askAll(ctx context.Context, session *mcp.ServerSession, questions mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		group   sync.WaitGroup
		mu      sync.Mutex
		answers = make(mcp.InputResponseMap, len(questions))
	)
	for key, question := range questions {
		group.Go(func() {
			answer, err := askOne(ctx, session, question)
			if err != nil {
				cancel(fmt.Errorf("asking %q: %w", key, err))
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
	return answers, nil
}

func askOne(ctx context.Context, session *mcp.ServerSession, question mcp.InputRequest) (answer mcp.InputResponse, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the question of type %T is malformed", question)
		}
	}()
	switch q := question.(type) {
	case *mcp.ElicitParams:
		return session.Elicit(ctx, q)
	case *mcp.CreateMessageParams:
		return session.CreateMessageWithTools(ctx, withTools(q))
	case *mcp.CreateMessageWithToolsParams:
		return session.CreateMessageWithTools(ctx, q)
	case *mcp.ListRootsParams:
		return session.ListRoots(ctx, q)
	}
	return nil, fmt.Errorf("a question of type %T cannot be asked", question)
}

// withTools converts a sampling question to the type for questions with tools, but adds no tools.
// The answer may then have several contents.
func withTools(q *mcp.CreateMessageParams) *mcp.CreateMessageWithToolsParams {
	messages := make([]*mcp.SamplingMessageV2, len(q.Messages))
	for i, m := range q.Messages {
		messages[i] = &mcp.SamplingMessageV2{Role: m.Role, Content: []mcp.Content{m.Content}}
	}
	return &mcp.CreateMessageWithToolsParams{
		Meta: q.Meta, Messages: messages, MaxTokens: q.MaxTokens, Metadata: q.Metadata, IncludeContext: q.IncludeContext,
		ModelPreferences: q.ModelPreferences, StopSequences: q.StopSequences, SystemPrompt: q.SystemPrompt, Temperature: q.Temperature,
	}
}
