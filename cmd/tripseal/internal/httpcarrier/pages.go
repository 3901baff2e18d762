package httpcarrier

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// allowsOrigin reports whether the web page that sent the request may send it. An attacker can make the host name of a
// page resolve to this machine. So without a list of allowed origins, allowsOrigin allows only localhost and IP
// addresses. An attacker cannot choose where these lead.
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

// parseOrigin parses the origin of a web page: a scheme, a host and perhaps a port. It returns false for anything else.
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

const allowOrigin = "Access-Control-Allow-Origin"

// allowPage adds the headers with which a browser lets a page of another origin read the answer. Everybody may read
// metadata, because clients need it before they have an access token.
func (h *Handler) allowPage(header http.Header, r *http.Request, metadata bool) {
	switch {
	case metadata && h.config.Metadata != nil:
		header.Set(allowOrigin, "*")
	case !metadata && len(h.origins) > 0:
		header.Set("Vary", "Origin")
		if values := r.Header["Origin"]; len(values) > 0 && h.allowsOrigin(r) {
			header.Set(allowOrigin, values[0])
			header.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
		}
	}
}

// dropPages removes from an answer what the server says about pages of other origins, if the proxy decides about them.
func (h *Handler) dropPages(header http.Header) {
	if len(h.origins) == 0 {
		return
	}
	for name := range header {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(header, name)
		}
	}
	if _, ok := header["Vary"]; ok {
		header.Add("Vary", "Origin")
	}
}

// isPreflight reports whether a browser asks whether a page may send a request.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" &&
		r.Header.Get("Access-Control-Request-Method") != ""
}

func (h *Handler) answerPreflight(w http.ResponseWriter, r *http.Request, methods []string) {
	header := w.Header()
	header.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
	if names := r.Header.Get("Access-Control-Request-Headers"); names != "" { // any, as from clients that are no browsers
		header.Set("Access-Control-Allow-Headers", names)
	}
	header.Set("Access-Control-Max-Age", "600")
	h.write(w, r, http.StatusNoContent, "", "")
}
