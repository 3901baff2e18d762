package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// columns is the width of the help in characters: a terminal with 80 columns does not break the
// lines of the help.
const columns = 80

// fitHelp makes the help of every command fit a terminal with 80 columns. This includes the
// commands that cobra adds.
func fitHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.SetUsageTemplate(strings.NewReplacer(
		".FlagUsages", fmt.Sprint(".FlagUsagesWrapped ", columns),
		"{{if .Runnable}}", `{{if and .Runnable (or (not .HasAvailableSubCommands) (index .Annotations "alone"))}}`, // hides the usage line of a command that does nothing without a subcommand
	).Replace(root.UsageTemplate()))
}

// errHelped is the error of a command that only printed its help, because no subcommand was
// given.
var errHelped = errors.New("no command was given")

// helpInstead prints the help to standard error and returns errHelped. It runs if the
// command line names no subcommand.
func helpInstead(cmd *cobra.Command, _ []string) error {
	cmd.SetOut(cmd.ErrOrStderr()) // not to standard output, because the user did not ask for help
	if err := cmd.Help(); err != nil {
		return err
	}
	return errHelped
}
