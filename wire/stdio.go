package wire

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/tripseal/tripseal"
)

// Stdio returns a door on standard input and output. The server must read from in and write to out what it would read
// from and write to the streams of the client. The parameter user says who the client is: over standard input and
// output, that is whoever started the process. The door ends when the client's input ends and the server has closed
// out; when the server closes out, in ends too.
func (e *Engine) Stdio(
	clientIn io.Reader, clientOut io.Writer, user tripseal.Principal,
) (in io.ReadCloser, out io.WriteCloser) {
	toServer, fromDoor := io.Pipe()
	p := e.Pipe(fromDoor, clientOut, user)
	p.Server.(*lineSplitter).ended = func() {
		fromDoor.Close() // a server that has closed out may read no more, and a write to it would wait for ever
		p.serverEnded()
	}
	go func() {
		io.Copy(p.Client, clientIn)
		p.Client.Close()
		fromDoor.Close()
	}()
	return toServer, p.Server
}

// Pipe moves lines between one client and one server. [Engine.Stdio] is a Pipe for a server in this process.
type Pipe struct {
	Client io.WriteCloser // takes what the client writes
	Server io.WriteCloser // takes what the server writes; when it is closed, calls without an answer get an error

	engine   *Engine
	user     tripseal.Principal
	secret   string // begins every mark of this pipe
	toServer lineWriter
	toClient lineWriter
	pending  *pending
}

// Pipe returns a pipe between a client that reads from client and a server that reads from server. A line of the client
// has at most [DefaultMaxRequest] bytes, and a line of the server at most [DefaultMaxAnswer].
func (e *Engine) Pipe(server, client io.Writer, user tripseal.Principal) *Pipe {
	p := &Pipe{engine: e, user: user, secret: rand.Text(), pending: newPending()}
	p.toServer.stream, p.toClient.stream = server, client
	p.Client = &lineSplitter{limit: DefaultMaxRequest, line: p.clientLine, ended: func() {}}
	p.Server = &lineSplitter{limit: DefaultMaxAnswer, line: p.serverLine, ended: p.serverEnded}
	return p
}

// Idle returns a channel that is closed when no call waits for the server's answer.
func (p *Pipe) Idle() <-chan struct{} {
	p.pending.mu.Lock()
	defer p.pending.mu.Unlock()
	return p.pending.idle
}

// Shut makes sure that nothing more is written to the client. When it returns, no write is under way.
func (p *Pipe) Shut() {
	p.toClient.mu.Lock()
	defer p.toClient.mu.Unlock()
	p.toClient.err = io.ErrClosedPipe
}

// clientLine moves a line of the client to the server, or answers it. It returns an error if the client takes no more
// answers.
func (p *Pipe) clientLine(line []byte, refused error) error {
	ctx := context.Background()
	if refused != nil {
		p.engine.warn(ctx, "a line of the client was refused", "cause", refused.Error())
		return p.toClient.write(errorMessage("", invalidRequest))
	}
	x := p.engine.open(ctx, string(line), p.user, func(x *Exchange) bool { // before the call's token is spent
		err := p.pending.check(x.ID, len(line))
		switch {
		case err != nil:
			p.engine.warn(ctx, "a request was refused", "cause", err.Error())
			x.Reply = errorMessage(x.ID, invalidRequest)
			if errors.Is(err, errFull) {
				x.Reply = x.Failed()
			}
		case x.kind == call && !p.engine.proxied:
			x.mark = p.secret + rand.Text()
		}
		return err == nil
	})
	forward := x.Forward
	x.Forward = "" // so that the message does not stay in memory until the answer comes
	switch {
	case forward == "":
		x.forgetMark()
		return p.toClient.write(x.Reply)
	case x.ID != "" && !p.pending.add(x, len(line)): // the server gives no more answers
		x.forgetMark()
		return p.toClient.write(x.Failed())
	case x.ID == "" && x.Method == "notifications/cancelled":
		p.pending.cancel(cancelledID(forward))
	}
	if err := p.toServer.write(forward); err != nil && x.ID != "" && p.pending.take(x.sameID) != nil {
		return p.toClient.write(x.Failed()) // the server accepts no more input
	}
	return nil
}

// serverLine moves a line of the server to the client. It returns an error if the client takes no more answers.
func (p *Pipe) serverLine(line []byte, refused error) error {
	ctx := context.Background()
	if refused != nil {
		p.engine.warn(ctx, "a line of the server was dropped", "cause", refused.Error())
	}
	if line == nil { // it is gone, so nobody knows which request it answers
		return nil
	}
	text := strings.ReplaceAll(string(line), p.secret, "") // a mark without the secret is known to nobody
	done := p.engine.turn(text)
	m, why := readEnvelope(text, guardedNames)
	if refused != nil {
		why = refused.Error()
	}
	var sealed string
	if x := p.exchangeOf(&m, why); x != nil {
		sealed = x.seal(ctx, &m, why)
	} else {
		sealed = p.engine.pass(ctx, &m, why)
	}
	done()
	return p.toClient.write(sealed)
}

// serverEnded sends the client an error for each request that the server has not answered.
func (p *Pipe) serverEnded() {
	for _, x := range p.pending.end() {
		if p.toClient.write(x.Failed()) != nil {
			break
		}
	}
	p.Shut()
}

// exchangeOf returns the exchange of a pending request if the server's line is the answer to this request. It returns
// nil if the line is not such an answer, or if the client has cancelled the request.
func (p *Pipe) exchangeOf(m *envelope, why string) *Exchange {
	id, method := m.sameID, m.method != ""
	if why != "" { // the line will be refused, but the client must get an error for its request
		var loose struct{ ID, Method json.RawMessage }
		json.Unmarshal([]byte(m.text), &loose) // also reads lines that are not UTF-8 or nest too deep
		fields, _ := envelopeNames.read(`{"id":` + string(loose.ID) + `}`)
		id, method = fields[1].sameID(), loose.Method != nil
	}
	if id == "" || method { // a notification, or a request of the server, whose id is its own
		return nil
	}
	return p.pending.take(id)
}

// cancelledID reads a notification that cancels a request. It returns the id of that request, in the form of
// [field.sameID], or "" if there is none that can be read in one way only.
func cancelledID(notification string) string {
	m, _ := readEnvelope(notification, nil)
	if fields, ok := cancelNames.read(m.params.Raw); ok {
		return fields[0].sameID()
	}
	return ""
}
