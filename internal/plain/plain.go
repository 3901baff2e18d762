// Package plain makes texts and errors that are safe to log.
package plain

import "strconv"

// Error is an error whose text holds no secret.
type Error string

func (e Error) Error() string { return string(e) }

// MaxText is how many bytes of a client's text the log shows, at most.
const MaxText = 128

// Text returns a client's text in a form for the log: a short text of plain ASCII as it is,
// and any other text quoted and cut after MaxText bytes.
func Text(text string) string {
	cut := text[:min(len(text), MaxText)]
	quoted := strconv.QuoteToASCII(cut)
	if quoted == `"`+text+`"` {
		return text
	}
	return quoted[:min(len(quoted), MaxText)]
}
