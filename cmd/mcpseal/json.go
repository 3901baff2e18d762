package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
)

// printJSON prints JSON that is fit for a terminal too: what could control one
// is escaped.
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
		case r == '\n' || unicode.IsPrint(r): // line ends stand between values only
			escaped.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&escaped, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&escaped, `\u%04x`, r)
		}
	}
	out.Write(escaped.Bytes()) // run looks whether that went well
	return nil
}
