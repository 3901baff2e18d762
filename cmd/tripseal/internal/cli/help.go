package cli

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

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
	var fit func(cmd *cobra.Command)
	fit = func(cmd *cobra.Command) {
		cmd.Long = reflow(cmd.Long)
		for _, sub := range cmd.Commands() {
			fit(sub)
		}
	}
	fit(root)
}

// reflow breaks the lines of every paragraph anew, so that no line has more than 80
// characters. It does not change a paragraph with an indented line, because such a paragraph
// is an example.
func reflow(text string) string {
	paragraphs := strings.Split(strings.ReplaceAll(text, "\t", "    "), "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") {
			paragraphs[i] = fill(strings.Fields(p))
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

func fill(words []string) string {
	var b strings.Builder
	width := 0
	for i, word := range words {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			width = n
		case width+1+n > columns:
			b.WriteByte('\n')
			width = n
		default:
			b.WriteByte(' ')
			width += 1 + n
		}
		b.WriteString(word)
	}
	return b.String()
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
