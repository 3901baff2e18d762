package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
)

// build describes a build of this command: its version, commit, Go version and platform.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// thisBuild returns what the go command recorded. A commit without a tag has a version that the go
// command made from it, and a build that it knows nothing about is (devel).
func thisBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = strings.TrimPrefix(info.Main.Version, "v")
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Commit = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
	return b
}

func (b build) String() string {
	commit := "commit " + b.Commit
	switch {
	case b.Commit == "":
		commit = "commit not recorded"
	case b.Modified:
		commit += ", and changes that are not committed"
	}
	return fmt.Sprintf("tripseal version %s\n%s\nbuilt with %s for %s\n", b.Version, commit, b.Go, b.Platform)
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and the commit it was built from",
		Long: `Prints the version of this command, the commit and the version of Go that it was
built from. A build between two releases has a version that Go makes from the
commit, such as 0.1.1-0.20261116083450-0123456789ab.

` + cli.ExitCodes,
		Args:              cli.ExactArgs(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), thisBuild())
			}
			fmt.Fprint(cmd.OutOrStdout(), thisBuild())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
