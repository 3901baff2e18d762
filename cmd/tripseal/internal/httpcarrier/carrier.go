// Package httpcarrier carries MCP messages over HTTP between clients and one server. This
// package only moves bytes. The core of the proxy, package proxy, decides what happens to each
// message.
package httpcarrier

import (
	"bytes"
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
	"sync"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/identity"
	"github.com/tripseal/tripseal/proxy"
)

// The limits that apply where a field of [Config] is 0.
const (
	DefaultMaxRequest = 4 << 20
	DefaultMaxAnswer  = 16 << 20
	DefaultBudget     = 256 << 20
	DefaultTimeout    = 5 * time.Minute

	DefaultClientTimeout = time.Minute
)

// Config says how a [Handler] carries messages.
type Config struct {
	// Proxy is the core, which decides what happens to each message. Required.
	Proxy *proxy.Proxy
	// Upstream is the address of the server, with its path. Required.
	Upstream *url.URL
	// Identity tells who sends a request. Required.
	Identity identity.Identity
	// ForwardIdentity says whether the server gets the headers that identify the user to the
	// proxy. If it is false, these headers are removed.
	ForwardIdentity bool
	// AllowOrigins lists the origins of the web pages that may send requests, such as
	// https://app.example.com. If the list is empty, only pages from the proxy's own address
	// may send requests, and only if that address is an IP address or localhost. Requests
	// without the header Origin are always allowed.
	AllowOrigins []string
	// MaxRequest is the maximum length of a request's body, in bytes. 0 means 4 MiB.
	MaxRequest int
	// MaxAnswer is the maximum length of one message of the server, in bytes. 0 means 16 MiB.
	MaxAnswer int
	// Budget is how many bytes the messages of all requests together may use in memory.
	// 0 means 256 MiB.
	Budget int64
	// Timeout is how long the server may take to begin its answer. If the answer is JSON,
	// the server then has the same time again to complete it. Streams of events may take any
	// time. 0 means 5 minutes.
	Timeout time.Duration
	// ClientTimeout is how long a client may take to send the body of a request, and to
	// receive what the proxy writes to it. 0 means 1 minute.
	ClientTimeout time.Duration
	// TLS has the settings of TLS with the server: how its certificate is verified, and which
	// certificate the proxy shows to it. If TLS is nil, the server's certificate must be from
	// an authority that the system trusts, and the proxy shows no certificate.
	TLS *tls.Config
	// Metadata is the RFC 9728 document that the handler serves. Nil means that the handler
	// forwards requests for the document to the server.
	Metadata []byte
	// MetadataPath is the path at which clients reach the resource that Metadata describes,
	// if it differs from the path of Upstream.
	MetadataPath string
	// Ended is called for each request when it has ended, for logs and metrics. May be nil.
	Ended func(context.Context, Request)
	// Logger gets a record of each request that the proxy refuses, and of each answer of the
	// server that the client does not get. Nil means [slog.Default].
	Logger *slog.Logger
}

// Handler is the HTTP side of the proxy. It is safe for concurrent use.
type Handler struct {
	config    Config
	origins   map[string]bool
	budget    budget
	transport *http.Transport
	forward   *httputil.ReverseProxy
}

// New returns a handler, or an error if the config is wrong.
func New(config Config) (*Handler, error) {
	switch {
	case config.Proxy == nil:
		return nil, errors.New("httpcarrier: Config.Proxy is missing")
	case config.Identity == nil:
		return nil, errors.New("httpcarrier: Config.Identity is missing")
	case config.MaxRequest < 0 || config.MaxAnswer < 0 || config.Budget < 0 || config.Timeout < 0 || config.ClientTimeout < 0:
		return nil, errors.New("httpcarrier: a limit is less than 0")
	}
	if err := CheckUpstream(config.Upstream); err != nil {
		return nil, err
	}
	orDefault(&config.MaxRequest, DefaultMaxRequest)
	orDefault(&config.MaxAnswer, DefaultMaxAnswer)
	orDefault(&config.Budget, DefaultBudget)
	orDefault(&config.Timeout, DefaultTimeout)
	orDefault(&config.ClientTimeout, DefaultClientTimeout)
	if least := 2 * (int64(config.MaxRequest) + int64(config.MaxAnswer)); config.Budget < least {
		return nil, fmt.Errorf("the budget of %d bytes is less than %d, twice the longest request and the longest answer", config.Budget, least)
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	upstream := *config.Upstream
	if upstream.Path == "" {
		upstream.Path = "/"
	}
	config.Upstream = &upstream
	h := &Handler{
		config: config, origins: make(map[string]bool), budget: budget{limit: config.Budget},
		transport: newTransport(config.Timeout, config.TLS),
	}
	for _, text := range config.AllowOrigins {
		origin, ok := parseOrigin(text)
		if !ok {
			return nil, fmt.Errorf("%.80q is not an origin such as https://app.example.com", text)
		}
		h.origins[origin.String()] = true
	}
	h.forward = &httputil.ReverseProxy{
		Rewrite:      h.rewrite,
		Transport:    answers{h.transport},
		BufferPool:   copyBuffers{},
		ErrorHandler: answerUnreachable,
		ErrorLog:     log.New(io.Discard, "", 0), // the handler writes its own, better records
	}
	return h, nil
}

// CheckUpstream returns nil if upstream can be the address of a server, and otherwise an error
// that says why not.
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

// call is a request that the handler is serving.
type call struct {
	*Handler
	request  *http.Request
	exchange *proxy.Exchange // nil if the request carries no message
	metadata bool            // true if the request is for RFC 9728 metadata
	known    bool            // true if Identity has accepted the request
	received int             // the length of the client's message, in bytes
	answer   share
	client   *hastyWriter
	cancel   context.CancelFunc
}

type callKey struct{}

func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) }

// metadataPath is where RFC 9728 puts the metadata of a protected resource.
const metadataPath = "/.well-known/oauth-protected-resource"

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	deadlines := http.NewResponseController(w)
	hasty := &hastyWriter{ResponseWriter: w, deadlines: deadlines, timeout: h.config.ClientTimeout}
	defer hasty.hurry() // sets a deadline for the bytes that are still in buffers
	w = hasty

	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &call{Handler: h, request: r, client: hasty, cancel: cancel, answer: share{of: &h.budget}}
	defer c.answer.release()
	if h.config.Ended != nil {
		defer c.record(hasty, time.Now())
	}
	r = r.WithContext(context.WithValue(ctx, callKey{}, c))
	r.Trailer = nil

	c.metadata = h.isMetadata(r.URL)
	methods := []string{http.MethodPost, http.MethodGet, http.MethodDelete}
	if c.metadata {
		methods = []string{http.MethodGet}
	}
	switch {
	case !c.metadata && r.URL.Path != h.config.Upstream.Path:
		c.refuse(w, http.StatusNotFound, "another path")
	case !slices.Contains(methods, r.Method):
		w.Header().Set("Allow", strings.Join(methods, ", "))
		c.refuse(w, http.StatusMethodNotAllowed, "another method")
	case len(r.Header["Upgrade"]) > 0:
		c.refuse(w, http.StatusBadRequest, "an upgrade to another protocol")
	case !c.metadata && !h.allowsOrigin(r):
		c.refuse(w, http.StatusForbidden, "an origin that is not allowed")
	case r.Method != http.MethodPost && r.ContentLength != 0:
		c.refuse(w, http.StatusBadRequest, "a GET or DELETE with a body")
	case c.metadata && h.config.Metadata != nil:
		h.serveMetadata(w)
	case c.metadata:
		h.forward.ServeHTTP(w, r)
	default:
		caller, err := h.config.Identity.Caller(r)
		c.known = err == nil
		switch {
		case errors.Is(err, identity.ErrUnavailable):
			w.Header().Set("Retry-After", "5")
			c.refuse(w, http.StatusServiceUnavailable, err.Error())
		case err != nil:
			if challenger, ok := h.config.Identity.(identity.Challenger); ok {
				w.Header().Set("Www-Authenticate", challenger.Challenge(r))
			}
			c.refuse(w, http.StatusUnauthorized, err.Error())
		case r.Method == http.MethodPost:
			c.post(w, r, caller)
		default:
			h.forward.ServeHTTP(w, r)
		}
	}
}

// post serves a POST request: it reads the client's message and, unless the proxy answers it
// itself, forwards it to the server.
func (c *call) post(w http.ResponseWriter, r *http.Request, caller tripseal.Principal) {
	switch {
	case !isJSON(r.Header):
		c.refuse(w, http.StatusUnsupportedMediaType, "a body that is not application/json in UTF-8")
		return
	case isEncoded(r.Header):
		c.refuse(w, http.StatusUnsupportedMediaType, "an encoded body")
		return
	case len(r.Header[methodHeader]) > 1 || len(r.Header[nameHeader]) > 1:
		c.refuse(w, http.StatusBadRequest, "a repeated Mcp-Method or Mcp-Name")
		return
	}
	body := share{of: &c.budget}
	defer body.release()
	message, ok := c.read(w, r, &body)
	if !ok {
		return
	}
	c.received = len(message)
	c.exchange = c.config.Proxy.Open(r.Context(), message, caller)
	forward := c.exchange.Forward
	switch {
	case forward != nil:
		if !headersAgree(r.Header, c.exchange) {
			c.log("a request was refused", "status", http.StatusBadRequest, "cause", "Mcp-Method or Mcp-Name differs from the message")
			writeJSON(w, http.StatusBadRequest, headerMismatch(c.exchange.ID))
			return
		}
	case c.exchange.Reply != nil && c.exchange.Malformed:
		writeJSON(w, http.StatusBadRequest, c.exchange.Reply)
		return
	case c.exchange.Reply != nil:
		writeJSON(w, http.StatusOK, c.exchange.Reply)
		return
	case c.exchange.Malformed:
		w.WriteHeader(http.StatusBadRequest)
		return
	default:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(forward)), nil }
	r.Body, _ = r.GetBody()
	r.ContentLength, r.TransferEncoding = int64(len(forward)), nil
	c.forward.ServeHTTP(w, r)
}

// read returns the body of a request. The share s grows by the memory that the body uses. If
// read cannot read the body, it refuses the request and returns false.
func (c *call) read(w http.ResponseWriter, r *http.Request, s *share) (message []byte, ok bool) {
	err := errTooLong
	if r.ContentLength <= int64(c.config.MaxRequest) {
		deadlines := http.NewResponseController(w)
		deadlines.SetReadDeadline(time.Now().Add(c.config.ClientTimeout))
		if message, err = readWhole(r.Body, c.config.MaxRequest, -1, s); err == nil {
			deadlines.SetReadDeadline(time.Time{})
		}
	}
	var network net.Error
	switch {
	case err == nil:
		return message, true
	case errors.Is(err, errTooLong):
		c.refuse(w, http.StatusRequestEntityTooLarge, err.Error())
	case errors.Is(err, errNoBudget):
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close") // so that the answer does not wait for the rest of the body
		c.refuse(w, http.StatusServiceUnavailable, err.Error())
	case errors.As(err, &network) && network.Timeout():
		w.Header().Set("Connection", "close")
		c.refuse(w, http.StatusRequestTimeout, "the body did not come in time")
	default:
		c.refuse(w, http.StatusBadRequest, "the body cannot be read")
	}
	return nil, false
}

// rewrite turns r.Out, a copy of the client's request, into the request for the server.
func (h *Handler) rewrite(r *httputil.ProxyRequest) {
	c, out, upstream := callOf(r.Out), r.Out, h.config.Upstream
	if out.GetBody != nil {
		out.Body, _ = out.GetBody() // if a body is in memory, net/http sends it together with the headers
	}
	out.URL.Scheme, out.URL.Host, out.Host = upstream.Scheme, upstream.Host, ""
	if c.metadata { // the client is not known, so forward neither its query nor its headers
		out.URL.RawQuery, out.Header = "", http.Header{"Accept": {"application/json"}}
		return
	}
	out.URL.Path, out.URL.RawPath = upstream.Path, upstream.RawPath
	if upstream.RawQuery != "" { // drop the client's query, which might override the query of Upstream
		out.URL.RawQuery = upstream.RawQuery
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		// If a request has one of these headers, package http sends the request again when the
		// server closes the connection. But the server may already have acted on the request. So
		// write the header's name in lower case: then package http does not recognize the header.
		if values := out.Header[name]; values != nil {
			delete(out.Header, name)
			out.Header[strings.ToLower(name)] = values
		}
	}
	for name := range out.Header {
		if removedHeaders[name] || strings.HasPrefix(name, "Want-") || h.namesUser(name) {
			delete(out.Header, name)
		}
	}
	if h.config.ForwardIdentity && c.known {
		for _, name := range h.config.Identity.Headers() {
			if values := r.In.Header[name]; len(values) > 0 {
				out.Header[name] = values
			}
		}
	}
}

// namesUser reports whether the server might read the header as one that tells who the user
// is. Many servers treat _ and - in the name of a header as the same.
func (h *Handler) namesUser(name string) bool {
	for _, of := range h.config.Identity.Headers() {
		if strings.EqualFold(strings.ReplaceAll(name, "_", "-"), strings.ReplaceAll(of, "_", "-")) {
			return true
		}
	}
	return false
}

// removedHeaders lists the request headers that the server does not get: headers that ask for an
// answer that could not be sealed, headers that would be wrong once the body has changed, and
// headers that the proxy has dealt with itself.
var removedHeaders = map[string]bool{
	"Accept-Encoding": true, "Last-Event-Id": true, "Range": true, "If-Range": true,
	"Digest": true, "Content-Digest": true, "Repr-Digest": true, "Content-Md5": true,
	"Content-Encoding": true, "Expect": true, "Te": true,
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

// refuse answers a request with an error, instead of forwarding it to the server. It writes the
// given reason to the log; the client gets only a general reason.
func (c *call) refuse(w http.ResponseWriter, status int, reason string) {
	c.log("a request was refused", "status", status, "cause", reason)
	// Set a time limit, because package http reads the rest of the body before it answers, and
	// sets no limit itself.
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(c.config.ClientTimeout))
	http.Error(w, http.StatusText(status)+": "+publicReason[status], status)
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * c.config.ClientTimeout)) // later than the deadline for reading the rest of the body
}

// publicReason has the reason that the client gets for each status. The details are only in
// the log.
var publicReason = map[int]string{
	http.StatusBadRequest:            "the request cannot be carried",
	http.StatusUnauthorized:          "the user is not known",
	http.StatusForbidden:             "the origin is not allowed",
	http.StatusNotFound:              "there is nothing here",
	http.StatusMethodNotAllowed:      "the method is not allowed",
	http.StatusRequestTimeout:        "the body did not come in time",
	http.StatusRequestEntityTooLarge: "the message is too long",
	http.StatusUnsupportedMediaType:  "the body must be application/json in UTF-8, not encoded",
	http.StatusServiceUnavailable:    "too much is going on; try again",
}

func (c *call) log(what string, attributes ...any) {
	attributes = append(attributes, "method", tripseal.PlainText(c.request.Method), "peer", c.request.RemoteAddr)
	c.config.Logger.WarnContext(c.request.Context(), "proxy: "+what, attributes...)
}

func writeJSON(w http.ResponseWriter, status int, message []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(message)
}

// copyBuffers lends the buffers through which answers are copied to clients. It clears each
// buffer that it gets back.
type copyBuffers struct{}

var copyPool = sync.Pool{New: func() any { return new([chunkSize]byte) }}

func (copyBuffers) Get() []byte { return copyPool.Get().(*[chunkSize]byte)[:] }

func (copyBuffers) Put(buffer []byte) {
	clear(buffer)
	copyPool.Put((*[chunkSize]byte)(buffer))
}
