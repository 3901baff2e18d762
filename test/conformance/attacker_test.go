package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
)

// attacker sends recorded requests. Some are mutated, others are sent as they were recorded.
// All choices come from the field rand, so the same seed makes the same choices.
type attacker struct {
	recorded *recording
	judge    *judge
	client   client // without a user
	rand     *rand.Rand
	first    []func(*attacker) *shot // each function makes one request; the attacker sends these requests first
	sent     int64                   // how many requests the attacker sent
}

// shot is a request that the attacker sends, mutated or not.
type shot struct {
	message
	user    string
	members map[string]any      // the params of the request
	headers map[string]string   // HTTP headers that replace the usual ones; the value "" removes a header
	text    func([]byte) []byte // returns the body to send in place of its argument; nil means no change
	honest  bool                // true if the request is not mutated, so the server must answer it with a result
	what    string              // the names of the mutations, for failure messages
}

func pick[T any](a *attacker, from []T) T { return from[a.rand.IntN(len(from))] }

// chance returns true at random, in the given percentage of calls.
func (a *attacker) chance(percent int) bool { return a.rand.IntN(100) < percent }

// attack sends one request of the newer protocol revision, or plays a whole session of the
// older one.
func (a *attacker) attack(ctx context.Context) {
	if len(a.first) > 0 && a.chance(60) {
		a.send(ctx, a.first[0](a), nil)
		a.first = a.first[1:]
		return
	}
	if a.chance(5) {
		a.olderSession(ctx)
		return
	}
	r := pick(a, a.recorded.rounds)
	s := a.shot(newer, "", r.user, r.method, decode(r.params).(map[string]any))
	if a.chance(55) {
		a.mutate(s)
	}
	a.send(ctx, s, nil)
}

// as returns the client of a user.
func (a *attacker) as(user string) *client {
	c := a.client
	c.user = user
	return &c
}

// shot returns a request without a mutation.
func (a *attacker) shot(revision, session, user, method string, params map[string]any) *shot {
	id := strconv.FormatInt(a.sent, 10)
	m := message{revision: revision, session: session, id: id, method: method}
	return &shot{message: m, user: user, members: params, headers: map[string]string{}, honest: true}
}

// change adds a function that changes the body before the request is sent. The functions run
// in the order in which they were added.
func (s *shot) change(with func([]byte) []byte) {
	before := s.text
	s.text = func(body []byte) []byte {
		if before != nil {
			body = before(body)
		}
		if len(body) == 0 {
			return body
		}
		return with(body)
	}
}

// mutate applies one or more random mutations to the request s.
func (a *attacker) mutate(s *shot) {
	s.honest = false
	for again := true; again; again = a.chance(25) {
		m := pick(a, pick(a, mutations))
		m.apply(a, s)
		s.what += m.name + "; "
	}
}

// send sends a request and lets the judge check the reply. It returns the session that the
// reply names, or "".
func (a *attacker) send(ctx context.Context, s *shot, with *answerer) (session string) {
	if s.members != nil {
		s.params = s.members
	}
	header := s.header()
	for name, value := range s.headers {
		if header[name] = value; value == "" {
			delete(header, name)
		}
	}
	body := s.body()
	if s.text != nil {
		body = s.text(body)
	}
	what := s.method + " (" + s.what + ")"
	r, ok := a.post(ctx, s.user, what, header, body, with)
	if !ok {
		return ""
	}
	a.judge.checkReply(what, s.honest, r)
	return r.session
}

func (a *attacker) post(
	ctx context.Context, user, what string, header map[string]string, body []byte, with *answerer,
) (wireReply, bool) {
	a.sent++
	r, err := a.as(user).post(ctx, header, body, with)
	if err != nil {
		a.judge.fail("a request failed", "%s: %v; sent %.500s", what, err, body)
	}
	return r, err == nil
}

// olderSession plays a whole session of the older protocol revision: the handshake, some
// calls, and the end.
func (a *attacker) olderSession(ctx context.Context) {
	c := pick(a, a.recorded.calls)
	hello := initialize(everything)
	s := a.shot(older, "", c.user, hello.method, hello.params.(map[string]any))
	switch a.rand.IntN(20) {
	case 0:
		s.honest, s.members["capabilities"] = false, pick(a, fewCapabilities)
	case 1:
		s.honest = false
		s.members = a.twistObject(s.members)
	}
	session := a.send(ctx, s, nil)
	if session == "" {
		return
	}
	defer a.as(c.user).close(ctx, session)
	stream := a.as(c.user).listen(ctx, session)
	defer stream.stop()
	ready := s.honest
	if a.chance(97) {
		initialized := message{revision: older, session: session, method: "notifications/initialized"}
		if r, ok := a.post(ctx, c.user, initialized.method, initialized.header(), initialized.body(), nil); ok {
			a.judge.checkReply(initialized.method, false, r)
		}
	} else {
		ready = false
	}
	for range 1 + a.rand.IntN(3) {
		a.olderCall(ctx, c, session, stream, ready)
	}
}

// olderCall makes one call in a session of the older protocol revision, and answers the
// server's questions.
func (a *attacker) olderCall(ctx context.Context, c recordedCall, session string, stream *stream, ready bool) {
	s := a.shot(older, session, c.user, c.method, decode(c.params).(map[string]any))
	s.honest = ready
	if a.chance(40) {
		a.mutate(s)
	}
	header := (&message{revision: older, session: session}).header()
	answer := func(body []byte) (status int) {
		r, ok := a.post(ctx, c.user, "an answer", header, body, nil)
		if ok {
			a.judge.checkReply("an answer", false, r)
		}
		return r.status
	}
	opened := a.send(ctx, s, &answerer{stream, func(id, question json.RawMessage) error {
		var q wireQuestion
		json.Unmarshal(question, &q)
		recorded, ok := c.answers[q.message()]
		if !ok {
			recorded = json.RawMessage(`{"action":"cancel"}`)
		}
		if a.chance(40) {
			s.honest = false
			answer(a.badAnswer(id, recorded))
		}
		// Also send the recorded answer, so that the question ends even if the server refused
		// a bad answer.
		for try := 0; try < 3 && answer(answerText(id, recorded)) != http.StatusAccepted; try++ {
		}
		return nil
	}})
	if opened != session {
		a.as(c.user).close(ctx, opened)
	}
}

// recording holds what was sent in honest calls.
type recording struct {
	rounds  []recordedCall // the requests of the newer protocol revision
	calls   []recordedCall // the calls of the older protocol revision
	tokens  []string       // the states and cursors of every call and user
	answers []any          // all answers that were sent with the newer protocol revision
	names   []string       // the names of the tools and prompts that were called
}

// recordedCall is a request of the newer protocol revision, or a call of the older one. The field
// answers maps the message of each question of the older revision to its answer.
type recordedCall struct {
	user, method string
	params       json.RawMessage
	answers      map[string]json.RawMessage
}

// call makes a call with both protocol revisions, and records it.
func (r *recording) call(ctx context.Context, c *client, call wireCall) error {
	got, sent, err := c.callNewer(ctx, call)
	if err != nil || got.Error != nil || got.Result.IsError {
		return fmt.Errorf("%s %v: %v, %w", call.method, call.params["name"], got, err)
	}
	for _, params := range sent {
		r.rounds = append(r.rounds, recordedCall{c.user, call.method, params, nil})
		r.collect(params)
	}
	got, sent, answers, err := c.callOlder(ctx, call)
	if err != nil || got.Error != nil || got.Result.IsError {
		return fmt.Errorf("%s %v on the older revision: %v, %w", call.method, call.params["name"], got, err)
	}
	for _, params := range sent {
		r.calls = append(r.calls, recordedCall{c.user, call.method, params, answers})
		r.collect(params)
	}
	return nil
}

// collect copies the name, the answers and the tokens from the params of a request into the
// recording, so that mutations can put them into other requests.
func (r *recording) collect(text json.RawMessage) {
	params := decode(text).(map[string]any)
	if name, ok := params["name"].(string); ok && !slices.Contains(r.names, name) {
		r.names = append(r.names, name)
	}
	answers, _ := params["inputResponses"].(map[string]any)
	for _, answer := range answers {
		r.answers = append(r.answers, answer)
	}
	for _, place := range tokens(params) {
		r.tokens = append(r.tokens, place.text())
	}
}

// place says where a value is: in which object, and in which member.
type place struct {
	object map[string]any
	member string
}

func (p place) get() any      { return p.object[p.member] }
func (p place) set(value any) { p.object[p.member] = value }

func (p place) text() string {
	text, _ := p.get().(string)
	return text
}

// tokens returns the places in the params of a request that hold a token.
func tokens(params map[string]any) (places []place) {
	arguments, _ := params["arguments"].(map[string]any)
	for _, p := range []place{{params, "requestState"}, {params, "cursor"}, {arguments, "cursor"}} {
		if p.text() != "" {
			places = append(places, p)
		}
	}
	return places
}
