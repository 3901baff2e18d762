package httpcarrier

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/mcpseal/mcpseal"
)

// record writes the access record of a request that began at start. It has no name of a user,
// and of resources not even the URI, which can hold secrets.
func (c *call) record(w *hastyWriter, start time.Time) {
	status := w.status
	if status == 0 {
		status = http.StatusOK // what package http sends when the handler wrote nothing
	}
	attrs := []slog.Attr{
		slog.String("http_method", mcpseal.PlainText(c.request.Method)), slog.Int("status", status),
		slog.Float64("duration_ms", float64(time.Since(start).Microseconds())/1000), slog.Int("request_bytes", c.received), slog.Int("answer_bytes", w.sent),
		slog.String("peer", c.request.RemoteAddr),
	}
	if c.exchange != nil && c.exchange.Method != "" {
		attrs = append(attrs, slog.String("method", mcpseal.PlainText(c.exchange.Method)))
		if c.exchange.Method == "tools/call" || c.exchange.Method == "prompts/get" {
			attrs = append(attrs, slog.String("target", mcpseal.PlainText(c.exchange.Target)))
		}
	}
	c.config.Access.LogAttrs(c.request.Context(), slog.LevelInfo, "proxy: a request has ended", attrs...)
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
