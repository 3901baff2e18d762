package main

import (
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

const (
	someCommit  = "0123456789abcdef0123456789abcdef01234567"
	otherCommit = "89abcdef0123456789abcdef0123456789abcdef"
)

func TestTheVersionSaysWhatWasBuilt(t *testing.T) {
	dev := releaseVersion + "-dev"
	for _, test := range []struct {
		name     string
		main     string // the version of the main module, as the go command records it
		commit   string // as the release build sets it
		settings string
		want     build
	}{
		{name: "a release", main: "v0.1.0", commit: someCommit, want: build{Version: "0.1.0", Commit: someCommit}},
		{name: "an older release keeps its version", main: "v0.0.9", commit: someCommit, want: build{Version: "0.0.9", Commit: someCommit}},
		{name: "a release candidate", main: "v0.1.0-rc.1", want: build{Version: "0.1.0-rc.1"}},
		{name: "go install of a release", main: "v0.1.0", want: build{Version: "0.1.0"}},
		{name: "go install of a commit before all releases", main: "v0.0.0-20261116083450-89abcdef0123", want: build{Version: dev + "+89abcdef0123", Commit: "89abcdef0123"}},
		{name: "go install of a commit after a release", main: "v0.1.1-0.20261116083450-89abcdef0123", want: build{Version: dev + "+89abcdef0123", Commit: "89abcdef0123"}},
		{name: "go install of a commit after a release candidate", main: "v0.1.0-rc.1.0.20261116083450-89abcdef0123", want: build{Version: dev + "+89abcdef0123", Commit: "89abcdef0123"}},
		{name: "a clone at a tag", main: "v0.1.0", settings: "vcs.revision=" + otherCommit + " vcs.modified=false", want: build{Version: "0.1.0", Commit: otherCommit}},
		{name: "a changed clone at a tag", main: "v0.1.0+dirty", settings: "vcs.revision=" + otherCommit + " vcs.modified=true", want: build{Version: dev + "+89abcdef0123", Commit: otherCommit, Modified: true}},
		{name: "a changed clone at a tag, by the setting alone", main: "v0.1.0", settings: "vcs.revision=" + otherCommit + " vcs.modified=true", want: build{Version: dev + "+89abcdef0123", Commit: otherCommit, Modified: true}},
		{name: "a changed clone", main: "v0.0.0-20261116083450-89abcdef0123+dirty", settings: "vcs.revision=" + otherCommit + " vcs.modified=true", want: build{Version: dev + "+89abcdef0123", Commit: otherCommit, Modified: true}},
		{name: "the repository knows better than the build command", main: "(devel)", commit: someCommit, settings: "vcs.revision=" + otherCommit, want: build{Version: dev + "+89abcdef0123", Commit: otherCommit}},
		{name: "a build command that names a commit is no release", main: "(devel)", commit: someCommit, want: build{Version: dev + "+0123456789ab", Commit: someCommit}},
		{name: "a short commit", main: "(devel)", commit: "0123", want: build{Version: dev + "+0123", Commit: "0123"}},
		{name: "without a repository", main: "(devel)", want: build{Version: dev}},
		{name: "nothing is known", want: build{Version: dev}},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: test.main}}
		for setting := range strings.FieldsSeq(test.settings) {
			key, value, _ := strings.Cut(setting, "=")
			info.Settings = append(info.Settings, debug.BuildSetting{Key: key, Value: value})
		}
		got := buildOf(info, test.commit)
		if got.Go == "" || got.Platform == "" {
			t.Errorf("%s: neither Go nor the platform: %+v", test.name, got)
		}
		got.Go, got.Platform = "", ""
		if got != test.want {
			t.Errorf("%s:\n got %+v\nwant %+v", test.name, got, test.want)
		}
	}
}

func TestTheVersionIsPrintedWithItsCommit(t *testing.T) {
	b := build{Version: "0.1.0", Go: "go1.26.8", Platform: "linux/amd64"}
	for commit, want := range map[string]string{"": "commit not recorded\n", someCommit: "commit " + someCommit + "\n"} {
		b.Commit = commit
		if got := b.String(); got != "tripseal version 0.1.0\n"+want+"built with go1.26.8 for linux/amd64\n" {
			t.Errorf("it prints %q", got)
		}
	}
	b.Modified = true
	b.Commit = someCommit
	if !strings.Contains(b.String(), "commit "+someCommit+", and changes that are not committed\n") {
		t.Errorf("it prints %q", b.String())
	}
}

func TestTheReleaseVersionIsThatOfARelease(t *testing.T) {
	if !regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`).MatchString(releaseVersion) {
		t.Errorf("%q is not of the form 0.1.0", releaseVersion)
	}
}
