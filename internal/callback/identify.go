package callback

import (
	"context"

	"github.com/mcpseal/mcpseal/internal/plain"
)

const (
	maxUser = 4096

	errLongUser = plain.Error("the user's name is longer than 4096 bytes")
)

// Identify returns the user that is calling, and "" for a nil principal. An error, a
// panic and a name that is too long fail the check.
func Identify(ctx context.Context, principal func(context.Context) (string, error)) (user string, failed *Error) {
	if principal == nil {
		return "", nil
	}
	panicked := Guard(func() {
		name, err := principal(ctx)
		switch {
		case err != nil:
			failed = Failed(err)
		case len(name) > maxUser:
			failed = Failed(errLongUser)
		default:
			user = name
		}
	})
	if panicked != nil {
		return "", panicked
	}
	return user, failed
}
