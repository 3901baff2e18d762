// Package proxy seals the state and the list cursors of an MCP server that does not do it
// itself, in whatever language it is written. It takes one message and returns one message;
// it knows nothing of HTTP or of processes. What carries bytes between it, the client and
// the server is called a carrier: see the command mcpseal proxy.
//
// A message that carries no state, question, answer or cursor leaves byte for byte as it
// came. A message that two readers of JSON could read differently where such a member can
// stand is refused.
package proxy

import (
	"context"
	"errors"
	"log/slog"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/adapter"
	"github.com/mcpseal/mcpseal/cursor"
)

// Config says how a [Proxy] seals.
type Config struct {
	// Boundary decides what is accepted. It is required, and must have keys of its own,
	// because the same keys seal cursors.
	Boundary *mcpseal.Boundary
	// Unsolicited names tools that take answers with their first call, before they asked.
	Unsolicited []string
	// RejectedText is the text of a tool's result that replaces the protocol's error when
	// the token of a tools/call is rejected, such as [adapter.StartOver]. "" means that the
	// client gets the error.
	RejectedText string
	// Logger gets a record for each message that is refused. Nil means [slog.Default].
	Logger *slog.Logger
}

// Proxy seals what a server sends, and opens what a client sends back. It is safe for
// concurrent use.
type Proxy struct {
	boundary     *mcpseal.Boundary
	lists        cursor.Issuer
	unsolicited  map[string]bool
	rejectedText string
	log          *slog.Logger
}

// New returns a proxy.
func New(config Config) (*Proxy, error) {
	if config.Boundary == nil {
		return nil, errors.New("proxy: Config.Boundary is missing")
	}
	p := &Proxy{
		boundary: config.Boundary, lists: adapter.ListCursors(config.Boundary),
		unsolicited: map[string]bool{}, rejectedText: config.RejectedText, log: config.Logger,
	}
	if p.lists == nil {
		return nil, errors.New("proxy: the boundary has no keys of its own, so cursors could not be sealed")
	}
	for _, tool := range config.Unsolicited {
		p.unsolicited[tool] = true
	}
	return p, nil
}

// Exchange is one message of the client, and what the server answers to it.
type Exchange struct {
	// Forward is the message for the server. It is nil if the server must not see the
	// message.
	Forward []byte
	// Reply is the message for the client, if the server must not see the client's message.
	// It is nil if there is nothing to say: then the message was a notification.
	Reply []byte
	// Malformed is true if the message was refused for its form, so that HTTP can say 400.
	// A rejected token is not malformed.
	Malformed bool

	ID     string // the JSON text of the request's id; "" if the message is not a request
	Method string // "" if the message has none
	Target string // the tool's or prompt's name, or the resource's URI; "" for other methods

	proxy  *Proxy
	sameID string
	kind   kind
	can    *adapter.Capabilities // what the client can answer; nil if the request does not say
	round  mcpseal.Round
	page   cursor.Page
	done   bool // the answer has been seen
}

// Open takes a message of the client. caller tells who sent it; nil means that nobody is
// known. Open never returns nil.
func (p *Proxy) Open(ctx context.Context, message []byte, caller mcpseal.Principal) *Exchange {
	e := &Exchange{proxy: p}
	e.open(ctx, string(message), caller)
	if e.Forward == nil && e.Reply == nil && !e.Malformed {
		e.Forward = message
	}
	return e
}

// Seal takes a message that the server sent in answer to the client's message: the answer
// itself, or a notification or request before it. It returns the message for the client, or
// nil if the client must not see it. Seal is not safe for concurrent use.
func (e *Exchange) Seal(ctx context.Context, message []byte) []byte {
	return e.seal(ctx, message)
}

// Pass takes a message that the server sent on its own. It returns the message, or nil if
// the client must not see it.
func (p *Proxy) Pass(ctx context.Context, message []byte) []byte {
	m, why := readEnvelope(string(message))
	if why != "" {
		return p.drop(ctx, why)
	}
	return p.pass(ctx, &m, message)
}

// Failed returns the answer that the client gets if the server gave none that can be sent:
// an internal error. It returns nil if the client's message was not a request.
func (e *Exchange) Failed() []byte {
	if e.ID == "" {
		return nil
	}
	return errorMessage(e.ID, internalError)
}

// Answered reports whether Seal has seen the answer to the client's request. A carrier whose
// stream ends before it sends [Exchange.Failed].
func (e *Exchange) Answered() bool { return e.done }

// logger returns a logger whose panics stop nothing.
func (p *Proxy) logger() *slog.Logger { return mcpseal.Logger(p.log) }
