package httpcarrier

import (
	"net/http"
	"time"

	"github.com/tripseal/tripseal"
)

// Request describes a request that has ended. It does not hold the user's name.
type Request struct {
	HTTPMethod     string
	Status         int
	Duration       time.Duration
	Received, Sent int    // the lengths of the client's message and of the answer, in bytes
	Peer           string // the address of the client
	Method         string // the method of the message, such as tools/call; "" if there was no message
	Target         string // the name of the tool or prompt; "" for resources, because a URI can hold secrets
}

// record calls Config.Ended for a request that has just ended. The parameter start says when the
// request began.
func (c *call) record(w *hastyWriter, start time.Time) {
	r := Request{
		HTTPMethod: tripseal.PlainText(c.request.Method), Status: w.status, Duration: time.Since(start),
		Received: c.received, Sent: w.sent, Peer: c.request.RemoteAddr,
	}
	if r.Status == 0 {
		r.Status = http.StatusOK // what package http sends when the handler wrote nothing
	}
	if c.exchange != nil {
		r.Method = tripseal.PlainText(c.exchange.Method)
		if r.Method == "tools/call" || r.Method == "prompts/get" {
			r.Target = tripseal.PlainText(c.exchange.Target)
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
	sent      int // how many bytes of the body were written
}

// hurry sets the write deadline to w.timeout from now. It does nothing if it last set the
// deadline less than a second ago.
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
