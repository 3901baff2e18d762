package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// commandLines returns the command lines that a page shows. They are indented by four spaces, or
// they are in a fenced block with the language sh, with the language console or without a language.
// If a line ends with a backslash, commandLines joins it with the next line.
func commandLines(page string) (lines []string) {
	inBlock, isShell := false, false
	var line string
	for text := range strings.Lines(page) {
		text = strings.TrimRight(text, "\n")
		if language, ok := strings.CutPrefix(strings.TrimSpace(text), "```"); ok {
			inBlock, isShell = !inBlock, language == "" || language == "sh" || language == "console"
			continue
		}
		code, indented := strings.CutPrefix(text, "    ")
		switch {
		case inBlock && isShell:
			code = text
		case inBlock || !indented:
			line = ""
			continue
		}
		line += strings.TrimSpace(code)
		if rest, goesOn := strings.CutSuffix(line, `\`); goesOn {
			line = rest
			continue
		}
		lines = append(lines, line)
		line = ""
	}
	return lines
}

// pageFiles returns the files of all pages that may have commands.
func pageFiles(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d pages, %v", len(names), err)
	}
	return append(names, "../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md", "../../docs/workflows/probe.yml")
}

// words splits a command line as a shell does, up to a comment, a pipe or another command.
func words(line string) (all []string) {
	word, quoted, any := "", rune(0), false
	end := func() {
		if any {
			all = append(all, word)
		}
		word, any = "", false
	}
	for _, r := range line {
		switch {
		case quoted != 0 && r == quoted:
			quoted = 0
		case quoted != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quoted, any = r, true
		case r == ' ':
			end()
		case strings.ContainsRune("|&;<>", r), r == '#' && !any:
			end()
			return all
		default:
			word += string(r)
			any = true
		}
	}
	end()
	return all
}

// ours matches the beginning of a tripseal command in a line.
var ours = regexp.MustCompile(`(?:^|[\s(;&|])(?:tripseal|go run \./cmd/tripseal) `)

// TestEveryCommandInThePagesExists parses every tripseal command in the pages as tripseal does: the
// subcommand, its flags and the number of its arguments must be right.
func TestEveryCommandInThePagesExists(t *testing.T) {
	found := 0
	for _, name := range pageFiles(t) {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandLines(string(page)) {
			for _, at := range ours.FindAllStringIndex(line, -1) {
				found++
				if problem := checkLine(line[at[1]:], true); problem != "" {
					t.Errorf("%s: %s\n    %s", filepath.Base(name), problem, line)
				}
			}
		}
		for _, span := range regexp.MustCompile("`tripseal ([^`:\n]+)`").FindAllStringSubmatch(string(page), -1) {
			found++
			if problem := checkLine(span[1], false); problem != "" {
				t.Errorf("%s: %s\n    %s", filepath.Base(name), problem, span[0])
			}
		}
	}
	unit, err := os.ReadFile("../../deploy/systemd/tripseal-proxy.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range regexp.MustCompile(`(?m)^Exec\w+=/usr/local/bin/tripseal (.*)$`).FindAllStringSubmatch(string(unit), -1) {
		found++
		if problem := checkLine(command[1], true); problem != "" {
			t.Errorf("%s in %s", problem, command[0])
		}
	}
	if found < 40 {
		t.Errorf("only %d commands were found", found)
	}
}

// checkLine returns what is wrong with a tripseal command, or "" if it is right. It gets the
// text after the word tripseal. If whole is false, arguments may be missing, as in a command inside
// a sentence.
func checkLine(line string, whole bool) string {
	args, _, columns := strings.Cut(line, "   ") // an explanation may follow after three spaces
	if !columns {
		args = line
	}
	root := newRoot()
	cmd, rest, err := root.Find(words(args))
	if err != nil {
		return err.Error()
	}
	if cmd == root && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return "there is no command " + rest[0]
	}
	cmd.InitDefaultHelpFlag()
	switch err := cmd.ParseFlags(rest); {
	case err == pflag.ErrHelp:
		return ""
	case err != nil:
		return err.Error()
	}
	if help, err := cmd.Flags().GetBool("help"); err == nil && help {
		return ""
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil && whole {
		return err.Error()
	}
	return ""
}
