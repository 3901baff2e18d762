package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

var licenseName = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)([.-].*)?$`)

// licenses returns the texts that must come with the binaries: the licenses of Go and of every
// module in them.
func (r *release) licenses(infos []*debug.BuildInfo) (string, error) {
	directories := make(map[string]string)
	for _, info := range infos {
		for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
			escaped, err := module.EscapePath(m.Path)
			if err != nil {
				return "", err
			}
			directories[m.Path+" "+m.Version] = filepath.Join(r.moduleCache(), filepath.FromSlash(escaped)+"@"+m.Version)
		}
	}
	goroot, err := output("", nil, "go", "env", "GOROOT")
	if err != nil {
		return "", err
	}
	directories["Go "+infos[0].GoVersion] = trim(goroot)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(directories)) {
		entries, err := os.ReadDir(directories[name])
		if err != nil {
			return "", err
		}
		found := false
		for _, entry := range entries {
			if !entry.Type().IsRegular() || !licenseName.MatchString(entry.Name()) {
				continue
			}
			license, err := os.ReadFile(filepath.Join(directories[name], entry.Name()))
			if err != nil {
				return "", err
			}
			found = true
			fmt.Fprintf(&text, "==== %s, %s\n\n%s\n\n", name, entry.Name(), strings.TrimSpace(string(license)))
		}
		if !found {
			return "", fmt.Errorf("%s has no license", name)
		}
	}
	return text.String(), nil
}
