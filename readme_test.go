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
	for _, page := range []string{"README.md", "docs/migration.md", "docs/elicit.md"} {
		checkCode(t, page)
	}
}

func checkCode(t *testing.T, page string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var compiled strings.Builder
	for _, file := range []string{"examples/standalone/main.go", "example_test.go", "gosdk/example_test.go", "compat/example_test.go", "elicit/example_test.go", "examples/pages/main.go"} {
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
