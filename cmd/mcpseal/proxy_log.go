package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpseal/mcpseal/cmd/mcpseal/internal/httpcarrier"
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

func (l *proxyLog) open(to io.Writer) *slog.Logger {
	if l.format == "json" {
		return slog.New(slog.NewJSONHandler(&logWriter{to: to, lostRecord: `{"level":"WARN","msg":"proxy: records before this one could not be written","records":%d}`}, nil))
	}
	return slog.New(slog.NewTextHandler(&logWriter{to: to, lostRecord: `level=WARN msg="proxy: records before this one could not be written" records=%d`}, nil))
}

// logRequest writes the access record of a request.
func logRequest(ctx context.Context, logger *slog.Logger, r httpcarrier.Request) {
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

// logTimeout is how long a request waits until a record is written.
const logTimeout = time.Second

// logWriter writes the log. If nobody takes what it writes, records are lost, but requests go
// on: a write that has not ended after logTimeout ends alone, and until then all records are
// dropped. When writing works again, it says how many were lost.
type logWriter struct {
	to         io.Writer
	lostRecord string // says how many records were lost

	mu   sync.Mutex // held for a write
	hung atomic.Bool
	lost atomic.Int64
}

var errLogHangs = errors.New("the log takes no more records")

func (w *logWriter) Write(p []byte) (int, error) {
	if w.hung.Load() {
		w.lost.Add(1)
		return 0, errLogHangs
	}
	record := slices.Clone(p) // the write may take longer than the caller waits
	written := make(chan struct{})
	go func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		defer close(written)
		if _, err := w.to.Write(record); err != nil {
			w.lost.Add(1) // the disk is full, for example
		} else if lost := w.lost.Swap(0); lost > 0 {
			fmt.Fprintf(w.to, w.lostRecord+"\n", lost)
		}
		w.hung.Store(false)
	}()
	wait := time.NewTimer(logTimeout)
	defer wait.Stop()
	select {
	case <-written:
		return len(p), nil
	case <-wait.C:
		w.hung.Store(true)
		select {
		case <-written: // just now
			w.hung.Store(false)
		default:
		}
		return 0, errLogHangs
	}
}
