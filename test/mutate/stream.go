package mutate

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptrace"
	"sync"
)

// stream is the response to a GET request, on which a server may send questions to a client
// of the older protocol revision. It lasts until the session ends, because mcp-go loses
// questions when a client opens a second stream.
type stream struct {
	stop func()

	mu  sync.Mutex // protects the next field: the stream and the response to a call can have questions at the same time
	ask asking
}

// asking is a function that is called for each question of the server, and answers it.
type asking func(id, question json.RawMessage) error

// listen opens the stream of a session. It opens no stream if c.Listens is false or the server has
// no such stream.
func (c *Client) listen(ctx context.Context, session string) *stream {
	s := &stream{stop: func() {}}
	if !c.Listens {
		return s
	}
	ctx, cancel := context.WithCancel(ctx)
	opened, ended := make(chan struct{}), make(chan struct{})
	trace := &httptrace.ClientTrace{GotFirstResponseByte: sync.OnceFunc(func() { close(opened) })}
	go func() {
		defer close(ended)
		m := message{revision: Older, session: session}
		c.do(httptrace.WithClientTrace(ctx, trace), http.MethodGet, m.header(), nil, func(id, question json.RawMessage) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.ask == nil {
				return nil // the call that asked this question has ended
			}
			return s.ask(id, question)
		})
	}()
	select {
	case <-opened:
	case <-ended:
	}
	s.stop = func() {
		cancel()
		<-ended
	}
	return s
}

// answerer answers the questions of one call.
type answerer struct {
	stream *stream
	ask    asking
}

// begin makes the stream pass each question to a.ask, until the caller calls end. Questions can
// also come in the HTTP response to the call. The caller must pass those questions to askLocked.
// askLocked calls a.ask too, but never while the stream calls a.ask. If the answerer is nil,
// askLocked is nil.
func (a *answerer) begin() (askLocked asking, end func()) {
	if a == nil {
		return nil, func() {}
	}
	set := func(ask asking) {
		a.stream.mu.Lock()
		defer a.stream.mu.Unlock()
		a.stream.ask = ask
	}
	set(a.ask)
	return func(id, question json.RawMessage) error {
		a.stream.mu.Lock()
		defer a.stream.mu.Unlock()
		return a.ask(id, question)
	}, func() { set(nil) }
}
