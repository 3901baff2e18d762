// Command rules shows that the tests check every rule of the code. It takes one rule at a time
// out of the source, and runs the tests without it. If the tests still pass, no test checks the
// rule, and the command fails.
//
//	go run ./test/rules [-only TEXT] LIST
//
// A list begins with its settings: "in:" and the folder of the files, "test:" and the packages
// whose tests must fail, and perhaps "skip:" and a pattern of tests that are left out. Then come the
// rules. A rule begins with a line that has the name of a file. Then come the lines to take out,
// each after "- ", and the lines to put in their place, each after "+ ". A single line to take out
// may be a part of a line in the source. White space at both ends of a line does not count. An empty
// line ends a rule.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// atOnce is how many rules are out at the same time, each in a source of its own.
const atOnce = 2

type rules struct {
	folder, skip string
	packages     []string
	all          []rule
}

type rule struct {
	file          string
	gone, instead []string
}

func (r *rule) String() string { return r.file + ": " + strings.Join(r.gone, " ⏎ ") }

func main() {
	only := flag.String("only", "", "take out only the rules with this text")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "name one list, such as test/rules/engine.txt")
		os.Exit(2)
	}
	start := time.Now()
	tried, idle, err := run(flag.Arg(0), *only)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", flag.Arg(0), err)
		os.Exit(2)
	}
	fmt.Printf("%d rules were taken out, and the tests noticed %d of them; %v\n",
		tried, tried-idle, time.Since(start).Round(time.Second))
	if idle > 0 || tried == 0 {
		os.Exit(1)
	}
}

// run takes out the rules of a list that have the text only. It returns how many it took out, and
// how many of them no test noticed.
func run(list, only string) (tried, idle int, err error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return 0, 0, err
	}
	rules, err := parse(string(text))
	if err != nil {
		return 0, 0, err
	}
	dir, err := os.MkdirTemp("", "rules")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	if out, err := rules.test("", ""); err != nil { // otherwise every rule would seem to be noticed
		return 0, 0, fmt.Errorf("the tests fail with all rules:\n%s", out)
	}
	var wait sync.WaitGroup
	var mutex sync.Mutex
	turns := make(chan int, atOnce)
	for i := range rules.all {
		r := &rules.all[i]
		if !strings.Contains(r.String(), only) {
			continue
		}
		turns <- i
		wait.Go(func() {
			problem := rules.try(r, filepath.Join(dir, fmt.Sprint(i)))
			mutex.Lock()
			defer mutex.Unlock()
			if tried++; problem != "" {
				idle++
				fmt.Printf("%d of %d: %s\n    + %s\n    %s\n", i+1, len(rules.all), r, strings.Join(r.instead, " ⏎ "), problem)
			}
			<-turns
		})
	}
	wait.Wait()
	return tried, idle, nil
}

func parse(text string) (list rules, err error) {
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var r rule
		for line := range strings.SplitSeq(block, "\n") {
			setting, value, _ := strings.Cut(line, ": ")
			switch {
			case strings.HasPrefix(line, "#"):
			case strings.HasPrefix(line, "-"):
				r.gone = append(r.gone, strings.TrimSpace(line[1:]))
			case strings.HasPrefix(line, "+"):
				r.instead = append(r.instead, strings.TrimSpace(line[1:]))
			case setting == "in":
				list.folder = value
			case setting == "test":
				list.packages = strings.Fields(value)
			case setting == "skip":
				list.skip = value
			case r.file == "":
				r.file = line
			default:
				return rules{}, fmt.Errorf("%q is neither taken out nor put in", line)
			}
		}
		if r.file == "" && r.gone == nil {
			continue // the block has only settings and comments
		}
		if r.file == "" || r.gone == nil {
			return rules{}, fmt.Errorf("%q has no file, or takes nothing out", block)
		}
		list.all = append(list.all, r)
	}
	if list.folder == "" || len(list.packages) == 0 {
		return rules{}, errors.New("a setting named in or test is missing")
	}
	return list, nil
}

// try runs the tests without the rule. It returns "" if they fail, as they should, and otherwise
// what is wrong. The paths of its own files begin with scratch.
func (list *rules) try(r *rule, scratch string) string {
	source, err := filepath.Abs(filepath.Join(list.folder, r.file))
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
	replacement, overlay := scratch+".go", scratch+".json"
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
	out, err := list.test(overlay, filepath.Dir(r.file))
	if err == nil {
		return "the tests pass without it"
	}
	out = append([]byte{'\n'}, out...)
	if !bytes.Contains(out, []byte("--- FAIL")) && !bytes.Contains(out, []byte("\npanic: ")) {
		return "the tests did not run:" + string(out)
	}
	return ""
}

// test runs the tests of one package after the other, until one fails. It begins with the package in
// the folder first. The overlay replaces a file of the source; "" replaces none.
func (list *rules) test(overlay, first string) (out []byte, err error) {
	packages := slices.Clone(list.packages)
	slices.SortStableFunc(packages, func(a, b string) int {
		return cmp.Compare(strings.Count(b, "./"+first), strings.Count(a, "./"+first))
	})
	for _, name := range packages {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		out, err = exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-failfast", "-timeout=2m",
			"-skip", list.skip, "-overlay", overlay, name).CombinedOutput()
		cancel()
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// apply returns the text without the rule. If it cannot take out the rule, problem says why;
// otherwise problem is "".
func (r *rule) apply(text string) (mutant, problem string) {
	if len(r.gone) == 1 {
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
