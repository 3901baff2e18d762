package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// attack is one thing to try with alice's states.
type attack struct {
	name   string
	who    *client
	params mcp.CallToolParams
	wait   time.Duration
}

func (d *demo) attack(ctx context.Context, states [2]string, ttl time.Duration) error {
	asked, confirmedState := states[0], states[1]
	old, err := d.stateOf(ctx, d.brief)
	if err != nil {
		return err
	}
	foreign, err := d.stateOf(ctx, d.other)
	if err != nil {
		return err
	}
	deploy := func(state string, answers mcp.InputResponseMap) mcp.CallToolParams {
		return mcp.CallToolParams{Name: "deploy", Arguments: frontend, RequestState: state, InputResponses: answers}
	}
	rollback, database := deploy(confirmedState, inEurope), deploy(confirmedState, inEurope)
	rollback.Name = "rollback"
	database.Arguments = map[string]any{"service": "database", "version": "9.9.9"}
	attacks := []attack{
		{name: "one character changed", who: &d.alice, params: deploy(changed(asked), inEurope)},
		{name: "the end cut off", who: &d.alice, params: deploy(confirmedState[:len(confirmedState)-len("&traffic=10")], inEurope)},
		{name: "sent by another user", who: &d.bob, params: deploy(confirmedState, inEurope)},
		{name: "sent to another tool", who: &d.alice, params: rollback},
		{name: "with other arguments", who: &d.alice, params: database},
		{name: "answers without the state", who: &d.alice, params: deploy("", both)},
		{name: "a copy after it expired", who: &d.alice, params: deploy(old, inEurope), wait: ttl + 50*time.Millisecond},
		{name: "of a service sharing the keys", who: &d.alice, params: deploy(foreign, inEurope)},
	}
	width := 46
	if d.protected {
		width = 33 // leaves room for the operator
	}
	d.out.line("   %-30s%-*s%s", "attack", width, "the client gets", d.operator("the operator"))
	wrong := 0
	for _, a := range attacks {
		time.Sleep(a.wait)
		d.main.lastReason()
		text, succeeded := outcome(a.who.CallTool(ctx, &a.params))
		colour, mark := green, "ok "
		if succeeded {
			colour, mark = red, "!! "
		}
		if succeeded == d.protected {
			wrong++
		}
		line := fmt.Sprintf("%s%-30s%s%s", d.out.paint(colour, mark), a.name, d.out.paint(colour, fmt.Sprintf("%-*.*s", width, width, text)),
			d.operator(string(d.main.lastReason())))
		d.out.line("%s", strings.TrimRight(line, " "))
	}
	d.out.line("")
	switch {
	case wrong > 0 && d.protected:
		return fmt.Errorf("%d of %d attacks succeeded", wrong, len(attacks))
	case wrong > 0:
		return fmt.Errorf("%d of %d attacks failed although nothing protects the server", wrong, len(attacks))
	case d.protected:
		d.out.line("%s", d.out.paint(green, fmt.Sprintf("All %d attacks failed.", len(attacks)))+" Run it with --unprotected to see them succeed.")
	default:
		d.out.line("%s", d.out.paint(red, fmt.Sprintf("All %d attacks succeeded.", len(attacks)))+" The difference is one line: gosdk.Protect.")
	}
	return nil
}

// operator is a column that exists only where there is something to see.
func (d *demo) operator(text string) string {
	if !d.protected {
		return ""
	}
	return d.out.paint(faint, text)
}

// stateOf gets a state of alice's from another server, after her confirmation.
func (d *demo) stateOf(ctx context.Context, s *service) (string, error) {
	alice, err := connect(ctx, s, "alice")
	if err != nil {
		return "", err
	}
	defer alice.Close()
	params := mcp.CallToolParams{Name: "deploy", Arguments: frontend}
	for _, answers := range []mcp.InputResponseMap{nil, confirmed} {
		params.InputResponses = answers
		result, err := alice.CallTool(ctx, &params)
		if err != nil {
			return "", err
		}
		params.RequestState = result.RequestState
	}
	return params.RequestState, nil
}

// changed changes one character: of a readable state, the step.
func changed(state string) string {
	if i := strings.Index(state, "step=1"); i >= 0 {
		return strings.Replace(state, "step=1", "step=2", 1)
	}
	i, other := len(state)/2, "A"
	if state[i:i+1] == other {
		other = "B"
	}
	return state[:i] + other + state[i+1:]
}
