package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// parseSettings parses a command line, and a file with the given text. It returns the settings from
// both, and the mistakes in the file. A field of the file does not change a flag that the command
// line has.
func parseSettings(t *testing.T, text string, commandLine ...string) (*proxying, []string) {
	t.Helper()
	var p proxying
	cmd := &cobra.Command{}
	p.flags(cmd)
	if err := cmd.ParseFlags(commandLine); err != nil {
		t.Fatal(err)
	}
	return &p, setFields(cmd.Flags(), []byte(text))
}

const goodFile = `
# a comment
upstream: http://127.0.0.1:9000/mcp
listen: 127.0.0.1:8080
audience: release.example.com
ephemeral: true
identity: header
header: X-User
trust: [10.0.0.0/8, 127.0.0.1/32]
ttl: 5m
max-rounds: 7
max-state: 32KiB
max-request: 1048576
single-use: true
allow-origin:
  - https://app.example.com
  - "https://other.example.com"
rejected-text: start-over
`

func TestAFileSetsWhatFlagsSet(t *testing.T) {
	p, wrong := parseSettings(t, goodFile)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if p.upstream != "http://127.0.0.1:9000/mcp" || p.users.header != "X-User" || len(p.users.trusted) != 2 || !p.keys.ephemeral || !p.used.singleUse ||
		p.boundary.TTL != 5*time.Minute || p.boundary.MaxRounds != 7 || p.boundary.MaxState != 32<<10 || p.carrier.MaxRequest != 1<<20 ||
		len(p.carrier.AllowOrigins) != 2 || p.core.RejectedText == "" || p.core.RejectedText == startOver {
		t.Errorf("%+v", p)
	}
}

func TestAFlagOnTheCommandLineReplacesTheField(t *testing.T) {
	p, wrong := parseSettings(t, goodFile, "--ttl", "1m", "--trust", "192.0.2.0/24", "--single-use=false")
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if p.boundary.TTL != time.Minute || len(p.users.trusted) != 1 || p.used.singleUse {
		t.Errorf("%+v", p)
	}
}

func TestAFileWithAMistakeIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"upstrem: x":                         `line 1: there is no field "upstrem"; was upstream meant?`,
		"max_state: 1KiB":                    `line 1: there is no field "max_state"; was max-state meant?`,
		"Audience: x":                        "was audience meant?",
		"nonsense-of-mine: x":                "the fields are named like the flags",
		"config: x":                          `there is no field "config"`,
		"help: true":                         `there is no field "help"`,
		"audience: a\naudience: b":           "line 2: audience is there twice",
		"trust: 10.0.0.0/8":                  "trust: must be a list",
		"trust: [[10.0.0.0/8]]":              "trust: must be a text",
		"trust: [10.0.0.1]":                  "for this one address write 10.0.0.1/32",
		"single-use: yes":                    "must be true or false",
		"single-use: \"true\"":               "must be true or false",
		"single-use: 1":                      "must be true or false",
		"max-rounds: many":                   "max-rounds: ",
		"max-rounds: 1.5":                    "must be a number",
		"max-rounds: 010":                    "not a whole number",
		"max-rounds: 0":                      "not a whole number",
		"ttl: 10":                            "ttl: not a duration",
		"ttl: {minutes: 10}":                 "must be a duration such as 10m",
		"max-state: 4MB":                     "not a size such as",
		"audience:":                          "audience: has no value",
		"audience: null":                     "has no value",
		"audience: true":                     "put it into quotes",
		"audience: 2026-11-16":               "put it into quotes",
		"audience: &x a\nlisten: *x":         "listen: must be a text",
		"<<: {audience: a}":                  "there is no field",
		"":                                   "the file has no fields",
		"audience: a\n---\naudience: b":      "one YAML document",
		"- audience":                         "must be a list of fields",
		"audience":                           "must be a list of fields",
		"audience: [":                        "not YAML: ",
		"audience: a\n\tlisten: b":           "not YAML: ",
		"? [a]\n: b":                         "the name of a field is missing",
		"audience: a\nupstrem: b\nlisten: 1": "upstrem",
	} {
		if _, wrong := parseSettings(t, text); !strings.Contains(strings.Join(wrong, "\n"), want) {
			t.Errorf("%q: %q, want %q", text, wrong, want)
		}
	}
	if _, wrong := parseSettings(t, "upstrem: x\nlissten: y"); len(wrong) != 2 {
		t.Errorf("not every mistake is named: %q", wrong)
	}
}

func TestAFileThatIsTooLongIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "proxy.yaml")
	if err := os.WriteFile(name, []byte("audience: "+strings.Repeat("a", maxFile)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readSettings(name); err == nil || !strings.Contains(err.Error(), "longer than 1 MiB") {
		t.Error(err)
	}
}

func FuzzAFileNeverPanics(f *testing.F) {
	f.Add([]byte(goodFile))
	f.Add([]byte("trust: [10.0.0.0/8\n"))
	f.Add([]byte("a: &a [*a, *a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p proxying
		cmd := &cobra.Command{}
		p.flags(cmd)
		setFields(cmd.Flags(), text)
	})
}
