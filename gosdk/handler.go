package gosdk

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// firstStateless is the first revision without sessions.
const firstStateless = "2026-07-28"

// Handler serves clients of all protocol revisions at one URL. The SDK's own
// handler is either stateless, which revision 2026-07-28 needs, or stateful,
// which older clients need to be asked anything; this one has both and chooses
// by the Mcp-Protocol-Version header. Options may be nil; their Stateless field
// is not used.
func Handler(getServer func(*http.Request) *mcp.Server, options *mcp.StreamableHTTPOptions) http.Handler {
	var stateless, stateful mcp.StreamableHTTPOptions
	if options != nil {
		stateless, stateful = *options, *options
	}
	stateless.Stateless, stateful.Stateless = true, false
	newer := mcp.NewStreamableHTTPHandler(getServer, &stateless)
	older := mcp.NewStreamableHTTPHandler(getServer, &stateful)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Revisions are dates, so they compare as texts.
		if r.Header.Get("Mcp-Protocol-Version") >= firstStateless {
			newer.ServeHTTP(w, r)
			return
		}
		older.ServeHTTP(w, r)
	})
}
