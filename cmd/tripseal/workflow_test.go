package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestTheWorkflowForOthersHasValidCommands runs each tripseal command of docs/workflows/probe.yml.
// The probe runs with --dry-run, so it only lists what it would send.
func TestTheWorkflowForOthersHasValidCommands(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell splits the commands here")
	}
	text, err := os.ReadFile("../../docs/workflows/probe.yml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Run string }
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	tried := make(map[string]bool)
	for _, step := range workflow.Jobs["probe"].Steps {
		_, line, found := strings.Cut("\n"+step.Run, "\ntripseal ")
		if !found {
			continue
		}
		split, err := exec.Command(shell, "-c", `tripseal() { printf '%s\n' "$@"; }; tripseal `+line).Output()
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Split(strings.TrimSuffix(string(split), "\n"), "\n")
		tried[args[0]] = true
		if args[0] == "probe" {
			args = append(args, "--dry-run")
		}
		var stdout, stderr bytes.Buffer
		if code := run(args, strings.NewReader(""), &stdout, &stderr); code != 0 {
			t.Errorf("tripseal %s ends with %d: %s", line, code, &stderr)
		}
	}
	if !tried["probe"] || !tried["version"] {
		t.Errorf("the workflow has only the commands %v", tried)
	}
}
