package mutate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// recording is what honest calls sent.
type recording struct {
	rounds  []round     // requests of the newer revision
	calls   []olderCall // calls of the older revision
	users   []string    // the access tokens of the users, at least one; "" sends no token
	tokens  []string    // the states and cursors of every call and user
	answers []any       // answers to every kind of question
	names   []string    // names of tools and prompts
}

// round is one request of the newer revision.
type round struct {
	user, method string
	params       json.RawMessage
}

// olderCall is a call of the older revision, with the answers by question.
type olderCall struct {
	user, method string
	params       json.RawMessage
	answers      map[string]json.RawMessage
}

// record makes every call on both revisions as every user.
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
		r.keep(params)
	}
	outcome, sent, answers, err := client.callOlder(ctx, call)
	if err == nil && outcome.Error != nil {
		err = fmt.Errorf("on the older revision it ended with %v", outcome)
	}
	for _, params := range sent {
		r.calls = append(r.calls, olderCall{user, call.Method, params, answers})
		r.keep(params)
	}
	return err
}

// keep remembers the name, the answers and the tokens in a request's params, so that they
// can be put into other requests.
func (r *recording) keep(text json.RawMessage) {
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

// place is where a value is: a member of an object.
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

// tokens returns the places in params that hold a token.
func tokens(params map[string]any) (places []place) {
	arguments, _ := params["arguments"].(map[string]any)
	for _, p := range []place{{params, "requestState"}, {params, "cursor"}, {arguments, "cursor"}} {
		if p.text() != "" {
			places = append(places, p)
		}
	}
	return places
}
