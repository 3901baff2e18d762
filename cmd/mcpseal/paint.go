package main

import (
	"fmt"
	"io"
	"os"
)

// painter prints, in colour only on a terminal.
type painter struct {
	io.Writer
	colour bool
}

const (
	green = "32"
	red   = "31"
	faint = "2"
)

func (p painter) paint(colour, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (p painter) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
