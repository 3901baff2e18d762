package mutate

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strconv"
)

// attacker sends recorded requests. Some are mutated, others are sent as they were recorded.
// All choices come from the field rand, so the same seed makes the same choices.
type attacker struct {
	recorded *recording
	judge    *judge
	client   func(user string) *Client
	rand     *rand.Rand
	first    []func(*attacker) *shot // each function makes one request; the attacker sends these requests first
	sent     int64                   // how many requests the attacker sent
	applied  map[string]bool         // the names of the mutations that the attacker has used
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
	if len(a.first) > 0 {
		a.send(ctx, a.first[0](a), nil)
		a.first = a.first[1:]
		return
	}
	if a.chance(5) {
		a.olderSession(ctx)
		return
	}
	r := pick(a, a.recorded.rounds)
	s := a.shot(Newer, "", r.user, r.method, decode(r.params).(map[string]any))
	if a.chance(55) {
		a.mutate(s)
	}
	a.send(ctx, s, nil)
}

// shot returns a request without a mutation.
func (a *attacker) shot(revision, session, user, method string, params map[string]any) *shot {
	id := strconv.FormatInt(a.sent, 10)
	return &shot{message: message{revision: revision, session: session, id: id, method: method}, user: user, members: params, headers: map[string]string{}, honest: true}
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
		a.applied[m.name] = true
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

func (a *attacker) post(ctx context.Context, user, what string, header map[string]string, body []byte, with *answerer) (reply, bool) {
	a.sent++
	r, err := a.client(user).post(ctx, header, body, with)
	if err != nil {
		a.judge.fail("%s: %v; sent %.500s", what, err, body)
	}
	return r, err == nil
}

// olderSession plays a whole session of the older protocol revision: the handshake, some
// calls, and the end.
func (a *attacker) olderSession(ctx context.Context) {
	c := pick(a, a.recorded.calls)
	hello := initialize(Everything)
	s := a.shot(Older, "", c.user, hello.method, hello.params.(map[string]any))
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
	defer a.client(c.user).close(ctx, session)
	stream := a.client(c.user).listen(ctx, session)
	defer stream.stop()
	ready := s.honest
	if a.chance(97) {
		initialized := message{revision: Older, session: session, method: "notifications/initialized"}
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
func (a *attacker) olderCall(ctx context.Context, c olderCall, session string, stream *stream, ready bool) {
	s := a.shot(Older, session, c.user, c.method, decode(c.params).(map[string]any))
	s.honest = ready
	if a.chance(40) {
		a.mutate(s)
	}
	header := (&message{revision: Older, session: session}).header()
	answer := func(body []byte) (status int) {
		r, ok := a.post(ctx, c.user, "an answer", header, body, nil)
		if ok {
			a.judge.checkReply("an answer", false, r)
		}
		return r.status
	}
	opened := a.send(ctx, s, &answerer{stream, func(id, question json.RawMessage) error {
		var q Question
		json.Unmarshal(question, &q)
		recorded, ok := c.answers[q.Message()]
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
		a.client(c.user).close(ctx, opened)
	}
}
