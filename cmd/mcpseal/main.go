// Mcpseal is the command beside the library.
//
//	mcpseal demo                 a protected server, and what attacks on it come to
//	mcpseal demo --unprotected   the same attacks without the protection
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `Usage: mcpseal <command>

Commands:
  demo    start a protected server on loopback, attack it, and show what
          comes of it; with --unprotected, attack it without protection

Run 'mcpseal <command> --help' for the options of a command.
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit status: 0 if all went well, 1 if not, 2 for wrong usage.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	switch args[0] {
	case "demo":
		return runDemo(args[1:], stdout, stderr)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	}
	fmt.Fprintf(stderr, "mcpseal: there is no command %q\n\n%s", args[0], usage)
	return 2
}

func runDemo(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mcpseal demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	unprotected := flags.Bool("unprotected", false, "attack the same server without the middleware")
	flags.Usage = func() {
		fmt.Fprint(stderr, "Usage: mcpseal demo [--unprotected]\n\n"+
			"Starts a server with two users and a tool that asks twice before it acts, drives\n"+
			"it with the official SDK's client, and attacks it. Exit status 0 means that\n"+
			"everything went as it must: with protection every attack fails, without it\n"+
			"every attack succeeds.\n\n")
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp:
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "mcpseal demo: %q is not an option\n", flags.Arg(0))
		return 2
	}
	demo := demo{protected: !*unprotected, out: painter{stdout, isTerminal(stdout)}}
	if err := demo.run(); err != nil {
		fmt.Fprintf(stderr, "mcpseal demo: %v\n", err)
		return 1
	}
	return 0
}
