package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

func newDemo() *cobra.Command {
	var unprotected bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Attack a protected server on loopback, and show what happens",
		Long: `Starts a server with two users and a tool that asks twice before it acts, drives
it with the official SDK's client, and attacks it. Exit code 0 means that
everything went as it must: with protection every attack is rejected, without it
every attack succeeds. If an attack gets no answer, or an unexpected one, it could
not be tried, and the exit code is 3.

With --unprotected every attack shows the harm that it did.`,
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			demo := demo{protected: !unprotected, out: painter{out, wantsColour(out)}}
			return demo.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&unprotected, "unprotected", false, "attack the same server without the middleware")
	return cmd
}

// demo first calls the tool of a server as an honest user, and then attacks the server.
type demo struct {
	protected bool
	out       painter
	wrap      func(http.Handler) http.Handler // wraps the HTTP handler of every server, for tests; may be nil

	main, brief, other *service // brief: tokens expire after a second; other: another service with the same keys
	alice, bob         client
}

func (d *demo) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var ring *mcpseal.Ring
	if d.protected {
		ring = mcpseal.Ephemeral()
	}
	const brief = time.Second // a token's lifetime that is short but long enough for two rounds
	for _, s := range []struct {
		service  **service
		audience string
		ttl      time.Duration
	}{{&d.main, "release.example.com", 0}, {&d.brief, "release.example.com", brief}, {&d.other, "billing.example.com", 0}} {
		started, err := start(ring, s.audience, s.ttl, d.wrap)
		if err != nil {
			return failed("%w", err)
		}
		defer started.web.Close()
		*s.service = started
	}
	var err error
	if d.alice, err = connect(ctx, d.main, "alice"); err != nil {
		return failed("alice cannot connect: %w", err)
	}
	defer d.alice.Close()
	if d.bob, err = connect(ctx, d.main, "bob"); err != nil {
		return failed("bob cannot connect: %w", err)
	}
	defer d.bob.Close()

	with := "behind gosdk.Protect"
	if !d.protected {
		with = "without protection"
	}
	d.out.line("The tool deploy, %s, at %s\n", with, d.main.url)
	states, err := d.honest(ctx)
	if err != nil {
		return err
	}
	return d.attack(ctx, states, brief)
}

var (
	frontend  = map[string]any{"service": "frontend", "version": "1.4.2"}
	confirmed = mcp.InputResponseMap{"confirm": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}}
	inEurope  = mcp.InputResponseMap{"region": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "eu"}}}
	both      = mcp.InputResponseMap{"confirm": confirmed["confirm"], "region": inEurope["region"]}
)

// deployed is the result of an honest call.
const deployed = "deployed frontend 1.4.2 in eu, 10% of traffic"

// honest makes alice's call as an honest client does. It returns the two states that she
// got: one with the first question, one with the second.
func (d *demo) honest(ctx context.Context) (states [2]string, err error) {
	wrote := []string{"step=1&traffic=10", "step=2&traffic=10"}
	var answers mcp.InputResponseMap
	state := ""
	for i := range wrote {
		result, err := d.alice.CallTool(ctx, &mcp.CallToolParams{Name: "deploy", Arguments: frontend, RequestState: state, InputResponses: answers})
		if err != nil {
			return states, failed("the honest call failed in round %d: %w", i+1, err)
		}
		if !result.NeedsInput() || d.protected == strings.Contains(result.RequestState, "step") {
			return states, failed("round %d of the honest call did not ask as it should", i+1)
		}
		for _, q := range result.InputRequests {
			d.out.line("  the tool asks      %s", q.(*mcp.ElicitParams).Message)
		}
		d.out.line("  the handler wrote  %s", wrote[i])
		d.out.line("  the client saw     %s", short(result.RequestState))
		state, states[i] = result.RequestState, result.RequestState
		answers = []mcp.InputResponseMap{confirmed, inEurope}[i]
	}
	result, err := d.alice.CallTool(ctx, &mcp.CallToolParams{Name: "deploy", Arguments: frontend, RequestState: state, InputResponses: answers})
	if err != nil {
		return states, failed("the honest call failed in the last round: %w", err)
	}
	if content(result) != deployed {
		return states, failed("the honest call did not deploy: %q", content(result))
	}
	d.out.line("  alice gets         %s\n", d.out.paint(green, content(result)))
	return states, nil
}

// short shortens a state to fit on a line of 80 columns.
func short(state string) string {
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
