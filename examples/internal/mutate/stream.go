package mutate

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptrace"
	"sync"
)

// stream is where a server may ask an older client beside the response to its call. It
// lasts as long as the session: mcp-go loses questions when a client listens anew.
type stream struct {
	stop func()

	mu  sync.Mutex // two streams may ask at the same time
	ask asking
}

// asking answers a question.
type asking func(id, question json.RawMessage) error

// listen opens the stream of a session, if the client listens and the server has one.
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
				return nil // its call has ended
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

// begin has ask answer the questions of the stream until end is called. It returns ask for
// the response to the call, made safe for use beside the stream.
func (a *answerer) begin() (safe asking, end func()) {
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
