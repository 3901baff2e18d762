package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// targets are the platforms for which a release has a binary.
var targets = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// source is the commit that a release is made from.
type source struct {
	commit string
	time   time.Time
}

// writeBinaries writes the binaries of the command into the directory dir. It also writes a
// list of the modules in each binary (SBOM), the licenses, and a file with the checksums of
// all these files. The same commit, version and toolchain give the same bytes everywhere.
func writeBinaries(repo, version, dir string, wanted []string) error {
	if err := checkVersion(repo, version); err != nil {
		return err
	}
	if len(wanted) == 0 {
		wanted = targets
	}
	for _, target := range wanted {
		if !slices.Contains(targets, target) {
			return fmt.Errorf("%q is none of %s", target, strings.Join(targets, ", "))
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return errors.Join(fmt.Errorf("%s is not an empty directory", dir), err)
	}
	scratch, err := os.MkdirTemp("", "tripseal-binaries-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	r := &release{version: version, dir: filepath.Join(scratch, "release"), scratch: scratch}
	from, err := sourceOf(repo)
	if err != nil {
		return err
	}
	if _, err := r.writeTree(repo, command); err != nil {
		return err
	}
	var infos []*debug.BuildInfo
	for _, target := range wanted {
		info, err := r.writeBinary(dir, target, from)
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		infos = append(infos, info)
	}
	text, err := r.licenses(infos)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, r.fileName("licenses.txt")), []byte(text), 0o644); err != nil {
		return err
	}
	return writeSums(dir)
}

func sourceOf(repo string) (s source, err error) {
	text, err := output(repo, nil, "git", "log", "-1", "--format=%H %cI")
	if err != nil {
		return s, err
	}
	commit, date, _ := strings.Cut(trim(text), " ")
	s.commit = commit
	s.time, err = time.Parse(time.RFC3339, date)
	return s, err
}

// fileName returns the name of a file of the release: tripseal_0.1.0_linux_amd64, for example.
func (r *release) fileName(what string) string {
	return "tripseal_" + strings.TrimPrefix(r.version, "v") + "_" + what
}

// writeBinary writes the command for one platform, and its SBOM. It builds the command with
// go install. So everybody can build the same bytes from the published module, without a
// clone.
func (r *release) writeBinary(dir, target string, from source) (*debug.BuildInfo, error) {
	system, arch, _ := strings.Cut(target, "/")
	bin := filepath.Join(r.scratch, "path", system+"_"+arch)
	environment := append(r.environment(),
		"GOOS="+system, "GOARCH="+arch, "GOPATH="+bin, "GOBIN=",
		"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off")
	// The flag -w leaves out what only a debugger needs. The names of functions stay in
	// the binary, because scanners read them.
	if _, err := output(r.scratch, environment, "go", "install", "-trimpath", "-ldflags=-w -X main.commit="+from.commit, command+"@"+r.version); err != nil {
		return nil, err
	}
	built, err := filepath.Glob(filepath.Join(bin, "bin", "tripseal*"))
	if err == nil && len(built) == 0 { // for another platform than this one, go install uses a subdirectory
		built, err = filepath.Glob(filepath.Join(bin, "bin", "*", "tripseal*"))
	}
	if err != nil || len(built) != 1 {
		return nil, errors.Join(fmt.Errorf("go install made %q", built), err)
	}
	info, err := buildinfo.ReadFile(built[0])
	if err != nil {
		return nil, err
	}
	if err := r.checkBinary(info, system, arch); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(built[0])
	if err != nil {
		return nil, err
	}
	name := r.fileName(system + "_" + arch)
	bom, err := sbom(info, content, from.time)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".cdx.json"), bom, 0o644); err != nil {
		return nil, err
	}
	fmt.Printf("%s: %.1f MB of %d modules\n", name, float64(len(content))/1e6, len(info.Deps)+1)
	return info, os.WriteFile(filepath.Join(dir, name+filepath.Ext(strings.TrimPrefix(built[0], bin))), content, 0o755)
}

// checkBinary returns an error if a binary was not built with exactly the settings of a
// release. It refuses every setting that it does not know, so that no setting of the
// environment gets into a release.
func (r *release) checkBinary(info *debug.BuildInfo, system, arch string) error {
	known := map[string]string{
		"-buildmode": "exe", "-compiler": "gc", "-trimpath": "true", "CGO_ENABLED": "0",
		"GOOS": system, "GOARCH": arch, "GOAMD64": "v1", "GOARM64": "v8.0",
	}
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
		if s.Key != "DefaultGODEBUG" && s.Value != known[s.Key] { // DefaultGODEBUG may have any value, because go.mod sets it
			return fmt.Errorf("it was built with %s=%q", s.Key, s.Value)
		}
	}
	for _, key := range []string{"-trimpath", "CGO_ENABLED", "GOOS", "GOARCH"} {
		if settings[key] == "" {
			return fmt.Errorf("it was built without %s", key)
		}
	}
	if info.Path != command || info.Main.Version != r.version {
		return fmt.Errorf("it was built from %s %s", info.Path, info.Main.Version)
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return fmt.Errorf("it has %s in place of %s", m.Replace.Path, m.Path)
		}
		if isOurs(m.Path) && m.Version != r.version {
			return fmt.Errorf("it has %s %s", m.Path, m.Version)
		}
	}
	return nil
}

// writeSums writes the file SHA256SUMS, which sha256sum -c reads, for all files in the
// directory.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
