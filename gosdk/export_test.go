package gosdk

import (
	"context"
	"crypto/fips140"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/adapter"
)

// PromptArguments returns the text from which the digest of a prompt's arguments is made.
func PromptArguments(arguments map[string]string) []byte {
	return adapter.AppendStrings(nil, arguments)
}

// CallerOf returns the name of a user from the access token of a request.
func CallerOf(ctx context.Context, req mcp.Request) (string, error) {
	c := new(Protection).callerOf(req)
	return c.tokenUser(ctx)
}

// Bubble runs a test in a bubble of package synctest, which has its own clock.
func Bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if fips140.Enabled() {
		t.Skip("the random source of FIPS 140-3 measures time, which stands still in a bubble")
	}
	synctest.Test(t, f)
}
