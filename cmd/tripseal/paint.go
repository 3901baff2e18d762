package main

import (
	"fmt"
	"io"
	"os"
)

// painter prints texts, with colours if the field colour is true.
type painter struct {
	io.Writer
	colour bool
}

const (
	green  = "32"
	red    = "31"
	yellow = "33"
	faint  = "2"
)

func (p painter) paint(colour, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (p painter) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// wantsColour reports whether w is a terminal that shows colours, and the user wants them.
func wantsColour(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func isTerminal(stream any) bool {
	if checked, ok := stream.(*checkedWriter); ok {
		stream = checked.Writer
	}
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && file.Name() != os.DevNull
}
