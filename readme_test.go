package mcpseal_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestREADMECodeIsCompiled finds every Go block of the README and of the docs in
// a file that the compiler sees.
func TestREADMECodeIsCompiled(t *testing.T) {
	for _, page := range []string{"README.md", "docs/migration.md", "docs/elicit.md", "docs/operations.md"} {
		checkCode(t, page)
	}
}

func checkCode(t *testing.T, page string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var compiled strings.Builder
	for _, file := range []string{"examples/standalone/main.go", "example_test.go", "gosdk/example_test.go", "compat/example_test.go", "compat/example_ownformat_test.go", "gosdk/elicit/example_test.go", "examples/pages/main.go", "keys/example_test.go", "replay/redisreplay/example_test.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		compiled.WriteString(normalise(string(source)))
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Errorf("%s has no Go code", page)
	}
	for _, block := range blocks {
		if code := normalise(block[1]); !strings.Contains(compiled.String(), code) {
			t.Errorf("%s: not in any file that is compiled:\n%s", page, block[1])
		}
	}
}

// TestOperationsExplainsEveryReason: what the log can say, the page explains.
func TestOperationsExplainsEveryReason(t *testing.T) {
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`(?m)^\tReason\w+ +Reason = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(reasons) < 20 {
		t.Fatalf("%d reasons found", len(reasons))
	}
	for _, reason := range reasons {
		if !strings.Contains(string(page), "\n| `"+reason[1]+"` | ") {
			t.Errorf("docs/operations.md does not explain %s", reason[1])
		}
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
