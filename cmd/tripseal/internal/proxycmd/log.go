package proxycmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
)

// proxyLog holds the settings of the log.
type proxyLog struct {
	format string
	access bool
}

func (l *proxyLog) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.format, "log-format", "text", "how the log is written to standard error: text or json")
	cmd.Flags().BoolVar(&l.access, "access-log", false, "log each request when it has ended")
}

func (l *proxyLog) check() error {
	if l.format != "text" && l.format != "json" {
		return errors.New("--log-format is neither text nor json")
	}
	return nil
}

// open returns a logger, and a function that waits until the records of the logger are
// written. Call that function once, when the process ends.
func (l *proxyLog) open(to io.Writer) (logger *slog.Logger, flush func()) {
	w := &logWriter{to: to, records: make(chan []byte, logRoom), flushed: make(chan struct{})}
	defer func() { go w.write() }()
	if l.format == "json" {
		w.lostRecord = `{"level":"WARN","msg":"proxy: records before this one could not be written","records":%d}`
		return slog.New(slog.NewJSONHandler(w, nil)), w.flush
	}
	w.lostRecord = `level=WARN msg="proxy: records before this one could not be written" records=%d`
	return slog.New(slog.NewTextHandler(w, nil)), w.flush
}

// logRequest logs a request that has ended, for --access-log.
func logRequest(ctx context.Context, logger *slog.Logger, r record) {
	attrs := []slog.Attr{
		slog.String("http_method", r.HTTPMethod), slog.Int("status", r.Status), slog.Float64("duration_ms", float64(r.Duration.Microseconds())/1000),
		slog.Int("request_bytes", r.Received), slog.Int("answer_bytes", r.Sent), slog.String("peer", r.Peer),
	}
	if r.Method != "" {
		attrs = append(attrs, slog.String("method", r.Method))
	}
	if r.Target != "" {
		attrs = append(attrs, slog.String("target", r.Target))
	}
	logger.LogAttrs(ctx, slog.LevelInfo, "proxy: a request has ended", attrs...)
}

const (
	logRoom    = 1000        // how many records may wait to be written
	logTimeout = time.Second // how long the last records may take to be written when the process ends
)

// logWriter writes the log. Requests do not wait for the log. If records come faster
// than they can be written, or the disk is full, some are lost. A later record says how many.
type logWriter struct {
	to         io.Writer
	lostRecord string      // a format for the record that says how many records were lost
	records    chan []byte // nil is the last one
	lost       atomic.Int64
	flushed    chan struct{} // closed when the last record is written
}

func (w *logWriter) Write(p []byte) (int, error) {
	select {
	case w.records <- slices.Clone(p):
	default:
		w.lost.Add(1)
	}
	return len(p), nil
}

// write writes the records that come in, until the last one.
func (w *logWriter) write() {
	defer close(w.flushed)
	for record := <-w.records; record != nil; record = <-w.records {
		w.writeOne(record)
	}
}

func (w *logWriter) writeOne(record []byte) {
	if _, err := w.to.Write(record); err != nil {
		w.lost.Add(1)
	} else if lost := w.lost.Swap(0); lost > 0 {
		fmt.Fprintf(w.to, w.lostRecord+"\n", lost)
	}
}

// flush waits until all records are written, but at most for logTimeout.
func (w *logWriter) flush() {
	timeout := time.After(logTimeout)
	select {
	case w.records <- nil:
	case <-timeout:
		return
	}
	select {
	case <-w.flushed:
	case <-timeout:
	}
}
