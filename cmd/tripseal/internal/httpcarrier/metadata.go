package httpcarrier

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// Metadata returns the RFC 9728 document of a resource whose users get their access tokens
// from an issuer.
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

// serveMetadata serves the RFC 9728 document. Everybody may read it, because clients need it
// before they have an access token. The header lets web pages of every origin read it too.
func (h *Handler) serveMetadata(w http.ResponseWriter) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	writeJSON(w, http.StatusOK, h.config.Metadata)
}
