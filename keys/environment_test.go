package keys_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/sealtest"
)

func TestEnvironment(t *testing.T) {
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	t.Setenv(keys.Variable, " "+a.Reveal()+"\n"+b.Reveal()+"\t")
	ring, err := keys.Environment()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ring.IDs(), []tripseal.KeyID{a.ID(), b.ID()}) {
		t.Errorf("ids %v", ring.IDs())
	}
	sealtest.TestKeySource(t, ring)
}

func TestEnvironmentWithoutKeys(t *testing.T) {
	a := tripseal.GenerateKey().Reveal()
	for value, want := range map[string]string{
		"":                        "TRIPSEAL_KEYS is empty or not set",
		" \n":                     "TRIPSEAL_KEYS is empty or not set",
		a + " " + a[:40]:          "key 2 in TRIPSEAL_KEYS is not the text of a key",
		a + "," + a:               "key 1 in TRIPSEAL_KEYS is not the text of a key",
		a + " " + a:               "have one id",
		`"` + a + `"`:             "key 1 in TRIPSEAL_KEYS",
		"tripseal_key1_abc":       "key 1 in TRIPSEAL_KEYS",
		strings.Repeat("A", 5000): "key 1 in TRIPSEAL_KEYS is not the text of a key",
	} {
		t.Setenv(keys.Variable, value)
		_, err := keys.Environment()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), a[20:30]) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// secret returns 32 bytes, as a secret manager would. Their base64 text has characters in which the
// two base64 alphabets differ.
func secret(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	copy(sum[:], "\xfb\xff\xfe")
	return sum[:]
}

// written returns the texts of a secret in each encoding.
func written(secret []byte) map[keys.Encoding][]string {
	key, err := tripseal.NewKey(secret)
	if err != nil {
		panic(err)
	}
	return map[keys.Encoding][]string{
		keys.Tripseal:  {key.Reveal()},
		keys.Hex:       {hex.EncodeToString(secret), strings.ToUpper(hex.EncodeToString(secret))},
		keys.Base64:    {base64.StdEncoding.EncodeToString(secret), base64.RawStdEncoding.EncodeToString(secret)},
		keys.Base64URL: {base64.URLEncoding.EncodeToString(secret), base64.RawURLEncoding.EncodeToString(secret)},
	}
}

// TestOneSecretHasOneIDHoweverItIsWritten checks that a secret has the same id in every encoding.
// So replicas that get it in different encodings can open each other's tokens.
func TestOneSecretHasOneIDHoweverItIsWritten(t *testing.T) {
	ring, err := keys.FromBytes(secret("a"))
	if err != nil {
		t.Fatal(err)
	}
	sealtest.TestKeySource(t, ring)
	want := ring.IDs()
	for encoding, texts := range written(secret("a")) {
		for _, text := range texts {
			t.Setenv("RELEASE_KEYS", "\n "+text+"\r\n")
			for name, read := range map[string]func() (*tripseal.Ring, error){
				"text":        func() (*tripseal.Ring, error) { return keys.FromText(text, encoding) },
				"environment": func() (*tripseal.Ring, error) { return keys.FromEnvironment("RELEASE_KEYS", encoding) },
			} {
				ring, err := read()
				if err != nil || !slices.Equal(ring.IDs(), want) {
					t.Errorf("%v from the %s: %v, %v; want %v", encoding, name, ring, err, want)
				}
			}
		}
	}
}

// TestKeysRotateByPosition goes through the three steps of a rotation. What a replica seals can be
// opened by every replica that is at most one step ahead or behind.
func TestKeysRotateByPosition(t *testing.T) {
	for encoding := keys.Tripseal; encoding <= keys.Base64URL; encoding++ {
		old, next := written(secret("old"))[encoding][0], written(secret("next"))[encoding][0]
		var rings []*tripseal.Ring
		for _, value := range []string{old, old + " " + next, next + " " + old, next} {
			t.Setenv("RELEASE_KEYS", value)
			ring, err := keys.FromEnvironment("RELEASE_KEYS", encoding)
			if err != nil {
				t.Fatal(err)
			}
			rings = append(rings, ring)
		}
		for i, sealer := range rings {
			for _, opener := range rings[max(0, i-1):min(len(rings), i+2)] {
				if !slices.Contains(opener.IDs(), sealer.IDs()[0]) {
					t.Errorf("%v, step %d: %v does not open what %v seals", encoding, i, opener, sealer)
				}
			}
		}
		if rings[1].IDs()[0] == rings[2].IDs()[0] || len(rings[2].IDs()) != 2 {
			t.Errorf("%v: the order does not decide which key seals: %v", encoding, rings)
		}
	}
}

// TestTheEncodingIsNeverGuessed checks that a text is refused if it is not in the encoding that the
// caller named, even if it could be decoded.
func TestTheEncodingIsNeverGuessed(t *testing.T) {
	for is, texts := range written(secret("a")) {
		for _, text := range texts {
			for named := keys.Tripseal; named <= keys.Base64URL; named++ {
				if ring, err := keys.FromText(text, named); named != is && (err == nil || ring != nil) {
					t.Errorf("%v is accepted as %v", is, named)
				}
			}
			for _, unnamed := range []keys.Encoding{0, 5, 255} {
				if _, err := keys.FromText(text, unnamed); err == nil || !strings.Contains(err.Error(), "say how the keys are encoded: keys.Tripseal, keys.Hex") {
					t.Errorf("%v: %v", unnamed, err)
				}
			}
		}
	}
}

// TestWeakAndDamagedKeysAreRefused checks that the error says which key is bad, what is wrong with
// it, and how to make a good one. The error must not repeat any part of a key.
func TestWeakAndDamagedKeysAreRefused(t *testing.T) {
	good := secret("good")
	encode := map[keys.Encoding]func([]byte) string{
		keys.Hex: hex.EncodeToString, keys.Base64: base64.StdEncoding.EncodeToString, keys.Base64URL: base64.RawURLEncoding.EncodeToString,
	}
	for encoding, encode := range encode {
		ok := encode(good)
		for name, c := range map[string]struct{ text, want string }{
			"too short":           {encode(secret("a")[:31]), "31 bytes are too few"},
			"too long":            {encode(append(secret("a"), 1)), "33 bytes are too many"},
			"two keys in one":     {encode(append(secret("a"), secret("b")...)), "64 bytes are too many"},
			"a line end":          {encode(append(secret("a"), '\n')), "33 bytes are too many"},
			"one repeated byte":   {encode(bytes.Repeat([]byte{'\t'}, 32)), "every byte is the same"},
			"a pass phrase":       {encode([]byte("open sesame, and be quick about ")), "32 bytes of printable text, such as a pass phrase"},
			"encoded twice":       {encode([]byte(hex.EncodeToString(secret("a")))), "64 bytes of printable text"},
			"a plain pass phrase": {"open-sesame!", "not " + encoding.String() + ": among its 12 characters"},
			"quotes":              {`"` + encode(secret("a")) + `"`, "such as commas or quotes"},
			"a comma":             {encode(secret("a")) + "," + encode(secret("b")), "such as commas or quotes"},
			"inner padding":       {encode(secret("a")) + "=" + encode(secret("b")), "among its"},
			"not ASCII":           {"é" + encode(secret("a")), "among its"},
		} {
			ring, err := keys.FromText(ok+" "+c.text+"\n", encoding)
			if err == nil || ring != nil {
				t.Errorf("%v, %s: accepted", encoding, name)
				continue
			}
			if !strings.Contains(err.Error(), "key 2 in the text is not ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %s: %v, want %q", encoding, name, err, c.want)
			}
			if !strings.Contains(err.Error(), "openssl rand") {
				t.Errorf("%v, %s: the error does not teach: %v", encoding, name, err)
			}
			for _, hidden := range []string{c.text[:8], ok[:8], "sesame"} {
				if strings.Contains(err.Error(), hidden) {
					t.Errorf("%v, %s: the error repeats the text: %v", encoding, name, err)
				}
			}
		}
		for cut := 1; cut < len(ok); cut++ {
			if padding := encoding == keys.Base64 && cut == 1; padding {
				continue
			}
			if _, err := keys.FromText(ok[:len(ok)-cut], encoding); err == nil {
				t.Errorf("%v: accepted without its last %d characters", encoding, cut)
			}
		}
	}
	// If 32 bytes are written in base64, two bits of the last character are unused. A text in which
	// these bits are set stands for the same bytes, but no encoder writes it.
	for encoding, code := range map[keys.Encoding]*base64.Encoding{keys.Base64: base64.StdEncoding, keys.Base64URL: base64.URLEncoding} {
		text := code.WithPadding(base64.NoPadding).EncodeToString(good)
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
		other := text[:42] + alphabet[strings.IndexByte(alphabet, text[42])+1:][:1]
		if again, err := code.WithPadding(base64.NoPadding).DecodeString(other); err != nil || !bytes.Equal(again, good) {
			t.Fatalf("%v: not a second text of the same bytes: %v", encoding, err)
		}
		for _, second := range []string{other, other + "="} {
			if _, err := keys.FromText(second, encoding); err == nil {
				t.Errorf("%v: a text that no encoder writes is accepted", encoding)
			}
		}
	}
}

func TestWeakBytesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		secrets [][]byte
		want    string
	}{
		"none":      {nil, "at least one key"},
		"empty":     {[][]byte{nil}, "secret 1: 0 bytes are too few"},
		"one short": {[][]byte{secret("a"), secret("b")[:31]}, "secret 2: 31 bytes are too few"},
		"twice":     {[][]byte{secret("a"), secret("a")}, "have one id"},
		"a text":    {[][]byte{[]byte("open sesame")}, "such as a pass phrase"},
	} {
		ring, err := keys.FromBytes(c.secrets...)
		if err == nil || ring != nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v, %v", name, ring, err)
		}
	}
}

// TestASecretGivenAsTheNameOfAVariableIsNotRepeated passes secrets to FromEnvironment as the name
// of the variable, because name and value are easily mixed up. The error must not repeat the
// secret.
func TestASecretGivenAsTheNameOfAVariableIsNotRepeated(t *testing.T) {
	for encoding, texts := range written(secret("a")) {
		for _, text := range texts {
			_, err := keys.FromEnvironment(text, encoding)
			if err == nil || strings.Contains(err.Error(), text[:16]) || !strings.Contains(err.Error(), "give the name, not the value") {
				t.Errorf("%v: %v", encoding, err)
			}
		}
	}
	name := "THE_KEYS_OF_A_SERVICE"
	t.Setenv(name, "")
	if _, err := keys.FromEnvironment(name, keys.Hex); err == nil || !strings.Contains(err.Error(), name+" is empty") {
		t.Errorf("a variable that is set is not named: %v", err)
	}
}

func FuzzFromText(f *testing.F) {
	for encoding, texts := range written(secret("a")) {
		for _, text := range texts {
			f.Add(text, uint8(encoding))
			f.Add(text+"\n"+text[:20], uint8(encoding))
		}
	}
	f.Fuzz(func(t *testing.T, text string, encoding uint8) {
		ring, err := keys.FromText(text, keys.Encoding(encoding))
		if err != nil {
			for _, word := range strings.Fields(text) {
				if len(word) > 24 && strings.Contains(err.Error(), word) {
					t.Fatalf("the error repeats the text: %v", err)
				}
			}
			if ring != nil {
				t.Fatal("a ring beside an error")
			}
			return
		}
		if len(ring.IDs()) != len(strings.Fields(text)) {
			t.Fatalf("%d keys in %q", len(ring.IDs()), text)
		}
	})
}
