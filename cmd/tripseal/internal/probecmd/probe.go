// Package probecmd is the command tripseal probe.
package probecmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/probe"
)

// probing holds the flags of the command tripseal probe.
type probing struct {
	options probe.Options
	stdio   bool
	control string
	allowed []string
	format  string
	output  string
	dryRun  bool
	last    func() *probe.Target // returns the target named last, to which --args, --other-args and --answer belong; nil before the first target
}

// New returns the command tripseal probe.
func New() *cobra.Command {
	var p probing
	cmd := &cobra.Command{
		Use:   "probe URL | probe --stdio -- COMMAND [ARG...]",
		Short: "Attack the state and the cursors of any MCP server, and report",
		Long: `Runs every attack on multi round-trip state and on cursors against an MCP
server, in any language, and reports what got through. It speaks protocol
revision 2026-07-28 by itself, over streamable HTTP or stdio.

Only the tools, prompts and resources that you name are called, because calls
have effects: the probe completes many honest calls, so name only harmless
targets, or use --control decline. If you name no target, the probe looks for
the tools of the official conformance suite. --args, --other-args and --answer
are for the target before them. Answers that are not given are made from the
questions. --dry-run lists the attacks and sends nothing.

The access tokens of two users open the attacks across users. Better than with a
flag, give them in ` + probe.BearerVariable + ` and ` + probe.OtherBearerVariable + `.
No report shows them.

Exit codes: 0 nothing got through, 1 something did, 2 it could not be told: no
state was issued, an honest call of a target failed, a paged tool gave no
cursor, no attack or not each that --require names was tried, the server did not
answer, the time or the budget was used up, or the command line is wrong.`,
		Example: `  tripseal probe http://127.0.0.1:8080/mcp --tool deploy \
    --args '{"env":"staging"}' --answer 'confirm={"ok":true}'
  tripseal probe --stdio --tool deploy -- ./server
  tripseal probe http://127.0.0.1:8080/mcp --tool deploy --tool rollback \
    --single-use --max-age 10m --format html --output report.html`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return p.run(cmd, args) },
	}
	p.flags(cmd)
	return cmd
}

func (p *probing) flags(cmd *cobra.Command) {
	f, o := cmd.Flags(), &p.options
	target := func(list *[]probe.Target, method string) func(string) error {
		return func(name string) error {
			if name == "" {
				return errors.New("the name is empty")
			}
			*list = append(*list, probe.Target{Method: method, Name: name})
			i := len(*list) - 1
			p.last = func() *probe.Target { return &(*list)[i] }
			return nil
		}
	}
	of := func(set func(t *probe.Target, text string) error) func(string) error {
		return func(text string) error {
			if p.last == nil {
				return errors.New("it belongs to the target before it, and there is none")
			}
			return set(p.last(), text)
		}
	}
	f.SortFlags = false
	// Flags that say what is attacked.
	f.BoolVar(&p.stdio, "stdio", false, "start the command after -- and speak to it over standard input and output")
	f.StringArrayVar(&p.allowed, "allow-remote", nil, "a `HOST` that is not this machine and may be attacked")
	f.Var(cli.Each("NAME", target(&o.Targets, "tools/call")), "tool", "a tool that asks; may be repeated")
	f.Var(cli.Each("NAME", target(&o.Targets, "prompts/get")), "prompt", "a prompt that asks")
	f.Var(cli.Each("URI", target(&o.Targets, "resources/read")), "resource", "a resource that asks")
	f.Var(cli.Each("NAME", target(&o.Paged, "tools/call")), "paged-tool", "a tool that returns pages: it takes a cursor, and gives nextCursor")
	f.Var(cli.Each("JSON", of(func(t *probe.Target, text string) error { t.Arguments = text; return nil })), "args", "arguments of the target before it (default {})")
	f.Var(cli.Each("JSON", of(func(t *probe.Target, text string) error { t.Others = text; return nil })), "other-args", "other arguments that it takes as well")
	f.Var(cli.Each("KEY=JSON", of(func(t *probe.Target, text string) error {
		key, content, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New(`not of the form KEY=JSON, such as confirm={"ok":true}`)
		}
		if t.Answers == nil {
			t.Answers = map[string]string{}
		}
		t.Answers[key] = content
		return nil
	})), "answer", "the content of the answer to a question of it")
	f.StringVar(&p.control, "control", "accept", "how honest calls are answered: accept, or decline for no effect")
	// Flags for the access tokens of two users. The probe sends requests as these users.
	f.StringVar(&o.Bearer, "bearer", "", "access token of a user (default $"+probe.BearerVariable+")")
	f.StringVar(&o.UserHeader, "user-header", "", "send --bearer and --other-bearer, names of users, in this `HEADER`; for a server behind a gateway")
	f.StringVar(&o.OtherBearer, "other-bearer", "", "access token of another user (default $"+probe.OtherBearerVariable+")")
	// Flags that say which attacks are tried, and what the server is expected to do.
	f.BoolVar(&p.dryRun, "dry-run", false, "send nothing; list the attacks, and how much they would send")
	f.StringSliceVar(&o.Only, "attack", nil, "`ATTACKS` to try, of those that --dry-run lists (default all)")
	f.StringSliceVar(&o.Require, "require", nil, "`ATTACKS` that must be tried")
	f.StringSliceVar(&o.Accept, "accept", nil, "`ATTACKS` that may get through: an accepted risk")
	f.StringArrayVar(&o.Unsolicited, "accepts-unsolicited", nil, "a `TOOL` that takes answers with its first call: an accepted risk")
	f.StringVar(&o.Refusal, "refusal", "", "a `TEXT` in results by which the server refuses a state, if it sends no error")
	f.BoolVar(&o.SingleUse, "single-use", false, "a state must work only once")
	cli.DurationVar(cmd, &o.MaxAge, "max-age", 0, "age after which a state must be refused; the probe waits that long")
	// Flags that limit requests and time.
	f.IntVar(&o.Rate, "rate", 200, "most requests in a second, 0 for no limit")
	f.IntVar(&o.Budget, "budget", 20_000, "most requests in all, 0 for no limit")
	cli.DurationVar(cmd, &o.Timeout, "timeout", 10*time.Second, "how long to wait for one answer")
	cli.DurationVar(cmd, &o.MaxTime, "max-time", 0, "how long the whole run may take (default 30m, and --max-age)")
	// Flags for the report.
	f.StringVar(&p.format, "format", "text", "format of the report: "+strings.Join(probe.Formats(), ", "))
	f.StringVarP(&p.output, "output", "o", "", "write the report to a `FILE`")
}

func (p *probing) run(cmd *cobra.Command, args []string) error {
	switch {
	case p.control != "accept" && p.control != "decline":
		return errors.New("--control is neither accept nor decline")
	case !slices.Contains(probe.Formats(), p.format):
		return fmt.Errorf("--format %s is none of %s", p.format, strings.Join(probe.Formats(), ", "))
	case p.stdio && len(args) == 0:
		return errors.New("the command to start is missing; write it after --")
	case !p.stdio && len(args) != 1:
		return errors.New("one URL is needed, or --stdio and a command after --")
	}
	o := &p.options
	o.Decline = p.control == "decline"
	if o.Bearer == "" {
		o.Bearer = os.Getenv(probe.BearerVariable)
	}
	if o.OtherBearer == "" {
		o.OtherBearer = os.Getenv(probe.OtherBearerVariable)
	}
	if p.dryRun {
		return p.list(cmd.OutOrStdout())
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := p.connect(cmd, args)
	if err != nil {
		return cli.Usage("%w", err)
	}
	defer server.Close()
	o.Progress = progress(cmd.ErrOrStderr())
	report, err := probe.Run(ctx, server, *o)
	if err != nil {
		return err
	}
	if cli.IsTerminal(cmd.ErrOrStderr()) {
		fmt.Fprint(cmd.ErrOrStderr(), "\r\x1b[K")
	}
	if err := p.write(cmd.OutOrStdout(), report); err != nil {
		return cli.Usage("the report cannot be written: %w", err)
	}
	if report.Exit != probe.ExitNothing {
		return &cli.ExitError{Code: report.Exit, Err: errors.New(strings.TrimSuffix(report.Verdict, "."))}
	}
	return nil
}

func (p *probing) connect(cmd *cobra.Command, args []string) (probe.Server, error) {
	if p.stdio {
		return probe.Stdio(cmd.ErrOrStderr(), args...)
	}
	server, err := probe.HTTP(args[0], p.allowed...)
	if errors.Is(err, probe.ErrRemote) {
		err = fmt.Errorf("%w with --allow-remote", err)
	}
	return server, err
}

func (p *probing) write(stdout io.Writer, report *probe.Report) error {
	if p.output == "" {
		return report.Write(stdout, p.format, cli.WantsColour(stdout))
	}
	file, err := os.Create(p.output)
	if err != nil {
		return err
	}
	if err := report.Write(file, p.format, false); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// list prints the attacks and how many requests they would send.
func (p *probing) list(out io.Writer) error {
	if err := p.options.Check(); err != nil {
		return err
	}
	o, targets := &p.options, max(1, len(p.options.Targets))
	honest := 0
	fmt.Fprintf(out, "%-22s %8s %8s  %s\n", "attack", "requests", "complete", "what is sent")
	for _, a := range probe.Attacks() {
		if o.Only != nil && !slices.Contains(o.Only, a.ID) {
			continue
		}
		fmt.Fprintf(out, "%-22s %8d %8d  %s\n", a.ID, o.Requests(a.ID, 1), a.Honest*targets, a.Title)
		honest += a.Honest * targets
	}
	fmt.Fprintf(out, `
At most %d requests for %d of your targets, if each asks once and all lists have
pages. A target that asks in n rounds takes at most n times as many. About %d
honest calls run to completion, and each attack that gets through completes another.
`, o.Requests("", 1), targets, honest)
	return nil
}

// progress returns a function that shows how far the probe is. On a terminal it keeps
// rewriting one line; otherwise it writes a line for each attack.
func progress(out io.Writer) func(probe.Progress) {
	terminal, last := cli.IsTerminal(out), ""
	return func(at probe.Progress) {
		line := fmt.Sprintf("[%2d/%d] %s, %d requests so far", at.Number, at.Of, at.Attack, at.Requests)
		if terminal {
			fmt.Fprintf(out, "\r\x1b[K%s", line)
		} else if at.Attack != last {
			fmt.Fprintln(out, line)
		}
		last = at.Attack
	}
}
