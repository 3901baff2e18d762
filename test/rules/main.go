// Command rules shows that the tests of package proxy check every rule of the package. It
// removes one rule from the source at a time, and runs the tests without it. If the tests still
// pass, no test checks the rule, and the command fails.
//
// The rules are in rules.txt. A rule begins with a line that has the name of a file. Then come
// the lines to remove, each after "- ", and the lines to put in their place, each after "+ ".
// White space at both ends of a line does not count. An empty line ends a rule.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed rules.txt
var list string

type rule struct {
	file          string
	gone, instead []string
}

func main() {
	only := flag.String("only", "", "take out only the rules with this text")
	flag.Parse()
	rules, err := parse(list)
	if err != nil || len(rules) == 0 {
		fmt.Fprintln(os.Stderr, "rules.txt:", err)
		os.Exit(2)
	}
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	defer os.RemoveAll(dir)
	idle, tried := 0, 0
	for i, r := range rules {
		name := fmt.Sprintf("%s: %s", r.file, strings.Join(r.gone, " ⏎ "))
		if !strings.Contains(name, *only) {
			continue
		}
		tried++
		if problem := r.try(dir); problem != "" {
			idle++
			fmt.Printf("%d of %d: %s\n    %s\n", i+1, len(rules), name, problem)
		}
	}
	fmt.Printf("%d rules were taken out, and the tests noticed %d of them\n", tried, tried-idle)
	if idle > 0 || tried == 0 {
		os.RemoveAll(dir)
		os.Exit(1)
	}
}

func parse(text string) (rules []rule, err error) {
	for _, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
		var r rule
		for _, line := range strings.Split(block, "\n") {
			switch {
			case strings.HasPrefix(line, "#"):
			case strings.HasPrefix(line, "-"):
				r.gone = append(r.gone, strings.TrimSpace(line[1:]))
			case strings.HasPrefix(line, "+"):
				r.instead = append(r.instead, strings.TrimSpace(line[1:]))
			case r.file == "":
				r.file = line
			default:
				return nil, fmt.Errorf("%q is neither taken out nor put in", line)
			}
		}
		if r.file == "" && r.gone == nil {
			continue // the block has only comments
		}
		if r.file == "" || r.gone == nil {
			return nil, fmt.Errorf("%q has no file, or takes nothing out", block)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// try runs the tests without the rule. It returns "" if the tests fail, as they should, and
// otherwise what is wrong.
func (r *rule) try(dir string) string {
	source, err := filepath.Abs(filepath.Join("proxy", r.file))
	if err != nil {
		return err.Error()
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return err.Error()
	}
	mutant, problem := r.apply(string(text))
	if problem != "" {
		return problem
	}
	replacement, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{source: replacement}})
	if err != nil {
		return err.Error()
	}
	if err := os.WriteFile(replacement, []byte(mutant), 0o600); err != nil {
		return err.Error()
	}
	if err := os.WriteFile(overlay, replaced, 0o600); err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-failfast", "-timeout=2m", "-overlay", overlay, "./proxy").CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "the tests did not end"
	case err == nil:
		return "the tests pass without it"
	case !bytes.Contains(out, []byte("--- FAIL")) && !bytes.Contains(out, []byte("\npanic: ")) && !bytes.HasPrefix(out, []byte("panic: ")):
		return "the tests did not run:\n" + string(out)
	}
	return ""
}

// apply returns the text without the rule. If it cannot remove the rule, problem says
// why; otherwise problem is "".
func (r *rule) apply(text string) (mutant, problem string) {
	if len(r.gone) == 1 { // a single line to remove may be only a part of a line in the source
		if n := strings.Count(text, r.gone[0]); n != 1 {
			return "", fmt.Sprintf("the source has it %d times", n)
		}
		return strings.Replace(text, r.gone[0], strings.Join(r.instead, "\n"), 1), ""
	}
	lines, at := strings.Split(text, "\n"), -1
	for i := range lines {
		found := i+len(r.gone) <= len(lines)
		for j := 0; found && j < len(r.gone); j++ {
			found = strings.TrimSpace(lines[i+j]) == r.gone[j]
		}
		if found && at >= 0 {
			return "", "the source has it twice"
		}
		if found {
			at = i
		}
	}
	if at < 0 {
		return "", "the source does not have it"
	}
	rest := append([]string{}, lines[:at]...)
	rest = append(append(rest, r.instead...), lines[at+len(r.gone):]...)
	return strings.Join(rest, "\n"), ""
}
