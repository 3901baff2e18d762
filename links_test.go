package tripseal_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages returns the text of every page of the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, pattern := range []string{"*.md", "docs/*.md", "*/*/README.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.ToSlash(name)] = string(text)
		}
	}
	return all
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	all := make(map[string]bool)
	for _, found := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(found[1]) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 0x7f:
				b.WriteRune(r)
			}
		}
		all[b.String()] = true
	}
	return all
}

func TestEveryLinkInsideTheRepositoryResolves(t *testing.T) {
	all := pages(t)
	const rules = "deploy/prometheus/alerts.yaml" // an alert names the section that tells more
	alerts, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	all[rules] = regexp.MustCompile(`see: (\S+)`).ReplaceAllString(string(alerts), "](../../$1)")
	links := 0
	for name, text := range all {
		for _, found := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(found[1], "://") || strings.HasPrefix(found[1], "mailto:") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(found[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.FromSlash(target)); err != nil {
				t.Errorf("%s: %s does not exist", name, found[1])
				continue
			}
			if page, ok := all[target]; anchor != "" && (!ok || !anchors(page)[anchor]) {
				t.Errorf("%s: there is no heading for %s", name, found[1])
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}
