package agekeys_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/keys/agekeys"
	"github.com/tripseal/tripseal/sealtest"
)

// TestMain runs no tests if only algorithms of FIPS 140 are allowed, because age uses other
// algorithms.
func TestMain(m *testing.M) {
	if strings.Contains(os.Getenv("GODEBUG"), "fips140=only") {
		fmt.Println("age is not FIPS 140: nothing to test in this mode")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSuite(t *testing.T) {
	id := identity(t)
	hybrid, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		age.Identity
		age.Recipient
	}{"X25519": {id, id.Recipient()}, "hybrid": {hybrid, hybrid.Recipient()}} {
		t.Run(name, func(t *testing.T) {
			unwrapper, err := agekeys.New(identity(t), c.Identity)
			if err != nil {
				t.Fatal(err)
			}
			sealtest.TestUnwrapper(t, unwrapper, func(secret []byte) ([]byte, error) {
				var b bytes.Buffer
				w, err := age.Encrypt(&b, c.Recipient)
				if err != nil {
					return nil, err
				}
				w.Write(secret)
				err = w.Close()
				return b.Bytes(), err
			})
		})
	}
}

// wrappedFile writes a file with one wrapped key, and returns its path and the key.
func wrappedFile(t *testing.T, recipients ...age.Recipient) (path string, key tripseal.Key) {
	t.Helper()
	key = tripseal.GenerateKey()
	wrapped, err := agekeys.Wrap(key, recipients...)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Format(time.RFC3339)
	path = filepath.Join(t.TempDir(), "keys")
	text := fmt.Sprintf("tripseal-keys 1\nkey %s made=%s seals-from=%s opens-until=never secret=age:%s\nend\n",
		key.ID(), now, now, base64.StdEncoding.EncodeToString(wrapped))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, key
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func TestFileWithWrappedSecrets(t *testing.T) {
	id := identity(t)
	identityPath := filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(identityPath, []byte("# a comment\n"+id.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path, key := wrappedFile(t, id.Recipient(), identity(t).Recipient())
	unwrapper, err := agekeys.IdentityFile(identityPath)
	if err != nil {
		t.Fatal(err)
	}
	source, err := keys.OpenFile(path, &keys.Options{Unwrap: []keys.Unwrapper{unwrapper}, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	sealtest.TestKeySource(t, source)
	if ids := source.Ring().IDs(); len(ids) != 1 || ids[0] != key.ID() {
		t.Errorf("ids %v", ids)
	}
}

func TestWrappedForSomebodyElse(t *testing.T) {
	path, _ := wrappedFile(t, identity(t).Recipient())
	unwrapper, err := agekeys.New(identity(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = keys.OpenFile(path, &keys.Options{Unwrap: []keys.Unwrapper{unwrapper}, Logger: quiet()})
	if err == nil || !strings.Contains(err.Error(), "none of the age identities") {
		t.Errorf("error %v", err)
	}
	var noMatch *age.NoIdentityMatchError
	if !errors.As(err, &noMatch) {
		t.Errorf("the original cannot be reached from %v", err)
	}
}

func TestIdentityFileIsNotRepeated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identity")
	for _, text := range []string{"", "AGE-SECRET-KEY-1SESAME", "sesame open"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := agekeys.IdentityFile(path)
		if err == nil || strings.Contains(strings.ToLower(err.Error()), "sesame") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := agekeys.IdentityFile(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestNothingIsNotEnough checks that a missing identity, recipient or key is an error.
func TestNothingIsNotEnough(t *testing.T) {
	if _, err := agekeys.New(); err == nil {
		t.Error("no identities")
	}
	if _, err := agekeys.New(nil); err == nil {
		t.Error("a nil identity")
	}
	if _, err := agekeys.Wrap(tripseal.GenerateKey()); err == nil {
		t.Error("no recipients")
	}
	if _, err := agekeys.Wrap(tripseal.Key{}, identity(t).Recipient()); err == nil {
		t.Error("no key")
	}
}

func TestLongPlaintextIsNotRead(t *testing.T) {
	id := identity(t)
	var b bytes.Buffer
	w, err := age.Encrypt(&b, id.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	w.Write(make([]byte, 1<<20))
	w.Close()
	unwrapper, _ := agekeys.New(id)
	if _, err := unwrapper.Unwrap(context.Background(), b.Bytes()); err == nil {
		t.Error("a megabyte is a key")
	}
}

func TestIdentitiesDoNotPrint(t *testing.T) {
	id := identity(t)
	unwrapper, err := agekeys.New(id)
	if err != nil {
		t.Fatal(err)
	}
	options := keys.Options{Unwrap: []keys.Unwrapper{unwrapper}}
	secret := id.String()[20:40]
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("x", "unwrapper", unwrapper, "options", options.Unwrap, "nested", struct{ keys.Unwrapper }{unwrapper})
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%e"} {
		fmt.Fprintf(&log, verb, unwrapper)
		fmt.Fprintf(&log, verb, options)
		fmt.Fprintf(&log, verb, &options)
		fmt.Fprintf(&log, verb, struct{ hidden keys.Unwrapper }{unwrapper})
	}
	if strings.Contains(strings.ToUpper(log.String()), secret) {
		t.Errorf("the identity is in %s", &log)
	}
}

func TestIdentitiesFromSeveralFiles(t *testing.T) {
	old, young := identity(t), identity(t)
	var paths []string
	for _, id := range []*age.X25519Identity{old, young} {
		path := filepath.Join(t.TempDir(), "identity")
		if err := os.WriteFile(path, []byte(id.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	unwrapper, err := agekeys.IdentityFile(paths...)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []*age.X25519Identity{old, young} {
		path, _ := wrappedFile(t, id.Recipient())
		source, err := keys.OpenFile(path, &keys.Options{Unwrap: []keys.Unwrapper{unwrapper}, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		source.Close()
	}
	if _, err := agekeys.IdentityFile(); err == nil {
		t.Error("no files")
	}
}
