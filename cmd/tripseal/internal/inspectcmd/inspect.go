// Package inspectcmd is the command tripseal inspect.
package inspectcmd

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/internal/strictjson"
)

// maxToken is the maximum length of standard input, in bytes. No boundary accepts a longer token.
const maxToken = 16 << 20

// inspection holds the flags of the command tripseal inspect.
type inspection struct {
	keys           keyFlags
	binding        tripseal.Binding
	epoch          string
	arguments      string
	user           string
	issuer, client string
	at             string
	limits         limits
	json           bool
}

// New returns the command tripseal inspect.
func New() *cobra.Command {
	var in inspection
	cmd := &cobra.Command{
		Use:   "inspect [TOKEN]",
		Short: "Show what a token says, and whether it would be accepted",
		Long: `Shows which format a requestState, cursor or handle has and what its holder can
read of it. With --keys or --keys-env, shows everything that a native token
says. With the request that it came with (--method, --target, --args, --user,
--audience), says whether the token would be accepted, and if not, why. It does
not check single use, nor whether the service requires a user.

The token is an argument or, better, standard input (also -): arguments show in
the list of processes. With keys it prints what the handler wrote, which may be
secret.

For a cursor of a paged tool, leave the cursor itself and the arguments in
PageOptions.Unbound out of --args.

The user of an access token is bound together with the token's issuer and
client: give --issuer and --client too if the token has iss or client_id.

` + cli.ExitCodes + `
A token that is not genuine, or not accepted, means no.`,
		Example: `  tripseal inspect < token
  tripseal inspect --keys keys < token
  tripseal inspect --keys-env RELEASE_KEYS --keys-encoding hex < token
  tripseal inspect --keys keys --method tools/call --target deploy \
      --args '{"service":"frontend"}' --audience release.example.com \
      --user alice --issuer https://id.example.com < token`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return cli.ExactArgs("TOKEN")(cmd, args)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			asks, err := in.resolve(cmd)
			if err != nil {
				return err
			}
			token, err := readToken(cmd, args)
			if err != nil {
				return err
			}
			r := report{now: asks.at}
			answer := r.inspect(cmd, token, asks)
			var exit *cli.ExitError
			if errors.As(answer, &exit) && exit.Code != cli.ExitNo {
				return answer
			}
			if err := r.print(cmd.OutOrStdout(), in.json); err != nil {
				return err
			}
			return answer
		},
	}
	flags := cmd.Flags()
	in.keys.flags(cmd)
	flags.StringVar(&in.binding.Method, "method", "tools/call", "the method that it comes with")
	flags.StringVar(&in.binding.Target, "target", "", "the tool, the prompt or the resource's URI")
	flags.StringVar(&in.arguments, "args", "{}", "the arguments, as JSON; @FILE reads a file")
	flags.StringVar(&in.user, "user", "", "the user: what the principal returns, or an access token's user id; empty is nobody")
	flags.StringVar(&in.issuer, "issuer", "", "the access token's issuer (iss), if it has one")
	flags.StringVar(&in.client, "client", "", "the access token's client (client_id), if it has one")
	flags.StringVar(&in.binding.Audience, "audience", "", "the service; empty is none")
	flags.StringVar(&in.epoch, "epoch", "", "the epoch, for cursors")
	flags.StringVar(&in.at, "at", "", "the time, such as 2026-07-28T09:30:00Z (default now)")
	cli.DurationVar(cmd, &in.limits.flow, "max-flow", time.Hour, "how long a flow may take; 0 is no limit")
	flags.IntVar(&in.limits.rounds, "max-rounds", 20, "how many rounds a flow may have; 0 is no limit")
	flags.IntVar(&in.limits.token, "max-token", 64<<10, "how many bytes a state's token may have; 0 is no limit")
	flags.IntVar(&in.limits.state, "max-state", 16<<10, "how many bytes a state may have; 0 is no limit")
	flags.BoolVar(&in.json, "json", false, "print JSON")
	return cmd
}

// limits holds the values of the flags --max-flow, --max-rounds, --max-token and --max-state. The
// defaults of these flags are also the defaults of a boundary. Of 0 there is no limit.
type limits struct {
	flow                 time.Duration
	rounds, token, state int
}

// asked holds what the user of the command wants to know about a token.
type asked struct {
	keys    *keyFlags
	verdict bool // true if the flags describe a request; the report then says whether the token would be accepted
	binding tripseal.Binding
	epoch   string
	users   []string // the names under which the boundary may know the user; one of them must match
	at      time.Time
	limits  limits
}

func (in *inspection) resolve(cmd *cobra.Command) (a asked, err error) {
	a = asked{keys: &in.keys, binding: in.binding, epoch: in.epoch, at: time.Now(), limits: in.limits}
	in.keys.resolve()
	given := func(flags ...string) (any bool) {
		for _, flag := range flags {
			any = any || cmd.Flags().Changed(flag)
		}
		return any
	}
	a.verdict = given("method", "target")
	switch described := given("args", "user", "issuer", "client", "audience", "epoch"); {
	case described && !a.verdict:
		return a, errors.New("name the request too: --target, or --method for what has no target")
	case a.verdict && !in.keys.given():
		return a, errors.New("whether it would be accepted can be told only with the keys: give --keys or --keys-env, or set TRIPSEAL_KEYS")
	}
	if in.at != "" {
		if a.at, err = time.Parse(time.RFC3339, in.at); err != nil {
			return a, fmt.Errorf("--at %q is not a time such as 2026-07-28T09:30:00Z", in.at)
		}
	}
	if a.users, err = in.users(); err != nil {
		return a, err
	}
	a.binding.Arguments = []byte(in.arguments)
	if name, ok := strings.CutPrefix(in.arguments, "@"); ok {
		if a.binding.Arguments, err = os.ReadFile(name); err != nil {
			return a, cli.Failed("--args: %w", err)
		}
	}
	if _, err := strictjson.Sum(a.binding.Arguments); err != nil {
		return a, cli.Usage("--args: %w", err)
	}
	return a, nil
}

// users returns the names under which a boundary may know the user: --user as it is, and the
// name that gosdk makes of --user, --issuer and --client. If --issuer or --client is given,
// it returns only the name that gosdk makes.
func (in *inspection) users() ([]string, error) {
	if in.user == "" {
		if in.issuer != "" || in.client != "" {
			return nil, errors.New("--issuer and --client describe a user: give --user too")
		}
		return []string{""}, nil
	}
	info := &auth.TokenInfo{UserID: in.user, Extra: make(map[string]any)}
	for name, value := range map[string]string{"iss": in.issuer, "client_id": in.client} {
		if value != "" {
			info.Extra[name] = value
		}
	}
	adapted, err := gosdk.TokenUser(info)
	if in.issuer != "" || in.client != "" {
		return []string{adapted}, err
	}
	return []string{in.user, adapted}, err
}

func readToken(cmd *cobra.Command, args []string) (text string, err error) {
	if len(args) == 1 && args[0] != "-" {
		text = args[0]
	} else if text, err = cli.ReadInput(cmd, maxToken); err != nil {
		return "", err
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", errors.New("no token: give it as an argument or on standard input")
	}
	return text, nil
}
