package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
)

// Options says who calls, and limits what requests may use. Set User or AllowAnonymous.
type Options struct {
	// User returns the name of the user who sent a request. It must be verified before: put authentication around the
	// handler, and read what it found, for example from the request's context. "" means nobody, which is an error
	// unless AllowAnonymous is set. User is called only for requests that carry or get something sealed.
	User func(r *http.Request) (string, error)
	// AllowAnonymous says that callers without a name are expected. Whatever is sealed for them works for everybody
	// without a name who holds it.
	AllowAnonymous bool

	MaxRequest int   // the greatest length of a request's body, in bytes; 0 means 4 MiB
	MaxAnswer  int   // the greatest length of one message of the server, in bytes; 0 means 16 MiB
	Budget     int64 // how many bytes the messages of all requests together may use in memory; 0 means 256 MiB
	// ClientTimeout is how long a client may take to send the body of a request, and to take each part of an answer. 0
	// means 1 minute. If the budget is used up, slow clients are cut off earlier.
	ClientTimeout time.Duration

	// Opened is called with the message of each request, for logs and metrics. Nil means that nothing is called.
	Opened func(context.Context, *Exchange)
}

// The limits that apply where a field of [Options] is 0.
const (
	DefaultMaxRequest    = 4 << 20
	DefaultMaxAnswer     = 16 << 20
	DefaultBudget        = 256 << 20
	DefaultClientTimeout = time.Minute
)

// Check sets the fields that are 0, and returns an error for options with which [Engine.Handler] would panic.
func (o *Options) Check() error {
	o.MaxRequest, o.MaxAnswer = cmp.Or(o.MaxRequest, DefaultMaxRequest), cmp.Or(o.MaxAnswer, DefaultMaxAnswer)
	o.Budget, o.ClientTimeout = cmp.Or(o.Budget, DefaultBudget), cmp.Or(o.ClientTimeout, DefaultClientTimeout)
	switch least := 2 * (int64(o.MaxRequest) + int64(o.MaxAnswer)); {
	case o.User == nil && !o.AllowAnonymous:
		return errors.New("set Options.User, which tells who is calling, or Options.AllowAnonymous if everybody may use " +
			"everybody's tokens")
	case min(o.MaxRequest, o.MaxAnswer) < 1<<10 || max(o.MaxRequest, o.MaxAnswer) > 1<<30:
		return errors.New("the longest request and the longest answer must be between 1 KiB and 1 GiB")
	case o.Budget < least:
		return fmt.Errorf("the budget of %d bytes is less than %d, twice the longest request and the longest answer",
			o.Budget, least)
	case o.ClientTimeout < 0:
		return errors.New("the time for clients is less than 0")
	}
	return nil
}

// Handler returns a door around the handler of a server that speaks streamable HTTP. Authentication, CORS and
// compression belong outside. Handler panics if it is not said who calls, or if an option is wrong.
func (e *Engine) Handler(server http.Handler, options Options) http.Handler {
	if err := options.Check(); err != nil {
		panic("wire: " + err.Error())
	}
	if server == nil {
		panic("wire: the handler is nil")
	}
	return &door{engine: e, server: server, options: options, budget: newBudget(options.Budget)}
}

// door is an HTTP door.
type door struct {
	engine  *Engine
	server  http.Handler
	options Options
	budget  *budget
}

// visit is one request at a door, and the [http.ResponseWriter] that the server gets. The client gets only what the
// engine lets pass: a JSON message when it is whole, events while they flow, and otherwise a status with a few headers.
// What the server writes after its answer, trailers included, reaches nobody.
type visit struct {
	*door
	request  *http.Request
	cancel   context.CancelFunc
	exchange *Exchange // nil if the request carries no message
	session  session
	to       http.ResponseWriter

	mu     sync.Mutex  // servers write from several goroutines
	header http.Header // what the server sets, now or later
	head   http.Header // what it had set when it set the status; the client gets these
	status int         // 0 until the server has set it
	way    way
	body   collected
	length int64 // how long the server says that the body is; -1 if it does not
	events events
	share  share
	ended  bool // true if the client has got everything
	gone   bool // true if the client is gone
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := &visit{door: d, request: r, to: w, header: make(http.Header), share: share{of: d.budget}}
	v.body = collected{limit: d.options.MaxAnswer, share: &v.share}
	defer func() { v.exchange.forgetMark() }()
	defer v.share.release()
	defer v.hurry()
	ctx, cancel := context.WithCancel(r.Context())
	v.cancel = cancel
	defer cancel()
	inner := r.WithContext(ctx)
	inner.Header, inner.Trailer = v.headersFor(r.Header), nil
	switch {
	case tooManyLines(r.Header):
		v.refuse(http.StatusRequestHeaderFieldsTooLarge, "too many header lines")
	case len(r.Header["Upgrade"]) > 0:
		v.refuse(http.StatusBadRequest, "an upgrade to another protocol")
	case r.Method == http.MethodPost:
		v.post(inner)
	case r.Method != http.MethodGet && r.Method != http.MethodDelete && r.Method != http.MethodOptions:
		w.Header().Set("Allow", "POST, GET, DELETE")
		v.refuse(http.StatusMethodNotAllowed, "another method")
	case r.ContentLength != 0:
		v.refuse(http.StatusBadRequest, "a body with "+r.Method)
	case v.openSession(inner.Header, nil):
		v.serve(inner)
	}
}

// headersFor returns the headers that the server gets.
func (v *visit) headersFor(header http.Header) http.Header {
	out := make(http.Header, len(header))
	for name, values := range header {
		switch plain := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")); {
		case removedHeaders[name], strings.HasPrefix(name, "Want-"):
		case name != plain && (plain == sessionHeader || plain == resumeHeader): // many servers treat _ and - as the same
		default:
			out[name] = values
		}
	}
	return out
}

// caller tells who sent the request.
func (v *visit) caller(context.Context) (string, error) {
	if v.options.User == nil {
		return "", nil
	}
	user, err := v.options.User(v.request)
	if err == nil && user == "" && !v.options.AllowAnonymous {
		return "", errNobody
	}
	return user, err
}

const errNobody = tripseal.PlainError("Options.User found no user; set Options.AllowAnonymous if callers without a " +
	"name are expected")

// post serves a POST request: it reads the client's message and, unless the engine answers it itself, passes it to the
// server.
func (v *visit) post(r *http.Request) {
	switch {
	case mediaType(r.Header) != "application/json" || isEncoded(v.request.Header):
		v.refuse(http.StatusUnsupportedMediaType, "a body that is not application/json in UTF-8, or is encoded")
		return
	case len(r.Header[methodHeader]) > 1 || len(r.Header[nameHeader]) > 1:
		v.refuse(http.StatusBadRequest, "a repeated Mcp-Method or Mcp-Name")
		return
	}
	body := share{of: v.budget}
	defer body.release()
	text, ok := v.read(&body)
	if !ok {
		return
	}
	x := v.engine.open(r.Context(), text, v.caller, func(x *Exchange) bool { // before the call's token is spent
		x.agrees = func() bool { return headersAgree(r.Header, x) }
		return v.openSession(r.Header, x)
	})
	v.exchange = x
	if v.options.Opened != nil {
		v.options.Opened(v.request.Context(), x)
	}
	if x.Forward == "" {
		if v.status = http.StatusOK; x.Malformed {
			v.status = http.StatusBadRequest
		}
		v.sendWhole(v.status, http.Header{"Content-Type": {"application/json"}}, []byte(x.Reply))
		return
	}
	ctx := context.WithValue(r.Context(), exchangeKey{}, x)
	if x.kind == call {
		ctx = elicit.Arrive(ctx, &x.arrival)
	}
	r = r.WithContext(ctx)
	forward := x.Forward
	x.Forward = ""
	r.ContentLength, r.TransferEncoding = int64(len(forward)), nil
	message := &passing{text: forward}
	if x.kind == plain && len(forward) > maxRepeated && len(x.ID)+len(x.Method) < leastShare {
		x.ID, x.sameID, x.Method = strings.Clone(x.ID), strings.Clone(x.sameID), strings.Clone(x.Method)
		message.passed = body.release
	}
	r.GetBody = func() (io.ReadCloser, error) { return &passingBody{of: message}, nil }
	r.Body, _ = r.GetBody()
	v.serve(r)
}

// passing is a message on its way to the server. If the engine needs nothing more of it, the memory is given back when
// the server has read it: some answers are streams that stay open for as long as the client likes, such as those of
// subscriptions/listen, and would keep the budget from others.
type passing struct {
	mu     sync.Mutex
	text   string
	passed func() // nil if the engine needs more
}

// maxRepeated is the length of the longest message that a reverse proxy may have read whole, and have to begin again,
// because it has found a closed connection: the size of its buffer.
const maxRepeated = 4 << 10

// passingBody reads the whole message. A reverse proxy takes a second one if its connection was already closed.
type passingBody struct {
	of *passing
	at int
}

func (b *passingBody) Read(to []byte) (n int, err error) {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	rest := b.of.text[min(b.at, len(b.of.text)):]
	if n = copy(to, rest); n < len(rest) {
		b.at += n
		return n, nil
	}
	if b.at = len(b.of.text); b.of.passed != nil {
		b.of.text = ""
		b.of.passed()
	}
	return n, io.EOF
}

func (b *passingBody) Close() error { return nil }

// read returns the body of the request. The share grows by the memory that the body uses. If read cannot read the body,
// it refuses the request and returns false.
func (v *visit) read(s *share) (text string, ok bool) {
	err := errTooLong
	body := collected{limit: v.options.MaxRequest, share: s}
	if v.request.ContentLength <= int64(body.limit) {
		v.control().SetReadDeadline(time.Now().Add(v.options.ClientTimeout))
		s.wait(func() { v.control().SetReadDeadline(time.Now()) })
		err = body.readWhole(v.request.Body, v.request.ContentLength)
		if s.resume(); err == nil {
			v.control().SetReadDeadline(time.Time{})
		} else {
			s.release()
		}
	}
	var network net.Error
	switch {
	case err == nil:
		return string(body.text), true
	case errors.Is(err, errTooLong):
		v.refuse(http.StatusRequestEntityTooLarge, err.Error())
	case errors.Is(err, errNoBudget):
		v.to.Header().Set("Retry-After", "1")
		v.to.Header().Set("Connection", "close") // so that the answer does not wait for the rest of the body
		v.refuse(http.StatusServiceUnavailable, err.Error())
	case errors.As(err, &network) && network.Timeout():
		v.to.Header().Set("Connection", "close")
		v.refuse(http.StatusRequestTimeout, "the body did not come in time")
	default:
		v.refuse(http.StatusBadRequest, "the body cannot be read")
	}
	return "", false
}

// serve passes the request to the server. A panic of the server ends this request alone.
func (v *visit) serve(r *http.Request) {
	defer func() {
		switch problem := recover(); problem {
		case nil:
			v.finish("")
		case http.ErrAbortHandler: // for example, a reverse proxy whose server is gone
			v.finish("the server's answer was cut off")
		default: // its text may hold anything
			v.finish("the server panicked: " + reflect.TypeOf(problem).String())
		}
	}()
	v.server.ServeHTTP(v.writer(), r)
}

// seal takes a message of the server. It returns the message that the client gets instead, or an empty one if there is
// none for the client.
func (v *visit) seal(message []byte) []byte {
	ctx, x := v.request.Context(), v.exchange
	if x != nil && x.isPlainAnswer(message) {
		x.done = true
		return message
	}
	text, sealed := string(message), ""
	defer v.engine.turn(text)()
	if x != nil {
		sealed = x.Seal(ctx, x.unmarked(text))
	} else {
		// A stream that a client of an older revision resumes brings answers to requests that other streams carried.
		m, why := readEnvelope(text, guardedNames)
		sealed = v.engine.pass(ctx, &m, why)
		if sealed == "" && why == "" && m.isAnswer() {
			sealed = errorMessage(m.id, internalError) // otherwise the client would wait for ever
		}
	}
	if sealed == text {
		return message
	}
	return []byte(sealed)
}

// waits reports whether the client waits for the answer to a request.
func (v *visit) waits() bool { return v.exchange != nil && v.exchange.ID != "" }

func (v *visit) log(what string, attributes ...any) {
	attributes = append(attributes, "method", tripseal.PlainText(v.request.Method), "peer", v.request.RemoteAddr)
	v.engine.warn(v.request.Context(), what, attributes...)
}
