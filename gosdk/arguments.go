package gosdk

import (
	"sync"
)

// keptArguments is a copy of a call's arguments as they arrived. Handlers, and
// middleware further in, may change theirs before anything is sealed.
type keptArguments struct{ text []byte }

var keptPool = sync.Pool{New: func() any { return new(keptArguments) }}

// maxKept is the largest copy whose memory is used again.
const maxKept = 64 << 10

// keepArguments replaces the call's arguments by a copy, which ends with release.
// Those that are longer than anything that is digested are left alone.
func (c *call) keepArguments(most int) *keptArguments {
	if len(c.arguments) == 0 && len(c.promptArgs) == 0 || len(c.arguments) > most {
		return nil
	}
	kept := keptPool.Get().(*keptArguments)
	if c.method == methodPrompt {
		kept.text = appendStrings(kept.text[:0], c.promptArgs)
	} else {
		kept.text = append(kept.text[:0], c.arguments...)
	}
	c.arguments = kept.text
	return kept
}

func (k *keptArguments) release() {
	if k == nil || cap(k.text) > maxKept {
		return
	}
	clear(k.text)
	keptPool.Put(k)
}

// appendStrings appends a prompt's arguments as JSON. Their order does not count.
func appendStrings(dst []byte, members map[string]string) []byte {
	dst = append(dst, '{')
	for name, value := range members {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = appendString(append(appendString(dst, name), ':'), value)
	}
	return append(dst, '}')
}

// appendString appends a JSON string. Bytes that are not UTF-8 stay as they are:
// a text with them has no digest.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
