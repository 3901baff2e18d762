package mutate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// recording holds what was sent in honest calls.
type recording struct {
	rounds  []round     // the requests of the newer protocol revision
	calls   []olderCall // the calls of the older protocol revision
	users   []string    // the access tokens of the users, at least one; "" means that no token is sent
	tokens  []string    // the states and cursors of every call and user
	answers []any       // all answers that were sent with the newer protocol revision
	names   []string    // the names of the tools and prompts that were called
}

// round is one request of the newer protocol revision.
type round struct {
	user, method string
	params       json.RawMessage
}

// olderCall is a call of the older protocol revision. The field answers maps the message of
// each question to its answer.
type olderCall struct {
	user, method string
	params       json.RawMessage
	answers      map[string]json.RawMessage
}

// record makes all calls of the target and records them. Each user makes each call with both
// protocol revisions.
func record(ctx context.Context, target Target, client func(user string) *Client) (*recording, error) {
	r := &recording{users: target.Users}
	if len(r.users) == 0 {
		r.users = []string{""}
	}
	for _, user := range r.users {
		for _, call := range target.Calls {
			if err := r.call(ctx, client(user), user, call); err != nil {
				return nil, fmt.Errorf("%s %v: %w", call.Method, call.Params["name"], err)
			}
		}
	}
	return r, nil
}

func (r *recording) call(ctx context.Context, client *Client, user string, call Call) error {
	outcome, sent, err := client.callNewer(ctx, call)
	if err == nil && outcome.Error != nil {
		err = fmt.Errorf("it ended with %v", outcome)
	}
	if err != nil {
		return err
	}
	for _, params := range sent {
		r.rounds = append(r.rounds, round{user, call.Method, params})
		r.collect(params)
	}
	outcome, sent, answers, err := client.callOlder(ctx, call)
	if err == nil && outcome.Error != nil {
		err = fmt.Errorf("on the older revision it ended with %v", outcome)
	}
	for _, params := range sent {
		r.calls = append(r.calls, olderCall{user, call.Method, params, answers})
		r.collect(params)
	}
	return err
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
