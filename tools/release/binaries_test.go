package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

func released() *debug.BuildInfo {
	return &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Path:      command,
		Main:      debug.Module{Path: command, Version: "v0.1.0", Sum: "h1:main="},
		Deps: []*debug.Module{
			{Path: root, Version: "v0.1.0", Sum: "h1:root="},
			{Path: "example.com/Some/thing", Version: "v2.0.0+incompatible", Sum: "h1:thing="},
		},
		Settings: []debug.BuildSetting{
			{Key: "-trimpath", Value: "true"}, {Key: "CGO_ENABLED", Value: "0"}, {Key: "GOARCH", Value: "arm64"}, {Key: "GOOS", Value: "linux"},
		},
	}
}

func TestTheSBOMNamesGoAndEveryModule(t *testing.T) {
	info := released()
	at := time.Date(2026, 11, 16, 9, 0, 0, 0, time.FixedZone("", 3600))
	text, err := sbom(info, []byte("binary"), at)
	if err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	var urls []string
	for _, c := range doc.Components {
		urls = append(urls, c.URL)
	}
	if want := []string{"pkg:golang/std@1.26.8", "pkg:golang/" + root + "@v0.1.0", "pkg:golang/example.com/Some/thing@v2.0.0%2Bincompatible"}; !slices.Equal(urls, want) {
		t.Errorf("the components are %q, not %q", urls, want)
	}
	if !slices.Equal(doc.Dependencies[0].On, urls) || doc.Dependencies[0].Ref != doc.Metadata.Component.Ref {
		t.Errorf("the dependencies are %+v", doc.Dependencies)
	}
	if want := "9a3a45d01531a20e89ac6ae10b0b0beb0492acd7216a368aa062d1a5fecaf9cd"; doc.Metadata.Component.Hashes[0].Content != want {
		t.Errorf("the hash is %s, not %s", doc.Metadata.Component.Hashes[0].Content, want)
	}
	if doc.Metadata.Time != "2026-11-16T08:00:00Z" {
		t.Errorf("the time is %s", doc.Metadata.Time)
	}
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(doc.Serial) {
		t.Errorf("the serial number is %s", doc.Serial)
	}
	if strings.Count(string(text), "h1:") != 3 {
		t.Errorf("sums are missing: %s", text)
	}
	again, _ := sbom(info, []byte("binary"), at.UTC())
	other, _ := sbom(info, []byte("another binary"), at)
	if string(again) != string(text) || string(other) == string(text) {
		t.Error("the same binary must have the same SBOM, and another binary another one")
	}
}

func TestABinaryThatIsNotBuiltAsAReleaseIsRefused(t *testing.T) {
	r := &release{version: "v0.1.0"}
	if err := r.checkBinary(released(), "linux", "arm64"); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*debug.BuildInfo){
		"another version":           func(info *debug.BuildInfo) { info.Main.Version = "v0.0.9" },
		"a development version":     func(info *debug.BuildInfo) { info.Main.Version = "(devel)" },
		"another command":           func(info *debug.BuildInfo) { info.Path = root + "/bench" },
		"another module of ours":    func(info *debug.BuildInfo) { info.Deps[0].Version = "v0.0.9" },
		"a module that is replaced": func(info *debug.BuildInfo) { info.Deps[1].Replace = &debug.Module{Path: "../thing"} },
		"paths of the machine":      func(info *debug.BuildInfo) { info.Settings = info.Settings[1:] },
		"cgo":                       func(info *debug.BuildInfo) { info.Settings[1].Value = "1" },
		"another architecture":      func(info *debug.BuildInfo) { info.Settings[2].Value = "amd64" },
		"an experiment": func(info *debug.BuildInfo) {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: "GOEXPERIMENT", Value: "jsonv2"})
		},
		"build tags": func(info *debug.BuildInfo) {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: "-tags", Value: "debug"})
		},
		"another system": func(info *debug.BuildInfo) { info.Settings[3].Value = "darwin" },
	} {
		info := released()
		change(info)
		if r.checkBinary(info, "linux", "arm64") == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestAReleaseNeedsItsVersionAndASectionOfTheChangelog(t *testing.T) {
	for _, test := range []struct {
		version, constant, section string
		ready                      bool
	}{
		{"v0.1.0", "0.1.0", "## 0.1.0 - unreleased", true},
		{"v0.1.0", "0.1.0", "## [0.1.0] - 2026-12-01", true},
		{"v0.1.0-rehearsal", "0.1.0", "## Unreleased", true},
		{"v0.0.0-rehearsal", "0.1.0", "## Unreleased", true},
		{"v0.1.0", "0.1.0", "## Unreleased", false},
		{"v0.1.0", "0.1.0", "## 0.1.00", false},
		{"v0.1.0", "0.2.0", "## 0.1.0 - unreleased", false},
		{"v0.2.0", "0.1.0", "## 0.2.0 - unreleased", false},
		{"0.1.0", "0.1.0", "## 0.1.0 - unreleased", false},
		{"v0.1", "0.1", "## 0.1 - unreleased", false},
	} {
		repo := t.TempDir()
		for name, text := range map[string]string{
			"CHANGELOG.md":            "# Changelog\n\n" + test.section + "\n",
			"cmd/tripseal/version.go": fmt.Sprintf("package main\n\nconst releaseVersion = %q\n", test.constant),
		} {
			if err := os.MkdirAll(filepath.Join(repo, filepath.Dir(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := checkVersion(repo, test.version); (err == nil) != test.ready {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func TestBinariesAreNotWrittenOverOtherFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	err := writeBinaries(filepath.Join("..", ".."), "v0.0.0-rehearsal", dir, nil)
	if err == nil || !strings.Contains(err.Error(), "not an empty directory") {
		t.Errorf("the error is %v", err)
	}
	if err := writeBinaries(filepath.Join("..", ".."), "v0.0.0-rehearsal", t.TempDir(), []string{"plan9/amd64"}); err == nil || !strings.Contains(err.Error(), "none of") {
		t.Errorf("the error is %v", err)
	}
}
