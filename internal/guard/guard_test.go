package guard

import (
	"strconv"
	"strings"
	"testing"
)

// TestOnlyShortPlainASCIIIsShownAsItIs compares Text with strconv.QuoteToASCII, which shows what
// must be escaped.
func TestOnlyShortPlainASCIIIsShownAsItIs(t *testing.T) {
	texts := []string{"", "tools/call", "é", "\u202e", "\xff", strings.Repeat("x", MaxText), strings.Repeat("x", MaxText+1)}
	for c := range 256 {
		texts = append(texts, string([]byte{byte(c)}), "a"+string([]byte{byte(c)})+"b", strings.Repeat("x", MaxText-1)+string([]byte{byte(c)}))
	}
	for _, text := range texts {
		got, quoted := PlainText(text), strconv.QuoteToASCII(text)
		asItIs := len(text) <= MaxText && quoted == `"`+text+`"`
		if (got == text) != asItIs || !asItIs && !strings.HasPrefix(got, `"`) || len(got) > MaxText {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

func TestAPlainTextIsNotCopied(t *testing.T) {
	text := strings.Repeat("x", MaxText)
	if n := testing.AllocsPerRun(100, func() { PlainText(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
