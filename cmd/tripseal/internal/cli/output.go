package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"
)

// Painter prints texts, with colours if the field colour is true.
type Painter struct {
	io.Writer
	Colour bool
}

const (
	Green  = "32"
	Red    = "31"
	Yellow = "33"
	Faint  = "2"
)

func (p Painter) Paint(colour, text string) string {
	if !p.Colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (p Painter) Line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// WantsColour reports whether w is a terminal that shows colours, and the user wants them.
func WantsColour(w io.Writer) bool {
	return IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func IsTerminal(stream any) bool {
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

// PrintJSON prints JSON that is safe on a terminal: it escapes characters that could
// control the terminal.
func PrintJSON(out io.Writer, v any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return Failed("%w", err)
	}
	var escaped bytes.Buffer
	for _, r := range text.String() {
		switch {
		case r == '\n' || unicode.IsPrint(r): // '\n' is safe: the encoder wrote it between values, and escapes it inside strings
			escaped.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&escaped, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&escaped, `\u%04x`, r)
		}
	}
	out.Write(escaped.Bytes()) // out is a checkedWriter, so the function run reports a failed write
	return nil
}

// ReadInput returns all of standard input, or an error if standard input has more bytes than the
// limit. If standard input is a terminal, it first tells the user that it waits for input.
func ReadInput(cmd *cobra.Command, limit int64) (string, error) {
	in := cmd.InOrStdin()
	if IsTerminal(in) {
		fmt.Fprintln(cmd.ErrOrStderr(), "reading from the terminal; end with Ctrl-D on a line of its own")
	}
	text, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return "", Failed("standard input: %w", err)
	}
	if int64(len(text)) > limit {
		return "", No("standard input has more than %d bytes", limit)
	}
	return string(text), nil
}
