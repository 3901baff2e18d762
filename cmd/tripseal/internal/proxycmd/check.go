package proxycmd

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
)

func newProxyCheck() *cobra.Command {
	var p proxying
	cmd := &cobra.Command{
		Use:   "check FILE [-- COMMAND]",
		Short: "Tell whether a proxy would work with a file of settings",
		Long: `Reads a YAML file with the settings of a proxy, as --config does, and tries all
of them without serving anything: it loads the keys and the certificates,
connects to Redis, asks the issuer of access tokens for its keys, and sends the
server a harmless request. Flags change the settings, as they do for the proxy.
If the file is for a proxy that starts a command, write the command after --; it
is not started.

` + cli.ExitCodes,
		Example: `  tripseal proxy check proxy.yaml
  tripseal proxy check proxy.yaml --upstream http://127.0.0.1:9001/mcp`,
		Args: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				args = args[:at]
			}
			return cli.ExactArgs("FILE")(cmd, args)
		},
	}
	p.flags(cmd)
	cmd.Flags().Lookup("config").Hidden = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if p.file != "" {
			return cli.Usage("the file is an argument here, not --config")
		}
		return p.try(cmd, args[0], args[1:])
	}
	return cmd
}

// This method prints whether each part of the proxy would work. It does not stop at the first
// part that would fail.
func (p *proxying) try(cmd *cobra.Command, file string, command []string) error {
	bad := false
	say := func(what string, err error) error {
		if err != nil {
			bad = true
			fmt.Fprintf(cmd.OutOrStdout(), "bad  %s: %v\n", what, err)
			return nil
		}
		fmt.Fprintf(cmd.OutOrStdout(), "ok   %s\n", what)
		return nil
	}
	if say("file", loadFile(cmd, file)); !bad {
		say("settings", p.checkFor(cmd, command))
	}
	if !bad {
		p.tryParts(cmd, say)
	}
	if bad {
		return cli.No("a proxy would not work with %s", file)
	}
	return nil
}

func (p *proxying) tryParts(cmd *cobra.Command, say func(string, error) error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*readyTimeout)
	defer cancel()
	var names []string
	result := make(map[string]error)
	parts, err := p.assemble(ctx, cmd, slog.New(slog.DiscardHandler), func(part string, err error) error {
		names, result[part] = append(names, part), err
		return nil
	})
	if err != nil {
		say("settings", err)
		return
	}
	defer parts.close()
	for i, err := range parts.ready.look(ctx) {
		if name := parts.ready.parts[i].name; result[name] == nil {
			result[name] = err
		}
	}
	for _, name := range names {
		say(name, result[name])
	}
}
