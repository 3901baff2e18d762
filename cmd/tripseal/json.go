package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
)

// printJSON prints JSON that is safe on a terminal: it escapes characters that could
// control the terminal.
func printJSON(out io.Writer, v any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return failed("%w", err)
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
