package main

import (
	"embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed programs
var programs embed.FS

// sdk is an SDK for which tripseal has an adapter.
type sdk struct {
	path    string
	oldest  string // the first version with multi round-trip requests
	program string // the name of the program that uses the SDK without tripseal; the programs with tripseal add a suffix to this name
	adapter string
}

var sdks = []sdk{
	{"github.com/modelcontextprotocol/go-sdk", "v1.7.0", "sdk", "gosdk"},
	{"github.com/mark3labs/mcp-go", "v1.0.0", "mcpgo", "mcpgo"},
}

// strangers are dependencies of tripseal's optional modules. A program that does not use the
// optional modules must not get these dependencies.
var strangers = []string{"github.com/redis/", "filippo.io/age", "github.com/spf13/cobra", "github.com/fxamacker/cbor", "go.opentelemetry.io/"}

// try tries out the release in programs outside the repository.
func (r *release) try(modules []*mod) error {
	for _, attempt := range []struct {
		what string
		try  func([]*mod) error
	}{
		{"a program with the root alone takes nothing else along", r.tryRoot},
		{"a program on the oldest version of an SDK keeps every version it had", r.tryVersions},
		{"every package that can be imported builds", r.tryEverything},
		{"the command installs, knows its version and runs the demo", r.tryCommand},
	} {
		fmt.Println("trying: " + attempt.what)
		if err := attempt.try(modules); err != nil {
			return fmt.Errorf("%s: %w", attempt.what, err)
		}
	}
	return nil
}

// program is a Go program outside the repository, which uses the release.
type program struct {
	r   *release
	dir string
}

func (r *release) newProgram(name string) (*program, error) {
	p := &program{r, filepath.Join(r.scratch, "programs", name)}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, err
	}
	return p, os.WriteFile(filepath.Join(p.dir, "go.mod"), []byte("module example.com/"+name+"\n\ngo 1.25.0\n"), 0o644)
}

func (p *program) run(command ...string) (string, error) {
	return output(p.dir, p.r.environment(), command...)
}

// write writes the program's main.go, which is a copy of the file programs/NAME.go.txt.
func (p *program) write(name string) error {
	text, err := programs.ReadFile("programs/" + name + ".go.txt")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.dir, "main.go"), text, 0o644)
}

// build runs go get for these modules, and builds the program.
func (p *program) build(get ...string) error {
	for _, module := range get {
		if _, err := p.run("go", "get", module); err != nil {
			return err
		}
	}
	if _, err := p.run("go", "mod", "tidy"); err != nil {
		return err
	}
	_, err := p.run("go", "build", "-o", "program", ".")
	return err
}

// versions returns the version of every module that the program requires, by module path.
func (p *program) versions() (map[string]string, error) {
	list, err := p.run("go", "list", "-m", "all")
	found := make(map[string]string)
	for line := range strings.Lines(list) {
		name, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[name] = version
	}
	return found, err
}

// checkSums returns an error if go.sum has a module that the program must not get. These are the
// modules in the variable strangers, and each SDK that the program does not use.
func (p *program) checkSums(uses string) error {
	sums, err := os.ReadFile(filepath.Join(p.dir, "go.sum"))
	if err != nil {
		return err
	}
	unwanted := slices.Clone(strangers)
	for _, s := range sdks {
		if s.path != uses {
			unwanted = append(unwanted, s.path)
		}
	}
	for _, stranger := range unwanted {
		if strings.Contains(string(sums), stranger) {
			return fmt.Errorf("go.sum has %s", stranger)
		}
	}
	return nil
}

func (r *release) tryRoot([]*mod) error {
	p, err := r.newProgram("alone")
	if err != nil {
		return err
	}
	if err := p.write("root"); err != nil {
		return err
	}
	if err := p.build(root + "@" + r.version); err != nil {
		return err
	}
	versions, err := p.versions()
	if err != nil {
		return err
	}
	if len(versions) != 2 || versions[root] != r.version {
		return fmt.Errorf("it is built from %v", versions)
	}
	printed, err := p.run("./program")
	if err != nil {
		return err
	}
	if !strings.Contains(printed, "the state came back: step=1") {
		return fmt.Errorf("it printed %q", printed)
	}
	return p.checkSums("")
}

func (r *release) tryVersions([]*mod) error {
	for _, s := range sdks {
		if err := r.tryAdding(s, s.program+"_root", root); err != nil {
			return err
		}
		if err := r.tryAdding(s, s.program+"_"+s.adapter, root+"/"+s.adapter); err != nil {
			return err
		}
	}
	return nil
}

// tryAdding adds a module of tripseal to a program that uses the oldest version of an SDK. It
// returns an error if this adds modules that are not part of tripseal, or raises the version of
// a module.
func (r *release) tryAdding(s sdk, name, get string) error {
	p, err := r.newProgram(name)
	if err != nil {
		return err
	}
	if err := p.write(s.program); err != nil {
		return err
	}
	if err := p.build(s.path + "@" + s.oldest); err != nil {
		return err
	}
	before, err := p.versions()
	if err != nil {
		return err
	}
	if err := p.write(name); err != nil {
		return err
	}
	if err := p.build(get + "@" + r.version); err != nil {
		return err
	}
	after, err := p.versions()
	if err != nil {
		return err
	}
	for module, version := range after {
		switch had, ok := before[module]; {
		case isOurs(module) && version == r.version:
		case !ok:
			return fmt.Errorf("%s brings %s %s along", get, module, version)
		case had != version:
			return fmt.Errorf("%s raises %s from %s to %s", get, module, had, version)
		}
	}
	if err := p.checkSums(s.path); err != nil {
		return fmt.Errorf("%s: %w", get, err)
	}
	fmt.Printf("  %s on %s %s: %d modules, as before\n", get, filepath.Base(s.path), s.oldest, len(before))
	return nil
}

// tryEverything builds a program that imports every package of every module, except packages
// that cannot be imported: commands, internal packages and packages with only tests.
func (r *release) tryEverything(modules []*mod) error {
	p, err := r.newProgram("everything")
	if err != nil {
		return err
	}
	var imports strings.Builder
	needed := make(map[string]bool)
	for _, m := range modules {
		list, err := output(filepath.Join(r.tree(), m.dir), r.environment(), "go", "list", "-f", "{{.Name}} {{len .GoFiles}} {{.ImportPath}}", "./...")
		if err != nil {
			return err
		}
		for line := range strings.Lines(list) {
			fields := strings.Fields(line)
			if fields[0] == "main" || fields[1] == "0" || strings.Contains(fields[2]+"/", "/internal/") {
				continue
			}
			needed[m.path()+"@"+r.version] = true
			fmt.Fprintf(&imports, "import _ %q\n", fields[2])
		}
	}
	text := "package main\n\n" + imports.String() + "\nfunc main() {}\n"
	if err := os.WriteFile(filepath.Join(p.dir, "main.go"), []byte(text), 0o644); err != nil {
		return err
	}
	fmt.Printf("  %d packages of %d modules\n", strings.Count(text, "import _"), len(needed))
	return p.build(slices.Sorted(maps.Keys(needed))...)
}

func (r *release) tryCommand([]*mod) error {
	bin := filepath.Join(r.scratch, "bin")
	environment := append(r.environment(), "GOBIN="+bin)
	if _, err := output(r.scratch, environment, "go", "install", command+"@"+r.version); err != nil {
		return err
	}
	program := filepath.Join(bin, "tripseal")
	printed, err := output(r.scratch, environment, program, "version")
	if err != nil {
		return err
	}
	if want := "tripseal version " + strings.TrimPrefix(r.version, "v") + "\n"; !strings.HasPrefix(printed, want) {
		return fmt.Errorf("its version is\n%s", printed)
	}
	_, err = output(r.scratch, environment, program, "demo")
	return err
}
