package wire

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// response is the [http.ResponseWriter] that a server gets. The client gets only what the engine lets pass: a JSON
// message when it is whole, events while they flow, and otherwise a status with a few headers. What the server writes
// after its answer, trailers included, reaches nobody.
type response struct {
	*visit
	to http.ResponseWriter

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
	sent   struct {
		status, bytes int
		failed        bool // true if the client is gone
	}
}

// way says how an answer reaches the client.
type way int

const (
	undecided way = iota
	whole         // as one JSON message
	flowing       // as events
	nothing       // not at all: what the server writes is dropped
)

func newResponse(v *visit, w http.ResponseWriter) *response {
	a := &response{visit: v, to: w, header: make(http.Header)}
	a.share.of = v.budget
	a.body = collected{limit: v.options.MaxAnswer, share: &a.share}
	return a
}

// control sets the deadlines of the client.
func (a *response) control() *http.ResponseController { return http.NewResponseController(a.to) }

// flusher is an answer to a client that can get parts of it. Servers look for the method Flush to know that.
type flusher struct{ *response }

// writer returns what the server writes to.
func (a *response) writer() http.ResponseWriter {
	if _, ok := a.to.(http.Flusher); ok {
		return flusher{a}
	}
	return a
}

// Header returns the headers of the server's answer.
func (a *response) Header() http.Header { return a.header }

// SetReadDeadline and SetWriteDeadline let a server that knows nothing of the door set deadlines. The door sets its own
// whenever it writes.

// SetReadDeadline does nothing, because the door has read the whole request.
func (a *response) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing, because the door limits how long the client may take.
func (a *response) SetWriteDeadline(time.Time) error { return nil }

// WriteHeader sets the status. The first call counts, and a status below 200 is not passed on.
func (a *response) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decide(status)
}

// Write takes a part of the server's answer.
func (a *response) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decide(http.StatusOK)
	switch {
	case a.sent.failed:
		return 0, io.ErrClosedPipe
	case a.ended || a.way == nothing:
	case a.way == whole:
		if err := a.body.add(p); err != nil {
			a.replace(http.StatusBadGateway, "the answer cannot be read: "+err.Error())
			break
		}
		if int64(a.body.text.Len()) == a.length {
			a.complete()
		}
	default:
		a.events.feed(p)
		a.flow()
	}
	return len(p), nil
}

// Flush sends the client what it may get by now.
func (f flusher) Flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.way == undecided && mediaType(f.header) != "" {
		f.decide(http.StatusOK)
	}
	if f.way == flowing && !f.ended {
		f.flush()
	}
}

// decide sets the way of the answer, once its status and its headers are known.
func (a *response) decide(status int) {
	if a.way != undecided || a.ended || status < 200 {
		return
	}
	a.status, a.head = status, maps.Clone(a.header)
	media := mediaType(a.head)
	switch {
	case !a.sealSession(a.head):
		a.replace(http.StatusBadGateway, "its Mcp-Session-Id cannot be sealed, or is repeated")
		a.cancel()
	case isEncoded(a.head):
		a.replace(http.StatusBadGateway, "the answer is encoded")
	case status == http.StatusAccepted || status == http.StatusNoContent || a.request.Method == http.MethodOptions:
		a.sendWhole(status, a.head, "")
	case media == "application/json" && (status == http.StatusOK || status >= 400):
		a.way, a.length = whole, -1
		if length, err := strconv.ParseInt(a.head.Get("Content-Length"), 10, 64); err == nil {
			a.length = length
		}
		a.body.expect(a.length) // if the budget is used up, the next write fails
	case media == "text/event-stream" && status == http.StatusOK:
		a.way = flowing
		removeDigests(a.head)
		a.head.Del("Content-Length")
		a.events = events{seal: a.seal, dropped: a.droppedEvent, most: a.options.MaxAnswer, share: &a.share}
		a.sendHead(status, a.head)
	case status < 300 && a.waits():
		a.replace(http.StatusBadGateway, "the answer is neither JSON nor a stream of events")
	default:
		a.replace(status, "the answer is neither JSON nor a stream of events")
	}
}

func (a *response) droppedEvent(kind string) {
	a.log("an event of the server was dropped, because this transport has no events of its type",
		"endpoint", kind == "endpoint") // "endpoint" is how the HTTP+SSE transport of revision 2024-11-05 begins
}

// complete sends a JSON answer that is whole.
func (a *response) complete() {
	text, sealed := a.body.text.String(), ""
	if text != "" || a.waits() {
		sealed = a.seal(text)
	}
	switch {
	case sealed != "":
		if sealed != text {
			removeDigests(a.head)
		}
		a.sendWhole(a.status, a.head, sealed)
	case text == "" && !a.waits():
		a.sendWhole(a.status, a.head, "")
	case !a.waits() && a.status < 300:
		a.sendWhole(http.StatusAccepted, a.head, "")
	case a.status < 300:
		a.replace(http.StatusBadGateway, "the message is not for the client")
	default:
		a.replace(a.status, "the message is not for the client")
	}
}

// flow sends the events that are complete.
func (a *response) flow() {
	a.send(a.events.out.String())
	a.events.out.Reset()
	a.share.resize(a.events.size())
	if err := a.events.failed; err != nil && !a.ended {
		a.log("a stream was ended", "cause", err.Error())
		a.endEvents()
		a.cancel()
	}
}

// endEvents ends a stream. It drops an event that is not complete, as every client would do. A client that still waits
// for its answer, and was not told how to come back for it, gets an error.
func (a *response) endEvents() {
	if a.waits() && !a.exchange.Answered() && !a.events.resumes && !a.sent.failed {
		a.logReplaced("the stream ended before the answer")
		a.send("data: " + a.exchange.Failed() + "\n\n")
	}
	a.ended = true
}

// finish ends the answer when the server has returned. If it has failed, the parameter failure says how; otherwise it
// is "".
func (a *response) finish(failure string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if failure != "" && a.request.Context().Err() == nil {
		a.log("the server failed", "cause", failure)
	}
	switch {
	case a.ended:
	case a.way == flowing:
		a.endEvents()
	case failure != "":
		a.replace(http.StatusBadGateway, failure)
	case a.way == whole:
		a.complete()
	case a.waits():
		a.replace(http.StatusBadGateway, "the server gave no whole answer")
	default:
		a.decide(http.StatusOK)
	}
	a.ended = true
}

func (a *response) logReplaced(why string) {
	if a.request.Context().Err() == nil && !a.sent.failed { // an ordinary end if the client is gone
		a.log("an answer was replaced", "status", a.status, "cause", why)
	}
}

// replace sends an answer of the door itself, because the client must not see the server's. If the status stays the
// same, it keeps the headers that tell the client what to do next.
func (a *response) replace(status int, why string) {
	if status >= 400 || a.waits() {
		a.logReplaced(why)
	}
	header := make(http.Header)
	if status == a.status {
		for _, name := range []string{"Www-Authenticate", "Retry-After", "Allow"} {
			if values := a.head[name]; values != nil {
				header[name] = values
			}
		}
	}
	body := http.StatusText(status) + "\n"
	header.Set("Content-Type", "text/plain; charset=utf-8")
	switch {
	case status == http.StatusNotModified || status < 300 && !a.waits():
		body = ""
	case status == http.StatusBadGateway && a.waits():
		body = a.exchange.Failed()
		header.Set("Content-Type", "application/json")
	}
	a.sendWhole(status, header, body)
}

// reply sends an answer of the engine. It is for requests that do not reach the server.
func (a *response) reply(status int, text string) {
	a.status = status
	a.sendWhole(status, http.Header{"Content-Type": {"application/json"}}, text)
}

// refuse answers a request with an error, instead of passing it to the server. The given reason is only for the log.
func (a *response) refuse(status int, reason string) {
	a.log("a request was refused", "status", status, "cause", reason)
	a.refuseQuietly(status)
}

func (a *response) refuseQuietly(status int) {
	// Set a time limit, because package http reads the rest of the body before it answers, and sets no limit itself.
	a.control().SetReadDeadline(time.Now().Add(a.options.ClientTimeout))
	a.sendWhole(status, http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, http.StatusText(status)+"\n")
}

// sendWhole sends an answer whose whole body is known, and ends the answer.
func (a *response) sendWhole(status int, header http.Header, body string) {
	if a.ended {
		return
	}
	a.way, a.ended = nothing, true
	if header.Del("Content-Length"); status != http.StatusNoContent {
		header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	if len(body) == 0 {
		header.Del("Content-Type")
		removeDigests(header)
	}
	a.sendHead(status, header)
	if a.send(body); len(body) == 0 {
		a.flush() // the server may go on for long
	}
}

// sendHead sends the status and the headers.
func (a *response) sendHead(status int, header http.Header) {
	out := a.to.Header()
	for name, values := range header {
		if name == "Trailer" || name == "Transfer-Encoding" || strings.HasPrefix(name, http.TrailerPrefix) {
			continue
		}
		if name == "Vary" || name == "Set-Cookie" { // what handlers outside have set counts, too
			values = append(slices.Clip(out[name]), values...)
		}
		out[name] = values
	}
	a.sent.status = status
	a.to.WriteHeader(status)
}

// send writes a part of the answer to the client. The client has limited time for each piece of it, so that it cannot
// hold up the server, nor hold the memory of the answer when others need it.
func (a *response) send(part string) {
	if len(part) == 0 || a.sent.failed {
		return
	}
	a.share.wait(func() { a.control().SetWriteDeadline(time.Now()) })
	defer a.share.resume()
	for len(part) > 0 {
		a.hurry()
		if a.share.isCut() { // now, because hurry could have replaced the deadline that ends the wait
			a.lose()
			return
		}
		n, err := io.WriteString(a.to, part[:min(len(part), sendAtOnce)])
		a.sent.bytes += n
		a.share.progress(n)
		if err != nil {
			a.lose()
			return
		}
		part = part[n:]
	}
	a.flush()
	if a.request.ProtoMajor > 1 { // a deadline would end the stream, even while nothing waits to be written
		a.control().SetWriteDeadline(time.Time{})
	}
}

// flush sends the client what it has not got of the bytes written so far.
func (a *response) flush() {
	if err := a.control().Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		a.lose()
	}
}

// lose says that the client is gone.
func (a *response) lose() {
	a.sent.failed = true
	a.cancel()
}

const sendAtOnce = 256 << 10

// hurry gives the client time to take the next piece of the answer. At the end it takes what package http, or a handler
// outside, still writes; for the next request of the connection, package http removes the deadline.
func (a *response) hurry() {
	if !a.sent.failed {
		a.control().SetWriteDeadline(time.Now().Add(a.options.ClientTimeout))
	}
}
