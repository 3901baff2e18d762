package gosdk

import (
	"context"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// bridge goes on with a flow of a client that knows no multi round-trip
// requests. The SDK asks such a client once and runs the handler again; bridge
// does the same for as many rounds as it takes. Between rounds the state stays
// in the process, but every round is sealed and opened as if it had left: the
// same pins and limits hold.
func (p *Protected) bridge(ctx context.Context, next mcp.MethodHandler, req mcp.Request, c call, round *mcpseal.Round, a asking) (mcp.Result, asking, error) {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok {
		return nil, asking{}, internalError()
	}
	for {
		// A result that still asks has been asked once by the SDK: that round
		// counts too.
		if err := p.turn(ctx, req, c, round, asking{}); err != nil {
			return nil, asking{}, err
		}
		answers, err := ask(ctx, session, a.questions)
		if err != nil {
			return nil, asking{}, err
		}
		if err := p.turn(ctx, req, c, round, a); err != nil {
			return nil, asking{}, err
		}
		state, _ := round.State()
		result, err := next(ctx, c.method, withInput(req, state, solicited(round, answers)))
		if err != nil {
			return nil, asking{}, err
		}
		result = uncached(result)
		if a = readResult(result); a.questions == nil || a.sent {
			return result, a, nil
		}
	}
}

// isOlder says whether the client knows no multi round-trip requests.
func isOlder(req mcp.Request) bool {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || session == nil {
		return false
	}
	params := session.InitializeParams()
	return params != nil && params.ProtocolVersion < firstStateless
}

// turn seals a round and opens the next one.
func (p *Protected) turn(ctx context.Context, req mcp.Request, c call, round *mcpseal.Round, a asking) error {
	token, err := p.seal(ctx, req, round, a)
	if err != nil {
		return err
	}
	opened, err := p.boundary.Open(ctx, p.request(req, c), token)
	if err != nil {
		return wireError(err)
	}
	*round = opened
	return nil
}

// ask puts all questions to the client at once.
func ask(ctx context.Context, session *mcp.ServerSession, questions mcp.InputRequestMap) (mcp.InputResponseMap, error) {
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

func askOne(ctx context.Context, session *mcp.ServerSession, question mcp.InputRequest) (mcp.InputResponse, error) {
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
