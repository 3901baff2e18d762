// Package democmd is the command tripseal demo.
package democmd

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
)

// New returns the command tripseal demo.
func New() *cobra.Command {
	var unprotected bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Attack a server on loopback, without protection and with it",
		Long: `Starts the same server twice, without protection and with it. The server has two
users, and a tool that asks twice before it acts. The demo calls the tool with the
official SDK's client, and then attacks both servers. The table shows the harm that
each attack did to the server without protection, and how the protected server
answered.

Exit code 0 means that everything went as it must: with protection every attack is
rejected, without it every attack succeeds. If an attack gets no answer, or an
unexpected one, it could not be tried, and the exit code is 3.`,
		Args:              cli.ExactArgs(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			demo := demo{unprotected: unprotected, out: cli.Painter{Writer: out, Colour: cli.WantsColour(out)}}
			return demo.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&unprotected, "unprotected", false, "attack only the server without protection")
	return cmd
}

// demo is one run of the command tripseal demo. The run first calls the tool of a server as an
// honest user, and then attacks the server.
type demo struct {
	unprotected bool // attack only the server without protection
	out         cli.Painter
	wrap        func(protected bool, next http.Handler) http.Handler // wraps the HTTP handler of every server, for tests; may be nil
}

// side has the servers and users of one side of the demo: the unprotected or the protected side.
type side struct {
	protected  bool
	main       *service
	brief      *service // like side.main, but its tokens expire after a second
	other      *service // another service with the same keys
	alice, bob client
	attacks    []attack
}

// lifetime is how long a token is valid if it must expire during the demo. It is long enough for
// two rounds.
const lifetime = time.Second

func (d *demo) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	bare, sealed := &side{}, &side{protected: true}
	defer bare.close()
	defer sealed.close()
	quiet := cli.Painter{Writer: io.Discard}
	if d.unprotected {
		sealed = nil
		if err := d.prepare(ctx, bare, d.out); err != nil {
			return err
		}
	} else {
		if err := d.prepare(ctx, sealed, d.out); err != nil {
			return err
		}
		if err := d.prepare(ctx, bare, quiet); err != nil {
			return fmt.Errorf("without protection: %w", err)
		}
	}
	return d.tryAttacks(ctx, bare, sealed)
}

// prepare starts the servers of one side, makes alice's honest call and prints it, and prepares
// the attacks.
func (d *demo) prepare(ctx context.Context, s *side, out cli.Painter) error {
	var ring *tripseal.Ring
	var wrap func(http.Handler) http.Handler
	if s.protected {
		ring = tripseal.Ephemeral()
	}
	if d.wrap != nil {
		wrap = func(next http.Handler) http.Handler { return d.wrap(s.protected, next) }
	}
	for _, one := range []struct {
		service  **service
		audience string
		ttl      time.Duration
	}{{&s.main, "release.example.com", 0}, {&s.brief, "release.example.com", lifetime}, {&s.other, "billing.example.com", 0}} {
		started, err := start(ring, one.audience, one.ttl, wrap)
		if err != nil {
			return cli.Failed("%w", err)
		}
		*one.service = started
	}
	var err error
	if s.alice, err = connect(ctx, s.main, "alice"); err != nil {
		return cli.Failed("alice cannot connect: %w", err)
	}
	if s.bob, err = connect(ctx, s.main, "bob"); err != nil {
		return cli.Failed("bob cannot connect: %w", err)
	}
	with := "behind gosdk.Protect"
	if !s.protected {
		with = "without protection"
	}
	out.Line("The tool deploy, %s, at %s\n", with, s.main.url)
	states, err := s.callHonestly(ctx, s.alice, out)
	if err != nil {
		return err
	}
	out.Line("  alice gets         %s\n", out.Paint(cli.Green, deployed))
	var more [2]string // a state that expires, and one of another service
	for i, server := range []*service{s.brief, s.other} {
		alice, err := connect(ctx, server, "alice")
		if err != nil {
			return cli.Failed("alice cannot connect: %w", err)
		}
		defer alice.Close()
		if more[i], err = s.confirm(ctx, alice); err != nil {
			return err
		}
	}
	s.attacks = s.plan(states, more[0], more[1])
	return nil
}

// close ends all clients and servers of this side.
func (s *side) close() {
	for _, c := range []client{s.alice, s.bob} {
		if c.ClientSession != nil {
			c.Close()
		}
	}
	for _, one := range []*service{s.main, s.brief, s.other} {
		if one != nil {
			one.web.Close()
		}
	}
}

var (
	frontend  = map[string]any{"service": "frontend", "version": "1.4.2"}
	confirmed = mcp.InputResponseMap{"confirm": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}}
	inEurope  = mcp.InputResponseMap{"region": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "eu"}}}
	both      = mcp.InputResponseMap{"confirm": confirmed["confirm"], "region": inEurope["region"]}
)

// deployed is the result of an honest call.
const deployed = "deployed frontend 1.4.2 in eu, 10% of traffic"

// callHonestly makes alice's call as an honest client does, and prints it. It returns the two
// states that she got: one with the first question, one with the second.
func (s *side) callHonestly(ctx context.Context, alice client, out cli.Painter) (states [2]string, err error) {
	call := mcp.CallToolParams{Name: "deploy", Arguments: frontend}
	for i, wrote := range []string{"step=1&traffic=10", "step=2&traffic=10"} {
		result, err := s.ask(ctx, alice, &call)
		if err != nil {
			return states, err
		}
		for _, q := range result.InputRequests {
			out.Line("  the tool asks      %s", q.(*mcp.ElicitParams).Message)
		}
		out.Line("  the handler wrote  %s", wrote)
		out.Line("  the client saw     %s", shorten(result.RequestState))
		states[i] = result.RequestState
		call.RequestState, call.InputResponses = result.RequestState, []mcp.InputResponseMap{confirmed, inEurope}[i]
	}
	result, err := alice.CallTool(ctx, &call)
	if err != nil || content(result) != deployed {
		return states, cli.Failed("the honest call did not deploy: %q, %w", content(result), err)
	}
	return states, nil
}

// confirm makes alice's call up to the second question, and returns its state.
func (s *side) confirm(ctx context.Context, alice client) (string, error) {
	call := mcp.CallToolParams{Name: "deploy", Arguments: frontend}
	for _, answers := range []mcp.InputResponseMap{nil, confirmed} {
		call.InputResponses = answers
		result, err := s.ask(ctx, alice, &call)
		if err != nil {
			return "", err
		}
		call.RequestState = result.RequestState
	}
	return call.RequestState, nil
}

// ask makes a call that must end with a question, and with a sealed state on the protected side.
func (s *side) ask(ctx context.Context, alice client, call *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	result, err := alice.CallTool(ctx, call)
	if err != nil {
		return nil, cli.Failed("the honest call failed: %w", err)
	}
	if !result.NeedsInput() || s.protected && strings.Contains(result.RequestState, "step") {
		return nil, cli.Failed("the honest call did not ask as it should")
	}
	return result, nil
}

// shorten shortens a state to fit on a line of 80 columns.
func shorten(state string) string {
	const room = 48
	if len(state) <= room {
		return state
	}
	return fmt.Sprintf("%s… %d characters", state[:room-8], len(state))
}

func content(result *mcp.CallToolResult) string {
	if result != nil && len(result.Content) > 0 {
		if text, ok := result.Content[0].(*mcp.TextContent); ok {
			return text.Text
		}
	}
	return ""
}
