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
	var err error
	panicked := Guard(func() {
		if user, err = Ask(ctx, principal); err != nil {
			failed = Failed(err)
		}
	})
	if panicked != nil {
		return "", panicked
	}
	return user, failed
}

// Ask is Identify within a [Guard].
func Ask(ctx context.Context, principal func(context.Context) (string, error)) (string, error) {
	if principal == nil {
		return "", nil
	}
	user, err := principal(ctx)
	switch {
	case err != nil:
		return "", err
	case len(user) > maxPrincipal:
		return "", errLongPrincipal
	}
	return user, nil
}
