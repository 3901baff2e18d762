package leaky

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzServer sends any body, over HTTP and stdio, to two servers: one has a hole, and the other,
// the sound server, has none. In the body, the text STATE becomes a genuine state, and the text
// CURSOR becomes a genuine cursor.
func FuzzServer(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte, which byte) {
		leaky := newServer(t, holes[int(which)%len(holes)].Name)
		leaky.pause = func() {}
		sound := newServer(t)
		for _, s := range []*Server{leaky, sound} {
			genuine := strings.NewReplacer("STATE", unquote(message{}.begin(t, s)), "CURSOR", tools.send(t, s).Result.NextCursor)
			deliver(t, s, []byte(genuine.Replace(string(body))))
		}
		for _, answer := range deliver(t, newServer(t), body) {
			for _, done := range []string{"deployed", "rolled back", "booked", "the model said", "Greet", "a note"} {
				if strings.HasPrefix(answer.says(), done) {
					t.Errorf("the sound server %s without a state", done)
				}
			}
		}
	})
}

// deliver sends a body over both transports. If the body can be parsed, the headers match it.
func deliver(t *testing.T, s *Server, body []byte) (answers []outcome) {
	r := httptest.NewRequest("POST", "/", bytes.NewReader(body))
	r.Header.Set("Mcp-Protocol-Version", version)
	if m, err := parse(string(body)); err == nil && depth(body) <= maxDepth {
		params := m.get("params")
		r.Header.Set("Mcp-Method", m.get("method").text)
		r.Header.Set("Mcp-Name", or(params.first("name").text, params.first("uri").text))
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var out bytes.Buffer
	if err := s.Serve(context.Background(), bytes.NewReader(body), &out); err != nil && !s.dead.Load() {
		t.Fatal(err)
	}
	for _, line := range append(strings.Split(out.String(), "\n"), w.Body.String()) {
		if line == "" {
			continue
		}
		if !json.Valid([]byte(line)) {
			t.Fatalf("the answer is not JSON: %s", line)
		}
		o := parsed(t, line)
		if (o.Error.Code == 0) == (o.Result.ResultType == "") {
			t.Fatalf("the answer is neither a result nor an error: %s", line)
		}
		answers = append(answers, o)
	}
	return answers
}
