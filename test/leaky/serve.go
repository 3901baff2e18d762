package leaky

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// ServeHTTP answers one message, at any path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, ok := userOf(r.Header.Values("Authorization"))
	if !ok {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "unknown token", http.StatusUnauthorized)
		return
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if s.killedBy(data, err != nil) {
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	answer := tooLarge
	if err == nil {
		answer = s.handle(data, user, r.Header)
	}
	if answer == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if answer.Fault != nil && answer.Fault.status != 0 {
		w.WriteHeader(answer.Fault.status)
	}
	json.NewEncoder(w).Encode(answer)
}

var tooLarge = refusal(nil, http.StatusRequestEntityTooLarge, codeRequest, "The message is too large")

// userOf returns the user whom the Authorization headers name, or "" if there is no header. ok
// is false if the headers are not accepted.
func userOf(headers []string) (user string, ok bool) {
	switch strings.Join(headers, ", ") {
	case "":
		return "", true
	case "Bearer alice-token":
		return "alice", true
	case "Bearer bob-token":
		return "bob", true
	}
	return "", false
}

// killedBy reports whether the server is dead. A message kills only a server with the hole no-limits.
func (s *Server) killedBy(data []byte, large bool) bool {
	if s.hole("no-limits") && (large || depth(data) > maxDepth) {
		s.dead.Store(true)
	}
	return s.dead.Load()
}

// Serve reads messages from the input, one per line, and writes the answers to the output. It returns
// when the input ends.
func (s *Server) Serve(input io.Reader, output io.Writer) error {
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, 16*maxBody)
	for lines.Scan() {
		large := len(lines.Bytes()) > maxBody
		if s.killedBy(lines.Bytes(), large) {
			return errors.New("leaky: a message without limits killed the server")
		}
		answer := tooLarge
		if !large {
			answer = s.handle(lines.Bytes(), "local", nil)
		}
		if answer != nil {
			if err := json.NewEncoder(output).Encode(answer); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}
