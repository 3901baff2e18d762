package callback

import "context"

// GaveUp reports whether a part failed because the caller has given up: its context
// was cancelled. A panic is a failure all the same, and so is a deadline: only the
// service sets one, perhaps because a part is slow.
func GaveUp(ctx context.Context, failed *Error) bool {
	return ctx.Err() == context.Canceled && (failed == nil || failed.stack == "")
}
