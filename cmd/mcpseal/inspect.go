package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/spf13/cobra"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk"
	"github.com/mcpseal/mcpseal/internal/inspect"
)

// maxToken is more than any boundary accepts.
const maxToken = 16 << 20

// inspection is the command's flags.
type inspection struct {
	keys, identity string
	binding        inspect.Binding
	arguments      string
	principal      string
	issuer, client string
	at             string
	maxFlow        time.Duration
	maxRounds      int
	json           bool
}

func newInspect() *cobra.Command {
	var in inspection
	cmd := &cobra.Command{
		Use:   "inspect [TOKEN]",
		Short: "Show what a token says, and whether it would be accepted",
		Long: `Shows which format a requestState or cursor has and what its holder can read of it.
With --keys, everything that a native one says. With the request that it came with
(--method, --target, --args, --principal, --audience), whether it would be accepted,
and if not, why.

The token is an argument or, better, standard input: arguments show in the list of
processes. What is printed with --keys is what the handler wrote: treat it so.

` + exitCodes + ` Not genuine, and not accepted, are no.`,
		Example: `  mcpseal inspect < token
  mcpseal inspect --keys keys < token
  mcpseal inspect --keys keys --method tools/call --target deploy \
      --args '{"service":"frontend"}' --principal alice --audience release.example.com < token`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return exactly("TOKEN")(cmd, args)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := readToken(cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			asks, err := in.resolve(cmd)
			if err != nil {
				return err
			}
			r := report{now: asks.at}
			answer := r.inspect(cmd.Context(), token, asks)
			if r.unreadable != nil {
				return r.unreadable
			}
			if err := r.print(cmd.OutOrStdout(), in.json); err != nil {
				return failed("%w", err)
			}
			return answer
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in.keys, "keys", "", "the file of keys that sealed it")
	flags.StringVar(&in.identity, "identity", "", "a file of age identities, where the secrets in the file are wrapped")
	flags.StringVar(&in.binding.Method, "method", "tools/call", "the method that it comes with")
	flags.StringVar(&in.binding.Target, "target", "", "the tool, the prompt or the resource's URI")
	flags.StringVar(&in.arguments, "args", "{}", "the arguments, as JSON; @FILE reads a file")
	flags.StringVar(&in.principal, "principal", "", "the user: the principal itself, or the user id of an access token; empty is nobody")
	flags.StringVar(&in.issuer, "issuer", "", "the issuer (iss) of the access token, if the adapter for the SDK saw one")
	flags.StringVar(&in.client, "client", "", "the client (client_id) of the access token, if the adapter for the SDK saw one")
	flags.StringVar(&in.binding.Audience, "audience", "", "the service; empty is none")
	flags.StringVar(&in.binding.Epoch, "epoch", "", "the epoch, for cursors")
	flags.StringVar(&in.at, "at", "", "the time, such as 2026-07-28T09:30:00Z (default now)")
	flags.DurationVar(&in.maxFlow, "max-flow", time.Hour, "how long a flow may take; -1ns is no limit")
	flags.IntVar(&in.maxRounds, "max-rounds", 20, "how many rounds a flow may have; -1 is no limit")
	flags.BoolVar(&in.json, "json", false, "print JSON")
	return cmd
}

// asked is what the command line asks for.
type asked struct {
	keys, identity string
	verdict        bool // a request was described
	binding        inspect.Binding
	principals     []string // ways to write the user
	at             time.Time
	maxFlow        time.Duration
	maxRounds      int
}

func (in *inspection) resolve(cmd *cobra.Command) (a asked, err error) {
	a = asked{keys: in.keys, identity: in.identity, binding: in.binding, at: time.Now(), maxFlow: in.maxFlow, maxRounds: in.maxRounds}
	for _, flag := range []string{"method", "target", "args", "principal", "issuer", "client", "audience", "epoch"} {
		a.verdict = a.verdict || cmd.Flags().Changed(flag)
	}
	if a.verdict && in.keys == "" {
		return a, errors.New("whether it would be accepted can be told only with --keys")
	}
	if in.identity != "" && in.keys == "" {
		return a, errors.New("--identity is for the file that --keys names")
	}
	if a.maxRounds == mcpseal.NoLimit {
		a.maxRounds = math.MaxInt32
	}
	if in.at != "" {
		if a.at, err = time.Parse(time.RFC3339, in.at); err != nil {
			return a, fmt.Errorf("--at %q is not a time such as 2026-07-28T09:30:00Z", in.at)
		}
	}
	if a.principals, err = in.principals(); err != nil {
		return a, err
	}
	a.binding.Arguments = []byte(in.arguments)
	if name, ok := strings.CutPrefix(in.arguments, "@"); ok {
		if a.binding.Arguments, err = os.ReadFile(name); err != nil {
			return a, failed("--args: %w", err)
		}
	}
	return a, nil
}

// principals are the ways in which a boundary may have been told of the user: as
// the text itself, or by the adapter for the SDK, which adds issuer and client.
func (in *inspection) principals() ([]string, error) {
	if in.principal == "" {
		if in.issuer != "" || in.client != "" {
			return nil, errors.New("--issuer and --client are about the user that --principal names")
		}
		return []string{""}, nil
	}
	info := &auth.TokenInfo{UserID: in.principal, Extra: make(map[string]any)}
	for name, value := range map[string]string{"iss": in.issuer, "client_id": in.client} {
		if value != "" {
			info.Extra[name] = value
		}
	}
	adapted, err := gosdk.TokenPrincipal(info)
	if in.issuer != "" || in.client != "" {
		return []string{adapted}, err
	}
	return []string{in.principal, adapted}, err
}

func readToken(stdin io.Reader, args []string) (string, error) {
	text := ""
	if len(args) == 1 && args[0] != "-" {
		text = args[0]
	} else {
		raw, err := io.ReadAll(io.LimitReader(stdin, maxToken+1))
		if err != nil {
			return "", failed("standard input: %w", err)
		}
		text = string(raw)
	}
	if len(text) > maxToken {
		return "", no("this is longer than any token: more than %d bytes", maxToken)
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", errors.New("no token: give it as an argument or on standard input")
	}
	return text, nil
}
