package mcpseal_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestREADMECodeIsCompiled finds every Go block of the README in a file that
// the compiler sees.
func TestREADMECodeIsCompiled(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var compiled strings.Builder
	for _, file := range []string{"examples/standalone/main.go", "example_test.go", "gosdk/example_test.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		compiled.WriteString(normalise(string(source)))
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) == 0 {
		t.Fatal("the README has no Go code")
	}
	for _, block := range blocks {
		if code := normalise(block[1]); !strings.Contains(compiled.String(), code) {
			t.Errorf("not in any file that is compiled:\n%s", block[1])
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
