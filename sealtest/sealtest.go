// Package sealtest helps to write tests. It makes a boundary in one line, and has test
// suites that every implementation of an tripseal interface must pass.
//
//	func TestMyCodec(t *testing.T) { sealtest.TestCodec(t, newMyCodec()) }
package sealtest

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
)

// Boundary returns a boundary with random keys and the default config. It logs to the
// test's log. Use Boundary in a test of a handler or a server that needs no special
// settings.
func Boundary(t testing.TB) *tripseal.Boundary {
	t.Helper()
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Logger: Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	return boundary
}

// Logger returns a logger that writes to the test's log. Use it wherever a config of a
// test has a Logger.
func Logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// mutations returns changed copies of a text, none of which may open. In some copies, one
// character is replaced; others are cut, one at each length; and others are changed in ways
// that lenient decoders accept.
func mutations(text string) []string {
	const others = "Az09-_.=+/ \n\x00é"
	var all []string
	for i := range len(text) {
		all = append(all, text[:i]) // text, cut before character i
		for _, other := range others {
			if string(other) != text[i:i+1] {
				all = append(all, text[:i]+string(other)+text[i+1:])
			}
		}
		if c := text[i] ^ 1; c < 0x80 {
			all = append(all, text[:i]+string(rune(c))+text[i+1:])
		}
	}
	for _, extra := range []string{"A", "=", "==", ".", "\n", "\r\n", "\t", " ", "\x00", "AAAA", "é"} {
		all = append(all, text+extra, extra+text, text[:len(text)/2]+extra+text[len(text)/2:])
	}
	return append(all, text+text, strings.ToUpper(text)+"a", strings.ToLower(text)+"A")
}
