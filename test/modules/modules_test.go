// Package modules_test checks what users of the modules in this repository may rely on. For
// example, users can mix versions of the modules, and the root module has no dependencies.
package modules_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/version"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goCommand runs the go command in a folder of the repository. The parameter workspace is the
// value of GOWORK.
func goCommand(t *testing.T, dir, workspace string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join("..", "..", dir)
	cmd.Env = append(os.Environ(), "GOWORK="+workspace)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, &stderr)
	}
	return out
}

func workspace(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "go.work"))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// pkg is what the go command says about a package.
type pkg struct {
	ImportPath, Name, Dir              string
	Module                             struct{ Path string }
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
}

func (p *pkg) isInternal() bool { return strings.Contains(p.ImportPath+"/", "/internal/") }

// isImportable reports whether code of a user may import the package.
func (p *pkg) isImportable() bool {
	return p.Name != "main" && len(p.GoFiles) > 0 && !p.isInternal()
}

func packages(t *testing.T) (all []pkg) {
	decoder := json.NewDecoder(bytes.NewReader(goCommand(t, ".", workspace(t), "list", "-json=ImportPath,Name,Dir,Module,GoFiles,Imports,TestImports,XTestImports", "work")))
	for {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// libraries returns the paths of the modules that users import. A module is not a library if its
// root package is a command, or if none of its packages can be imported.
func libraries(all []pkg) map[string]bool {
	found := make(map[string]bool)
	for _, p := range all {
		if p.isImportable() {
			found[p.Module.Path] = true
		}
	}
	for _, p := range all {
		if p.Name == "main" && p.ImportPath == p.Module.Path {
			delete(found, p.Module.Path)
		}
	}
	return found
}

func TestNoLibraryImportsTheInternalsOfAnotherModule(t *testing.T) {
	all := packages(t)
	owner := make(map[string]string) // the module of each internal package
	for _, p := range all {
		if p.isInternal() {
			owner[p.ImportPath] = p.Module.Path
		}
	}
	libraries := libraries(all)
	if len(libraries) < 5 || len(owner) < 5 {
		t.Fatalf("%d libraries and %d internal packages were found", len(libraries), len(owner))
	}
	for _, p := range all {
		if !libraries[p.Module.Path] {
			continue
		}
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if of, ok := owner[imported]; ok && of != p.Module.Path {
				t.Errorf("%s, of the library %s, imports %s of %s", p.ImportPath, p.Module.Path, imported, of)
			}
		}
	}
}

// modFile is what the go command says about a go.mod.
type modFile struct {
	Module  struct{ Path string }
	Go      string
	Require []struct {
		Path, Version string
		Indirect      bool
	}
	Replace []struct{ Old, New struct{ Path string } }
}

func readModFile(t *testing.T, dir string) (file modFile) {
	t.Helper()
	if err := json.Unmarshal(goCommand(t, dir, "off", "mod", "edit", "-json"), &file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheRootModuleRequiresNothing(t *testing.T) {
	if file := readModFile(t, "."); len(file.Require) != 0 || len(file.Replace) != 0 {
		t.Errorf("go.mod requires %v and replaces %v", file.Require, file.Replace)
	}
}

// TestEveryModuleStaysAtTheOldestGo checks that each module asks for the Go version of the root
// module, or for a newer version only if a required module needs that version.
func TestEveryModuleStaysAtTheOldestGo(t *testing.T) {
	root := readModFile(t, ".")
	var work struct{ Use []struct{ DiskPath string } }
	if err := json.Unmarshal(goCommand(t, ".", workspace(t), "work", "edit", "-json"), &work); err != nil {
		t.Fatal(err)
	}
	if len(work.Use) < 10 {
		t.Fatalf("%d modules in the workspace", len(work.Use))
	}
	for _, use := range work.Use {
		file := readModFile(t, use.DiskPath)
		oldest := root.Go
		for _, needed := range strings.Fields(string(goCommand(t, use.DiskPath, "off", "list", "-m", "-f", "{{if not .Main}}{{.GoVersion}}{{end}}", "all"))) {
			if version.Compare("go"+needed, "go"+oldest) > 0 {
				oldest = needed
			}
		}
		if file.Go != oldest {
			t.Errorf("%s is at Go %s, not %s", file.Module.Path, file.Go, oldest)
		}
		for _, replaced := range file.Replace {
			if !strings.HasPrefix(replaced.Old.Path, root.Module.Path) {
				t.Errorf("%s replaces %s, which a user would not", file.Module.Path, replaced.Old.Path)
			}
		}
	}
}

// TestLibrariesWithoutMCPGoStayAtTheRootsGo checks the modules that do not use mcp-go. mcp-go
// needs a newer Go than the root module does, and only the users of mcp-go should need that Go.
func TestLibrariesWithoutMCPGoStayAtTheRootsGo(t *testing.T) {
	root := readModFile(t, ".")
	for _, dir := range []string{"gosdk", "keys/agekeys", "replay/redisreplay", "compat/atd", "otelseal", "cmd/tripseal"} {
		if file := readModFile(t, dir); file.Go != root.Go {
			t.Errorf("%s is at Go %s, not %s", file.Module.Path, file.Go, root.Go)
		}
	}
}

// TestOtelsealNeedsOnlyTheAPIOfOpenTelemetry checks that neither otelseal nor its tests depend on
// an SDK or an exporter. The users of otelseal choose the SDK and the exporter.
func TestOtelsealNeedsOnlyTheAPIOfOpenTelemetry(t *testing.T) {
	root := readModFile(t, ".").Module.Path
	const api = "go.opentelemetry.io/otel"
	direct := map[string]bool{root: true, api: true, api + "/metric": true, api + "/trace": true}
	indirect := map[string]bool{ // what the API of OpenTelemetry depends on
		"github.com/cespare/xxhash/v2": true, "github.com/go-logr/logr": true, "github.com/go-logr/stdr": true, "go.opentelemetry.io/auto/sdk": true,
	}
	file := readModFile(t, "otelseal")
	for _, require := range file.Require {
		if require.Indirect && !indirect[require.Path] || !require.Indirect && !direct[require.Path] {
			t.Errorf("otelseal requires %s", require.Path)
		}
		if !require.Indirect {
			delete(direct, require.Path)
		}
	}
	if len(direct) > 0 {
		t.Errorf("otelseal does not require %v", direct)
	}
	found := 0
	for _, p := range packages(t) {
		if p.Module.Path != file.Module.Path {
			continue
		}
		found++
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			first, _, _ := strings.Cut(imported, "/")
			ours := imported == root || strings.HasPrefix(imported, root+"/")
			ofAPI := imported == api
			for _, name := range []string{"attribute", "metric", "trace"} {
				ofAPI = ofAPI || imported == api+"/"+name || imported == api+"/"+name+"/noop"
			}
			if strings.Contains(first, ".") && !ours && !ofAPI {
				t.Errorf("%s imports %s", p.ImportPath, imported)
			}
		}
	}
	if found == 0 {
		t.Error("otelseal has no package")
	}
}
