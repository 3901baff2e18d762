package leaky

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// ServeHTTP answers one message, at any path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.dead.Load() {
		hangUp(w)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		http.Error(w, "POST a message", http.StatusMethodNotAllowed)
		return
	}
	user, ok := userOf(r.Header.Values("Authorization"))
	if !ok {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "unknown token", http.StatusUnauthorized)
		return
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	large := new(http.MaxBytesError)
	if err != nil && !errors.As(err, &large) {
		http.Error(w, "the body ended early", http.StatusBadRequest)
		return
	}
	if s.killedBy(data, err != nil) {
		hangUp(w)
		return
	}
	answer := &reply{fault: &fault{status: http.StatusRequestEntityTooLarge, code: codeRequest, message: "The message is too large"}}
	if err == nil {
		answer = s.handle(data, user, r.Header)
	}
	if answer == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	text, _ := json.Marshal(answer)
	status := http.StatusOK
	switch {
	case answer.fault != nil && answer.fault.status != 0:
		status = answer.fault.status
	case answer.fault == nil && (s.SSE || r.URL.Query().Get("sse") != ""):
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "event: message\ndata: "+string(text)+"\n\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(text)
}

// userOf returns the user whom the Authorization headers name, or "" if there is no header. ok
// is false if the headers are not accepted.
func userOf(headers []string) (user string, ok bool) {
	if len(headers) == 0 {
		return "", true
	}
	switch scheme, token, _ := strings.Cut(headers[0], " "); {
	case len(headers) > 1 || !strings.EqualFold(scheme, "Bearer"):
		return "", false
	case token == "alice-token":
		return "alice", true
	case token == "bob-token":
		return "bob", true
	}
	return "", false
}

// killedBy reports whether the message kills the server. This happens only to a server with the
// hole no-limits.
func (s *Server) killedBy(data []byte, large bool) bool {
	if s.hole("no-limits") && (large || depth(data) > maxDepth) {
		s.dead.Store(true)
		return true
	}
	return false
}

// hangUp closes the connection without an answer.
func hangUp(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
}

var errKilled = errors.New("leaky: a message without limits killed the server")

// Serve reads messages from the input, one per line, and writes the answers to the output. It
// answers messages concurrently. It returns when the input ends or ctx is done. If ctx is done,
// also close the input, because otherwise a pending read does not end.
func (s *Server) Serve(ctx context.Context, input io.Reader, output io.Writer) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	defer running.Wait()
	lines, slots := make(chan []byte), make(chan struct{}, 64)
	go func() { stop(readLines(ctx, input, lines)) }()
	var writing sync.Mutex
	for {
		var line []byte
		select {
		case line = <-lines:
		case <-ctx.Done():
			if err := context.Cause(ctx); err != io.EOF {
				return err
			}
			return nil
		}
		if s.dead.Load() || s.killedBy(line, len(line) > maxBody) {
			return errKilled
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			answer := &reply{fault: &fault{code: codeRequest, message: "The message is too large"}}
			if len(line) <= maxBody {
				answer = s.handle(line, "local", nil)
			}
			if answer == nil {
				return
			}
			text, _ := json.Marshal(answer)
			writing.Lock()
			defer writing.Unlock()
			if _, err := output.Write(append(text, '\n')); err != nil {
				stop(err)
			}
		})
	}
}

// readLines sends the lines of the input to the channel. If a line is longer than maxBody, it
// sends only the beginning, which is still longer than maxBody. It returns io.EOF when the input
// ends.
func readLines(ctx context.Context, input io.Reader, lines chan<- []byte) error {
	buffered := bufio.NewReader(input)
	var line []byte
	for {
		part, err := buffered.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxBody+2-len(line))]...)
		if err == bufio.ErrBufferFull {
			continue
		}
		select {
		case lines <- bytes.TrimRight(line, "\r\n"):
			line = nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}
