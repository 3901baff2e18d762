package main

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// columns is the width of the help, so that a terminal does not break its lines.
const columns = 80

// fitHelp makes the help of every command fit a terminal, including the commands that
// cobra adds.
func fitHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.SetUsageTemplate(strings.NewReplacer(
		".FlagUsages", fmt.Sprint(".FlagUsagesWrapped ", columns),
		"{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", // hides the usage line of commands that only have subcommands
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

// reflow breaks the lines of every paragraph anew. A paragraph with an indented line
// is an example, and stays as it is.
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

// errHelped ends a command that printed its help instead of doing anything.
var errHelped = errors.New("no command was given")

// helpInstead prints the help when the command line names no command.
func helpInstead(cmd *cobra.Command, _ []string) error {
	cmd.SetOut(cmd.ErrOrStderr()) // standard output is for results, and nobody asked for help
	if err := cmd.Help(); err != nil {
		return err
	}
	return errHelped
}
