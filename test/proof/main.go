// Command proof writes a page that compares two reports of the probe. One is about the
// server of the demo without protection, the other about the same server with
// gosdk.Protect. The page has no dates, ports or tokens, so every run writes the same
// page.
//
//	go run ./test/proof docs/proof/index.html
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: proof PAGE [FOLDER]\nIf there is a FOLDER, the two reports of the probe are written there too.")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]...); err != nil {
		fmt.Fprintln(os.Stderr, "proof:", err)
		os.Exit(1)
	}
}

func run(page string, folder ...string) error {
	without, with, err := probeBoth(context.Background())
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := write(&out, without, with); err != nil {
		return err
	}
	for _, dir := range folder {
		for name, side := range map[string]*side{"unprotected.html": without, "protected.html": with} {
			var report bytes.Buffer
			if err := side.report.WriteHTML(&report); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, name), report.Bytes(), 0o644); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(page, out.Bytes(), 0o644)
}
