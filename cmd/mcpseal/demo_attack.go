package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// attack is one way to misuse a state of alice.
type attack struct {
	name   string
	who    *client
	params mcp.CallToolParams
	does   string // the text that the tool returns if the attack succeeds
	harm   string // the harm of a successful attack, as the table prints it
	wait   time.Duration
}

func (d *demo) attack(ctx context.Context, states [2]string, ttl time.Duration) error {
	asked, confirmedState := states[0], states[1]
	old, err := d.stateOf(ctx, d.brief)
	if err != nil {
		return failed("no state that will expire: %w", err)
	}
	foreign, err := d.stateOf(ctx, d.other)
	if err != nil {
		return failed("no state of another service: %w", err)
	}
	deploy := func(state string, answers mcp.InputResponseMap) mcp.CallToolParams {
		return mcp.CallToolParams{Name: "deploy", Arguments: frontend, RequestState: state, InputResponses: answers}
	}
	rollback, database := deploy(confirmedState, inEurope), deploy(confirmedState, inEurope)
	rollback.Name = "rollback"
	database.Arguments = map[string]any{"service": "database", "version": "9.9.9"}
	attacks := []attack{
		{name: "one character changed", who: &d.alice, params: deploy(changed(asked), inEurope), does: deployed,
			harm: "deployed, but alice never confirmed"},
		{name: "the end cut off", who: &d.alice, params: deploy(confirmedState[:len(confirmedState)-len("&traffic=10")], inEurope),
			does: "deployed frontend 1.4.2 in eu, 100% of traffic", harm: "deployed to 100% of traffic; the plan was 10%"},
		{name: "sent by another user", who: &d.bob, params: deploy(confirmedState, inEurope), does: deployed,
			harm: "bob deployed on alice's confirmation"},
		{name: "sent to another tool", who: &d.alice, params: rollback, does: "restored frontend 1.4.2 in eu, 10% of traffic",
			harm: "restored 1.4.2; alice confirmed a deployment"},
		{name: "with other arguments", who: &d.alice, params: database, does: "deployed database 9.9.9 in eu, 10% of traffic",
			harm: "deployed database 9.9.9, which nobody confirmed"},
		{name: "answers without the state", who: &d.alice, params: deploy("", both), does: "deployed frontend 1.4.2 in eu, 100% of traffic",
			harm: "deployed to 100%, and no question was asked"},
		{name: "a copy after it expired", who: &d.alice, params: deploy(old, inEurope), does: deployed, wait: ttl + 50*time.Millisecond,
			harm: "deployed on a confirmation that had expired"},
		{name: "of a service sharing the keys", who: &d.alice, params: deploy(foreign, inEurope), does: deployed,
			harm: "deployed on a confirmation to another service"},
	}
	width, outcome := 47, "the harm that was done"
	if d.protected {
		width, outcome = 33, "the client gets" // leaves room for the operator's column
	}
	d.out.line("%s", strings.TrimRight(fmt.Sprintf("   %-30s%-*s%s", "attack", width, outcome, d.operator("the operator")), " "))
	wrong, untried, why := 0, 0, error(nil)
	for _, a := range attacks {
		if untried == 0 { // if an attack could not be tried, the demo has failed, and waiting is pointless
			time.Sleep(a.wait)
		}
		d.main.lastReason()
		text, succeeded, err := a.try(ctx)
		colour, mark := green, "ok "
		switch {
		case err != nil:
			colour, mark, text = yellow, "?? ", "could not be tried"
			untried++
			if why == nil {
				why = fmt.Errorf("%s: %w", a.name, err)
			}
		case succeeded:
			colour, mark = red, "!! "
		}
		if err == nil && succeeded == d.protected {
			wrong++
		}
		line := fmt.Sprintf("%s%-30s%s%s", d.out.paint(colour, mark), a.name, d.out.paint(colour, fmt.Sprintf("%-*.*s", width, width, text)),
			d.operator(string(d.main.lastReason())))
		d.out.line("%s", strings.TrimRight(line, " "))
	}
	d.out.line("")
	switch {
	case wrong > 0 && d.protected:
		return no("%d of %d attacks succeeded", wrong, len(attacks))
	case wrong > 0:
		return no("%d of %d attacks failed although nothing protects the server", wrong, len(attacks))
	case untried > 0:
		return failed("%d of %d attacks could not be tried; %w", untried, len(attacks), why)
	case d.protected:
		d.out.line("%s", d.out.paint(green, fmt.Sprintf("All %d attacks failed.", len(attacks)))+" Run it with --unprotected to see them succeed.")
	default:
		d.out.line("%s", d.out.paint(red, fmt.Sprintf("All %d attacks succeeded.", len(attacks)))+" The difference is one line: gosdk.Protect.")
	}
	return nil
}

// try makes the attack. If the tool did what the attacker wants, succeeded is true and text
// describes the harm. If the client got the answer that a protected server must give,
// succeeded is false and text describes that answer. Any other answer, or none, proves
// nothing, and try returns an error.
func (a *attack) try(ctx context.Context) (text string, succeeded bool, err error) {
	result, err := a.who.CallTool(ctx, &a.params)
	var rpc *jsonrpc.Error
	switch {
	case errors.As(err, &rpc):
		if want := mcpseal.Wire(mcpseal.ErrRejected); a.params.RequestState == "" ||
			rpc.Code != want.Code || rpc.Message != want.Message || string(rpc.Data) != string(want.Data) {
			return "", false, fmt.Errorf("the server answered with the error %d, %q", rpc.Code, rpc.Message)
		}
		return rpc.Message, false, nil
	case err != nil:
		return "", false, err
	case result.NeedsInput():
		if _, asks := result.InputRequests["confirm"]; a.params.RequestState != "" || !asks {
			return "", false, errors.New("the server asked something else")
		}
		return "the question again", false, nil
	case result.IsError || content(result) != a.does:
		return "", false, fmt.Errorf("the tool answered %.80q", content(result))
	}
	return a.harm, true, nil
}

// operator returns what the table prints in the operator's column: the given text, or "" if
// the server is unprotected, because that table has no such column.
func (d *demo) operator(text string) string {
	if !d.protected {
		return ""
	}
	return d.out.paint(faint, text)
}

// stateOf calls the tool on the server s as alice. It returns the state that she gets after
// she confirmed.
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
		if !result.NeedsInput() {
			return "", fmt.Errorf("the tool does not ask: %.80q", content(result))
		}
		params.RequestState = result.RequestState
	}
	return params.RequestState, nil
}

// changed returns the state with one character changed. If the state is readable, the
// changed character is the number of the step.
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
