// Package plain marks errors whose text holds no secret, so that a log may
// show it.
package plain

// Error is such a text.
type Error string

func (e Error) Error() string { return string(e) }
