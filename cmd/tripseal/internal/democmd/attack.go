package democmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
)

// attack is one way to misuse a state that alice got from the server.
type attack struct {
	name, harm string // harm says what the server does if it lets the attack through
	who        *client
	params     mcp.CallToolParams
	wait       time.Duration
}

// plan returns the attacks on this side. The states are those of alice's honest call, of one whose
// tokens live for a moment only, and of one of another service.
func (s *side) plan(states [2]string, old, foreign string) []attack {
	asked, confirmedState := states[0], states[1]
	deploy := func(state string, answers mcp.InputResponseMap) mcp.CallToolParams {
		return mcp.CallToolParams{Name: "deploy", Arguments: frontend, RequestState: state, InputResponses: answers}
	}
	rollback, database := deploy(confirmedState, inEurope), deploy(confirmedState, inEurope)
	rollback.Name = "rollback"
	database.Arguments = map[string]any{"service": "database", "version": "9.9.9"}
	cut := confirmedState[:len(confirmedState)-len("&traffic=10")]
	return []attack{
		{"one character changed", "deployed without a confirmation", &s.alice, deploy(changeOne(asked), inEurope), 0},
		{"the end cut off", "100% of traffic instead of 10%", &s.alice, deploy(cut, inEurope), 0},
		{"sent by another user", "bob used alice's confirmation", &s.bob, deploy(confirmedState, inEurope), 0},
		{"sent to another tool", "restored instead of deployed", &s.alice, rollback, 0},
		{"with other arguments", "database 9.9.9, never confirmed", &s.alice, database, 0},
		{"answers, but no state", "deployed, and nobody was asked", &s.alice, deploy("", both), 0},
		{"sent after it expired", "deployed on an old confirmation", &s.alice, deploy(old, inEurope), lifetime + 50*time.Millisecond},
		{"from another service", "deployed; confirmed for billing", &s.alice, deploy(foreign, inEurope), 0},
	}
}

// tryAttacks tries every attack on both servers and prints a table of what happened. If only the
// server without protection is attacked, the parameter sealed is nil.
func (d *demo) tryAttacks(ctx context.Context, bare, sealed *side) error {
	row := func(colour, mark, name, harm, answer string) {
		d.out.Line("%s %-22s %s", d.out.Paint(colour, mark), name, strings.TrimRight(fmt.Sprintf("%-33s %s", harm, answer), " "))
	}
	if sealed != nil {
		row("", "  ", "attack", "harm without protection", "with it, and why")
	} else {
		row("", "  ", "attack", "harm without protection", "")
	}
	harmless, succeeded, untried := 0, 0, 0
	var why error   // the error of the first attack that could not be tried
	var wire string // what a rejected client gets
	for i, a := range bare.attacks {
		if why == nil { // once the demo has failed, it does not wait until a token expires
			time.Sleep(a.wait)
		}
		without, harm := a.try(ctx), a.harm
		if !without.harmed && without.err == nil {
			harm = "none: " + without.summary()
			harmless++
		}
		colour, mark, answer := cli.Green, "ok", ""
		if sealed == nil {
			colour, mark = cli.Red, "!!"
		}
		with := outcome{}
		if sealed != nil {
			sealed.main.lastTold()
			with = sealed.attacks[i].try(ctx)
			answer = cmp.Or(sealed.main.lastTold(), with.summary())
			if with.rejected {
				wire = with.answer
			}
			if with.harmed {
				colour, mark, answer = cli.Red, "!!", "harm was done"
				succeeded++
			}
		}
		if err := cmp.Or(without.err, with.err); err != nil {
			colour, mark = cli.Yellow, "??"
			answer = "could not be tried"
			untried++
			if why == nil {
				why = fmt.Errorf("%s: %w", a.name, err)
			}
		}
		row(colour, mark, a.name, harm, answer)
	}
	d.out.Line("")
	switch n := len(bare.attacks); {
	case succeeded > 0:
		return cli.No("%d of %d attacks succeeded although the server is protected", succeeded, n)
	case harmless > 0:
		return cli.No("%d of %d attacks did no harm although nothing protects the server", harmless, n)
	case untried > 0:
		return cli.Failed("%d of %d attacks could not be tried; %w", untried, n, why)
	case sealed == nil:
		d.out.Line("%s The difference is one line: gosdk.Protect.", d.out.Paint(cli.Red, fmt.Sprintf("All %d attacks succeeded.", n)))
	default:
		d.out.Line("%s The difference is one line of code.", d.out.Paint(cli.Green, fmt.Sprintf("Behind gosdk.Protect all %d attacks failed.", n)))
		d.out.Line("Only the operator sees why; a rejected client always gets the same answer:\n%s.", wire)
	}
	return nil
}

// outcome is how an attack ended. If no field is set, the server asked the question again.
type outcome struct {
	harmed   bool   // true if the tool acted
	rejected bool   // true if the server rejected the state
	answer   string // what a rejected client got
	err      error  // the reason why the attack proves nothing
}

func (o outcome) summary() string {
	if o.rejected {
		return "rejected"
	}
	return "asked again"
}

// try makes the attack. It proves nothing if the server neither acted, nor gave the answer that a
// protected server must give.
func (a *attack) try(ctx context.Context) outcome {
	result, err := a.who.CallTool(ctx, &a.params)
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) {
		if want := tripseal.Wire(tripseal.ErrRejected); a.params.RequestState == "" ||
			rpc.Code != want.Code || rpc.Message != want.Message || string(rpc.Data) != string(want.Data) {
			return outcome{err: fmt.Errorf("the server answered with the error %d, %q", rpc.Code, rpc.Message)}
		}
		return outcome{answer: rpc.Message, rejected: true}
	}
	if err != nil {
		return outcome{err: err}
	}
	did := content(result)
	switch acted := strings.HasPrefix(did, "deployed ") || strings.HasPrefix(did, "restored "); {
	case result.NeedsInput() && a.params.RequestState == "" && result.InputRequests["confirm"] != nil:
		return outcome{}
	case acted && !result.IsError && !result.NeedsInput():
		return outcome{harmed: true}
	}
	return outcome{err: fmt.Errorf("the tool answered %.80q", did)}
}

// changeOne returns the state with one character changed. If the state is readable, the
// changed character is the number of the step.
func changeOne(state string) string {
	if i := strings.Index(state, "step=1"); i >= 0 {
		return strings.Replace(state, "step=1", "step=2", 1)
	}
	i, other := len(state)/2, "A"
	if state[i:i+1] == other {
		other = "B"
	}
	return state[:i] + other + state[i+1:]
}
