package gosdk

import (
	"crypto/fips140"
	"testing"
	"testing/synctest"
)

// PromptArguments is the text that is digested for a prompt's arguments.
func PromptArguments(arguments map[string]string) []byte { return appendStrings(nil, arguments) }

// TokenInfo is the access token that counts for a request.
var TokenInfo = tokenInfo

// Bubble runs a test with a clock of its own.
func Bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if fips140.Enabled() {
		t.Skip("the random source of FIPS 140-3 measures time, which stands still in a bubble")
	}
	synctest.Test(t, f)
}
