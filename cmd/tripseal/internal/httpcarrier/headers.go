package httpcarrier

import (
	"encoding/base64"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/tripseal/tripseal/proxy"
)

// mediaType returns the media type of a body. It returns "" if the header Content-Type is
// missing, repeated or malformed, or says that the text is not in UTF-8.
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

// The headers in which a client repeats the method of its message and the name of the tool,
// prompt or resource.
const (
	methodHeader = "Mcp-Method"
	nameHeader   = "Mcp-Name"
)

// headersAgree reports whether the headers of a call give the same method and name as its
// message. It ignores missing headers. For requests that are not calls, it compares nothing and
// returns true, because clients send some of these requests with headers that differ.
func headersAgree(header http.Header, e *proxy.Exchange) bool {
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

// headerMismatch returns the answer to a call whose headers differ from its message. The
// parameter id is the JSON text of the request's id.
func headerMismatch(id string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32020,"message":"Header mismatch"}}`)
}

// allowsOrigin reports whether the web page that sent the request may send it. An attacker can
// make the host name of a page resolve to this machine. So without a list of allowed origins,
// allowsOrigin allows only localhost and IP addresses. An attacker cannot choose where these
// lead.
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

// parseOrigin parses the origin of a web page: a scheme, a host and perhaps a port. It returns
// false if text is anything else.
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
