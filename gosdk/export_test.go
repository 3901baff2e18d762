package gosdk

import (
	"crypto/fips140"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Receiving returns the receiving middleware.
func Receiving(p *Protector) mcp.Middleware { return p.receive }

// Bubble runs a test in a bubble of package synctest, which has its own clock.
func Bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if fips140.Enabled() {
		t.Skip("the random source of FIPS 140-3 measures time, which stands still in a bubble")
	}
	synctest.Test(t, f)
}
