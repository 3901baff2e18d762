package wire

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// way says how an answer reaches the client.
type way int

const (
	undecided way = iota
	whole         // as one JSON message
	flowing       // as events
	nothing       // not at all: what the server writes is dropped
)

// control sets the deadlines of the client.
func (v *visit) control() *http.ResponseController { return http.NewResponseController(v.to) }

// flusher is an answer to a client that can get parts of it. Servers look for the method Flush to know that.
type flusher struct{ *visit }

// writer returns what the server writes to.
func (v *visit) writer() http.ResponseWriter {
	if _, ok := v.to.(http.Flusher); ok {
		return flusher{v}
	}
	return v
}

// Header returns the headers of the server's answer.
func (v *visit) Header() http.Header { return v.header }

// SetReadDeadline and SetWriteDeadline do nothing: the door has read the whole request, and limits how long the client
// may take.
func (v *visit) SetReadDeadline(time.Time) error  { return nil }
func (v *visit) SetWriteDeadline(time.Time) error { return nil }

// WriteHeader sets the status. The first call counts, and a status below 200 is not passed on.
func (v *visit) WriteHeader(status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.decide(status)
}

// Write takes a part of the server's answer.
func (v *visit) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.decide(http.StatusOK)
	switch {
	case v.gone:
		return 0, io.ErrClosedPipe
	case v.ended || v.way == nothing:
	case v.way == whole:
		if err := v.body.add(p); err != nil {
			v.replace(http.StatusBadGateway, "the answer cannot be read: "+err.Error())
			break
		}
		if int64(len(v.body.text)) == v.length {
			v.complete()
		}
	default:
		v.events.feed(p)
		v.flow()
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
func (v *visit) decide(status int) {
	if v.way != undecided || v.ended || status < 200 {
		return
	}
	v.status, v.head = status, maps.Clone(v.header)
	media := mediaType(v.head)
	switch {
	case !v.sealSession(v.head):
		v.replace(http.StatusBadGateway, "its Mcp-Session-Id cannot be sealed, or is repeated")
		v.cancel()
	case isEncoded(v.head):
		v.replace(http.StatusBadGateway, "the answer is encoded")
	case status == http.StatusAccepted || status == http.StatusNoContent || v.request.Method == http.MethodOptions:
		v.sendWhole(status, v.head, nil)
	case media == "application/json" && (status == http.StatusOK || status >= 400):
		v.way, v.length = whole, -1
		if length, err := strconv.ParseInt(v.head.Get("Content-Length"), 10, 64); err == nil {
			v.length = length
		}
		v.body.expect(v.length) // if the budget is used up, the next write fails
	case media == "text/event-stream" && status == http.StatusOK:
		v.way = flowing
		removeDigests(v.head)
		v.head.Del("Content-Length")
		v.events = events{seal: v.seal, dropped: v.droppedEvent, most: v.options.MaxAnswer, share: &v.share}
		v.sendHead(status, v.head)
	case status < 300 && v.waits():
		v.replace(http.StatusBadGateway, "the answer is neither JSON nor a stream of events")
	default:
		v.replace(status, "the answer is neither JSON nor a stream of events")
	}
}

func (v *visit) droppedEvent(kind string) {
	v.log("an event of the server was dropped, because this transport has no events of its type",
		"endpoint", kind == "endpoint") // "endpoint" is how the HTTP+SSE transport of revision 2024-11-05 begins
}

// complete sends a JSON answer that is whole.
func (v *visit) complete() {
	var sealed []byte
	if len(v.body.text) > 0 || v.waits() {
		sealed = v.seal(v.body.text)
	}
	switch {
	case len(sealed) > 0:
		if !bytes.Equal(sealed, v.body.text) {
			removeDigests(v.head)
		}
		v.sendWhole(v.status, v.head, sealed)
	case len(v.body.text) == 0 && !v.waits():
		v.sendWhole(v.status, v.head, nil)
	case !v.waits() && v.status < 300:
		v.sendWhole(http.StatusAccepted, v.head, nil)
	case v.status < 300:
		v.replace(http.StatusBadGateway, "the message is not for the client")
	default:
		v.replace(v.status, "the message is not for the client")
	}
}

// flow sends the events that are complete.
func (v *visit) flow() {
	v.send(v.events.out)
	if v.events.out = v.events.out[:0]; cap(v.events.out) > chunkSize {
		v.events.out = nil
	}
	v.share.resize(v.events.size())
	if err := v.events.failed; err != nil && !v.ended {
		v.log("a stream was ended", "cause", err.Error())
		v.endEvents()
		v.cancel()
	}
}

// endEvents ends a stream. It drops an event that is not complete, as every client would do. A client that still waits
// for its answer, and was not told how to come back for it, gets an error.
func (v *visit) endEvents() {
	if v.waits() && !v.exchange.done && !v.events.resumes && !v.gone {
		v.logReplaced("the stream ended before the answer")
		v.send([]byte("data: " + v.exchange.Failed() + "\n\n"))
	}
	v.ended = true
}

// finish ends the answer when the server has returned. If it has failed, the parameter failure says how; otherwise it
// is "".
func (v *visit) finish(failure string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if failure != "" && v.request.Context().Err() == nil {
		v.log("the server failed", "cause", failure)
	}
	if failure == "" {
		v.decide(http.StatusOK) // as package http does if the server has set no status
	}
	switch {
	case v.ended:
	case v.way == flowing:
		v.endEvents()
	case failure != "":
		v.replace(http.StatusBadGateway, failure)
	default:
		v.complete()
	}
	v.ended = true
}

func (v *visit) logReplaced(why string) {
	if v.request.Context().Err() == nil && !v.gone { // an ordinary end if the client is gone
		v.log("an answer was replaced", "status", v.status, "cause", why)
	}
}

// replace sends an answer of the door itself, because the client must not see the server's. If the status stays the
// same, it keeps the headers that tell the client what to do next.
func (v *visit) replace(status int, why string) {
	if status >= 400 || v.waits() {
		v.logReplaced(why)
	}
	header := make(http.Header)
	if status == v.status {
		for _, name := range []string{"Www-Authenticate", "Retry-After", "Allow"} {
			if values := v.head[name]; values != nil {
				header[name] = values
			}
		}
	}
	body := http.StatusText(status) + "\n"
	header.Set("Content-Type", "text/plain; charset=utf-8")
	switch {
	case status == http.StatusNotModified || status < 300 && !v.waits():
		body = ""
	case status == http.StatusBadGateway && v.waits():
		body = v.exchange.Failed()
		header.Set("Content-Type", "application/json")
	}
	v.sendWhole(status, header, []byte(body))
}

// refuse answers a request with an error, instead of passing it to the server. The reason is only for the log; "" means
// that it is there already.
func (v *visit) refuse(status int, reason string) {
	if reason != "" {
		v.log("a request was refused", "status", status, "cause", reason)
	}
	// Set a time limit, because package http reads the rest of the body before it answers, and sets no limit itself.
	v.control().SetReadDeadline(time.Now().Add(v.options.ClientTimeout))
	header := http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
	v.sendWhole(status, header, []byte(http.StatusText(status)+"\n"))
}

// sendWhole sends an answer whose whole body is known, and ends the answer.
func (v *visit) sendWhole(status int, header http.Header, body []byte) {
	if v.ended {
		return
	}
	v.way, v.ended = nothing, true
	if header.Del("Content-Length"); status != http.StatusNoContent {
		header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	if len(body) == 0 {
		header.Del("Content-Type")
		removeDigests(header)
	}
	v.sendHead(status, header)
	if v.send(body); len(body) == 0 {
		v.flush() // the server may go on for long
	}
}

// sendHead sends the status and the headers.
func (v *visit) sendHead(status int, header http.Header) {
	out := v.to.Header()
	for name, values := range header {
		if name == "Trailer" || name == "Transfer-Encoding" || strings.HasPrefix(name, http.TrailerPrefix) {
			continue
		}
		if name == "Vary" || name == "Set-Cookie" { // what handlers outside have set counts, too
			values = append(slices.Clip(out[name]), values...)
		}
		out[name] = values
	}
	v.to.WriteHeader(status)
}

// send writes a part of the answer to the client. The client has limited time for each piece of it, so that it cannot
// hold up the server, nor hold the memory of the answer when others need it.
func (v *visit) send(part []byte) {
	if len(part) == 0 || v.gone {
		return
	}
	v.share.wait(func() { v.control().SetWriteDeadline(time.Now()) })
	defer v.share.resume()
	for len(part) > 0 {
		v.hurry()
		if !v.share.progress(0) { // now, because hurry could have replaced the deadline that ends the wait
			v.lose()
			return
		}
		n, err := v.to.Write(part[:min(len(part), sendAtOnce)])
		v.share.progress(n)
		if err != nil {
			v.lose()
			return
		}
		part = part[n:]
	}
	v.flush()
	if v.request.ProtoMajor > 1 { // a deadline would end the stream, even while nothing waits to be written
		v.control().SetWriteDeadline(time.Time{})
	}
}

// flush sends the client what it has not got of the bytes written so far.
func (v *visit) flush() {
	if err := v.control().Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		v.lose()
	}
}

// lose says that the client is gone.
func (v *visit) lose() {
	v.gone = true
	v.cancel()
}

const sendAtOnce = 256 << 10

// hurry gives the client time to take the next piece of the answer. At the end it takes what package http, or a handler
// outside, still writes; for the next request of the connection, package http removes the deadline.
func (v *visit) hurry() {
	if !v.gone {
		v.control().SetWriteDeadline(time.Now().Add(v.options.ClientTimeout))
	}
}
