package main

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// releaseVersion is the version of this release. If this build is not a release, it is the
// version of the next release.
const releaseVersion = "0.1.0"

// commit is the commit from which a release was built. The release build sets it, because a
// binary that is built from a published module does not know its commit.
var commit string

// build describes a build of this command: its version, commit, Go version and platform.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info, commit)
}

var (
	published = regexp.MustCompile(`^v([0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?)$`)
	pseudo    = regexp.MustCompile(`^v[0-9].*[-.][0-9]{14}-([0-9a-f]{12})(\+.*)?$`) // a version that the go command made from a commit
)

// buildOf returns what the build info says about a build. Only a build of a published version
// shows a release as its version. Every other build shows a development version.
func buildOf(info *debug.BuildInfo, commit string) build {
	b := build{Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
	made := pseudo.FindStringSubmatch(info.Main.Version)
	if made != nil && b.Commit == "" {
		b.Commit = made[1]
	}
	if tag := published.FindStringSubmatch(info.Main.Version); tag != nil && made == nil && !b.Modified {
		b.Version = tag[1]
		return b
	}
	b.Version = releaseVersion + "-dev"
	if b.Commit != "" {
		b.Version += "+" + b.Commit[:min(12, len(b.Commit))]
	}
	return b
}

func (b build) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "tripseal version %s\n", b.Version)
	switch {
	case b.Commit == "":
		fmt.Fprintln(&text, "commit not recorded")
	case b.Modified:
		fmt.Fprintf(&text, "commit %s, and changes that are not committed\n", b.Commit)
	default:
		fmt.Fprintf(&text, "commit %s\n", b.Commit)
	}
	fmt.Fprintf(&text, "built with %s for %s\n", b.Go, b.Platform)
	return text.String()
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and the commit it was built from",
		Long: `Prints the version of this command, the commit and the version of Go that it was
built from. A build that is not a release has a version such as
` + releaseVersion + `-dev+0123456789ab.

` + exitCodes,
		Args:              exactArgs(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return printJSON(cmd.OutOrStdout(), thisBuild())
			}
			fmt.Fprint(cmd.OutOrStdout(), thisBuild())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
