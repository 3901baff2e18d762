package httpcarrier

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"
)

// rewrite turns r.Out, a copy of the request that left the door, into the request for the server.
func (h *Handler) rewrite(r *httputil.ProxyRequest) {
	out, upstream := r.Out, h.config.Upstream
	if out.GetBody != nil {
		out.Body, _ = out.GetBody() // if a body is in memory, net/http sends it together with the headers
	}
	out.URL.Scheme, out.URL.Host, out.Host = upstream.Scheme, upstream.Host, ""
	out.URL.Path, out.URL.RawPath = upstream.Path, upstream.RawPath
	if upstream.RawQuery != "" { // drop the client's query, which might override the query of Upstream
		out.URL.RawQuery = upstream.RawQuery
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		// If a request has one of these headers, package http sends the request again when the server closes the
		// connection. But the server may already have acted on the request. So write the header's name in lower case:
		// then package http does not recognize the header.
		if values := out.Header[name]; values != nil {
			delete(out.Header, name)
			out.Header[strings.ToLower(name)] = values
		}
	}
	for name := range out.Header {
		if h.namesUser(name) {
			delete(out.Header, name)
		}
	}
	if h.config.ForwardIdentity {
		for _, name := range h.config.Identity.Headers() {
			if values := r.In.Header[name]; len(values) > 0 {
				out.Header[name] = values
			}
		}
	}
}

// namesUser reports whether the server might read the header as one that tells who the user is. Many servers treat _
// and - in the name of a header as the same.
func (h *Handler) namesUser(name string) bool {
	for _, of := range h.config.Identity.Headers() {
		if strings.EqualFold(strings.ReplaceAll(name, "_", "-"), strings.ReplaceAll(of, "_", "-")) {
			return true
		}
	}
	return false
}

// answered is called when the server has begun its answer.
func (h *Handler) answered(res *http.Response) error {
	h.dropPages(res.Header)
	if mediaType(res.Header) == "application/json" {
		v := visitOf(res.Request)
		v.late = time.AfterFunc(h.config.Timeout, func() {
			h.log(v.client, "the server did not complete its answer", "cause", "it took too long")
			res.Body.Close() // ends the read that waits
		})
	}
	return nil
}

// unreachable answers the client if the server did not answer the request.
func (h *Handler) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	if client := visitOf(r).client; client.Context().Err() == nil { // otherwise the client is gone, or the proxy ends
		h.log(client, "the server did not answer", "cause", cause(err))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	if x := h.config.Engine.Through(r.Context(), ""); x != nil {
		io.WriteString(w, x.Failed())
	}
}

// cause returns a text for the log that says what went wrong between the proxy and the server. It uses the text of err
// only for the errors listed here. Other errors of package http quote what the server sent. That may be a state, which
// must not reach the log.
func cause(err error) string {
	var network net.Error
	var operation *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.Canceled):
		return "the client is gone, or the proxy ends"
	case errors.As(err, &network) && network.Timeout():
		return "it took too long"
	case errors.As(err, &operation):
		return operation.Error()
	case errors.As(err, &certificate):
		return certificate.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	}
	return "what the server sent is not HTTP"
}

// mediaType returns the media type of an answer, or "" if it is missing or malformed.
func mediaType(header http.Header) string {
	value := header.Get("Content-Type")
	if value == "application/json" { // the usual text, without an allocation
		return value
	}
	media, _, err := mime.ParseMediaType(value)
	if err != nil {
		return ""
	}
	return media
}

// copyBuffers lends the buffers through which answers are copied. It clears each buffer that it gets back.
type copyBuffers struct{}

const bufferSize = 32 << 10

var copyPool = sync.Pool{New: func() any { return new([bufferSize]byte) }}

func (copyBuffers) Get() []byte { return copyPool.Get().(*[bufferSize]byte)[:] }

func (copyBuffers) Put(buffer []byte) {
	clear(buffer)
	copyPool.Put((*[bufferSize]byte)(buffer))
}
