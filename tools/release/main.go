// Command release makes and tries a release. It publishes nothing. For the modules of the
// release it uses a module proxy in a local directory.
//
//	release rehearse REPOSITORY VERSION                            scripts/release calls it
//	release binaries REPOSITORY VERSION DIRECTORY [GOOS/GOARCH…]   scripts/binaries calls it
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

const (
	root    = "github.com/tripseal/tripseal"
	command = root + "/cmd/tripseal"
)

func main() {
	args := os.Args[1:]
	var err error
	switch {
	case len(args) == 3 && args[0] == "rehearse":
		err = rehearse(args[1], args[2])
	case len(args) >= 4 && args[0] == "binaries":
		err = writeBinaries(args[1], args[2], args[3], args[4:])
	default:
		fmt.Fprintln(os.Stderr, "usage: scripts/release VERSION, or scripts/binaries VERSION DIRECTORY [GOOS/GOARCH…]; VERSION is v0.1.0, for example")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// rehearse writes the tree of a release and tries it.
func rehearse(repo, version string) error {
	if err := checkVersion(repo, version); err != nil {
		return err
	}
	r := &release{version: version, dir: filepath.Join(repo, ".cache", "release", version)}
	if err := os.RemoveAll(r.dir); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "tripseal-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	r.scratch = scratch
	modules, err := r.writeTree(repo, "")
	if err != nil {
		return err
	}
	for _, m := range modules {
		// Without -o, the binary of a module with one command would get into the tree.
		if _, err := output(filepath.Join(r.tree(), m.dir), r.environment(), "go", "build", "-o", os.DevNull, "./..."); err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
	}
	if changed, err := output(r.tree(), nil, "git", "status", "--porcelain"); err != nil || changed != "" {
		return errors.Join(fmt.Errorf("the tree has changes that the modules do not have:\n%s", changed), err)
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

// checkVersion returns an error if the repository is not ready for a release of this version.
func checkVersion(repo, version string) error {
	if semver.Canonical(version) != version {
		return fmt.Errorf("%q is no version; write it as v0.1.0", version)
	}
	if err := checkConstant(repo, version); err != nil {
		return err
	}
	return checkChangelog(repo, version)
}

// checkConstant returns an error if the constant releaseVersion in the command's source differs
// from the version of the release. For a pre-release, the constant may have any value.
func checkConstant(repo, version string) error {
	const name = "cmd/tripseal/version.go"
	text, err := os.ReadFile(filepath.Join(repo, name))
	if err != nil {
		return err
	}
	constant := regexp.MustCompile(`(?m)^const releaseVersion = "(.*)"$`).FindSubmatch(text)
	if constant == nil {
		return fmt.Errorf("%s has no constant releaseVersion", name)
	}
	if semver.Prerelease(version) == "" && "v"+string(constant[1]) != version {
		return fmt.Errorf("%s has the version %q: change it first", name, constant[1])
	}
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
