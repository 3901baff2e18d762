package jsonvalue

const (
	everyByte = 0x0101010101010101
	everyHigh = 0x8080808080808080
)

// skipPlain returns where the first byte at or behind i stands that is not plain:
// a control character, a quote, a backslash, DEL or no ASCII. It looks at eight
// bytes at a time, since most bytes of most texts are plain.
func skipPlain(text string, i int) int {
	for ; i+8 <= len(text); i += 8 {
		eight := text[i : i+8]
		v := uint64(eight[0]) | uint64(eight[1])<<8 | uint64(eight[2])<<16 | uint64(eight[3])<<24 |
			uint64(eight[4])<<32 | uint64(eight[5])<<40 | uint64(eight[6])<<48 | uint64(eight[7])<<56
		// The high bit of a byte says that it may not be plain; a byte below may
		// carry into one that is, which only sends it to the loop below.
		quote, backslash := v^(everyByte*'"'), v^(everyByte*'\\')
		special := (v - everyByte*' ') | (quote - everyByte) | (backslash - everyByte) | (v + everyByte) | v
		if special&everyHigh != 0 {
			break
		}
	}
	for i < len(text) && isPlain(text[i]) {
		i++
	}
	return i
}

func isPlain(c byte) bool { return ' ' <= c && c < 0x7F && c != '"' && c != '\\' }
