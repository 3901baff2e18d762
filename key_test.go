package mcpseal_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/sealtest"
)

// secretBytes is a secret that is easy to find in any text.
func secretBytes(n int) []byte {
	return bytes.Repeat([]byte("sesame-open-"), n/12+1)[:n]
}

func TestKeyTextRoundTrip(t *testing.T) {
	for _, size := range []int{32, 33, 34, 35, 64, 1023, 1024} {
		key, err := mcpseal.NewKey(secretBytes(size))
		if err != nil {
			t.Fatal(err)
		}
		text := key.Reveal()
		if !strings.HasPrefix(text, "mcpseal_key1_") {
			t.Errorf("the text begins with %.15q", text)
		}
		again, err := mcpseal.ParseKey(text)
		if err != nil || again.ID() != key.ID() || again.Reveal() != text {
			t.Errorf("%d bytes: %v, %v", size, again, err)
		}
	}
}

func TestDamagedKeyTextIsRefused(t *testing.T) {
	text := mcpseal.GenerateKey().Reveal()
	bad := []string{
		"", " ", "mcpseal_key1_", text + "\n", " " + text, text + "=", text + "A", text + text, strings.ToUpper(text),
		text[len("mcpseal_key1_"):], base64.StdEncoding.EncodeToString([]byte(text)), `"` + text + `"`,
		"mcpseal_key2_" + text[len("mcpseal_key1_"):], "sesame", strings.Repeat("A", 5000), "mcpseal_key1_" + strings.Repeat("A", 5000),
		"mcpseal_key1_" + hex.EncodeToString(secretBytes(32)), "mcpseal_key1_" + base64.RawURLEncoding.EncodeToString(secretBytes(36)),
	}
	for i := range len(text) {
		bad = append(bad, text[:i], text[:i]+text[i+1:]) // cut, and one character lost
		for _, c := range []string{"A", "b", "7", "_", "-", "+", "/", ".", "é"} {
			if c != text[i:i+1] {
				bad = append(bad, text[:i]+c+text[i+1:])
			}
		}
		if i > 0 && text[i] != text[i-1] {
			bad = append(bad, text[:i-1]+text[i:i+1]+text[i-1:i]+text[i+1:]) // two swapped
		}
	}
	for _, b := range bad {
		_, err := mcpseal.ParseKey(b)
		if err == nil {
			t.Fatalf("accepted: %q", b)
		}
		if !strings.Contains(err.Error(), "mcpseal.GenerateKey") || strings.Contains(err.Error(), text[15:30]) ||
			len(b) > 14 && strings.Contains(err.Error(), b) {
			t.Fatalf("the error does not teach, or repeats the key: %v", err)
		}
	}
	for damaged, want := range map[string]string{
		text[13:]: "does not begin with", text[:len(text)-1]: "characters after", text[:len(text)-1] + ",": "characters that no key has",
		text[:20] + "AAAA" + text[24:]: "checksum",
	} {
		if _, err := mcpseal.ParseKey(damaged); !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := mcpseal.NewKey([]byte(text)); err == nil || !strings.Contains(err.Error(), "ParseKey") {
		t.Errorf("the text of a key passes for its bytes: %v", err)
	}
}

func TestWeakSecretsAreRefused(t *testing.T) {
	for _, secret := range [][]byte{nil, secretBytes(31), make([]byte, 32), bytes.Repeat([]byte{7}, 64), secretBytes(1025)} {
		_, err := mcpseal.NewKey(secret)
		if err == nil {
			t.Fatalf("%d bytes are accepted", len(secret))
		}
		if strings.Contains(err.Error(), "sesame") || !strings.Contains(err.Error(), "GenerateKey") {
			t.Errorf("the error repeats the secret or does not teach: %v", err)
		}
	}
}

func TestKeyBytesAreCopied(t *testing.T) {
	secret := secretBytes(32)
	key, err := mcpseal.NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	before := key.Reveal()
	clear(secret)
	if key.Reveal() != before {
		t.Error("the key changed with the caller's slice")
	}
}

func TestGeneratedKeysDiffer(t *testing.T) {
	if a, b := mcpseal.GenerateKey(), mcpseal.GenerateKey(); a.Reveal() == b.Reveal() || a.ID() == b.ID() {
		t.Error("two generated keys are the same")
	}
}

func TestSecretsNeverPrint(t *testing.T) {
	key, err := mcpseal.NewKey(secretBytes(32))
	if err != nil {
		t.Fatal(err)
	}
	ring := newRing(t, key, mcpseal.GenerateKey())
	boundary, err := mcpseal.New(mcpseal.Config{Keys: ring, Audience: "x"})
	if err != nil {
		t.Fatal(err)
	}
	type holder struct {
		Key     mcpseal.Key
		Pointer *mcpseal.Key
		Ring    *mcpseal.Ring
		Value   mcpseal.Ring
		Any     any
		List    []mcpseal.Key
		Map     map[string]mcpseal.Key
		Config  mcpseal.Config
		hidden  mcpseal.Key
		ring    *mcpseal.Ring
		value   mcpseal.Ring
		bound   *mcpseal.Boundary
	}
	h := holder{key, &key, ring, *ring, key, []mcpseal.Key{key}, map[string]mcpseal.Key{"k": key},
		mcpseal.Config{Keys: ring}, key, ring, *ring, boundary}
	var out bytes.Buffer
	for _, value := range []any{key, &key, ring, *ring, h, &h, []any{key, ring}, boundary, *boundary, mcpseal.RingCodec(ring, 0), mcpseal.NativeFormat(ring)} {
		for _, verb := range strings.Split("v +v #v s q x X d o b c U e g t T p 08x -40s +q", " ") {
			fmt.Fprintf(&out, "%"+verb+"\n", value)
		}
		fmt.Fprintln(&out, value)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "value", value)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "value", value)
		if text, err := json.Marshal(value); err == nil {
			out.Write(text)
		}
		if text, err := xml.Marshal(value); err == nil {
			out.Write(text)
		}
	}
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
		keys []mcpseal.Key
		want string
	}{
		"empty":       {nil, "at least one key"},
		"no key":      {[]mcpseal.Key{a, {}}, "key 2"},
		"one id":      {[]mcpseal.Key{a, b, a}, "keys 1 and 3"},
		"first empty": {[]mcpseal.Key{{}, a}, "key 1"},
	} {
		ring, err := mcpseal.NewRing(c.keys...)
		if err == nil || ring != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, ring, err)
		}
	}
}

func TestRingIsImmutable(t *testing.T) {
	keys := []mcpseal.Key{newKey(t), newKey(t)}
	ring := newRing(t, keys...)
	want := keys[0].ID()
	keys[0] = newKey(t)
	ring.IDs()[0] = mcpseal.KeyID{}
	if ring.IDs()[0] != want {
		t.Error("the ring changed from outside")
	}
}

func TestSealsAreCountedForEachKeyAndPurpose(t *testing.T) {
	key := newKey(t)
	ring := newRing(t, key)
	s := newService(t, mcpseal.Config{Keys: ring})
	for range 3 {
		s.first(t, deploy(), step)
	}
	reloaded := newRing(t, newKey(t), key) // the count goes on
	if n := reloaded.Seals(key.ID(), mcpseal.PurposeState); n != 3 {
		t.Errorf("%d seals counted, want 3", n)
	}
	if n := ring.Seals(key.ID(), mcpseal.PurposeCursor); n != 0 {
		t.Errorf("%d cursors counted, want 0", n)
	}
	if n := ring.Seals(mcpseal.KeyID{}, 200); n != 0 {
		t.Errorf("%d seals of an unknown key", n)
	}
}

func TestNativeImplementationsPassTheSuites(t *testing.T) {
	ring := newRing(t, newKey(t), newKey(t))
	t.Run("RingCodec", func(t *testing.T) { sealtest.TestCodec(t, mcpseal.RingCodec(ring, mcpseal.PurposeState)) })
	t.Run("CursorCodec", func(t *testing.T) { sealtest.TestCodec(t, mcpseal.RingCodec(ring, mcpseal.PurposeCursor)) })
	t.Run("NativeFormat", func(t *testing.T) { sealtest.TestFormat(t, mcpseal.NativeFormat(ring)) })
	t.Run("RecordFormat", func(t *testing.T) {
		sealtest.TestFormat(t, mcpseal.RecordFormat("own1.", ownCodec{mcpseal.RingCodec(ring, mcpseal.PurposeState)}))
	})
	t.Run("Ring", func(t *testing.T) { sealtest.TestKeySource(t, ring) })
	t.Run("Ephemeral", func(t *testing.T) { sealtest.TestKeySource(t, mcpseal.Ephemeral()) })
}

func FuzzParseKey(f *testing.F) {
	key, _ := mcpseal.NewKey(secretBytes(33))
	f.Add(key.Reveal())
	f.Add("mcpseal_key1_")
	f.Add("mcpseal_key1_" + strings.Repeat("A", 48))
	f.Add(key.Reveal()[:40])
	f.Fuzz(func(t *testing.T, text string) {
		key, err := mcpseal.ParseKey(text)
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
