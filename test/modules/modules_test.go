// Package modules_test checks which package of this repository may import which.
package modules_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const root = "github.com/tripseal/tripseal"

// programs are the modules that nobody imports. They may use internals of other modules.
var programs = []string{root + "/cmd/tripseal", root + "/examples", root + "/test"}

func TestLibrariesImportOnlyWhatTheyMay(t *testing.T) {
	type pkg struct {
		ImportPath                         string
		Module                             struct{ Path, GoVersion string }
		Imports, TestImports, XTestImports []string
	}
	cmd := exec.Command("go", "list", "-json=ImportPath,Module,Imports,TestImports,XTestImports", "work")
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	owner := make(map[string]string) // the module of each package of this repository
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all, owner[p.ImportPath] = append(all, p), p.Module.Path
	}
	if len(all) < 30 || owner[root] != root || owner[root+"/test/modules"] != root+"/test" {
		t.Fatalf("only %d packages were found", len(all))
	}
	for _, p := range all {
		library := !slices.Contains(programs, p.Module.Path)
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			module, ours := owner[imported]
			elsewhere := ours && module != p.Module.Path
			domain, _, _ := strings.Cut(imported, "/")
			switch {
			case elsewhere && module == root+"/test":
				t.Errorf("%s imports %s, which only tests in the folder test may do", p.ImportPath, imported)
			case elsewhere && library && strings.Contains(imported+"/", "/internal/"):
				t.Errorf("%s imports %s, and users may have another version of that module", p.ImportPath, imported)
			case p.Module.Path == root && (elsewhere || !ours && strings.Contains(domain, ".")):
				t.Errorf("%s imports %s, but the root module requires nothing", p.ImportPath, imported)
			case p.Module.Path == root+"/otelseal" && strings.HasPrefix(imported, "go.opentelemetry.io/otel/") &&
				(strings.Contains(imported, "/sdk") || strings.Contains(imported, "/exporters")):
				t.Errorf("%s imports %s, but users choose the SDK and the exporter", p.ImportPath, imported)
			}
		}
		if library && !strings.HasPrefix(p.Module.Path, root+"/mcpgo") && p.Module.GoVersion != goOfRoot(t) {
			t.Errorf("%s needs Go %s, but only mcp-go needs a newer Go than the root module", p.Module.Path, p.Module.GoVersion)
		}
	}
}

// goOfRoot returns the version of Go that the root module asks for.
func goOfRoot(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(string(text), "\ngo ")
	version, rest, _ := strings.Cut(version, "\n")
	if strings.TrimSpace(rest) != "" {
		t.Errorf("go.mod has more than the module and its version of Go: %s", rest)
	}
	return version
}
