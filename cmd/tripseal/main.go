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
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes. The exit code 0 means that the answer is yes, or that the work is done.
const (
	exitNo     = 1 // the answer is no: a change was refused, a token is rejected, or a file would not load
	exitUsage  = 2 // the command line is wrong
	exitFailed = 3 // the command failed, so there is no answer
)

const exitCodes = `Exit codes: 0 yes or done, 1 no or refused, 2 wrong usage, 3 failed.`

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &checkedWriter{Writer: stdout}
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(stderr)
	ran, err := root.ExecuteContextC(context.Background())
	if err == nil && out.err != nil {
		err = failed("what was to be done is done, but standard output cannot be written to: %w", out.err)
	}
	if err == nil {
		return 0
	}
	if errors.Is(err, errHelped) {
		return exitUsage
	}
	fmt.Fprintf(stderr, "%s: %v\n", ran.CommandPath(), err)
	var exit *exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", ran.CommandPath())
	return exitUsage
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tripseal",
		Short: "Trustworthy requestState for MCP servers: keys, tokens, and a demo",
		Long: `The command of the library github.com/tripseal/tripseal, which seals the
requestState of MCP servers.

` + exitCodes,
		Version:       thisBuild().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate(thisBuild().String())
	mustHaveCommand(root)
	root.AddCommand(newDemo(), newKeys(), newInspect(), newProbe(), newProxy(), newVersion())
	fitHelp(root)
	return root
}

// mustHaveCommand makes cmd print its help if the command line has no subcommand, and return
// an error if the subcommand is unknown.
func mustHaveCommand(cmd *cobra.Command) {
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
		return fmt.Errorf("there is no command %s%s", quotedArgument(args[0]), hint)
	}
}

// exactArgs returns a function that checks that the command line has exactly the named
// arguments.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fmt.Errorf("%s is missing", names[len(args)])
		}
		if len(args) > len(names) {
			return fmt.Errorf("%s is one argument too many", quotedArgument(args[len(names)]))
		}
		return nil
	}
}

// exitError is an error with the exit code of the command.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// no(format, args...) returns an error with exit code 1: the command has found an answer, and the
// answer is "no". If the command could not find an answer, use failed(format, args...) instead.
func no(format string, args ...any) error {
	return &exitError{exitNo, fmt.Errorf(format, args...)}
}

func failed(format string, args ...any) error {
	return &exitError{exitFailed, fmt.Errorf(format, args...)}
}

// usage makes an error with exit code 2. It is for a mistake in the command line that is
// noticed only while the command runs.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
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
