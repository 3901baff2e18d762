// Package proxy seals the state and the list cursors of an MCP server that does not seal them
// itself. The server may be written in any language. The package takes one message and returns
// one message; it knows nothing of HTTP or of processes. A carrier moves the bytes between this
// package, the client and the server. The command tripseal proxy has two carriers: one for HTTP
// and one for standard input and output.
//
// A message that carries no state, question, answer or cursor is passed on byte for byte.
// The proxy refuses a message if two JSON parsers could read it differently at a place where a
// state, question, answer or cursor can be.
package proxy

import (
	"context"
	"errors"
	"log/slog"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/cursor"
)

// Config says how a [Proxy] seals. Only Boundary is required.
type Config struct {
	// Boundary seals states, and decides which tokens are accepted. It is required. The boundary's
	// config must have a ring or a codec, in Keys, Format or AlsoOpen: the proxy seals cursors with
	// this ring or codec.
	Boundary *tripseal.Boundary
	// Unsolicited lists the names of tools that accept answers in the first call, before they
	// have asked anything. Nil means none.
	Unsolicited []string
	// RejectedText is sent as a tool's result, instead of the protocol's error, when the token
	// of a tools/call is rejected. Use [adapter.StartOver] or a text of your own. "" means that
	// the client gets the error. Set RejectedText if the model must learn of rejections: many
	// hosts do not show protocol errors to the model.
	RejectedText string
	// Logger gets a record for each message that the proxy refuses. Nil means [slog.Default].
	Logger *slog.Logger
}

// Proxy seals what a server sends, and opens what a client sends back. It is safe for
// concurrent use. Make one with [New] for each server that you put it in front of.
type Proxy struct {
	boundary     *tripseal.Boundary
	lists        cursor.Issuer
	unsolicited  map[string]bool
	rejectedText string
	log          *slog.Logger
}

// New returns a proxy. It fails if the boundary is missing, or has neither a ring nor a
// codec. Call it once, when the carrier starts.
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

// Exchange is one message of the client together with the server's answer to it.
// [Proxy.Open] returns it. Keep it until the server has answered.
type Exchange struct {
	// Forward is the message for the server. It is nil if the server must not see the
	// message.
	Forward []byte
	// Reply is the proxy's own answer to the client, if the server must not see the client's
	// message. It is nil if the client's message was a notification, which gets no answer.
	Reply []byte
	// Malformed is true if the message was refused because of its form. A carrier over HTTP
	// answers it with the status 400. A message with a rejected token is not malformed.
	Malformed bool

	ID     string // the JSON text of the request's id; "" if the message is not a request
	Method string // the method of the request or notification; "" if the message has none
	Target string // the tool's or prompt's name, or the resource's URI; "" for other methods

	proxy  *Proxy
	sameID string
	kind   kind
	can    *adapter.Capabilities // the questions that the client can answer; nil if the request does not say
	round  tripseal.Round
	page   cursor.Page
	done   bool // true if Seal has seen the answer
}

// Open takes a message of the client. The parameter caller says which user sent it; nil means
// that no user is known. Open never returns nil. Call Open for every message of the client.
// Then send the exchange's field Forward to the server, or its field Reply to the client.
func (p *Proxy) Open(ctx context.Context, message []byte, caller tripseal.Principal) *Exchange {
	e := &Exchange{proxy: p}
	e.open(ctx, string(message), caller)
	if e.Forward == nil && e.Reply == nil && !e.Malformed {
		e.Forward = message
	}
	return e
}

// Seal takes a message that the server sent in answer to the client's message: the answer
// itself, or a notification or request before it. It returns the message for the client, or
// nil if the client must not see it. Seal is not safe for concurrent use. Call Seal for
// each of these messages, in their order.
func (e *Exchange) Seal(ctx context.Context, message []byte) []byte {
	return e.seal(ctx, message)
}

// Pass takes a message that the server sent on its own, not in answer to a message of the
// client. It returns the message, or nil if the client must not see it.
func (p *Proxy) Pass(ctx context.Context, message []byte) []byte {
	m, why := readEnvelope(string(message), guardedNames)
	if why != "" {
		return p.drop(ctx, why)
	}
	return p.pass(ctx, &m, message)
}

// Failed returns an internal error as the answer for the client. Use it if the server gave no
// answer, or an answer that cannot be sent. Failed returns nil if the client's message was not
// a request.
func (e *Exchange) Failed() []byte {
	if e.ID == "" {
		return nil
	}
	return errorMessage(e.ID, internalError)
}

// Answered reports whether Seal has seen the answer to the client's request. If the server's
// stream ends before that, the carrier sends the result of [Exchange.Failed] to the client.
func (e *Exchange) Answered() bool { return e.done }

// logger returns p.log, wrapped so that a panic in it does not stop the proxy.
func (p *Proxy) logger() *slog.Logger { return tripseal.Logger(p.log) }
