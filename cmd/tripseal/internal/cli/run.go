// Package cli holds what the commands of tripseal share: exit codes, flags, help, and texts that are
// safe on a terminal.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes. The exit code 0 means that the answer is yes, or that the work is done.
const (
	ExitNo     = 1 // the answer is no: a change was refused, a token is rejected, or a file would not load
	ExitUsage  = 2 // the command line is wrong
	ExitFailed = 3 // the command failed, so there is no answer
)

// ExitCodes explains the exit codes in the help of a command.
const ExitCodes = `Exit codes: 0 yes or done, 1 no or refused, 2 wrong usage, 3 failed.`

// Run runs a command line, and returns the exit code.
func Run(root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fitHelp(root)
	out := &checkedWriter{Writer: stdout}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(stderr)
	ran, err := root.ExecuteContextC(context.Background())
	if err == nil && out.err != nil {
		err = Failed("what was to be done is done, but standard output cannot be written to: %w", out.err)
	}
	if err == nil {
		return 0
	}
	if errors.Is(err, errHelped) {
		return ExitUsage
	}
	fmt.Fprintf(stderr, "%s: %v\n", ran.CommandPath(), err)
	var exit *ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}
	fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", ran.CommandPath())
	return ExitUsage
}

// MustHaveCommand makes cmd print its help if the command line has no subcommand, and return
// an error if the subcommand is unknown.
func MustHaveCommand(cmd *cobra.Command) {
	cmd.DisableFlagsInUseLine = true
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = helpInstead
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		hint := ""
		if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
			hint = "; was " + strings.Join(like, " or ") + " meant?"
		}
		return fmt.Errorf("there is no command %s%s", QuotedArgument(args[0]), hint)
	}
}

// ExactArgs returns a function that checks that the command line has exactly the named
// arguments.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fmt.Errorf("%s is missing", names[len(args)])
		}
		if len(args) > len(names) {
			return fmt.Errorf("%s is one argument too many", QuotedArgument(args[len(names)]))
		}
		return nil
	}
}

// ExitError is an error with the exit code of the command.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }
func (e *ExitError) Unwrap() error { return e.Err }

// No(format, args...) returns an error with exit code 1: the command has found an answer, and the
// answer is "no". If the command could not find an answer, use Failed(format, args...) instead.
func No(format string, args ...any) error {
	return &ExitError{ExitNo, fmt.Errorf(format, args...)}
}

// Failed returns an error with exit code 3: the command could not do what it was to do.
func Failed(format string, args ...any) error {
	return &ExitError{ExitFailed, fmt.Errorf(format, args...)}
}

// Usage makes an error with exit code 2. It is for a mistake in the command line that is
// noticed only while the command runs.
func Usage(format string, args ...any) error {
	return &ExitError{ExitUsage, fmt.Errorf(format, args...)}
}

// checkedWriter remembers the first error of a write, so that the command does not report
// success if the disk is full.
type checkedWriter struct {
	io.Writer
	err error
}

func (w *checkedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}

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
