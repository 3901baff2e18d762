package tripseal_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestTheCoreImportsOnlyTheStandardLibrary covers the packages that a program links if it uses
// the core. The module has other packages too.
func TestTheCoreImportsOnlyTheStandardLibrary(t *testing.T) {
	seen := 0
	for _, dir := range []string{".", "adapter", "cursor", "elicit", "internal/b64u", "internal/guard", "internal/keyfile", "internal/native", "internal/strictjson", "internal/whose", "keys", "replay", "sealtest"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no Go files in %s, %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				first, _, _ := strings.Cut(path, "/")
				own := strings.HasPrefix(path, "github.com/tripseal/tripseal")
				if strings.Contains(first, ".") && !own {
					t.Errorf("%s imports %s", file, path)
				}
				if path == "unsafe" || path == "C" {
					t.Errorf("%s imports %s", file, path)
				}
				seen++
			}
		}
	}
	if seen == 0 {
		t.Error("no import was looked at")
	}
}
