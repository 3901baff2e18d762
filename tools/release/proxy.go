package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// environment returns environment variables for a go command. With them, the command finds
// our modules in the local proxy, and all other modules where it usually finds them. It
// downloads to a separate directory, so that no later go command uses these unpublished
// modules by mistake.
func (r *release) environment() []string {
	cache, _ := output("", nil, "go", "env", "GOMODCACHE")
	proxies, _ := output("", nil, "go", "env", "GOPROXY")
	return append(os.Environ(),
		"GOWORK=off",
		"GOFLAGS=-modcacherw",
		"GOTOOLCHAIN=local",
		"GONOSUMDB="+root+","+root+"/*",
		"GOMODCACHE="+r.moduleCache(),
		"GOPROXY=file://"+r.proxy()+",file://"+filepath.Join(trim(cache), "cache", "download")+","+trim(proxies))
}

func (r *release) moduleCache() string { return filepath.Join(r.scratch, "modules") }

func trim(line string) string {
	for len(line) > 0 && line[len(line)-1] == '\n' {
		line = line[:len(line)-1]
	}
	return line
}

// publish commits the tree and puts the module m into the local proxy. It packs the module in
// the same way as the go command packs a module from a tag.
func (r *release) publish(m *mod) error {
	for _, command := range [][]string{
		{"git", "add", "-A"},
		{"git", "-c", "user.name=release", "-c", "user.email=release@localhost", "commit", "-q", "--no-verify", "--allow-empty", "-m", m.tag(r.version)},
	} {
		if _, err := output(r.tree(), nil, command...); err != nil {
			return err
		}
	}
	escaped, err := module.EscapePath(m.path())
	if err != nil {
		return err
	}
	dir := filepath.Join(r.proxy(), filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(r.tree(), m.dir, "go.mod"))
	if err != nil {
		return err
	}
	info := fmt.Sprintf("{%q:%q,%q:%q}\n", "Version", r.version, "Time", time.Now().UTC().Format(time.RFC3339))
	for name, content := range map[string]string{"list": r.version + "\n", r.version + ".info": info, r.version + ".mod": string(text)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	packed, err := os.Create(filepath.Join(dir, r.version+".zip"))
	if err != nil {
		return err
	}
	subdir := m.dir
	if subdir == "." {
		subdir = ""
	}
	if err := zip.CreateFromVCS(packed, module.Version{Path: m.path(), Version: r.version}, r.tree(), "HEAD", subdir); err != nil {
		packed.Close()
		return err
	}
	return packed.Close()
}
