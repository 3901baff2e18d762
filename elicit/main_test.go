package elicit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/elicit"
	"github.com/tripseal/tripseal/internal/whose"
)

// book collects a log.
type book struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// handler is a tool under test.
type handler func(ask *elicit.Asker) (string, error)

// service is a server without an SDK, whose handlers open and seal by themselves.
type service struct {
	*tripseal.Boundary
	t    testing.TB
	book *book
	tool string
}

func newService(t testing.TB, change ...func(*tripseal.Config)) *service {
	t.Helper()
	s := &service{t: t, book: new(book), tool: "t"}
	config := tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "test", Logger: slog.New(slog.NewTextHandler(s.book, nil))}
	for _, f := range change {
		f(&config)
	}
	var err error
	if s.Boundary, err = tripseal.New(config); err != nil {
		t.Fatal(err)
	}
	return s
}

// reply is what a client gets.
type reply struct {
	text      string // ASKS with the keys, ERROR with a text for the client, INTERNAL, REJECTED, or what the handler returned
	token     string
	questions map[string]elicit.Question
}

const internal = "INTERNAL"

// answers are the JSON texts of a client's answers.
type answers map[string]string

func form(value string) string {
	text, _ := json.Marshal(map[string]any{"action": "accept", "content": map[string]any{"value": value, "ok": true}})
	return string(text)
}

const (
	declined  = `{"action":"decline"}`
	cancelled = `{"action":"cancel"}`
	agreed    = `{"action":"accept"}`
)

// round serves one round of a call.
func (s *service) round(h handler, token string, given answers) reply {
	s.t.Helper()
	r, err := s.try(h, token, given)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *service) try(h handler, token string, given answers) (reply, error) {
	ctx := context.Background()
	round, err := s.Open(ctx, tripseal.Request{Method: "tools/call", Target: s.tool}, token)
	if errors.Is(err, tripseal.ErrRejected) {
		return reply{text: "REJECTED"}, nil
	}
	if err != nil {
		return reply{}, err
	}
	raw := map[string]json.RawMessage{}
	for key, text := range given {
		raw[key] = json.RawMessage(text)
	}
	state, _ := round.Elicit()
	ctx = elicit.Arrive(ctx, &elicit.Arrival{
		Method: "tools/call", Target: s.tool, State: state, Answers: raw, Logger: s.Config().Logger,
	})
	var done string
	pending, err := elicit.Run(ctx, s.call(), func(_ context.Context, ask *elicit.Asker) (err error) {
		done, err = h(ask)
		return err
	})
	var failed tripseal.WireError
	switch {
	case errors.As(err, &failed):
		return reply{text: internal}, nil
	case err != nil:
		return reply{text: "ERROR " + err.Error()}, nil
	case pending == nil:
		return reply{text: done}, nil
	}
	asked := reply{questions: pending.Questions}
	asked.text = fmt.Sprint("ASKS ", slices.Sorted(maps.Keys(asked.questions)))
	if asked.token, err = s.Seal(ctx, &round, &pending.State, pending.Asked()...); err != nil {
		return reply{text: internal}, nil
	}
	return asked, nil
}

func (s *service) call() elicit.Call {
	return elicit.Call{Method: "tools/call", Target: s.tool, Request: s, Can: func() adapter.Capabilities {
		return adapter.Capabilities{Form: true, Roots: true}
	}}
}

// finish answers all questions until the call is done. It also returns the messages of the questions.
func (s *service) finish(h handler, answer func(q elicit.Question) string) (last reply, messages []string) {
	s.t.Helper()
	given := answers{}
	for range 21 {
		last = s.round(h, last.token, given)
		given = answers{}
		for _, key := range slices.Sorted(maps.Keys(last.questions)) {
			q := last.questions[key]
			messages = append(messages, q.Message)
			given[key] = answer(q)
		}
		if last.questions == nil {
			return last, messages
		}
	}
	s.t.Fatalf("the call does not end; asked %q", messages)
	return last, messages
}

// reseal changes the state in a token, as somebody with the keys could.
func (s *service) reseal(token, from, to string) string {
	s.t.Helper()
	round, err := s.Open(context.Background(), tripseal.Request{Method: "tools/call", Target: s.tool}, token)
	if err != nil {
		s.t.Fatal(err)
	}
	state, ok := round.Elicit()
	if !ok || !strings.Contains(state, from) {
		s.t.Fatalf("%q is not in %q", from, state)
	}
	questions := slices.Collect(round.Asked)
	changed := whose.Sign(strings.Replace(state, from, to, 1))
	if token, err = s.Seal(context.Background(), &round, &changed, questions...); err != nil {
		s.t.Fatal(err)
	}
	return token
}

type value struct {
	Value string `json:"value"`
}

type confirm struct {
	OK bool `json:"ok"`
}

// asks asks one question for each pair of a key and a message, each after the answer before it.
func asks(pairs ...string) handler {
	return func(ask *elicit.Asker) (string, error) {
		var got []string
		for i := 0; i < len(pairs); i += 2 {
			did, v, err := elicit.Form[value](ask, pairs[i], pairs[i+1]).Outcome()
			if err != nil {
				return "", err
			}
			got = append(got, fmt.Sprint(pairs[i], "=", did, ":", v.Value))
		}
		return strings.Join(got, ","), nil
	}
}

// expect checks what a client got, and what the log says; "" means that the log says nothing.
func (s *service) expect(got reply, want, logged string) {
	s.t.Helper()
	text := s.book.String()
	if got.text != want || logged == "" && strings.Contains(text, "elicit:") || !strings.Contains(text, logged) {
		s.t.Errorf("%s, want %s; the log: %s", got.text, want, text)
	}
}
