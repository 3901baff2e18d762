package b64u

import (
	"bytes"
	"encoding/base64"
	"testing"
)

func TestRoundTripOfEveryLength(t *testing.T) {
	src := make([]byte, 100)
	for i := range src {
		src[i] = byte(i * 37)
	}
	for n := range src {
		text := Append(nil, src[:n])
		if want := base64.RawURLEncoding.EncodeToString(src[:n]); string(text) != want {
			t.Fatalf("Append = %q, want %q", text, want)
		}
		got, err := Decode([]byte("kept"), string(text))
		if err != nil || !bytes.Equal(got, append([]byte("kept"), src[:n]...)) {
			t.Fatalf("Decode(%q) = %x, %v", text, got, err)
		}
	}
}

func TestOnlyTheCanonicalTextDecodes(t *testing.T) {
	for _, text := range []string{
		"A", "AAAAA", // impossible lengths
		"AA==", "AAA=", "AAAA=", // padding
		"ab+/", "++++", "////", // the standard alphabet
		"AB", "AAB", // non-zero trailing bits
		"AA\n", "\nAA", "AA\r\n", "AAAA\n", "A\nAAA", "AAA\nA", "AA\nAA\n\n\n", "\r", "\n\n\n\n",
		" AA", "AA ", "A A", "A\tAA", "AA\x00A", "AAé", "ＡＡ",
	} {
		if got, err := Decode(nil, text); err == nil {
			t.Errorf("Decode(%q) = %x, want an error", text, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "AA", "AAAA", "AAA\n", "AB", "_-_-", "AA==", "AA\r\nAA"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Decode(nil, string(text))
		if err != nil {
			return
		}
		if again := Append(nil, got); !bytes.Equal(again, text) {
			t.Fatalf("%q decodes, but its bytes are written %q", text, again)
		}
	})
}
