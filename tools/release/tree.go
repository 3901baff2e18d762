package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// release is one version of all modules.
type release struct {
	version string
	dir     string // the directory that contains the tree and the local proxy
	scratch string // a directory for temporary files, and for the programs that try out the release
}

func (r *release) tree() string  { return filepath.Join(r.dir, "tree") }
func (r *release) proxy() string { return filepath.Join(r.dir, "proxy") }

// mod is one Go module in the tree of a release.
type mod struct {
	dir  string // the module's directory, relative to the tree and with slashes; "." is the root module
	file *modfile.File
}

func (m *mod) path() string { return m.file.Module.Mod.Path }

func (m *mod) tag(version string) string { return path.Join(m.dir, version) }

func isOurs(module string) bool { return module == root || strings.HasPrefix(module, root+"/") }

// writeTree writes the committed files of the repository into the tree. In each go.mod,
// it sets the version of every required module of this project to that of the release, and
// removes the replace lines. Then it puts every module into the local proxy. It returns the
// modules, each after the modules that it requires. If path is not empty, writeTree changes,
// publishes and returns only the module with that path and the modules that it requires.
func (r *release) writeTree(repo, path string) ([]*mod, error) {
	changed, err := output(repo, nil, "git", "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return nil, err
	}
	if changed != "" {
		return nil, fmt.Errorf("these files have changes that are not committed:\n%s", changed)
	}
	if err := os.MkdirAll(r.tree(), 0o755); err != nil {
		return nil, err
	}
	archive := filepath.Join(r.scratch, "tree.tar")
	for _, command := range [][]string{
		{"git", "-C", repo, "archive", "--format=tar", "-o", archive, "HEAD"},
		{"tar", "-xf", archive, "-C", r.tree()},
		{"git", "-C", r.tree(), "init", "-q"},
	} {
		if _, err := output(repo, nil, command...); err != nil {
			return nil, err
		}
	}
	modules, err := r.readModules()
	if err != nil {
		return nil, err
	}
	if path != "" {
		modules = requiredBy(path, modules)
	}
	for _, m := range modules {
		fmt.Printf("%s %s\n", m.path(), r.version)
		if err := r.setVersion(m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.path(), err)
		}
		if err := r.publish(m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.path(), err)
		}
	}
	return modules, nil
}

// readModules returns the modules that go.work names, each after the modules that it requires.
func (r *release) readModules() (ordered []*mod, err error) {
	text, err := os.ReadFile(filepath.Join(r.tree(), "go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return nil, err
	}
	var waiting []*mod
	for _, use := range work.Use {
		name := filepath.Join(r.tree(), use.Path, "go.mod")
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := modfile.Parse(name, text, nil)
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, &mod{path.Clean(use.Path), file})
	}
	done := make(map[string]bool)
	for len(waiting) > 0 {
		var blocked []*mod
		for _, m := range waiting {
			ready := true
			for _, require := range m.file.Require {
				ready = ready && (!isOurs(require.Mod.Path) || done[require.Mod.Path])
			}
			if !ready {
				blocked = append(blocked, m)
				continue
			}
			done[m.path()] = true
			ordered = append(ordered, m)
		}
		if len(blocked) == len(waiting) {
			return nil, errors.New("modules require each other, or a module that is not in go.work")
		}
		waiting = blocked
	}
	return ordered, nil
}

// requiredBy returns the module with this path and the modules that it requires. It keeps the
// order of the given modules, in which each comes after the modules that it requires.
func requiredBy(path string, modules []*mod) []*mod {
	needed := map[string]bool{path: true}
	for _, m := range slices.Backward(modules) {
		for _, require := range m.file.Require {
			if needed[m.path()] {
				needed[require.Mod.Path] = true
			}
		}
	}
	return slices.DeleteFunc(modules, func(m *mod) bool { return !needed[m.path()] })
}

// setVersion writes the go.mod and go.sum that a module has in the release.
func (r *release) setVersion(m *mod) error {
	for _, replaced := range m.file.Replace {
		if !isOurs(replaced.Old.Path) {
			return fmt.Errorf("go.mod replaces %s: a user's go.mod would not replace it", replaced.Old.Path)
		}
		if err := m.file.DropReplace(replaced.Old.Path, replaced.Old.Version); err != nil {
			return err
		}
	}
	for _, require := range m.file.Require {
		if !isOurs(require.Mod.Path) {
			continue
		}
		if err := m.file.AddRequire(require.Mod.Path, r.version); err != nil {
			return err
		}
	}
	m.file.Cleanup()
	text, err := m.file.Format()
	if err != nil {
		return err
	}
	dir := filepath.Join(r.tree(), m.dir)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o644); err != nil {
		return err
	}
	if _, err := output(dir, r.environment(), "go", "mod", "tidy"); err != nil {
		return err
	}
	tidied, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	if !bytes.Equal(tidied, text) {
		return fmt.Errorf("go mod tidy changed go.mod to:\n%s", tidied)
	}
	return nil
}

// output runs a command in the directory dir and returns its standard output.
func output(dir string, environment []string, command ...string) (string, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, environment
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(command, " "), err, out, &stderr)
	}
	return string(out), nil
}
