package tripseal_test

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/sealtest"
)

// secretBytes returns a secret of n bytes. It contains a word that a test can search for, and control
// bytes, because NewKey refuses printable text.
func secretBytes(n int) []byte {
	return bytes.Repeat([]byte("sesame-open\x00\x01\x02\x03\x04\x05\x06\x07\x08"), n/20+1)[:n]
}

// keyText is the text of a secret as docs/token.md defines it.
func keyText(secret []byte) string {
	sum := sha256.Sum256(append([]byte("tripseal/1 key checksum"), secret...))
	return "tripseal_key1_" + base64.RawURLEncoding.EncodeToString(append(bytes.Clone(secret), sum[:4]...))
}

func TestKeyTextRoundTrip(t *testing.T) {
	for _, size := range []int{32, 33, 34, 35, 64, 1023, 1024} {
		text := keyText(secretBytes(size))
		key, err := tripseal.ParseKey(text)
		if err != nil || key.Reveal() != text {
			t.Errorf("%d bytes: %v, %v", size, key, err)
		}
	}
	for _, size := range []int{31, 1025} {
		if _, err := tripseal.ParseKey(keyText(secretBytes(size))); err == nil {
			t.Errorf("the text of %d bytes is accepted", size)
		}
	}
	if _, err := tripseal.ParseKey(keyText(make([]byte, 32))); err == nil {
		t.Error("the text of zeros is accepted")
	}
}

// TestRawBytesAndTheirTextAreOneKey checks that the bytes of a secret and its text give the same
// key, so tokens survive a move from the bytes to the text.
func TestRawBytesAndTheirTextAreOneKey(t *testing.T) {
	secret := secretBytes(32)
	raw, err := tripseal.NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	text, err := tripseal.ParseKey(keyText(secret))
	if err != nil {
		t.Fatal(err)
	}
	id, err := hkdf.Key(sha256.New, secret, nil, "tripseal/1 key id", 4) // as docs/token.md says
	if err != nil {
		t.Fatal(err)
	}
	if raw.ID() != text.ID() || raw.ID() != tripseal.KeyID(id) || raw.Reveal() != text.Reveal() {
		t.Errorf("%v and %v, want %x", raw, text, id)
	}
	token := newService(t, tripseal.Config{Keys: newRing(t, raw)}).first(t, deploy(), step)
	round, err := newService(t, tripseal.Config{Keys: newRing(t, text)}).Open(t.Context(), deploy(), token)
	if state, ok := round.State(); err != nil || !ok || state != step {
		t.Errorf("the text does not open what the bytes sealed: %v", err)
	}
}

func TestDamagedKeyTextIsRefused(t *testing.T) {
	text := tripseal.GenerateKey().Reveal()
	bad := []string{
		"", " ", "tripseal_key1_", text + "\n", " " + text, text + "=", text + "A", text + text, strings.ToUpper(text),
		text[len("tripseal_key1_"):], base64.StdEncoding.EncodeToString([]byte(text)), `"` + text + `"`,
		"tripseal_key2_" + text[len("tripseal_key1_"):], "sesame", strings.Repeat("A", 5000), "tripseal_key1_" + strings.Repeat("A", 5000),
		"tripseal_key1_" + hex.EncodeToString(secretBytes(32)), "tripseal_key1_" + base64.RawURLEncoding.EncodeToString(secretBytes(36)),
	}
	for i := range len(text) {
		bad = append(bad, text[:i], text[:i]+text[i+1:]) // cut off, and with one character lost
		for _, c := range []string{"A", "b", "7", "_", "-", "+", "/", ".", "é"} {
			if c != text[i:i+1] {
				bad = append(bad, text[:i]+c+text[i+1:])
			}
		}
		if i > 0 && text[i] != text[i-1] {
			bad = append(bad, text[:i-1]+text[i:i+1]+text[i-1:i]+text[i+1:]) // with two characters swapped
		}
	}
	for _, b := range bad {
		_, err := tripseal.ParseKey(b)
		if err == nil {
			t.Fatalf("accepted: %q", b)
		}
		if !strings.Contains(err.Error(), "tripseal.GenerateKey") || strings.Contains(err.Error(), text[15:30]) ||
			len(b) > 14 && strings.Contains(err.Error(), b) {
			t.Fatalf("the error does not teach, or repeats the key: %v", err)
		}
	}
	for damaged, want := range map[string]string{
		text[13:]: "does not begin with", text[:len(text)-1]: "characters after", text[:len(text)-1] + ",": "characters that no key has",
		text[:20] + "AAAA" + text[24:]: "checksum",
	} {
		if _, err := tripseal.ParseKey(damaged); !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := tripseal.NewKey([]byte(text)); err == nil || !strings.Contains(err.Error(), "ParseKey") {
		t.Errorf("the text of a key passes for its bytes: %v", err)
	}
}

// TestWeakSecretsAreRefused also checks the text of the error. The text must say what is wrong with
// the secret, and how to make a good one. It must not repeat the secret.
func TestWeakSecretsAreRefused(t *testing.T) {
	random := sha256.Sum256([]byte("any"))
	dashes := random // its base64url text has characters that base64 does not have
	copy(dashes[:], "\xff\xff\xff")
	pattern := []byte{0x9e, 0x17, 0xf3, 0x80, 0x01, 0xee, 0x42, 0xc8, 0x99, 0xa0, 0xb1, 0xd4, 0x05, 0x66, 0x77, 0xfa}
	for name, c := range map[string]struct {
		secret []byte
		want   string
	}{
		"nothing":             {nil, "0 bytes are too few"},
		"16 bytes":            {random[:16], "16 bytes are too few"},
		"31 bytes":            {secretBytes(31), "31 bytes are too few"},
		"33 bytes":            {secretBytes(33), "33 bytes are too many"},
		"two keys":            {secretBytes(64), "64 bytes are too many"},
		"a line end":          {append(random[:], '\n'), "33 bytes are too many"},
		"1025 bytes":          {secretBytes(1025), "1025 bytes are too many"},
		"zeros":               {make([]byte, 32), "every byte is the same"},
		"one repeated byte":   {bytes.Repeat([]byte{0xfe}, 32), "every byte is the same"},
		"two repeated bytes":  {bytes.Repeat([]byte{1, 2}, 16), "only 2 different bytes"},
		"a repeated pattern":  {bytes.Repeat(pattern, 2), "only 16 different bytes"},
		"a pass phrase":       {[]byte("open sesame, and be quick about "), "32 bytes of printable text, such as a pass phrase"},
		"a short pass phrase": {[]byte("open sesame"), "11 bytes of printable text, such as a pass phrase"},
		"a long pass phrase":  {bytes.Repeat([]byte("open sesame "), 40), "480 bytes of printable text, such as a pass phrase"},
		"with a line end":     {[]byte("open sesame, and be quick about\n"), "such as a pass phrase"},
		"not in English":      {[]byte("сезам, откройся"), "such as a pass phrase"},
		"half a key in hex":   {[]byte(hex.EncodeToString(random[:16])), "such as a pass phrase"},
		"a key in hex":        {[]byte(hex.EncodeToString(random[:])), "keys.FromText decodes"},
		"in upper case":       {[]byte(strings.ToUpper(hex.EncodeToString(random[:]))), "keys.FromText decodes"},
		"in hex, a line":      {[]byte(hex.EncodeToString(random[:]) + "\r\n"), "keys.FromText decodes"},
		"in base64":           {[]byte(base64.StdEncoding.EncodeToString(random[:])), "keys.FromText decodes"},
		"in base64url":        {[]byte(base64.RawURLEncoding.EncodeToString(dashes[:])), "keys.FromText decodes"},
	} {
		key, err := tripseal.NewKey(c.secret)
		if err == nil || key != (tripseal.Key{}) {
			t.Fatalf("%s: accepted", name)
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if len(c.secret) > 4 && strings.Contains(err.Error(), string(c.secret[:5])) {
			t.Errorf("%s: the error repeats the secret: %v", name, err)
		}
		if !strings.Contains(err.Error(), "openssl rand") || !strings.Contains(err.Error(), "GenerateKey") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error does not teach: %v", name, err)
		}
	}
}

func TestKeyBytesAreCopied(t *testing.T) {
	secret := secretBytes(32)
	key, err := tripseal.NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	before := key.Reveal()
	if clear(secret); key.Reveal() != before {
		t.Error("the key changed with the caller's slice")
	}
}

func TestGeneratedKeysDiffer(t *testing.T) {
	if a, b := tripseal.GenerateKey(), tripseal.GenerateKey(); a.Reveal() == b.Reveal() || a.ID() == b.ID() {
		t.Error("two generated keys are the same")
	}
}

// printEverywhere prints each value with every verb of fmt, in logs, and with encoders.
func printEverywhere(out *bytes.Buffer, values ...any) {
	for _, value := range values {
		for _, verb := range strings.Split("v +v #v s q x X d o b c U e g t T p 08x -40s +q", " ") {
			fmt.Fprintf(out, "%"+verb+"\n", value)
		}
		fmt.Fprintln(out, value)
		slog.New(slog.NewTextHandler(out, nil)).Info("x", "value", value)
		slog.New(slog.NewJSONHandler(out, nil)).Info("x", "value", value)
		if text, err := json.Marshal(value); err == nil {
			out.Write(text)
		}
		if text, err := xml.Marshal(value); err == nil {
			out.Write(text)
		}
	}
}

func TestSecretsNeverPrint(t *testing.T) {
	key, err := tripseal.NewKey(secretBytes(32))
	if err != nil {
		t.Fatal(err)
	}
	ring := newRing(t, key, tripseal.GenerateKey())
	boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "x"})
	if err != nil {
		t.Fatal(err)
	}
	type holder struct {
		Key     tripseal.Key
		Pointer *tripseal.Key
		Ring    *tripseal.Ring
		Value   tripseal.Ring
		Any     any
		List    []tripseal.Key
		Map     map[string]tripseal.Key
		Config  tripseal.Config
		hidden  tripseal.Key
		ring    *tripseal.Ring
		value   tripseal.Ring
		bound   *tripseal.Boundary
	}
	h := holder{key, &key, ring, *ring, key, []tripseal.Key{key}, map[string]tripseal.Key{"k": key},
		tripseal.Config{Keys: ring}, key, ring, *ring, boundary}
	var out bytes.Buffer
	printEverywhere(&out, key, &key, ring, *ring, h, &h, []any{key, ring}, boundary, *boundary,
		tripseal.RingCodec(ring, 0), tripseal.NativeFormat(ring))
	if out.Len() < 1000 {
		t.Fatal("nothing was printed")
	}
	secret := string(secretBytes(32))
	for name, form := range map[string]string{
		"raw": "sesame", "hex": hex.EncodeToString([]byte("sesame")), "HEX": strings.ToUpper(hex.EncodeToString([]byte("sesame"))),
		"base64": base64.StdEncoding.EncodeToString([]byte(secret))[:20], "decimal": "115 101 115 97 109 101", "text": key.Reveal()[13:40],
	} {
		if strings.Contains(out.String(), form) {
			t.Errorf("the secret can be read as %s", name)
		}
	}
	if !strings.Contains(out.String(), key.ID().String()) {
		t.Error("the key's id, which may print, does not")
	}
}

func TestRingsThatCannotWorkAreRefused(t *testing.T) {
	a, b := newKey(t), newKey(t)
	for name, c := range map[string]struct {
		keys []tripseal.Key
		want string
	}{
		"empty":       {nil, "at least one key"},
		"no key":      {[]tripseal.Key{a, {}}, "key 2"},
		"one id":      {[]tripseal.Key{a, b, a}, "keys 1 and 3"},
		"first empty": {[]tripseal.Key{{}, a}, "key 1"},
	} {
		ring, err := tripseal.NewRing(c.keys...)
		if err == nil || ring != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, ring, err)
		}
	}
}

func TestSealsAreCountedForEachKeyAndPurpose(t *testing.T) {
	key := newKey(t)
	ring := newRing(t, key)
	s := newService(t, tripseal.Config{Keys: ring})
	for range 3 {
		s.first(t, deploy(), step)
	}
	reloaded := newRing(t, newKey(t), key) // the new ring continues the old ring's count of seals
	if n := reloaded.Seals(key.ID(), tripseal.PurposeState); n != 3 {
		t.Errorf("%d seals counted, want 3", n)
	}
	if n := ring.Seals(key.ID(), tripseal.PurposeCursor); n != 0 {
		t.Errorf("%d cursors counted, want 0", n)
	}
	s.handles(t, "session", 0).seal(t, alice, session)
	if n := ring.Seals(key.ID(), tripseal.PurposeHandle); n != 1 {
		t.Errorf("%d handles counted, want 1", n)
	}
}

func TestNativeImplementationsPassTheSuites(t *testing.T) {
	ring := newRing(t, newKey(t), newKey(t))
	t.Run("RingCodec", func(t *testing.T) { sealtest.TestCodec(t, tripseal.RingCodec(ring, tripseal.PurposeState)) })
	t.Run("CursorCodec", func(t *testing.T) { sealtest.TestCodec(t, tripseal.RingCodec(ring, tripseal.PurposeCursor)) })
	t.Run("HandleCodec", func(t *testing.T) { sealtest.TestCodec(t, tripseal.RingCodec(ring, tripseal.PurposeHandle)) })
	t.Run("NativeFormat", func(t *testing.T) { sealtest.TestFormat(t, tripseal.NativeFormat(ring)) })
	t.Run("RecordFormat", func(t *testing.T) {
		sealtest.TestFormat(t, tripseal.RecordFormat("own1.", ownCodec{tripseal.RingCodec(ring, tripseal.PurposeState)}))
	})
	t.Run("Ring", func(t *testing.T) { sealtest.TestKeySource(t, ring) })
	t.Run("Ephemeral", func(t *testing.T) { sealtest.TestKeySource(t, tripseal.Ephemeral()) })
}

func FuzzParseKey(f *testing.F) {
	f.Add(keyText(secretBytes(33)))
	f.Add("tripseal_key1_")
	f.Add("tripseal_key1_" + strings.Repeat("A", 48))
	f.Add(keyText(secretBytes(33))[:40])
	f.Fuzz(func(t *testing.T, text string) {
		key, err := tripseal.ParseKey(text)
		if err != nil {
			if len(text) > 20 && strings.Contains(err.Error(), text) {
				t.Fatal("the error repeats the text")
			}
			return
		}
		if key.Reveal() != text {
			t.Fatalf("%q parses, but is written %q", text, key.Reveal())
		}
	})
}
