// Package plain is about texts that a log may show.
package plain

import "strconv"

// Error is an error whose text holds no secret.
type Error string

func (e Error) Error() string { return string(e) }

// MaxText bounds what a client chose and a log repeats.
const MaxText = 128

// Text quotes a text that is not plain ASCII and bounds its length.
func Text(text string) string {
	cut := text[:min(len(text), MaxText)]
	quoted := strconv.QuoteToASCII(cut)
	if quoted == `"`+text+`"` {
		return text
	}
	return quoted[:min(len(quoted), MaxText)]
}
