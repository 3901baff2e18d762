// Package wire protects an MCP server at the wire: it seals the states, the list cursors and the session ids that leave
// the server, and opens what comes back. What runs behind it, any SDK with any hooks and middleware, reads and writes
// plaintext.
//
//	engine, err := wire.New(wire.Config{Boundary: boundary})
//	http.Handle("/mcp", auth(engine.Handler(handler, wire.Options{User: userOf})))   // streamable HTTP
//	in, out := engine.Stdio(os.Stdin, os.Stdout, tripseal.User("owner"))             // standard input and output
//
// An [Engine] takes one message and returns one message; it knows nothing of HTTP. A door moves messages between the
// engine and the world: [Engine.Handler] and [Engine.Stdio]. With mcp-go, use package mcpgo, which has both doors in
// one line; with the official SDK, gosdk.Protect.
//
// A message that carries no state, question, answer or cursor is passed on byte for byte. A message is refused if two
// JSON parsers could read it differently at a place where a state, question, answer or cursor can be.
package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/elicit"
)

// Config says how an [Engine] seals. Only Boundary is required.
type Config struct {
	// Boundary seals states, and decides which tokens are accepted. Required. It must have keys or a codec, in Keys,
	// Format or AlsoOpen: cursors and session ids are sealed with them.
	Boundary *tripseal.Boundary
	// Unsolicited names the tools that accept answers in a first call, before they have asked anything. Nil means none.
	Unsolicited []string
	// RejectedText is the text of a tool's result that replaces the protocol's error when the token of a tools/call is
	// rejected, such as [adapter.StartOver]. Many hosts do not show protocol errors to the model. "" means the error.
	RejectedText string
	// SessionTTL is how long a session's id can be used after the session began. 0 means 24 hours. A longer time than
	// the keys stay in use is an error. A rotation that drops the key ends the session sooner.
	SessionTTL time.Duration
	// Proxied says that another program writes the answers, not a Go server of this process. Then every answer is read
	// whole before it is passed on, because its text may be anything.
	Proxied bool
	// Logger gets a record for each message that is refused, and for each answer that is replaced. Nil means
	// [slog.Default].
	Logger *slog.Logger
}

// Engine seals what a server sends, and opens what a client sends back. It is safe for concurrent use. Make one with
// [New] for each server, and put it behind one or several doors.
type Engine struct {
	boundary     *tripseal.Boundary
	lists        cursor.Issuer
	sessions     *tripseal.Handles
	unsolicited  map[string]bool
	rejectedText string
	proxied      bool
	log          *slog.Logger
	turns        chan struct{} // limits how many long messages are read at once
	marks        sync.Map      // maps the mark of a call to its *Exchange, until the answer
}

// New returns an engine, or an error that says what to change in the config.
func New(config Config) (*Engine, error) {
	if config.Boundary == nil {
		return nil, errors.New("wire: Config.Boundary is missing; check the error of tripseal.New")
	}
	e := &Engine{
		boundary: config.Boundary, lists: adapter.ListCursors(config.Boundary), unsolicited: map[string]bool{},
		rejectedText: config.RejectedText, proxied: config.Proxied, log: config.Logger,
		turns: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	if e.lists == nil {
		return nil, errors.New("wire: the boundary has no keys of its own, so cursors and session ids could not be " +
			"sealed: add tripseal.NativeFormat to Config.AlsoOpen")
	}
	var err error
	if e.sessions, err = tripseal.NewHandles(config.Boundary, "session", config.SessionTTL); err != nil {
		return nil, fmt.Errorf("wire: session ids cannot be sealed: %w", err)
	}
	for _, tool := range config.Unsolicited {
		e.unsolicited[tool] = true
	}
	return e, nil
}

// Boundary returns the boundary that decides for this engine.
func (e *Engine) Boundary() *tripseal.Boundary { return e.boundary }

// warn tells the operator what happened to a message, of which it shows nothing.
func (e *Engine) warn(ctx context.Context, what string, attributes ...any) {
	tripseal.Logger(e.log).WarnContext(ctx, "wire: "+what, attributes...)
}

// Exchange is one message of the client together with the server's answer to it. [Engine.Open] returns it. Keep it
// until the server has answered.
type Exchange struct {
	Forward string // the message for the server; "" if the server must not see it
	Reply   string // otherwise the engine's own answer to the client; "" if the message was a notification
	// Malformed is true if the message was refused because of its form, and not because of a token. A door over HTTP
	// answers it with the status 400.
	Malformed bool

	ID     string // the JSON text of the request's id; "" if the message is not a request
	Method string // the method of the request or notification; "" if the message has none
	Target string // the tool's or prompt's name, or the resource's URI; "" for other methods

	engine   *Engine
	caller   tripseal.Principal
	sameID   string
	kind     kind
	declared string // the JSON text of the capabilities that the client declares, or of what holds them
	round    tripseal.Round
	arrival  elicit.Arrival // tells package elicit that the call came through a door
	page     cursor.Page
	agrees   func() bool // reports whether what a door knows of the call agrees with the message; may be nil
	mark     string      // the mark of the call in its _meta; "" if it has none
	done     bool        // true if Seal has seen the answer
	// inSession is true if the call belongs to a session of an older revision.
	inSession bool
	instead   atomic.Pointer[tripseal.WireError]
}

// User tells who sent the message. A server uses it for what it seals itself, such as the cursors of paged tools.
func (x *Exchange) User() tripseal.Principal { return x.caller }

// AnswerWith makes the client get this error in place of whatever the server answers to the call. A server calls it
// before it answers, if its SDK cannot send such an error. It is safe for concurrent use.
func (x *Exchange) AnswerWith(e tripseal.WireError) { x.instead.Store(&e) }

// Open takes a message of the client; call it for every one. The parameter caller says which user sent it; nil means
// that no user is known. Send the exchange's field Forward to the server, or its field Reply to the client.
func (e *Engine) Open(ctx context.Context, message string, caller tripseal.Principal) *Exchange {
	return e.open(ctx, message, caller, func(*Exchange) bool { return true })
}

// longMessage is the length from which messages wait for each other, in bytes. To read a message can take several times
// its length in memory.
const longMessage = 64 << 10

// turn waits until the engine may read a message of this length. The caller must call the function that it returns.
func (e *Engine) turn(message string) (done func()) {
	if len(message) < longMessage {
		return func() {}
	}
	e.turns <- struct{}{}
	return func() { <-e.turns }
}

// Seal takes a message that the server sent in answer to the client's message: the answer itself, or a notification or
// request before it. It returns the message for the client, or "" if the client must not see it. Seal is not safe for
// concurrent use: call it for each of these messages, in their order.
func (x *Exchange) Seal(ctx context.Context, message string) string {
	m, why := readEnvelope(message, x.kind.resultNames())
	return x.seal(ctx, &m, why)
}

// Pass takes a message that the server sent on its own, not in answer to a message of the client, or in answer to a
// message that another stream carried. It returns the message for the client, or "" if the client must not see it.
func (e *Engine) Pass(ctx context.Context, message string) string {
	m, why := readEnvelope(message, guardedNames)
	return e.pass(ctx, &m, why)
}

// Failed returns an internal error as the answer for the client. Use it if the server gave no answer that can be sent.
// Failed returns "" if the client's message was not a request.
func (x *Exchange) Failed() string {
	if x.ID == "" {
		return ""
	}
	return errorMessage(x.ID, internalError)
}
