package gosdk

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk/internal/passage"
)

// sdkRound is the questions that the SDK asks by itself after the first run of a
// pair. The round begins with its first question and ends with its last answer. A
// question that a handler asks directly cannot be told from these: while the round
// lasts it counts, and after it is let through. The handler's state is not known
// here: it goes from the handler to the handler.
type sdkRound struct {
	kind    mcpseal.Kind // that says how long the round lives
	token   string
	pending int // questions
	ended   bool

	expired context.Context // ends when the token does
	timer   *time.Timer
}

// begin adds a question to the round that the SDK makes. It returns nil for one
// that does not count.
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
	if r.kind == 0 || kind == mcpseal.KindURL && r.kind != kind {
		token, err := o.p.seal(&o.passing, &o.round, "", []mcpseal.Question{{Kind: kind}})
		if err != nil {
			return nil, err
		}
		r.kind, r.token = kind, token
		r.expireAt(o.round.Expires())
	}
	r.pending++
	return r, nil
}

// expireAt sets when the round ends, also for questions that are under way.
func (r *sdkRound) expireAt(at time.Time) {
	if r.timer != nil {
		r.timer.Reset(time.Until(at))
		return
	}
	var expire context.CancelFunc
	r.expired, expire = context.WithCancel(context.Background())
	r.timer = time.AfterFunc(time.Until(at), expire)
}

// end takes a question off its round.
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

// waiting is the context for a question's answer.
func (r *sdkRound) waiting(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
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

// patience is how long a token with such a question lives.
func (p *Protected) patience(question mcp.InputRequest) time.Duration {
	if passage.KindOf(question) == mcpseal.KindURL && p.policy.URLTTL != 0 {
		return p.policy.URLTTL
	}
	return p.policy.TTL
}
