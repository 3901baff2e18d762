package gosdk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// isOlder says whether the client knows no multi round-trip requests, as the
// SDK decides it.
func isOlder(req mcp.Request) bool {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || session == nil {
		return false
	}
	params := session.InitializeParams()
	return params != nil && params.ProtocolVersion < firstStateless
}

// olderCall is a call of an older client while it runs. Between two rounds its
// state stays in the process, but every round is sealed and opened as if it had
// left, so that the boundary's pins and limits hold.
type olderCall struct {
	p   *Protected
	req mcp.Request
	c   call

	mu      sync.Mutex
	round   mcpseal.Round
	token   string // of the questions under way
	pending int    // questions under way
	counted bool   // this run of the handler has had its round
	asked   bool
}

type olderCallKey struct{}

// bridge serves a client that knows no multi round-trip requests. The SDK asks
// such a client once, from further in, and runs the handler again; bridge goes
// on from there for as many rounds as it takes.
func (p *Protected) bridge(ctx context.Context, next mcp.MethodHandler, req mcp.Request, c call) (mcp.Result, error) {
	session := req.GetSession().(*mcp.ServerSession)
	round, err := p.open(ctx, req, c)
	if err != nil {
		return nil, err
	}
	o := &olderCall{p: p, req: req, c: c, round: round, asked: c.token != ""}
	ctx = context.WithValue(ctx, olderCallKey{}, o)

	// A handler may change its params, and the next round needs them: it gets
	// a copy.
	state, _ := round.State()
	answers := p.firstAnswers(c)
	if c.token != "" {
		answers = solicited(&round, c.answers)
	}
	for {
		o.counted = false
		result, a, err := p.run(ctx, next, withInput(req, state, answers), c)
		if err != nil {
			return nil, p.unanswered(ctx, err)
		}
		if a.questions == nil {
			if o.asked {
				result = uncached(result)
			}
			return result, nil
		}
		if state, answers, err = o.ask(ctx, session, a); err != nil {
			return nil, p.unanswered(ctx, err)
		}
	}
}

// unanswered hides what the SDK says of an answer that it did not take from an
// older client: it repeats the answer. Where the handler is not one that we
// vouch for, its author decides what to do with that.
func (p *Protected) unanswered(ctx context.Context, err error) error {
	var own *ownError
	var failed *askError
	fulfilling := strings.Contains(err.Error(), "fulfilling input request") // the SDK's words
	if !p.Vouches(ctx) || errors.As(err, &own) || !errors.As(err, &failed) && !fulfilling {
		return err
	}
	p.options.Logger.WarnContext(ctx, "gosdk: a client's answer was not taken: it does not fit what was asked, or the client failed")
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "an answer does not fit what was asked"}
}

// askError is an answer that did not come.
type askError struct{ err error }

func (e *askError) Error() string { return e.err.Error() }
func (e *askError) Unwrap() error { return e.err }

// ask puts the questions of a result to the client, and returns the next
// round's input.
func (o *olderCall) ask(ctx context.Context, session *mcp.ServerSession, a asking) (state string, answers mcp.InputResponseMap, err error) {
	questions, err := o.p.pins(ctx, o.c, a.questions)
	if err != nil {
		return "", nil, err
	}
	declared := declaredBy(session)
	for _, question := range a.questions {
		if !declares(declared, question) {
			return "", nil, missingCapabilities(a.questions)
		}
	}
	token, err := o.p.seal(ctx, o.req, &o.round, a.state, questions)
	if err != nil {
		return "", nil, err
	}
	// What is asked below is this round: the sending middleware need not count it.
	if answers, err = askAll(context.WithValue(ctx, olderCallKey{}, nil), session, a.questions); err != nil {
		return "", nil, &askError{err}
	}
	o.asked = true
	if err = o.reopen(ctx, token); err != nil {
		return "", nil, err
	}
	state, _ = o.round.State()
	return state, solicited(&o.round, answers), nil
}

// begin and end stand around a question that the SDK asks by itself. The round
// begins with its first question and ends with its last answer; the SDK makes
// one for each time that we run the handler. Whatever else is asked meanwhile
// the handler asks directly, with no state involved, and it is let through. The
// handler's state is not known here: it goes from the handler to the handler.

func (o *olderCall) begin(ctx context.Context, question mcp.InputRequest) (counts bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = true
	if o.counted && o.pending == 0 {
		return false, nil
	}
	if !o.counted {
		pin := mcpseal.Question{Kind: kindOfQuestion(question)}
		if o.token, err = o.p.seal(ctx, o.req, &o.round, "", []mcpseal.Question{pin}); err != nil {
			return false, err
		}
		o.counted = true
	}
	o.pending++
	return true, nil
}

func (o *olderCall) end(ctx context.Context) (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pending--; o.pending > 0 {
		return nil
	}
	return o.reopen(ctx, o.token)
}

// reopen opens a token that this call sealed. There is nobody to ask again if
// it is rejected: the answers are already here.
func (o *olderCall) reopen(ctx context.Context, token string) (err error) {
	if o.round, err = o.p.openToken(ctx, o.req, o.c, token); err == nil && o.round.First() {
		err = wireError(mcpseal.ErrRejected)
	}
	return err
}

// askAll puts all questions to the client at once.
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

// withTools writes a sampling question in the form whose answer may hold
// several contents, which is how the SDK hands answers to handlers.
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
