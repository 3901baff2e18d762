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

func TestTheREADMEIsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 150 {
		t.Errorf("%d lines", lines)
	}
}

// TestTheCommandsOfTheREADMENeedTheGoThatItNames checks that README.md and go.work name the same
// version of Go. The commands that README.md names for the demo and for the tests use go.work, so
// they need at least that version.
func TestTheCommandsOfTheREADMENeedTheGoThatItNames(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	work, err := os.ReadFile("go.work")
	if err != nil {
		t.Fatal(err)
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(string(work), "go "), "\n")
	if want := "need nothing but Go " + version + " or later"; !strings.Contains(string(readme), want) {
		t.Errorf("README.md does not say %q", want)
	}
}

// TestThePictureOfThePackagesIsTrue checks that every arrow of the picture in docs/design.md is
// an import: the package where the arrow begins imports the package where it ends.
func TestThePictureOfThePackagesIsTrue(t *testing.T) {
	text, err := os.ReadFile("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, picture, _ := strings.Cut(string(text), "## The packages")
	_, picture, _ = strings.Cut(picture, "```mermaid")
	picture, _, _ = strings.Cut(picture, "```")
	folders := make(map[string]string)
	for _, box := range regexp.MustCompile(`(?m)^  (\w+)[\[(]+"?([\w/]+)`).FindAllStringSubmatch(picture, -1) {
		folders[box[1]] = box[2]
	}
	folders["root"] = "."
	arrows := regexp.MustCompile(`(?m)^  (\w+) --> (\w+)$`).FindAllStringSubmatch(picture, -1)
	if len(arrows) < 15 {
		t.Fatalf("%d arrows", len(arrows))
	}
	for _, arrow := range arrows {
		from, to := folders[arrow[1]], folders[arrow[2]]
		if from == "" || to == "" {
			t.Errorf("%s: a box is missing", arrow[0])
			continue
		}
		files, err := filepath.Glob(filepath.Join(from, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		imports := false
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			imports = imports || !strings.HasSuffix(file, "_test.go") && strings.Contains(string(source), `"`+path.Join("github.com/tripseal/tripseal", to)+`"`)
		}
		if !imports {
			t.Errorf("%s does not import %s", from, to)
		}
	}
}
