package keys_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
	"github.com/tripseal/tripseal/keys"
)

// sealedService encrypts with AES-GCM, as the key service of a platform does.
type sealedService struct{ cipher.AEAD }

func newSealedService(t *testing.T) sealedService {
	t.Helper()
	secret := make([]byte, 32)
	rand.Read(secret)
	block, err := aes.NewCipher(secret)
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	return sealedService{aead}
}

func (sealedService) Scheme() string { return "service" }

func (s sealedService) Unwrap(_ context.Context, wrapped []byte) ([]byte, error) {
	return s.Open(nil, nil, wrapped, nil)
}

// TestWhoeverChangesTheFileAddsNoKey lets somebody who can change the file, but cannot encrypt and
// has no key, change it in thousands of ways: bytes, lines, dates, ids, secrets of other keys, and
// keys of their own in every form. No process may use a key that was never in the file, and each must
// go on sealing.
func TestWhoeverChangesTheFileAddsNoKey(t *testing.T) {
	service, random := newSealedService(t), mathrand.New(mathrand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "keys")
	genuine, now := map[tripseal.KeyID]bool{}, time.Now().Truncate(time.Second)
	var d keyfile.Document
	for i := range 3 {
		key := tripseal.GenerateKey()
		genuine[key.ID()] = true
		k := &keyfile.Key{ID: key.ID(), Made: now, SealsFrom: now.Add(time.Duration(i-1) * time.Hour),
			Secret: keyfile.Wrap("service", service.Seal(nil, nil, []byte(key.Reveal()), nil))}
		if i < 2 {
			k.OpensUntil = now.Add(4 * time.Hour)
		}
		d.Add(k)
	}
	good, mallory := d.Bytes(), tripseal.GenerateKey()
	dates := fmt.Sprintf(" made=%[1]s seals-from=%[1]s opens-until=never secret=", now.Add(-time.Minute).UTC().Format(time.RFC3339))
	own := func(id tripseal.KeyID, secret string) string { return "key " + id.String() + dates + secret + "\n" }
	plain := strings.TrimPrefix(strings.TrimSuffix(string(text(t, one(mallory))), "end\n"), "tripseal-keys 1\n")
	lines := func(text []byte) []string { return strings.SplitAfter(string(text), "\n") }
	changes := []func(text []byte) []byte{
		func(text []byte) []byte { text[random.IntN(len(text))] ^= 1 << random.IntN(8); return text },
		func(text []byte) []byte {
			at := random.IntN(len(text))
			return slices.Delete(text, at, min(len(text), at+random.IntN(40)))
		},
		func(text []byte) []byte { // a line is gone, or is there twice
			l := lines(text)
			i := random.IntN(len(l))
			return []byte(strings.Join(slices.Concat(l[:i], slices.Repeat(l[i:i+1], 2*random.IntN(2)), l[i+1:]), ""))
		},
		func(text []byte) []byte { // two words change places: ids, dates and secrets of different keys
			words := strings.SplitAfter(string(text), " ")
			i, j := random.IntN(len(words)), random.IntN(len(words))
			words[i], words[j] = words[j], words[i]
			return []byte(strings.Join(words, ""))
		},
		func(text []byte) []byte {
			return bytes.ReplaceAll(text, []byte(fmt.Sprint("T", random.IntN(24))), []byte(fmt.Sprint("T", random.IntN(24))))
		},
		func(text []byte) []byte {
			return bytes.Replace(text, []byte("opens-until="), []byte("opens-until=never x="), random.IntN(3))
		},
		func(text []byte) []byte {
			keys := d.Keys()
			forms := []string{
				plain,
				own(mallory.ID(), mallory.Reveal()),
				own(keys[random.IntN(3)].ID, mallory.Reveal()),
				own(mallory.ID(), "service:"+strings.Repeat("A", 80)),
				own(mallory.ID(), "none:"+"dHJpcHNlYWw="),
				strings.Replace(lines(good)[1+random.IntN(3)], keys[0].ID.String(), mallory.ID().String(), 1),
			}
			return slices.Concat([]byte("tripseal-keys 1\n"), []byte(forms[random.IntN(len(forms))]), bytes.TrimPrefix(text, []byte("tripseal-keys 1\n")))
		},
	}
	write(t, path, good)
	f, _ := open(t, path, keys.Options{Unwrap: []keys.Unwrapper{service}})
	taken := 0
	for range 3000 {
		changed := bytes.Clone(good)
		for range 1 + random.IntN(3) {
			if len(changed) > 0 {
				changed = changes[random.IntN(len(changes))](changed)
			}
		}
		write(t, path, changed)
		if f.Reload() == nil {
			taken++
		}
		ids := f.Ring().IDs()
		if len(ids) == 0 {
			t.Fatalf("there is no key to seal with:\n%s", changed)
		}
		for _, id := range ids {
			if !genuine[id] {
				t.Fatalf("key %s is in use:\n%s", id, changed)
			}
		}
	}
	t.Logf("%d files were taken, with other dates or fewer keys", taken)
	if taken == 0 {
		t.Error("no file was taken, so nothing was tried")
	}
}
