// Package proxycmd is the command tripseal proxy.
package proxycmd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/httpcarrier"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/stdiocarrier"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/wire"
)

// proxying holds the settings of the command tripseal proxy, and the configurations made from
// them.
type proxying struct {
	file     string
	keys     proxyKeys
	users    proxyUsers
	secure   proxyTLS
	used     proxyUsed
	log      proxyLog
	drain    proxyDrain
	boundary tripseal.Config
	wire     wire.Config
	carrier  httpcarrier.Config

	upstream, listen, admin string
	labelled                []string
	rejected                string
	budget, connections     int
}

// New returns the command tripseal proxy.
func New() *cobra.Command {
	var p proxying
	cmd := &cobra.Command{
		Use:   "proxy --config FILE | --upstream URL --listen ADDRESS | -- COMMAND",
		Short: "Seal the state and the cursors of any MCP server",
		Long: `Stands in front of one MCP server, in any language, and seals what the server
puts into requestState and into the cursors of its lists. The server gets back
exactly what it wrote; clients see only sealed tokens, which they cannot read,
change, or use for another request, user or service. What carries no state
passes byte for byte.

With --upstream it serves HTTP at the path of the upstream's URL. With a command
after -- it starts that command, and serves one user over standard input and
output. No other way may lead to the server, because the server trusts what it
gets.

Every user must be known, so that nobody can continue what another user began:

  --identity header     the user is in the header --header. It counts only from
                        a network of --trust, or over a Unix socket. What sends
                        it must replace the header that its own clients send.
  --identity jwt        the user is in the access token, a JWT that --jwt-issuer
                        signed for --resource.
  --identity mtls       the user is in the client's certificate, which an
                        authority of --client-ca signed.
  --identity anonymous  nobody is known: whoever has a token can use it.

Keys are in a file that ` + "`tripseal keys new`" + ` makes; the proxy follows its
rotation. All replicas need the same file. --ephemeral is for one process, and
to try things.

With --single-use a token works once. It is used up before the server answers,
so a call that fails after that must start over. Replicas share --redis.

With --config the settings are in a YAML file. Its fields are named like the
flags, without the dashes; a flag that may be repeated is a list there. A flag
on the command line wins. ` + "`tripseal proxy check FILE`" + ` tells whether a proxy
would work with the file.

With --admin it serves /healthz, /readyz and /metrics at another address. After
SIGTERM the proxy is not ready, goes on for --drain-delay, lets requests end for
--drain, and ends.

` + cli.ExitCodes + `
With a command after --, the exit code is that of the command.`,
		Example: `  tripseal keys new keys
  tripseal proxy --upstream http://127.0.0.1:9000/mcp --listen 127.0.0.1:8080 \
    --keys keys --audience release.example.com \
    --identity header --header X-User --trust 127.0.0.1/32
  tripseal proxy --upstream http://127.0.0.1:9000/mcp --listen 127.0.0.1:8080 \
    --ephemeral --audience try --identity anonymous
  tripseal proxy --audience notes --ephemeral -- python server.py
  tripseal proxy check proxy.yaml && tripseal proxy --config proxy.yaml`,
		Annotations:           map[string]string{"alone": "yes"}, // the command can run without a subcommand
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE:                  func(cmd *cobra.Command, args []string) error { return p.run(cmd, args) },
	}
	p.flags(cmd)
	cmd.AddCommand(newProxyCheck())
	return cmd
}

func (p *proxying) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.file, "config", "", "the YAML `FILE` with settings that are not on the command line")
	f.StringVar(&p.upstream, "upstream", "", "the `URL` of the server, with its path")
	f.StringVar(&p.listen, "listen", "", "the `ADDRESS` to serve at: HOST:PORT or unix:PATH")
	f.StringVar(&p.admin, "admin", "", "the `ADDRESS` for /healthz, /readyz and /metrics: HOST:PORT or unix:PATH")
	f.StringVar(&p.boundary.Audience, "audience", "", "the `NAME` of this service; others with the same keys refuse its tokens")
	p.keys.flags(cmd)
	p.users.flags(cmd)
	f.BoolVar(&p.carrier.ForwardIdentity, "forward-identity", false, "send the header that names the user, or the access token, to the server too")
	f.StringArrayVar(&p.carrier.AllowOrigins, "allow-origin", nil, "an `ORIGIN` of web pages that may send requests; may be repeated (default the proxy's own address)")
	cli.DurationVar(cmd, &p.boundary.TTL, "ttl", 10*time.Minute, "how long a token can be used")
	cli.DurationVar(cmd, &p.boundary.MaxFlow, "max-flow", time.Hour, "how long all rounds of a call may take")
	p.boundary.MaxRounds = 20
	f.Var((*cli.Number)(&p.boundary.MaxRounds), "max-rounds", "how many rounds a call may have")
	p.used.flags(cmd)
	f.StringArrayVar(&p.wire.Unsolicited, "unsolicited", nil, "a `TOOL` that takes answers with its first call; may be repeated")
	f.StringVar(&p.rejected, "rejected-text", "", "answer a tool call whose token is rejected with this `TEXT` for the model; start-over is one that tells it to call again")
	p.boundary.MaxState, p.carrier.Door.MaxRequest, p.carrier.Door.MaxAnswer, p.budget = 64<<10, wire.DefaultMaxRequest, wire.DefaultMaxAnswer, wire.DefaultBudget
	f.Var((*cli.Size)(&p.boundary.MaxState), "max-state", "longest state of the server")
	f.Var((*cli.Size)(&p.carrier.Door.MaxRequest), "max-request", "longest message of a client")
	f.Var((*cli.Size)(&p.carrier.Door.MaxAnswer), "max-answer", "longest message of the server")
	f.Var((*cli.Size)(&p.budget), "budget", "most bytes of messages in memory, over all requests")
	cli.DurationVar(cmd, &p.carrier.Timeout, "timeout", httpcarrier.DefaultTimeout, "how long the server may take to begin its answer")
	cli.DurationVar(cmd, &p.carrier.Door.ClientTimeout, "client-timeout", wire.DefaultClientTimeout, "how long a client may take to send its message, and to take each part of an answer")
	p.connections = 4096
	f.Var((*cli.Number)(&p.connections), "max-connections", "most connections of clients; a further one takes the place of an idle one, or waits")
	f.StringArrayVar(&p.labelled, "label-tool", nil, "a `TOOL` that metrics may name; may be repeated (default none)")
	p.secure.flags(cmd)
	p.log.flags(cmd)
	p.drain.flags(cmd)
}

// startOver is the value of --rejected-text that means adapter.StartOver.
const startOver = "start-over"

// check returns an error that says what is wrong with the command line.
func (p *proxying) check(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
		return fmt.Errorf("%s is one argument too many; write the command to start after --", cli.QuotedArgument(args[0]))
	}
	return p.checkFor(cmd, args)
}

// checkFor returns an error that says what is wrong with the settings, or nil. The list args
// is the command that the proxy starts; it is empty if the proxy serves HTTP.
func (p *proxying) checkFor(cmd *cobra.Command, args []string) error {
	if err := checkValues(cmd.Flags()); err != nil {
		return err
	}
	switch {
	case len(args) > 0:
		for _, name := range []string{"upstream", "listen", "identity"} {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s is for HTTP; a command after -- is served over standard input and output", name)
			}
		}
	case p.upstream == "" || p.listen == "":
		return errors.New("the server is missing: give --upstream and --listen, or a command after --")
	}
	if p.boundary.Audience == "" {
		return errors.New("--audience is missing: name the service, for example by its host name, so that another one with the same keys refuses its tokens")
	}
	if p.wire.RejectedText = p.rejected; p.rejected == startOver {
		p.wire.RejectedText = adapter.StartOver
	}
	p.wire.Proxied = true
	if err := p.keys.check(cmd); err != nil {
		return err
	}
	if err := p.used.check(); err != nil {
		return err
	}
	if err := p.log.check(); err != nil {
		return err
	}
	if len(args) == 0 {
		return p.checkHTTP()
	}
	return nil
}

func (p *proxying) checkHTTP() (err error) {
	if p.carrier.Upstream, err = url.Parse(p.upstream); err != nil {
		return errors.New("--upstream is not a URL such as http://127.0.0.1:9000/mcp")
	}
	if err := httpcarrier.CheckUpstream(p.carrier.Upstream); err != nil {
		return fmt.Errorf("--upstream: %w", err)
	}
	if err := p.secure.check(p.carrier.Upstream); err != nil {
		return err
	}
	if err := p.users.check(p); err != nil {
		return err
	}
	p.boundary.RequireUser = p.users.identity != "anonymous"
	p.carrier.Door.Budget = int64(p.budget)
	return p.drain.check()
}

// endSignals returns the signals that end the proxy. The end of a terminal is one, unless the proxy was started to
// outlive it, as nohup does.
func endSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if runtime.GOOS != "windows" && !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

func (p *proxying) run(cmd *cobra.Command, args []string) error {
	if p.file != "" {
		if err := loadFile(cmd, p.file); err != nil {
			return err
		}
	}
	if err := p.check(cmd, args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), endSignals()...)
	defer stop()
	context.AfterFunc(ctx, stop) // after the first signal, a second one ends the process at once
	brokenPipe := make(chan os.Signal, 1)
	signal.Notify(brokenPipe, syscall.SIGPIPE) // otherwise the process would be killed when the reader of its log ends
	defer signal.Stop(brokenPipe)
	logger, flush := p.log.open(cmd.ErrOrStderr())
	defer flush()
	parts, err := p.assemble(ctx, cmd, logger, func(_ string, err error) error { return err })
	if err != nil {
		return err
	}
	defer parts.close()
	if len(args) == 0 {
		return p.serve(ctx, cmd, parts, logger)
	}
	for _, secret := range []string{keys.Variable, p.keys.Variable, p.used.redisEnv} {
		os.Unsetenv(secret) // the server inherits the rest, and may have a tool that shows it
	}
	code, err := stdiocarrier.Run(ctx, stdiocarrier.Config{
		Engine: parts.engine, Command: args,
		In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Errors: cmd.ErrOrStderr(), Logger: logger,
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return cli.Failed("%w", err)
	case code != 0:
		return &cli.ExitError{Code: code, Err: fmt.Errorf("the command ended with exit code %d", code)}
	}
	return nil
}
