package httpcarrier

import (
	"encoding/base64"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/mcpseal/mcpseal/proxy"
)

// mediaType returns the media type of a body, or "" if it has none, two, or one that says
// that the text is not UTF-8.
func mediaType(header http.Header) string {
	values := header["Content-Type"]
	if len(values) != 1 {
		return ""
	}
	media, parameters, err := mime.ParseMediaType(values[0])
	charset, ok := parameters["charset"]
	if err != nil || ok && !strings.EqualFold(charset, "utf-8") {
		return ""
	}
	return media
}

func isJSON(header http.Header) bool { return mediaType(header) == "application/json" }

func isEncoded(header http.Header) bool {
	for _, value := range header["Content-Encoding"] {
		if value != "" && !strings.EqualFold(value, "identity") {
			return true
		}
	}
	return false
}

// The headers that repeat what a message says.
const (
	methodHeader = "Mcp-Method"
	nameHeader   = "Mcp-Name"
)

// agrees reports whether the headers say of a call what the message says. Other requests are
// not compared: clients send some whose headers differ.
func agrees(header http.Header, e *proxy.Exchange) bool {
	switch e.Method {
	case "tools/call", "prompts/get", "resources/read":
	default:
		return true
	}
	for _, method := range header[methodHeader] {
		if method != e.Method {
			return false
		}
	}
	for _, name := range header[nameHeader] {
		if encoded, ok := strings.CutPrefix(name, "=?base64?"); ok && strings.HasSuffix(encoded, "?=") {
			text, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(encoded, "?="))
			if err != nil {
				return false
			}
			name = string(text)
		}
		if name != e.Target {
			return false
		}
	}
	return true
}

// headerMismatch is the answer to a call whose headers say something else than its message.
// id is JSON text.
func headerMismatch(id string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32020,"message":"Header mismatch"}}`)
}

// allowsOrigin reports whether the page that sent the request may do so. A page whose name an
// attacker resolves to this machine must not, so by default only addresses count, which
// nobody resolves.
func (h *Handler) allowsOrigin(r *http.Request) bool {
	values := r.Header["Origin"]
	if len(values) == 0 {
		return true
	}
	origin, ok := parseOrigin(values[0])
	if !ok || len(values) > 1 {
		return false
	}
	if len(h.origins) > 0 {
		return h.origins[origin.String()]
	}
	own, ok := parseOrigin(origin.Scheme + "://" + r.Host)
	if !ok || own.Host != origin.Host {
		return false
	}
	_, err := netip.ParseAddr(origin.Hostname())
	return err == nil || origin.Hostname() == "localhost"
}

// parseOrigin reads the origin of a web page: a scheme, a host and perhaps a port.
func parseOrigin(text string) (origin url.URL, ok bool) {
	u, err := url.Parse(strings.ToLower(text))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return origin, false
	}
	origin = url.URL{Scheme: u.Scheme, Host: u.Host}
	if origin.String() != strings.ToLower(text) {
		return url.URL{}, false
	}
	if port := u.Port(); port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https" {
		origin.Host = strings.TrimSuffix(u.Host, ":"+port)
	}
	return origin, true
}
