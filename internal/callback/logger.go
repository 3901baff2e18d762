package callback

import (
	"context"
	"log/slog"
)

// Logger returns a logger that ignores a panic of its handler.
func Logger(l *slog.Logger) *slog.Logger { return slog.New(quiet{l.Handler()}) }

type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	Quietly(func() { enabled = q.Handler.Enabled(ctx, level) })
	return enabled
}

func (q quiet) Handle(ctx context.Context, r slog.Record) (err error) {
	Quietly(func() { err = q.Handler.Handle(ctx, r) })
	return err
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }
