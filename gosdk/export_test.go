package gosdk

import (
	"context"
	"crypto/fips140"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// PromptArguments is the text that is digested for a prompt's arguments.
func PromptArguments(arguments map[string]string) []byte { return appendStrings(nil, arguments) }

// CallerOf is whom the access token of a request names.
func CallerOf(ctx context.Context, req mcp.Request) (string, error) {
	c := new(Protection).callerOf(req)
	return c.tokenUser(ctx)
}

// Bubble runs a test with a clock of its own.
func Bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if fips140.Enabled() {
		t.Skip("the random source of FIPS 140-3 measures time, which stands still in a bubble")
	}
	synctest.Test(t, f)
}

// InstalledServers is how many servers are remembered as protected.
func InstalledServers() int {
	installed.mu.Lock()
	defer installed.mu.Unlock()
	return len(installed.servers)
}

// SweepInstalledNext has the next installation forget the servers that are gone.
func SweepInstalledNext() {
	installed.mu.Lock()
	defer installed.mu.Unlock()
	installed.sweep = 0
}
