package proxycmd

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// record describes a request that has ended, for the log and the metrics. It does not hold the user's name.
type record struct {
	HTTPMethod     string
	Status         int
	Duration       time.Duration
	Received, Sent int    // the lengths of the client's message and of the answer, in bytes
	Peer           string // the address of the client
	Method         string // the method of the message, such as tools/call; "" if there was no message
	Target         string // the name of the tool or prompt; "" for resources, because a URI can hold secrets
}

// recorded returns a handler that calls report for each request when it has ended.
func recorded(next http.Handler, report func(context.Context, record)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, c := time.Now(), &recorder{ResponseWriter: w}
		inner := r.WithContext(context.WithValue(r.Context(), recorderKey{}, c))
		inner.Body = &countedBody{r.Body, &c.received}
		defer func() {
			e := record{
				HTTPMethod: tripseal.PlainText(r.Method), Status: c.status, Duration: time.Since(start),
				Received: c.received, Sent: c.sent, Peer: r.RemoteAddr,
			}
			if x := c.exchange; x != nil {
				e.Method = tripseal.PlainText(x.Method)
				if e.Method == "tools/call" || e.Method == "prompts/get" {
					e.Target = tripseal.PlainText(x.Target)
				}
			}
			report(r.Context(), e)
		}()
		next.ServeHTTP(c, inner)
	})
}

// recorder counts what the client of a request gets.
type recorder struct {
	http.ResponseWriter
	status, received, sent int
	exchange               *wire.Exchange // nil if the request carries no message
}

type recorderKey struct{}

// opened takes the message of a request: see [wire.Options.Opened].
func opened(ctx context.Context, x *wire.Exchange) { ctx.Value(recorderKey{}).(*recorder).exchange = x }

func (c *recorder) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *recorder) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.sent += n
	return n, err
}

// Flush tells the door that it can send events.
func (c *recorder) Flush() { http.NewResponseController(c.ResponseWriter).Flush() }

// FlushError tells the door that a client is gone.
func (c *recorder) FlushError() error { return http.NewResponseController(c.ResponseWriter).Flush() }

// Unwrap lets the door set deadlines.
func (c *recorder) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// countedBody is the body of a request.
type countedBody struct {
	io.ReadCloser
	read *int
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	*b.read += n
	return n, err
}
