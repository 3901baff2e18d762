package democmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
)

// attack is one way to misuse a state that alice got from the server.
type attack struct {
	name   string
	who    *client
	params mcp.CallToolParams
	wait   time.Duration
	harm   func(did action) string // says in a few words what harm the tool did; "" means none
}

// action is what the tool says that it did.
type action struct{ done, service, version, region, traffic string }

var actionText = regexp.MustCompile(`^(\w+) (\S+) (\S+) in (\S+), (\d+)% of traffic$`)

// readAction reads the tool's result. ok is false if the tool did nothing.
func readAction(text string) (did action, ok bool) {
	m := actionText.FindStringSubmatch(text)
	if m == nil {
		return action{}, false
	}
	return action{m[1], m[2], m[3], m[4], m[5]}, true
}

// plan returns the attacks on this side. The two states are from alice's honest call.
func (s *side) plan(ctx context.Context, states [2]string) ([]attack, error) {
	asked, confirmedState := states[0], states[1]
	old, err := s.stateOf(ctx, s.brief)
	if err != nil {
		return nil, cli.Failed("no state that will expire: %w", err)
	}
	foreign, err := s.stateOf(ctx, s.other)
	if err != nil {
		return nil, cli.Failed("no state of another service: %w", err)
	}
	deploy := func(state string, answers mcp.InputResponseMap) mcp.CallToolParams {
		return mcp.CallToolParams{Name: "deploy", Arguments: frontend, RequestState: state, InputResponses: answers}
	}
	rollback, database := deploy(confirmedState, inEurope), deploy(confirmedState, inEurope)
	rollback.Name = "rollback"
	database.Arguments = map[string]any{"service": "database", "version": "9.9.9"}

	// In some attacks, the harm is that the tool did something that alice had not confirmed. In
	// the other attacks, the harm is that the tool did anything at all.
	agreed, _ := readAction(deployed)
	did := func(how string) func(action) string {
		return func(did action) string { return did.done + how }
	}
	return []attack{
		{name: "one character changed", who: &s.alice, params: deploy(changeOne(asked), inEurope), harm: did(" without a confirmation")},
		{name: "the end cut off", who: &s.alice, params: deploy(confirmedState[:len(confirmedState)-len("&traffic=10")], inEurope),
			harm: func(did action) string {
				if did.traffic == agreed.traffic {
					return ""
				}
				return fmt.Sprintf("%s%% of traffic instead of %s%%", did.traffic, agreed.traffic)
			}},
		{name: "sent by another user", who: &s.bob, params: deploy(confirmedState, inEurope), harm: func(action) string { return "bob used alice's confirmation" }},
		{name: "sent to another tool", who: &s.alice, params: rollback, harm: func(did action) string {
			if did.done == agreed.done {
				return ""
			}
			return did.done + " instead of " + agreed.done
		}},
		{name: "with other arguments", who: &s.alice, params: database, harm: func(did action) string {
			if did.service == agreed.service && did.version == agreed.version {
				return ""
			}
			return did.service + " " + did.version + ", never confirmed"
		}},
		{name: "answers, but no state", who: &s.alice, params: deploy("", both), harm: did(", and nobody was asked")},
		{name: "sent after it expired", who: &s.alice, params: deploy(old, inEurope), wait: lifetime + 50*time.Millisecond,
			harm: did(" on an old confirmation")},
		{name: "from another service", who: &s.alice, params: deploy(foreign, inEurope), harm: did("; confirmed for billing")},
	}, nil
}

// tryAttacks tries every attack on both servers and prints a table of what happened. If only the
// server without protection is attacked, the parameter sealed is nil.
func (d *demo) tryAttacks(ctx context.Context, bare, sealed *side) error {
	last := ""
	if sealed != nil {
		last = "with it, and why"
	}
	d.row(cell{text: "  "}, "attack", cell{text: "harm without protection"}, cell{text: last})
	harmless, succeeded, untried := 0, 0, 0
	broken := false // true if an attack could not be tried on the protected server; if there is none, on the unprotected one
	var why error   // the error of the first attack that could not be tried
	var wire string // what a rejected client gets
	for i, a := range bare.attacks {
		if !broken { // once the demo has failed, it does not wait until a token expires
			time.Sleep(a.wait)
		}
		without, with := a.try(ctx), outcome{}
		mark, first, second := cell{cli.Red, "!!"}, cell{cli.Red, without.harm}, cell{}
		switch {
		case without.err != nil:
			first = untriedCell
		case without.harm == "":
			first, mark = cell{cli.Green, "none: " + without.summary()}, cell{cli.Green, "ok"}
			harmless++
		}
		if sealed != nil {
			sealed.main.lastTold()
			with = sealed.attacks[i].try(ctx)
			second, mark = cell{cli.Green, cmp.Or(sealed.main.lastTold(), with.summary())}, cell{cli.Green, "ok"}
			switch {
			case with.err != nil:
				second = untriedCell
			case with.harm != "":
				second, mark = cell{cli.Red, "harm was done"}, cell{cli.Red, "!!"}
				succeeded++
			case with.rejected:
				wire = with.answer
			}
		}
		broken = broken || with.err != nil || sealed == nil && without.err != nil
		if err := cmp.Or(without.err, with.err); err != nil {
			mark = cell{cli.Yellow, "??"}
			untried++
			if why == nil {
				why = fmt.Errorf("%s: %w", a.name, err)
			}
		}
		d.row(mark, a.name, first, second)
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

// cell is a text in the table, and its colour. The colour "" means the terminal's own.
type cell struct{ colour, text string }

var untriedCell = cell{cli.Yellow, "could not be tried"}

// row prints a row of the table. The row fits into 80 columns.
func (d *demo) row(mark cell, name string, harm, answer cell) {
	paint := func(c cell, width int) string {
		text := fmt.Sprintf("%-*.*s", width, width, c.text)
		if c.colour == "" {
			return text
		}
		return d.out.Paint(c.colour, text)
	}
	line := paint(mark, 2) + " " + fmt.Sprintf("%-23s", name)
	if answer.text == "" {
		d.out.Line("%s%s", line, strings.TrimRight(paint(harm, len(harm.text)), " "))
		return
	}
	d.out.Line("%s%s%s", line, paint(harm, 33)+" ", paint(answer, len(answer.text)))
}

// outcome is how an attack ended. If harm is "" and err is nil, the server resisted: it rejected
// the state, or it asked the question again.
type outcome struct {
	harm     string // what harm was done; "" if the server did not do what the attacker wanted
	answer   string // what a rejected client got
	rejected bool   // true if the server rejected the state; false if it asked the question again
	err      error  // nil, or the reason why the attack proves nothing
}

// summary describes the answer in at most two words.
func (o outcome) summary() string {
	if o.rejected {
		return "rejected"
	}
	return "asked again"
}

// try makes the attack. If the tool acted, the outcome holds the harm. If the client got the
// answer that a protected server must give, the outcome holds that answer. If it got another
// answer or none, the attack proves nothing, and the outcome holds an error.
func (a *attack) try(ctx context.Context) outcome {
	result, err := a.who.CallTool(ctx, &a.params)
	var rpc *jsonrpc.Error
	switch {
	case errors.As(err, &rpc):
		if want := tripseal.Wire(tripseal.ErrRejected); a.params.RequestState == "" ||
			rpc.Code != want.Code || rpc.Message != want.Message || string(rpc.Data) != string(want.Data) {
			return outcome{err: fmt.Errorf("the server answered with the error %d, %q", rpc.Code, rpc.Message)}
		}
		return outcome{answer: rpc.Message, rejected: true}
	case err != nil:
		return outcome{err: err}
	case result.NeedsInput():
		if _, asks := result.InputRequests["confirm"]; a.params.RequestState != "" || !asks {
			return outcome{err: errors.New("the server asked something else")}
		}
		return outcome{}
	}
	did, acted := readAction(content(result))
	if harm := a.harm(did); acted && !result.IsError && harm != "" {
		return outcome{harm: harm}
	}
	return outcome{err: fmt.Errorf("the tool answered %.80q", content(result))}
}

// stateOf calls the tool on the given server as alice. It returns the state that she gets after
// she confirmed.
func (s *side) stateOf(ctx context.Context, server *service) (string, error) {
	alice, err := connect(ctx, server, "alice")
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
