// Package plain has texts and errors that a log may show.
package plain

import "strconv"

// Error is an error whose text holds no secret.
type Error string

func (e Error) Error() string { return string(e) }

// MaxText is the most that a log repeats of a client's text, in bytes.
const MaxText = 128

// Text quotes a text if it is not plain ASCII, and limits its length.
func Text(text string) string {
	cut := text[:min(len(text), MaxText)]
	quoted := strconv.QuoteToASCII(cut)
	if quoted == `"`+text+`"` {
		return text
	}
	return quoted[:min(len(quoted), MaxText)]
}
