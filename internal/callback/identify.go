package callback

import (
	"context"

	"github.com/mcpseal/mcpseal/internal/plain"
)

const (
	maxPrincipal = 4096

	errLongPrincipal = plain.Error("the principal is longer than 4096 bytes")
)

// Identify asks who is calling; nil is nobody. An error, a panic and a text that
// is too long fail the check.
func Identify(ctx context.Context, principal func(context.Context) (string, error)) (user string, failed *Error) {
	if principal == nil {
		return "", nil
	}
	panicked := Guard(func() {
		name, err := principal(ctx)
		switch {
		case err != nil:
			failed = Failed(err)
		case len(name) > maxPrincipal:
			failed = Failed(errLongPrincipal)
		default:
			user = name
		}
	})
	if panicked != nil {
		return "", panicked
	}
	return user, failed
}
