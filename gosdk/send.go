package gosdk

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/internal/passage"
	"github.com/tripseal/tripseal/gosdk/internal/whole"
)

// send is the sending middleware. It refuses a question if the client has not declared that it can
// answer such questions. It also refuses an answer that contains a nil.
//
// send also limits how long it waits for an answer:
//
//   - In an older client's call, the SDK itself may ask a round of questions (see sdkRound). For a
//     question of this round, send waits until the round's token expires.
//   - For any other question in an older client's call, send waits for the lifetime of a
//     token.
//   - Outside such a call, send waits until the deadline of the context. If the context
//     has no deadline, send waits for the lifetime of a token.
func (p *Protection) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		question, ok := req.GetParams().(mcp.InputRequest)
		if !ok && method == "roots/list" {
			question, ok = &mcp.ListRootsParams{}, true // roots/list may have no params
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
		if err := checkDeclared(declaredBy(session), mcp.InputRequestMap{"": question}); err != nil {
			return nil, &ownError{err}
		}
		if !p.paired.Load() {
			return nil, &ownError{p.refuse(ctx, method, "the receiving middleware is not installed, so nothing is sealed: install both middlewares that Middleware returned, on one server")}
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
			return screenResult(next(ctx, method, req))
		}
		older.Sends(question)
		round, err := older.begin(question)
		if err != nil {
			return nil, &ownError{err}
		}
		waiting, cancel := round.waitContext(ctx, p.patience(question))
		defer cancel()
		result, err := screenResult(next(waiting, method, req))
		if round == nil {
			return result, err
		}
		ended := older.end(round)
		if err != nil && waiting.Err() != nil && ctx.Err() == nil {
			return nil, &ownError{wireError(tripseal.ErrRejected)} // the round's token has expired, which older.end has logged
		}
		if err == nil && ended != nil {
			return nil, &ownError{ended}
		}
		return result, err
	}
}

// screenResult returns the client's answer in the form that a handler may see, or an
// error if a handler may not see the answer.
func screenResult(result mcp.Result, err error) (mcp.Result, error) {
	answer, ok := result.(mcp.InputResponse)
	if !ok || err != nil {
		return result, err
	}
	if answer = screenAnswer(answer); answer == nil {
		return nil, &ownError{errMisfit()}
	}
	return answer.(mcp.Result), nil
}

// sdkRound is a round whose questions the SDK asks by itself, between two runs of the
// handler. The round begins with its first question and ends with its last answer. A
// question that the handler asks directly also becomes part of the round, unless the round
// has ended. The round is sealed without the handler's state, because the SDK itself passes
// the state from the first run to the second.
type sdkRound struct {
	kind    tripseal.Kind // decides how long the round lives
	token   string
	pending int // how many questions have no answer yet
	ended   bool

	expired context.Context // done when the token expires
	timer   *time.Timer
}

// begin adds a question to the SDK's round, and returns the round. It returns nil if the
// round or the call has ended: the question is then part of no round.
func (o *olderCall) begin(question mcp.InputRequest) (*sdkRound, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over || o.sdk != nil && o.sdk.ended {
		return nil, nil
	}
	o.asked = true
	kind := passage.KindOf(question)
	if o.sdk == nil {
		o.sdk = new(sdkRound)
	}
	r := o.sdk
	if r.kind == 0 || kind == tripseal.KindURL && r.kind != kind {
		token, err := o.p.seal(&o.passingCall, &o.round, "", []tripseal.Question{{Kind: kind}})
		if err != nil {
			return nil, err
		}
		r.kind, r.token = kind, token
		r.expireAt(o.round.Expires())
	}
	r.pending++
	return r, nil
}

// expireAt sets when the round expires. This also applies to questions of the round that
// were already sent.
func (r *sdkRound) expireAt(at time.Time) {
	if r.timer != nil {
		r.timer.Reset(time.Until(at))
		return
	}
	var expire context.CancelFunc
	r.expired, expire = context.WithCancel(context.Background())
	r.timer = time.AfterFunc(time.Until(at), expire)
}

// end is called when a question of the round has its answer, or has failed. After the
// last of these questions, it ends the round, and returns an error if the round's token
// does not open.
func (o *olderCall) end(r *sdkRound) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.pending--; r.pending > 0 {
		return nil
	}
	r.timer.Stop()
	if r.ended || o.over {
		return nil
	}
	r.ended = true
	return o.reopen(r.token)
}

// waitContext returns the context in which to wait for a question's answer. The round is nil for a
// question that is part of no round.
func (r *sdkRound) waitContext(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	if r == nil {
		return context.WithTimeout(ctx, patience)
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(r.expired, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// patience returns how long a token with this question lives.
func (p *Protection) patience(question mcp.InputRequest) time.Duration {
	if passage.KindOf(question) == tripseal.KindURL && p.policy.URLTTL != 0 {
		return p.policy.URLTTL
	}
	return p.policy.TTL
}
