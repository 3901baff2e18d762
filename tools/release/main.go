// Command release writes the files of a release, and then tries out the release. For that it
// uses a module proxy in a local directory. The script scripts/release calls it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

const root = "github.com/mcpseal/mcpseal"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: scripts/release VERSION, for example v0.1.0")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(repo, version string) error {
	if semver.Canonical(version) != version {
		return fmt.Errorf("%q is no version; write it as v0.1.0", version)
	}
	if err := checkChangelog(repo, version); err != nil {
		return err
	}
	r := &release{version: version, dir: filepath.Join(repo, ".cache", "release", version)}
	if err := os.RemoveAll(r.dir); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "mcpseal-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	r.scratch = scratch
	modules, err := r.writeTree(repo)
	if err != nil {
		return err
	}
	if err := r.try(modules); err != nil {
		return err
	}
	fmt.Printf("\nThe tree is in %s. Its tags would be:\n", filepath.Join(".cache", "release", version, "tree"))
	for _, m := range modules {
		fmt.Println("  " + m.tag(version))
	}
	fmt.Println("Nothing was published.")
	return nil
}

// checkChangelog returns an error if CHANGELOG.md has no section for the version. The section
// for a pre-release is Unreleased.
func checkChangelog(repo, version string) error {
	text, err := os.ReadFile(filepath.Join(repo, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	title := strings.TrimPrefix(version, "v")
	if semver.Prerelease(version) != "" {
		title = "Unreleased"
	}
	section := regexp.MustCompile(`(?m)^## \[?` + regexp.QuoteMeta(title) + `\]?( |$)`)
	if !section.Match(text) {
		return fmt.Errorf("CHANGELOG.md has no section %q: write it first", "## "+title)
	}
	return nil
}
