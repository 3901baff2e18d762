package gosdk

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk/internal/whole"
)

// send is the sending middleware. It keeps questions from older clients that
// have not declared that they can answer them, and answers with a nil in them from
// handlers. It counts the questions that the SDK asks by itself as rounds of the
// call they belong to, and ends the waiting for an answer when their token expires,
// or would: a question that belongs to no such call must not wait for ever either.
func (p *Protected) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		question, ok := req.GetParams().(mcp.InputRequest)
		if !ok && method == "roots/list" {
			question, ok = &mcp.ListRootsParams{}, true // its params may be left out
		}
		session, isServer := req.GetSession().(*mcp.ServerSession)
		if isServer && (isCarrier(method) || isList(method)) {
			return nil, p.refuse(ctx, method, swapped)
		}
		if p.catches(ctx, method) {
			return nil, errCaught
		}
		if !ok || !isServer {
			return next(ctx, method, req)
		}
		if !declares(declaredBy(session), question) {
			return nil, &ownError{missingCapabilities(mcp.InputRequestMap{"": question})}
		}
		if !p.paired.Load() {
			return nil, &ownError{p.refuse(ctx, method, "the receiving middleware is not installed, so nothing is sealed: install both of what Middleware returned, on one server")}
		}
		if !whole.Question(question) {
			return nil, &ownError{p.refuse(ctx, method, "a question with a nil message, content, tool or hint was refused")}
		}
		if err := p.checkWritable(ctx, method, question); err != nil {
			return nil, &ownError{err}
		}
		older := olderOf(ctx, session)
		if older == nil {
			if _, limited := ctx.Deadline(); !limited {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, p.patience(question))
				defer cancel()
			}
			return soundly(next(ctx, method, req))
		}
		round, err := older.begin(question)
		if err != nil {
			return nil, &ownError{err}
		}
		waiting, cancel := round.waiting(ctx, p.patience(question))
		defer cancel()
		result, err := soundly(next(waiting, method, req))
		if round == nil {
			return result, err
		}
		ended := older.end(round)
		if err != nil && waiting.Err() != nil && ctx.Err() == nil {
			return nil, &ownError{wireError(mcpseal.ErrRejected)} // expired, as end has told the operator
		}
		if err == nil && ended != nil {
			return nil, &ownError{ended}
		}
		return result, err
	}
}

// soundly returns an answer that a handler may see.
func soundly(result mcp.Result, err error) (mcp.Result, error) {
	answer, ok := result.(mcp.InputResponse)
	if !ok || err != nil {
		return result, err
	}
	if answer = sound(answer); answer == nil {
		return nil, &ownError{errMisfit()}
	}
	return answer.(mcp.Result), nil
}
