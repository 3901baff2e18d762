// Package plain makes texts and errors that are safe to log.
package plain

import "strconv"

// Error is an error whose text holds no secret.
type Error string

func (e Error) Error() string { return string(e) }

// MaxText is how many bytes of a client's text the log shows, at most.
const MaxText = 128

// Text returns a client's text in a form for the log. A short text of plain ASCII stays as it is.
// Any other text is quoted, and cut after MaxText bytes.
func Text(text string) string {
	if len(text) <= MaxText && needsNoQuotes(text) {
		return text
	}
	quoted := strconv.QuoteToASCII(text[:min(len(text), MaxText)])
	return quoted[:min(len(quoted), MaxText)]
}

// needsNoQuotes reports whether strconv.QuoteToASCII would escape nothing in text.
func needsNoQuotes(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
