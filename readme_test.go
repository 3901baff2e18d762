package tripseal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestREADMECodeIsCompiled checks that every Go block of these pages is also part of a file that
// is compiled.
func TestREADMECodeIsCompiled(t *testing.T) {
	for _, page := range []string{"README.md", "docs/migration.md", "docs/elicit.md", "docs/operations.md", "docs/adopting.md", "docs/testing.md", "docs/telemetry.md", "docs/using.md"} {
		checkCode(t, page)
	}
}

func checkCode(t *testing.T, page string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var compiled strings.Builder
	for _, file := range []string{
		"example_nosdk_test.go",
		"example_test.go",
		"gosdk/example_test.go",
		"gosdk/example_adopting_test.go",
		"mcpgo/example_test.go",
		"compat/example_test.go",
		"compat/example_ownformat_test.go",
		"gosdk/elicit/example_test.go",
		"examples/deploy/gosdk.go",
		"keys/example_test.go",
		"replay/redisreplay/example_test.go",
		"gosdk/gosdktest/example_test.go",
		"sealtest/example_test.go",
		"otelseal/example_test.go",
		"test/telemetry/replica.go",
		"examples/production/main.go",
		"examples/deploy/users.go",
	} {
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

// TestREADMESnippetsMakeWhatTheyUse checks that every name in a snippet is defined in that
// snippet or in an earlier one. The test lists the exceptions: packages, and the reader's own
// types and data.
func TestREADMESnippetsMakeWhatTheyUse(t *testing.T) {
	var text []byte
	for _, page := range []string{"README.md", "docs/using.md"} {
		part, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, part...)
	}
	known := make(map[string]bool)
	for _, name := range strings.Fields("context fmt log mcp server tripseal gosdk mcpgo elicit keys redis redisreplay " +
		"ctx userFromContext ListArgs listVersions DeleteArgs Deleted Confirm auth http strings time verify") {
		known[name] = true
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	for _, block := range blocks {
		code := "package p\n" + block[1]
		if strings.Count(code, "{") > strings.Count(code, "}") {
			code += "}" // the page shows only the beginning of this code
		}
		if !strings.HasPrefix(block[1], "func ") {
			code = "package p\nfunc _() {\n" + block[1] + "}"
		}
		file, err := parser.ParseFile(token.NewFileSet(), "README.md", code, 0)
		if err != nil {
			t.Errorf("%v in\n%s", err, block[1])
			continue
		}
		for _, name := range file.Unresolved {
			if !known[name.Name] && types.Universe.Lookup(name.Name) == nil {
				t.Errorf("nothing makes %s in\n%s", name.Name, block[1])
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if assign, ok := n.(*ast.AssignStmt); ok && assign.Tok == token.DEFINE {
				for _, left := range assign.Lhs {
					known[left.(*ast.Ident).Name] = true
				}
			}
			return true
		})
	}
	if len(blocks) == 0 || !strings.Contains(string(text), "ContextTimeoutEnabled: true") {
		t.Error("there are no snippets, or that for Redis lacks the option without which New refuses the client")
	}
}

// TestOperationsExplainsEveryReason checks that docs/operations.md explains every reason that the
// log can name.
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

// TestEveryAlertIsLogged checks that the code logs every text that docs/operations.md recommends
// for an alert. An alert on another text would never be raised.
func TestEveryAlertIsLogged(t *testing.T) {
	page, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## What to alert on\n")
	table, _, _ = strings.Cut(table, "\n\nThe observer")
	alerts := regexp.MustCompile("`((?:keys|gosdk|mcpgo|elicit|tripseal|redisreplay): [^`]+)`").FindAllStringSubmatch(table, -1)
	if len(alerts) < 10 {
		t.Fatalf("the table has %d texts", len(alerts))
	}
	source := func(folders ...string) string {
		var all strings.Builder
		for _, folder := range folders {
			files, err := os.ReadDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if strings.HasSuffix(file.Name(), ".go") && !strings.HasSuffix(file.Name(), "_test.go") {
					text, err := os.ReadFile(folder + "/" + file.Name())
					if err != nil {
						t.Fatal(err)
					}
					all.Write(text)
				}
			}
		}
		return all.String()
	}
	// by maps the prefix of a log text to the source code that can log the text. The code may add the
	// prefix in another place, so the test searches only for the rest of the text.
	by := map[string]string{
		"keys": source("keys"), "gosdk": source("gosdk"), "mcpgo": source("mcpgo"), "elicit": source("gosdk/elicit"),
		"tripseal": source(".", "adapter"), "redisreplay": source("replay/redisreplay"),
	}
	for _, alert := range alerts {
		prefix, text, _ := strings.Cut(alert[1], ": ")
		for part := range strings.SplitSeq(text, "…") {
			if !strings.Contains(by[prefix], strings.TrimSpace(part)) {
				t.Errorf("nothing logs %q", alert[1])
			}
		}
	}
}
