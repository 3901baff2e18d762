package httpcarrier

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// metadataPath is where RFC 9728 puts the metadata of a protected resource.
const metadataPath = "/.well-known/oauth-protected-resource"

// maxMetadata is the maximum length of the server's document, in bytes.
const maxMetadata = 64 << 10

// Metadata returns the RFC 9728 document of a resource whose users get their access tokens from an issuer.
func Metadata(resource *url.URL, issuer string) ([]byte, error) {
	return json.Marshal(map[string]any{
		"resource":                 resource.String(),
		"authorization_servers":    []string{issuer},
		"bearer_methods_supported": []string{"header"},
	})
}

// MetadataURL returns the address of the RFC 9728 document of a resource.
func MetadataURL(resource *url.URL) string {
	at := *resource
	at.Path = metadataPath + strings.TrimSuffix(resource.Path, "/")
	return at.String()
}

// isMetadata reports whether the RFC 9728 metadata of this server is at the address.
func (h *Handler) isMetadata(address *url.URL) bool {
	of, ok := strings.CutPrefix(address.Path, metadataPath)
	if !ok || address.RawPath != "" {
		return false
	}
	of = strings.TrimSuffix(of, "/")
	return of == "" || of == strings.TrimSuffix(h.config.Upstream.Path, "/") ||
		h.config.Metadata != nil && of == strings.TrimSuffix(h.config.MetadataPath, "/")
}

// serveMetadata serves the RFC 9728 document: the proxy's own, or the server's. The client is not known, so the server
// gets neither its query nor its headers, and only JSON passes.
func (h *Handler) serveMetadata(w http.ResponseWriter, r *http.Request) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.config.Timeout + h.config.Door.ClientTimeout))
	if h.config.Metadata != nil {
		h.write(w, r, http.StatusOK, "application/json", string(h.config.Metadata))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.config.Timeout)
	defer cancel()
	address := *h.config.Upstream
	address.Path, address.RawPath, address.RawQuery = r.URL.Path, "", ""
	var res *http.Response
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err == nil {
		ask.Header.Set("Accept", "application/json")
		res, err = h.transport.RoundTrip(ask)
	}
	if err != nil {
		h.refuse(w, r, http.StatusBadGateway, cause(err))
		return
	}
	defer res.Body.Close()
	if mediaType(res.Header) != "application/json" || res.Header.Get("Content-Encoding") != "" {
		h.write(w, r, res.StatusCode, "", "")
		return
	}
	document, err := io.ReadAll(io.LimitReader(res.Body, maxMetadata+1))
	if err != nil || len(document) > maxMetadata {
		h.refuse(w, r, http.StatusBadGateway, "the metadata of the server is cut off or too long")
		return
	}
	for _, name := range []string{allowOrigin, "Cache-Control", "Etag"} {
		if values := res.Header[name]; values != nil {
			w.Header()[name] = values
		}
	}
	h.write(w, r, res.StatusCode, "application/json", string(document))
}
