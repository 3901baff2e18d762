package gosdk

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// readBody returns the body of a request, and lets the SDK read the same body again. If
// reading fails, readBody returns nil. The SDK then gets the same error when it reads,
// and answers the client.
func (h *handler) readBody(w http.ResponseWriter, r *http.Request) []byte {
	if r.Body == nil {
		return nil
	}
	source := r.Body
	if limit := h.options.HTTP.MaxRequestBodyBytes; limit > 0 {
		source = http.MaxBytesReader(w, r.Body, limit)
	}
	body, err := io.ReadAll(source)
	if err != nil {
		r.Body = readCloser{io.MultiReader(bytes.NewReader(body), failing{err}), source}
		return nil
	}
	r.Body = readCloser{bytes.NewReader(body), source}
	return body
}

type readCloser struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// hasMessage reports whether a body has a message with this method, alone or in a
// batch. If isCall is true, the message must be a call, otherwise a notification. The
// body is decoded as the SDK decodes it.
func hasMessage(body []byte, method string, isCall bool) (found bool) {
	var messages []json.RawMessage
	// A json.Decoder ignores what follows a batch, as the SDK does.
	if json.NewDecoder(bytes.NewReader(body)).Decode(&messages) != nil {
		messages = []json.RawMessage{body}
	}
	for _, message := range messages {
		decoded, err := jsonrpc.DecodeMessage(message)
		if err != nil {
			return false // the SDK refuses the whole batch if one message is bad
		}
		if request, ok := decoded.(*jsonrpc.Request); ok && request.Method == method && request.IsCall() == isCall {
			found = true
		}
	}
	return found
}

// answer is a ResponseWriter that calls a function once, when the client is about to
// get the first byte.
type answer struct {
	http.ResponseWriter
	before func(status int) // the function to call, with the status of the response
	once   sync.Once
}

func (a *answer) begin(status int) { a.once.Do(func() { a.before(status) }) }

// finish calls a.before if nothing has been written.
func (a *answer) finish() { a.begin(http.StatusOK) }

func (a *answer) WriteHeader(status int) {
	if status >= 200 { // after a status 1xx, the final status still follows
		a.begin(status)
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	return a.ResponseWriter.Write(p)
}

func (a *answer) FlushError() error {
	a.begin(http.StatusOK)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController find the methods of the wrapped writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
