package stdiocarrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/jsonorder"
	"github.com/tripseal/tripseal/proxy"
)

// A session moves lines between one client and one server.
type session struct {
	proxy   *proxy.Proxy
	caller  tripseal.Principal
	client  *lineWriter
	server  *lineWriter
	log     io.Writer
	pending pending
}

// note writes a message to the log that the operator reads. The message must not contain any
// part of a client's or server's line.
func (s *session) note(what string, err error) {
	fmt.Fprintf(s.log, "tripseal proxy: %s: %v\n", what, err)
}

// fromClient reads the client's lines until they end, and moves them to the server. It answers some
// lines itself, and returns an error if it cannot write such an answer to the client.
func (s *session) fromClient(ctx context.Context, in io.Reader) error {
	lines := newLineReader(in, maxClientLine)
	for {
		line, err := lines.readMessage()
		switch {
		case errors.Is(err, errTooLong), errors.Is(err, errSplit):
			s.note("a line of the client was refused", err)
			err = s.client.write(failure("null", invalidRequest))
		case err != nil:
			if err != io.EOF {
				s.note("the client's input ended early", err)
			}
			return nil
		default:
			err = s.clientLine(ctx, line)
		}
		if err != nil {
			return err
		}
	}
}

func (s *session) clientLine(ctx context.Context, line []byte) error {
	// The id is checked before Open, so that a request that is refused for its id does not use
	// up its token.
	id, method, ok := head(line)
	isRequest := ok && method && id != ""
	if isRequest {
		if err := s.pending.reserve(id, len(line)); err != nil {
			s.note("a request was refused", err)
			code := invalidRequest
			if errors.Is(err, errFull) {
				code = internalError
			}
			return s.client.write(failure(id, code))
		}
	}
	e := s.proxy.Open(ctx, line, s.caller)
	forward := e.Forward
	e.Forward = nil // so that the message does not stay in memory until the answer comes
	var awaits bool
	switch {
	case forward == nil:
	case e.ID == "":
		if e.Method == "notifications/cancelled" {
			s.pending.cancel(cancelledID(line))
		}
	case isRequest && e.ID == id && s.pending.setExchange(e):
		awaits = true
	default: // do not forward the request, because its answer could not be matched to it
		forward, e.Reply = nil, e.Failed()
	}
	if isRequest && !awaits {
		s.pending.release(id)
	}
	if forward == nil {
		return s.reply(e.Reply)
	}
	if err := s.server.write(forward); err != nil && awaits && s.pending.take(id) != nil {
		return s.reply(e.Failed()) // the server accepts no more input
	}
	return nil
}

// fromServer reads the server's lines until they end, and moves them to the client. Then it
// sends the client an error for each request that the server has not answered. It returns an
// error if a write to the client fails.
func (s *session) fromServer(ctx context.Context, out io.Reader) error {
	lines := newLineReader(out, maxServerLine)
	for {
		line, err := lines.readMessage()
		switch {
		case errors.Is(err, errTooLong): // the line is gone, so nobody knows which request it answers
			s.note("a line of the server was dropped", err)
			err = nil
		case errors.Is(err, errSplit):
			s.note("a line of the server was dropped", err)
			err = nil
			if e := s.exchangeOf(line); e != nil {
				err = s.reply(e.Failed())
			}
		case err != nil:
			for _, e := range s.pending.end() {
				if err := s.reply(e.Failed()); err != nil {
					return err
				}
			}
			return nil
		default:
			err = s.serverLine(ctx, line)
		}
		if err != nil {
			return err
		}
	}
}

func (s *session) serverLine(ctx context.Context, line []byte) error {
	e := s.exchangeOf(line)
	if e == nil {
		return s.reply(s.proxy.Pass(ctx, line))
	}
	if sealed := e.Seal(ctx, line); sealed != nil {
		return s.reply(sealed)
	}
	return s.reply(e.Failed())
}

// exchangeOf returns the exchange of a pending request if the server's line is the answer to
// this request. It returns nil if the line is not such an answer, or if the client has cancelled
// the request.
func (s *session) exchangeOf(line []byte) *proxy.Exchange {
	id, method, ok := head(line)
	if !ok { // the line will be refused, but the client must get an error for its request
		id, method = anyHead(line)
	}
	if id == "" || method { // a notification, or a request from the server: its id is not the id of a request from the client
		return nil
	}
	return s.pending.take(id)
}

// reply writes the message to the client. It does nothing if the message is nil.
func (s *session) reply(message []byte) error {
	if message == nil {
		return nil
	}
	return s.client.write(message)
}

// head returns the JSON text of a message's id, or "" if it has none. It also returns whether
// the message has a method. The result ok is false if the line is not a JSON object, or is one
// that the proxy does not read, such as one that nests too deep. The carrier uses this
// function only to find the request to which a line belongs. The proxy decides whether to
// accept the line.
func head(line []byte) (id string, hasMethod, ok bool) {
	members := jsonorder.ReadMembers(string(line))
	for {
		member, more := members.Next()
		if !more {
			return strings.Clone(id), hasMethod, members.Whole() // a clone, so that the id does not keep the line in memory
		}
		switch member.Name {
		case "id":
			id = member.Raw
		case "method":
			hasMethod = true
		}
	}
}

// anyHead does the same as the function head, and also reads lines that are not UTF-8 or nest
// too deep.
func anyHead(line []byte) (id string, hasMethod bool) {
	var message struct{ ID, Method json.RawMessage }
	if json.Unmarshal(line, &message) != nil {
		return "", false
	}
	return string(message.ID), message.Method != nil
}

// cancelledID reads a notification that cancels a request. It returns the id of that request as
// JSON text, or "" if there is no id.
func cancelledID(line []byte) string {
	var notification struct {
		Params struct {
			RequestID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if json.Unmarshal(line, &notification) != nil {
		return ""
	}
	return string(notification.Params.RequestID)
}

// The JSON-RPC error codes that the carrier itself sends.
const (
	invalidRequest = -32600
	internalError  = -32603
)

// failure returns an answer with an error. The parameter id is the JSON text of the request's
// id.
func failure(id string, code int) []byte {
	message := "Invalid Request"
	if code == internalError {
		message = "Internal error"
	}
	return []byte(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":` + strconv.Itoa(code) + `,"message":"` + message + `"}}`)
}
