package proxycmd

import (
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
		p.boundary.TTL != 5*time.Minute || p.boundary.MaxRounds != 7 || p.boundary.MaxState != 32<<10 || p.carrier.Door.MaxRequest != 1<<20 ||
		len(p.carrier.AllowOrigins) != 2 || p.rejected != startOver {
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

// A mistake must not leave out a protection in silence.
func TestAFileWithAMistakeIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"single_use: true":         `line 1: there is no field "single_use"`,
		"audience: a\naudience: b": `line 2: mapping key "audience" already defined at line 1`,
		"trust: [[10.0.0.0/8]]":    "trust: must be a text",
		"single-use: yes":          "must be true or false",
		"max-rounds: 010":          "not a whole number",
		"ttl: 10":                  "ttl: not a duration",
		"audience:":                "audience: has no value",
		"<<: {audienc: a}":         `there is no field "audienc"`,
		"- audience":               "not a list of fields in YAML: ",
		"audience: a\n---\nx: b":   "one YAML document",
		"audience: [":              "not a list of fields in YAML: ",
	} {
		if _, wrong := parseSettings(t, text); !strings.Contains(strings.Join(wrong, "\n"), want) {
			t.Errorf("%q: %q, want %q", text, wrong, want)
		}
	}
}
