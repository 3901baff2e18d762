package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/adapter"
	"github.com/mcpseal/mcpseal/cmd/mcpseal/internal/httpcarrier"
	"github.com/mcpseal/mcpseal/cmd/mcpseal/internal/identity"
	"github.com/mcpseal/mcpseal/cmd/mcpseal/internal/stdiocarrier"
	"github.com/mcpseal/mcpseal/internal/argdigest"
	"github.com/mcpseal/mcpseal/proxy"
	"github.com/mcpseal/mcpseal/replay"
	"github.com/mcpseal/mcpseal/replay/redisreplay"
)

// proxying holds the flags of the command proxy.
type proxying struct {
	keys     proxyKeys
	boundary mcpseal.Config
	core     proxy.Config
	carrier  httpcarrier.Config

	upstream, listen string
	identity, header string
	trusted          []netip.Prefix
	singleUse        bool
	redis, redisEnv  string
	budget           int
}

func newProxy() *cobra.Command {
	var p proxying
	cmd := &cobra.Command{
		Use:   "proxy --upstream URL --listen ADDRESS | proxy -- COMMAND...",
		Short: "Seal the state and the cursors of any MCP server",
		Long: `Stands in front of one MCP server, in any language, and seals what the server
puts into requestState and into the cursors of its lists. The server gets back
exactly what it wrote; clients see only sealed tokens, which they cannot read,
change, or use for another request, user or service. What carries no state passes
byte for byte.

With --upstream it serves HTTP at the path of the upstream's URL. With a command
after -- it starts that command, and serves one user over standard input and output.
No other way may lead to the server, because the server trusts what it gets.

Every user must be known, so that nobody can continue what another user began:

  --identity header     the user is in the header --header. It counts only from
                        a network of --trust, or over a Unix socket. What sends
                        it must replace the header that its own clients send.
  --identity anonymous  nobody is known: whoever has a token can use it.

Keys are in a file that ` + "`mcpseal keys new`" + ` makes; the proxy follows its rotation.
All replicas need the same file. --ephemeral is for one process, and to try things.

With --single-use a token works once. It is used up before the server answers, so
a call that fails after that must start over. Replicas share --redis.

` + exitCodes + `
With a command after --, the exit code is that of the command.`,
		Example: `  mcpseal keys new keys
  mcpseal proxy --upstream http://127.0.0.1:9000/mcp --listen 127.0.0.1:8080 \
    --keys keys --audience release.example.com \
    --identity header --header X-User --trust 127.0.0.1/32
  mcpseal proxy --upstream http://127.0.0.1:9000/mcp --listen 127.0.0.1:8080 \
    --ephemeral --audience try --identity anonymous
  mcpseal proxy --audience notes --ephemeral -- python server.py`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return p.run(cmd, args) },
	}
	p.flags(cmd)
	return cmd
}

func (p *proxying) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.upstream, "upstream", "", "the `URL` of the server, with its path")
	f.StringVar(&p.listen, "listen", "", "the `ADDRESS` to serve at: HOST:PORT or unix:PATH")
	f.StringVar(&p.boundary.Audience, "audience", "", "the `NAME` of this service; others with the same keys refuse its tokens")
	p.keys.flags(cmd)
	f.StringVar(&p.identity, "identity", "", "how users are known: header or anonymous")
	f.StringVar(&p.header, "header", "", "the `HEADER` that names the user")
	f.Var(each{"NETWORK", p.trust}, "trust", "a network, such as 10.0.0.0/8, whose requests may name the user; may be repeated")
	f.BoolVar(&p.carrier.ForwardIdentity, "forward-identity", false, "send the header that names the user to the server too")
	f.StringArrayVar(&p.carrier.AllowOrigins, "allow-origin", nil, "an `ORIGIN` of web pages that may send requests; may be repeated (default the proxy's own address)")
	durationVar(cmd, &p.boundary.TTL, "ttl", 10*time.Minute, "how long a token can be used")
	durationVar(cmd, &p.boundary.MaxFlow, "max-flow", time.Hour, "how long all rounds of a call may take")
	f.IntVar(&p.boundary.MaxRounds, "max-rounds", 20, "how many rounds a call may have")
	f.BoolVar(&p.singleUse, "single-use", false, "let each token work only once: in this process, or with --redis in all")
	f.StringVar(&p.redis, "redis", "", "the `URL` of a Redis or Valkey that remembers used tokens")
	f.StringVar(&p.redisEnv, "redis-env", "", "the environment `VARIABLE` with that URL, if it has a password")
	f.StringArrayVar(&p.core.Unsolicited, "unsolicited", nil, "a `TOOL` that takes answers with its first call; may be repeated")
	f.Var(each{"TEXT", p.rejectWith}, "rejected-text", "answer a tool call whose token is rejected with a text for the model; start-over is one that tells it to call again")
	f.Lookup("rejected-text").NoOptDefVal = startOver
	p.boundary.MaxState, p.carrier.MaxRequest, p.carrier.MaxAnswer, p.budget = 64<<10, httpcarrier.DefaultMaxRequest, httpcarrier.DefaultMaxAnswer, httpcarrier.DefaultBudget
	f.Var((*sizeFlag)(&p.boundary.MaxState), "max-state", "longest state of the server")
	f.Var((*sizeFlag)(&p.carrier.MaxRequest), "max-request", "longest message of a client")
	f.Var((*sizeFlag)(&p.carrier.MaxAnswer), "max-answer", "longest message of the server")
	f.Var((*sizeFlag)(&p.budget), "budget", "most bytes of messages in memory, over all requests")
	durationVar(cmd, &p.carrier.Timeout, "timeout", httpcarrier.DefaultTimeout, "how long the server may take to begin its answer")
}

// onlyHTTP has the flags that mean nothing with a command after --.
var onlyHTTP = []string{"upstream", "listen", "identity", "header", "trust", "forward-identity", "allow-origin", "max-request", "max-answer", "budget", "timeout"}

// startOver is the value of --rejected-text that means adapter.StartOver.
const startOver = "start-over"

func (p *proxying) rejectWith(text string) error {
	switch text {
	case "":
		return errors.New("the text is empty")
	case startOver:
		text = adapter.StartOver
	}
	p.core.RejectedText = text
	return nil
}

func (p *proxying) trust(text string) error {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		if address, addressErr := netip.ParseAddr(text); addressErr == nil {
			return fmt.Errorf("not a network; for this one address write %s/%d", address, address.BitLen())
		}
		return errors.New("not a network such as 10.0.0.0/8 or 127.0.0.1/32")
	}
	p.trusted = append(p.trusted, network.Masked())
	return nil
}

// check returns an error that says what is wrong with the command line.
func (p *proxying) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 0 && cmd.ArgsLenAtDash() != 0:
		return fmt.Errorf("%s is one argument too many; write the command to start after --", repeated(args[0]))
	case len(args) > 0:
		for _, name := range onlyHTTP {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s is for HTTP; a command after -- is served over standard input and output", name)
			}
		}
	case p.upstream == "" && p.listen == "":
		return errors.New("the server is missing: give --upstream and --listen, or a command after --")
	case p.upstream == "":
		return errors.New("--upstream is missing: the URL of the server")
	case p.listen == "":
		return errors.New("--listen is missing: an address such as 127.0.0.1:8080, or unix:PATH")
	}
	if p.boundary.Audience == "" {
		return errors.New("--audience is missing: name the service, for example by its host name, so that another one with the same keys refuses its tokens")
	}
	if err := p.keys.check(); err != nil {
		return err
	}
	if (p.redis != "" || p.redisEnv != "") && !p.singleUse {
		return errors.New("--redis remembers used tokens; it needs --single-use")
	}
	if p.redis != "" && p.redisEnv != "" {
		return errors.New("give either --redis or --redis-env")
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
	unix := strings.HasPrefix(p.listen, "unix:")
	switch p.identity {
	case "header":
		switch {
		case p.header == "":
			return errors.New("--header is missing: the header that names the user")
		case len(p.trusted) == 0 && !unix:
			return errors.New("--trust is missing: the network of the proxy that sets the header, such as 127.0.0.1/32")
		}
		if p.carrier.Identity, err = identity.FromHeader(p.header, p.trusted); err != nil {
			return fmt.Errorf("--header: %w", err)
		}
		p.boundary.RequireUser = true
	case "anonymous":
		if p.header != "" || len(p.trusted) > 0 || p.carrier.ForwardIdentity {
			return errors.New("--header, --trust and --forward-identity are for --identity header")
		}
		p.carrier.Identity = identity.Anonymous()
	case "":
		return errors.New("--identity is missing: choose header, or anonymous if there are no users")
	default:
		return fmt.Errorf("--identity %s is neither header nor anonymous", repeated(p.identity))
	}
	p.carrier.Budget = int64(p.budget)
	return nil
}

func (p *proxying) run(cmd *cobra.Command, args []string) error {
	if err := p.check(cmd, args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	logger := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	p.boundary.Logger, p.core.Logger, p.carrier.Logger = logger, logger, logger

	p.boundary.MaxArguments = min(p.carrier.MaxRequest, argdigest.MaxText)

	source, done, err := p.keys.open(cmd, logger)
	if err != nil {
		return err
	}
	defer done()
	p.boundary.Keys = source
	forget, err := p.remember(ctx, logger)
	if err != nil {
		return err
	}
	defer forget()
	if p.core.Boundary, err = mcpseal.New(p.boundary); err != nil {
		return usage("%s", strings.TrimPrefix(err.Error(), "mcpseal: "))
	}
	core, err := proxy.New(p.core)
	if err != nil {
		return failed("%w", err)
	}
	if len(args) == 0 {
		p.carrier.Proxy = core
		return p.serve(ctx, cmd, logger)
	}
	code, err := stdiocarrier.Run(ctx, core, nil, args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return failed("%w", err)
	case code != 0:
		return &exitError{code, fmt.Errorf("the command ended with exit code %d", code)}
	}
	return nil
}

// remember sets the store of used tokens.
func (p *proxying) remember(ctx context.Context, logger *slog.Logger) (forget func(), err error) {
	nothing := func() {}
	address := p.redis
	if p.redisEnv != "" {
		if address = os.Getenv(p.redisEnv); address == "" {
			return nothing, failed("the environment variable %s is not set", p.redisEnv)
		}
	}
	switch {
	case !p.singleUse:
		return nothing, nil
	case address == "":
		p.boundary.Replay, err = replay.NewSingleProcess(replay.Config{Logger: logger})
		return nothing, err
	}
	options, err := redis.ParseURL(address)
	if err != nil {
		return nothing, usage("the address of Redis is not a URL such as redis://127.0.0.1:6379/0") // the error may repeat a password
	}
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if p.boundary.Replay, err = redisreplay.New(ctx, client, redisreplay.Config{Logger: logger}); err != nil {
		client.Close()
		return nothing, failed("--redis: %w", err)
	}
	return func() { client.Close() }, nil
}
