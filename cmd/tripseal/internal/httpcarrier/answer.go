package httpcarrier

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// answers wraps the transport that sends requests to the server. It returns the answers that
// the client gets.
type answers struct{ next http.RoundTripper }

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := a.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	return callOf(r).take(res), nil
}

// take returns the answer that the client gets in place of the server's answer. The
// result is always a new http.Response: what the server adds later, such as trailers, does
// not reach the client.
func (c *call) take(res *http.Response) *http.Response {
	media, status := mediaType(res.Header), res.StatusCode
	switch {
	case status == http.StatusSwitchingProtocols:
		return c.replace(res, http.StatusBadGateway, "the server switches to another protocol")
	case isEncoded(res.Header):
		return c.replace(res, http.StatusBadGateway, "the answer is encoded")
	case status == http.StatusAccepted || status == http.StatusNoContent:
		return c.reply(res, status, res.Header, nil)
	case media == "application/json" && (status == http.StatusOK || status >= 400):
		return c.takeJSON(res)
	case media == "text/event-stream" && status == http.StatusOK && !c.metadata:
		return c.takeEvents(res)
	case status < 300 && c.exchange != nil && c.exchange.ID != "":
		return c.replace(res, http.StatusBadGateway, "the answer is neither JSON nor a stream of events")
	default:
		return c.replace(res, status, "the answer is neither JSON nor a stream of events")
	}
}

func (c *call) takeJSON(res *http.Response) *http.Response {
	late := time.AfterFunc(c.config.Timeout, c.cancel)
	message, err := readWhole(res.Body, c.config.MaxAnswer, res.ContentLength, &c.answer)
	late.Stop()
	if err != nil {
		return c.replace(res, http.StatusBadGateway, "the answer cannot be read: "+cause(err))
	}
	if c.metadata || len(message) == 0 && !c.clientWaits() {
		return c.reply(res, res.StatusCode, res.Header, message)
	}
	sealed := c.seal(message)
	switch {
	case sealed == nil && !c.clientWaits() && res.StatusCode < 300:
		return c.reply(res, http.StatusAccepted, res.Header, nil)
	case sealed == nil && res.StatusCode < 300:
		return c.replace(res, http.StatusBadGateway, "the message is not for the client")
	case sealed == nil:
		return c.replace(res, res.StatusCode, "the message is not for the client")
	}
	if !bytes.Equal(sealed, message) {
		removeDigests(res.Header)
	}
	return c.reply(res, res.StatusCode, res.Header, sealed)
}

func (c *call) takeEvents(res *http.Response) *http.Response {
	removeDigests(res.Header)
	res.Header.Del("Content-Length")
	return &http.Response{
		StatusCode: res.StatusCode, Header: res.Header, ContentLength: -1, Request: res.Request,
		Body: &events{
			from: res.Body, seal: c.seal, most: c.config.MaxAnswer, share: &c.answer,
			last: func() []byte {
				if !c.clientWaits() || c.exchange.Answered() {
					return nil
				}
				c.log("an answer was replaced", "cause", "the stream ended before the answer")
				return c.exchange.Failed()
			},
			fault: func(err error) { c.log("a stream was ended", "cause", err.Error()) },
		},
	}
}

// clientWaits reports whether the client waits for the answer to a request.
func (c *call) clientWaits() bool { return c.exchange != nil && c.exchange.ID != "" }

// seal takes a message of the server. It returns the message that the client gets instead, or
// nil if the client must get none.
func (c *call) seal(message []byte) []byte {
	if c.exchange == nil {
		return c.config.Proxy.Pass(c.request.Context(), message)
	}
	return c.exchange.Seal(c.request.Context(), message)
}

// reply returns an answer whose whole body is known, and closes the body of the server's
// answer res.
func (c *call) reply(res *http.Response, status int, header http.Header, body []byte) *http.Response {
	res.Body.Close()
	if header.Del("Content-Length"); status != http.StatusNoContent {
		header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	if len(body) == 0 {
		header.Del("Content-Type")
		removeDigests(header)
	}
	return &http.Response{
		StatusCode: status, Header: header, ContentLength: int64(len(body)), Request: res.Request,
		Body: io.NopCloser(&wholeBody{c.client, body}),
	}
}

// wholeBody is the body of an answer. When it is read, it writes itself to the client, at once
// and as a whole. Otherwise, httputil.ReverseProxy would copy it through a buffer in pieces, and
// the client would get the last piece only after the request is counted and logged.
type wholeBody struct {
	client *hastyWriter
	body   []byte
}

func (b *wholeBody) Read([]byte) (int, error) {
	if len(b.body) == 0 {
		return 0, io.EOF
	}
	_, err := b.client.Write(b.body)
	b.body = nil
	return 0, cmp.Or(err, b.client.FlushError(), io.EOF)
}

// replace returns an answer of the proxy itself, because the client must not see the server's
// answer res. If the status stays the same, it copies the headers of res that tell the client
// what to do next.
func (c *call) replace(res *http.Response, status int, why string) *http.Response {
	c.log("an answer was replaced", "status", res.StatusCode, "cause", why)
	header := make(http.Header)
	if status == res.StatusCode {
		for _, name := range []string{"Www-Authenticate", "Retry-After", "Allow"} {
			if values := res.Header[name]; values != nil {
				header[name] = values
			}
		}
	}
	body := []byte("The server answered " + strconv.Itoa(res.StatusCode) + ".\n")
	contentType := "text/plain; charset=utf-8"
	switch {
	case status == http.StatusNotModified || status < 300 && !c.clientWaits():
		body = nil
	case status == http.StatusBadGateway && c.clientWaits():
		body, contentType = c.exchange.Failed(), "application/json"
	}
	header.Set("Content-Type", contentType)
	return c.reply(res, status, header, body)
}

// answerUnreachable answers the client if the server did not answer the request.
func answerUnreachable(w http.ResponseWriter, r *http.Request, err error) {
	c := callOf(r)
	c.log("the server did not answer", "cause", cause(err))
	if c.clientWaits() {
		writeJSON(w, http.StatusBadGateway, c.exchange.Failed())
		return
	}
	http.Error(w, "Bad Gateway: the server did not answer", http.StatusBadGateway)
}

// cause returns a text for the log that says what went wrong between the proxy and the server.
// It uses the text of err only for the errors listed here. Other errors of package http quote
// what the server sent. That may be a state, which must not reach the log.
func cause(err error) string {
	var network net.Error
	var operation *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errTooLong), errors.Is(err, errNoBudget):
		return err.Error()
	case errors.Is(err, context.Canceled):
		return "the client is gone, the proxy ends, or the answer took too long"
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

func removeDigests(header http.Header) {
	for _, name := range []string{"Digest", "Content-Digest", "Repr-Digest", "Content-Md5", "Etag"} {
		header.Del(name)
	}
}
