package strictjson

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// Quote writes a text as a JSON string. The text may have half of a surrogate pair that [AppendRune] wrote. Quote writes
// this half as an escape, such as \ud800. encoding/json would write U+FFFD instead.
func Quote(text string) string {
	out := append(make([]byte, 0, len(text)+2), '"')
	for at := 0; at < len(text); {
		next := skipPlain(text, at)
		out = append(out, text[at:next]...)
		if at = next; at == len(text) {
			break
		}
		r, size := utf8.DecodeRuneInString(text[at:])
		if at+3 <= len(text) && text[at] == 0xED && text[at+1]&0xE0 == 0xA0 && text[at+2]&0xC0 == 0x80 {
			r, size = 0xD000|rune(text[at+1]&0x3F)<<6|rune(text[at+2]&0x3F), 3
		}
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r < ' ' || utf16.IsSurrogate(r):
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = utf8.AppendRune(out, r)
		}
		at += size
	}
	return string(append(out, '"'))
}
