package httpcarrier

import (
	"net/http"
	"time"

	"github.com/mcpseal/mcpseal"
)

// Request is what is known of a request when it has ended. It has no name of a user.
type Request struct {
	HTTPMethod     string
	Status         int
	Duration       time.Duration
	Received, Sent int    // bytes of the client's message, and of the answer
	Peer           string // the address of the client
	Method         string // of the message; "" if there was none
	Target         string // the tool or prompt; "" otherwise, because a URI can hold secrets
}

// record passes on what is known of a request that began at start.
func (c *call) record(w *hastyWriter, start time.Time) {
	r := Request{
		HTTPMethod: mcpseal.PlainText(c.request.Method), Status: w.status, Duration: time.Since(start),
		Received: c.received, Sent: w.sent, Peer: c.request.RemoteAddr,
	}
	if r.Status == 0 {
		r.Status = http.StatusOK // what package http sends when the handler wrote nothing
	}
	if c.exchange != nil {
		r.Method = mcpseal.PlainText(c.exchange.Method)
		if r.Method == "tools/call" || r.Method == "prompts/get" {
			r.Target = mcpseal.PlainText(c.exchange.Target)
		}
	}
	c.config.Ended(c.request.Context(), r)
}

// hastyWriter gives each write a deadline, so that a client that stops reading cannot hold up
// the handler.
type hastyWriter struct {
	http.ResponseWriter
	deadlines *http.ResponseController
	timeout   time.Duration
	hurried   time.Time
	status    int // 0 until the status is written
	sent      int // bytes of the body
}

// hurry sets the write deadline to the timeout from now. It does nothing if it set the deadline
// less than a second ago.
func (w *hastyWriter) hurry() {
	if now := time.Now(); now.Sub(w.hurried) >= time.Second {
		w.hurried = now
		w.deadlines.SetWriteDeadline(now.Add(w.timeout))
	}
}

func (w *hastyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *hastyWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *hastyWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.hurry()
	n, err := w.ResponseWriter.Write(p)
	w.sent += n
	return n, err
}

func (w *hastyWriter) FlushError() error {
	w.hurry()
	return w.deadlines.Flush()
}
