package modules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryWalkNamesFilesThatExist reads the walks in docs/design.md. A walk has a line for each
// file that a request passes through. Each file must exist, and no walk may return to an earlier
// file, except on the way out.
func TestEveryWalkNamesFilesThatExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walks, ok := strings.Cut(string(page), "\n## Five walks\n")
	if !ok {
		t.Fatal("docs/design.md has no walks")
	}
	walks, _, _ = strings.Cut(walks, "\n## ")
	seen, lines, blocks := map[string]bool{}, 0, 0
	for line := range strings.Lines(walks) {
		if strings.HasPrefix(line, "**") {
			clear(seen)
			blocks++
		}
		words := strings.Fields(line)
		if !strings.HasPrefix(line, "    ") || len(words) < 2 || strings.HasPrefix(words[0], "(") {
			continue
		}
		lines++
		if _, err := os.Stat(filepath.Join("../..", words[0])); err != nil {
			t.Errorf("%s does not exist", words[0])
		}
		if seen[words[0]] && !strings.Contains(line, " on the way out: ") {
			t.Errorf("a walk returns to %s", words[0])
		}
		seen[words[0]] = true
	}
	if blocks != 5 || lines < 40 {
		t.Errorf("%d walks with %d lines", blocks, lines)
	}
}
