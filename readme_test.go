package tripseal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheCodeOfThePagesIsCompiled checks that every Go block of a page is also part of an example
// or a server that is compiled.
func TestTheCodeOfThePagesIsCompiled(t *testing.T) {
	var compiled strings.Builder
	for _, pattern := range []string{
		"*example*_test.go", "*/*example*_test.go", "*/*/*example*_test.go", "examples/*/*.go", "test/telemetry/*.go",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no file is like %s, %v", pattern, err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			compiled.WriteString(normalise(string(source)))
		}
	}
	blocks := 0
	for page, text := range pages(t) {
		for _, block := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text, -1) {
			blocks++
			if !strings.Contains(compiled.String(), normalise(block[1])) {
				t.Errorf("%s: not in any file that is compiled:\n%s", page, block[1])
			}
		}
	}
	if blocks < 20 {
		t.Errorf("only %d blocks of Go were found", blocks)
	}
}

// normalise drops indentation and blank lines.
func normalise(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// TestOperationsExplainsEveryReason checks that docs/operations.md has a row for every reason.
func TestOperationsExplainsEveryReason(t *testing.T) {
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`(?m)^\tReason\w+ +Reason = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(reasons) < 20 {
		t.Fatalf("%d reasons found", len(reasons))
	}
	page := pages(t)["docs/operations.md"]
	for _, reason := range reasons {
		if !strings.Contains(page, "\n| `"+reason[1]+"` | ") {
			t.Errorf("docs/operations.md does not explain %s", reason[1])
		}
	}
}
