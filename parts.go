package mcpseal

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/mcpseal/mcpseal/internal/callback"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// What follows is for authors of adapters, formats and stores: how to call code of
// their users, and what may be said about it in a log.

// PlainError is an error whose text holds no secret. A log shows the text of a
// PlainError that a codec, a format, a store or a principal returns or wraps; of
// any other error it shows the type only.
type PlainError = plain.Error

// PlainText returns a text that a client chose as a log may show it: quoted, unless
// it is plain ASCII, and cut at 128 bytes.
func PlainText(text string) string { return plain.Text(text) }

// PartError is what a part that a user supplied returned or panicked with. Its text
// names the kind of failure only, because the original's may hold anything. Stack
// names the functions that led to a panic; Unwrap reaches the original error.
type PartError = callback.Error

// Guard calls a part that a user supplied. Its error, and what it panics with, come
// back as a [*PartError].
func Guard(part func() error) error {
	var failed *PartError
	panicked := callback.Guard(func() {
		if err := part(); err != nil {
			failed = callback.Failed(err)
		}
	})
	if panicked != nil {
		failed = panicked
	}
	return failed.OrNil()
}

// Identify asks who is calling; a nil Principal is nobody. An error, a panic and
// a text of more than 4096 bytes come back as a [*PartError].
func (p Principal) Identify(ctx context.Context) (user string, err error) {
	user, failed := callback.Identify(ctx, p)
	return user, failed.OrNil()
}

// Logger returns a logger that goes on when its handler panics. Nil means what
// slog.Default() returns now.
func Logger(l *slog.Logger) *slog.Logger { return callback.Logger(cmp.Or(l, slog.Default())) }
