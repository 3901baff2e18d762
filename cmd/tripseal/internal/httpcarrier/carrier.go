// Package httpcarrier is what only a proxy has around the HTTP door of package wire: one path of one server, the users,
// web pages of other origins, and the metadata of RFC 9728. The door decides what happens to each message.
package httpcarrier

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/identity"
	"github.com/tripseal/tripseal/wire"
)

// DefaultTimeout applies where [Config.Timeout] is 0.
const DefaultTimeout = 5 * time.Minute

// Config says how a [Handler] carries messages.
type Config struct {
	// Engine decides what happens to each message. Required.
	Engine *wire.Engine
	// Upstream is the address of the server, with its path. Required.
	Upstream *url.URL
	// Identity tells who sends a request. Required.
	Identity identity.Identity
	// ForwardIdentity says whether the server gets the headers that identify the user to the proxy.
	ForwardIdentity bool
	// AllowOrigins lists the origins of the web pages that may send requests, such as https://app.example.com. Empty
	// means the proxy's own address, if it is an IP address or localhost.
	AllowOrigins []string
	// Door has the limits of the door, and Opened. [New] sets who calls.
	Door wire.Options
	// Timeout is how long the server may take to begin its answer. If the answer is JSON, the server then has the same
	// time again to complete it. Streams of events may take any time. 0 means 5 minutes.
	Timeout time.Duration
	// TLS has the settings of TLS with the server. Nil means the authorities that the system trusts, and that the proxy
	// shows no certificate.
	TLS *tls.Config
	// Metadata is the RFC 9728 document that the handler serves. Nil means the server's own document.
	Metadata []byte
	// MetadataPath is the path of the resource that Metadata describes, if it is not that of Upstream.
	MetadataPath string
	// Logger gets a record of each request that the proxy refuses or that the server does not answer. Nil means
	// [slog.Default].
	Logger *slog.Logger
}

// Handler is the HTTP side of the proxy. It is safe for concurrent use.
type Handler struct {
	config    Config
	origins   map[string]bool
	transport *http.Transport
	door      http.Handler
}

// New returns a handler, or an error if the config is wrong.
func New(config Config) (*Handler, error) {
	switch {
	case config.Engine == nil:
		return nil, errors.New("httpcarrier: Config.Engine is missing")
	case config.Identity == nil:
		return nil, errors.New("httpcarrier: Config.Identity is missing")
	case config.Timeout < 0:
		return nil, errors.New("httpcarrier: Config.Timeout is less than 0")
	}
	if err := CheckUpstream(config.Upstream); err != nil {
		return nil, err
	}
	orDefault(&config.Timeout, DefaultTimeout)
	orDefault(&config.Logger, slog.Default())
	upstream := *config.Upstream
	orDefault(&upstream.Path, "/")
	config.Upstream = &upstream
	config.Door.User = userOf
	config.Door.AllowAnonymous = config.Identity == identity.Anonymous()
	if err := config.Door.Check(); err != nil {
		return nil, err
	}
	h := &Handler{config: config, origins: make(map[string]bool), transport: newTransport(config.Timeout, config.TLS)}
	for _, text := range config.AllowOrigins {
		origin, ok := parseOrigin(text)
		if !ok {
			return nil, fmt.Errorf("%.80q is not an origin such as https://app.example.com", text)
		}
		h.origins[origin.String()] = true
	}
	h.door = config.Engine.Handler(&httputil.ReverseProxy{
		Rewrite:        h.rewrite,
		Transport:      h.transport,
		ModifyResponse: h.answered,
		BufferPool:     copyBuffers{},
		ErrorHandler:   h.unreachable,
		ErrorLog:       log.New(io.Discard, "", 0), // the handler and the door write their own, better records
	}, config.Door)
	return h, nil
}

// CheckUpstream returns nil if upstream can be the address of a server, and otherwise an error that says why not.
func CheckUpstream(upstream *url.URL) error {
	switch {
	case upstream == nil || upstream.Host == "" || upstream.Scheme != "http" && upstream.Scheme != "https":
		return errors.New("the address of the server must have the form http://HOST/PATH or https://HOST/PATH")
	case upstream.User != nil || upstream.Fragment != "":
		return errors.New("the address of the server must not have a user, a password or a fragment")
	}
	return nil
}

func orDefault[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

// Path returns the one path that the handler serves.
func (h *Handler) Path() string { return h.config.Upstream.EscapedPath() }

func newTransport(timeout time.Duration, secure *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig:        secure,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  timeout,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    128,
		MaxResponseHeaderBytes: 256 << 10,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// visit is a request whose user is known, on its way through the door.
type visit struct {
	caller tripseal.Principal
	client *http.Request // the request as it came
	late   *time.Timer   // ends a JSON answer that takes too long; nil if there is none
}

type visitKey struct{}

func visitOf(r *http.Request) *visit { return r.Context().Value(visitKey{}).(*visit) }

// userOf is the option User of the door.
func userOf(r *http.Request) (string, error) {
	caller := visitOf(r).caller
	if caller == nil {
		return "", nil
	}
	return caller(r.Context())
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	metadata := h.isMetadata(r.URL)
	methods := []string{http.MethodPost, http.MethodGet, http.MethodDelete}
	if metadata {
		methods = []string{http.MethodGet}
	}
	h.allowPage(w.Header(), r, metadata)
	switch {
	case !metadata && r.URL.Path != h.config.Upstream.Path:
		h.refuse(w, r, http.StatusNotFound, "another path")
	case !metadata && !h.allowsOrigin(r):
		h.refuse(w, r, http.StatusForbidden, "an origin that is not allowed")
	case isPreflight(r) && w.Header().Get(allowOrigin) != "":
		h.answerPreflight(w, r, methods)
	case !slices.Contains(methods, r.Method):
		w.Header().Set("Allow", strings.Join(methods, ", "))
		h.refuse(w, r, http.StatusMethodNotAllowed, "another method")
	case metadata:
		h.serveMetadata(w, r)
	default:
		h.serve(w, r)
	}
}

// serve lets the request of a known user through the door.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	caller, err := h.config.Identity.Caller(r)
	switch {
	case errors.Is(err, identity.ErrUnavailable):
		w.Header().Set("Retry-After", "5")
		h.refuse(w, r, http.StatusServiceUnavailable, err.Error())
		return
	case err != nil:
		if challenger, ok := h.config.Identity.(identity.Challenger); ok {
			w.Header().Set("Www-Authenticate", challenger.Challenge(r))
		}
		h.refuse(w, r, http.StatusUnauthorized, err.Error())
		return
	}
	v := &visit{caller: caller, client: r}
	defer v.end()
	h.door.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitKey{}, v)))
}

func (v *visit) end() {
	if v.late != nil {
		v.late.Stop()
	}
}

// refuse answers a request with an error, instead of letting it through the door. The given reason is for the log; the
// client gets only a general reason.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, reason string) {
	h.log(r, "a request was refused", "status", status, "cause", reason)
	// Set time limits, because package http reads the rest of the body before it answers, and sets no limit itself.
	control, timeout := http.NewResponseController(w), min(h.config.Door.ClientTimeout, 5*time.Second)
	control.SetReadDeadline(time.Now().Add(timeout))
	control.SetWriteDeadline(time.Now().Add(2 * timeout))
	h.write(w, r, status, "text/plain; charset=utf-8", http.StatusText(status)+": "+publicReason[status]+"\n")
}

// publicReason has the reason that the client gets for each status. The details are only in the log.
var publicReason = map[int]string{
	http.StatusUnauthorized:       "the user is not known",
	http.StatusForbidden:          "the origin is not allowed",
	http.StatusNotFound:           "there is nothing here",
	http.StatusMethodNotAllowed:   "the method is not allowed",
	http.StatusBadGateway:         "the server did not answer",
	http.StatusServiceUnavailable: "users cannot be verified now; try again",
}

// write sends an answer of the handler itself, and tells that the request has ended.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, status int, contentType, body string) {
	if contentType != "" {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Content-Type-Options", "nosniff")
	}
	w.WriteHeader(status)
	io.WriteString(w, body)
}

func (h *Handler) log(r *http.Request, what string, attributes ...any) {
	attributes = append(attributes, "method", tripseal.PlainText(r.Method), "peer", r.RemoteAddr)
	h.config.Logger.WarnContext(r.Context(), "proxy: "+what, attributes...)
}
