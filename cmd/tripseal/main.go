// Tripseal is the command that comes with the library.
//
//	tripseal demo       attack a protected server, and show what happens
//	tripseal keys       make, rotate and revoke the keys of a fleet
//	tripseal inspect    show what a token says, and whether it would be accepted
//	tripseal probe      attack any server, and report what got through
//	tripseal proxy      seal the state and the cursors of any server
//	tripseal version    print the version, and the commit it was built from
package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/democmd"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/inspectcmd"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/keyscmd"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/probecmd"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/proxycmd"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(newRoot(), args, stdin, stdout, stderr)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tripseal",
		Short: "Trustworthy requestState for MCP servers: keys, tokens, and a demo",
		Long: `The command of the library github.com/tripseal/tripseal, which seals the
requestState of MCP servers.

` + cli.ExitCodes,
		Version:       thisBuild().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate(thisBuild().String())
	cli.MustHaveCommand(root)
	root.AddCommand(democmd.New(), keyscmd.New(), inspectcmd.New(), probecmd.New(), proxycmd.New(), newVersion())
	return root
}
