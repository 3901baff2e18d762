package httpcarrier

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// discover is a request that every server of revision 2026-07-28 answers. A server of an older revision answers it with
// an error, which also shows that the server is there.
const discover = `{"jsonrpc":"2.0","id":"tripseal","method":"server/discover","params":{"_meta":{` +
	`"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"tripseal","version":"0"},` +
	`"io.modelcontextprotocol/clientCapabilities":{}}}}`

// Look sends the server a harmless request. It returns nil if the server can be used now, and otherwise an error that
// says why not. The status 401 is no error: it shows that the server is there.
func (h *Handler) Look(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.config.Upstream.String(), strings.NewReader(discover))
	if err != nil {
		return err
	}
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"server/discover"}, "User-Agent": {"tripseal"},
	}
	res, err := h.transport.RoundTrip(r)
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("it did not answer in time")
		}
		return errors.New(cause(err))
	}
	res.Body.Close() // not read, because its text does not matter and a stream might never end
	media := mediaType(res.Header)
	switch status := res.StatusCode; {
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return fmt.Errorf("it answers %d: the path is probably wrong", status)
	case status >= 300 && status < 400, status >= 500:
		return fmt.Errorf("it answers %d", status)
	case status == http.StatusOK && media != "application/json" && media != "text/event-stream":
		return errors.New("its answer is neither JSON nor events: this is not an MCP server, or the path is wrong")
	}
	return nil
}
