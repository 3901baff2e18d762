package tripseal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal/internal/native"
)

// testdata/handles.json holds fixed handles. Every release must open some of them and reject the
// others. The script testdata/verify.mjs checks them against docs/token.md.
const handleVectorFile = "testdata/handles.json"

const handleSecret = "b7cd01f54a1f0e5e2f6ac0a8a4a92e0c3d6c64b9f1f7be20357ce8bd51b5c8e9"

type handleVectorSet struct {
	Handles  []handleVector `json:"handles"`
	Rejected []handleVector `json:"rejected"`
}

type handleVector struct {
	Name     string `json:"name"`
	Secret   string `json:"secret"`
	Handle   string `json:"handle"`
	Kind     string `json:"kind"`
	Audience string `json:"audience"`
	User     string `json:"user"`
	Issued   int64  `json:"issued"`
	Lifetime int64  `json:"lifetime"`
	ID       string `json:"id"` // in hexadecimal
}

func (v *handleVector) handles(t *testing.T) *Handles {
	t.Helper()
	ring, err := NewRing(vector{Secret: v.Secret}.key(t))
	if err != nil {
		t.Fatal(err)
	}
	ring.keys.ephemeral = v.Audience == "" // otherwise New refuses it
	b, err := New(Config{Keys: ring, Audience: v.Audience, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewHandles(b, v.Kind, time.Duration(v.Lifetime)*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (v *handleVector) principal() Principal {
	if v.User == "" {
		return nil
	}
	return User(v.User)
}

// open opens the handle half a second after it was issued.
func (v *handleVector) open(t *testing.T) (id string, err error) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.UnixMilli(v.Issued + 500)))
		id, err = v.handles(t).Open(t.Context(), v.principal(), v.Handle)
	})
	return id, err
}

func TestHandleVectors(t *testing.T) {
	if *update {
		mintHandleVectors(t)
	}
	text, err := os.ReadFile(handleVectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var set handleVectorSet
	if err := json.Unmarshal(text, &set); err != nil || len(set.Handles) < 5 || len(set.Rejected) < 20 {
		t.Fatalf("%d handles, %d rejected, %v", len(set.Handles), len(set.Rejected), err)
	}
	for _, v := range set.Handles {
		if id, err := v.open(t); err != nil || hex.EncodeToString([]byte(id)) != v.ID {
			t.Errorf("%s: opens as %x, %v", v.Name, id, err)
		}
	}
	for _, v := range set.Rejected {
		if id, err := v.open(t); !errors.Is(err, ErrRejected) {
			t.Errorf("%s: opens as %x, %v", v.Name, id, err)
		}
	}
}

// mintHandleVectors writes the file: handles that must open, and handles that must be rejected. Some
// of the latter could be made only by somebody with the key.
func mintHandleVectors(t *testing.T) {
	base := handleVector{
		Secret: handleSecret, Kind: "session", Audience: "deploy.example.com", User: "alice",
		Issued: 1_766_620_800_000, Lifetime: 86_400_000, ID: hex.EncodeToString([]byte("session-7")),
	}
	var set handleVectorSet
	for _, change := range []func(*handleVector){
		func(v *handleVector) { v.Name = "a user's" },
		func(v *handleVector) { v.Name, v.User, v.Kind = "nobody's", "", "job" },
		func(v *handleVector) { v.Name, v.Audience = "without an audience", "" },
		func(v *handleVector) { v.Name, v.User, v.Kind, v.ID = "odd names", "älice\x00", "🦭", "00ff0a00" },
		func(v *handleVector) { v.Name, v.ID = "without padding", strings.Repeat("7a", 65) },
		func(v *handleVector) {
			v.Name, v.ID, v.Lifetime = "a long id", strings.Repeat("7a", 1024), (365 * 24 * time.Hour).Milliseconds()
			v.Audience, v.User, v.Kind = strings.Repeat("a", 1024), strings.Repeat("u", 300), strings.Repeat("k", 64)
		},
	} {
		v := base
		change(&v)
		v.mint(t)
		set.Handles = append(set.Handles, v)
	}
	reject := func(name string, change func(*handleVector)) {
		v := set.Handles[0]
		v.Name = name
		change(&v)
		set.Rejected = append(set.Rejected, v)
	}
	crafted := func(name string, change func(payload []byte) []byte) {
		reject(name, func(v *handleVector) {
			codec := v.handles(t).format.record.codec
			payload, err := codec.Open(t.Context(), nil, v.Handle[4:])
			if err != nil {
				t.Fatal(err)
			}
			sealed, err := codec.Seal(t.Context(), []byte("mh1."), change(payload))
			if err != nil {
				t.Fatal(err)
			}
			v.Handle = string(sealed)
		})
	}
	reject("another user", func(v *handleVector) { v.User = "bob" })
	reject("nobody", func(v *handleVector) { v.User = "" })
	reject("another kind", func(v *handleVector) { v.Kind = "job" })
	reject("another audience", func(v *handleVector) { v.Audience = "other" })
	reject("no audience", func(v *handleVector) { v.Audience = "" })
	reject("another key", func(v *handleVector) { v.Secret = "00" + v.Secret[2:] })
	reject("a character changed", func(v *handleVector) { v.Handle = v.Handle[:50] + flip(v.Handle[50:51]) + v.Handle[51:] })
	reject("the last character cut", func(v *handleVector) { v.Handle = v.Handle[:len(v.Handle)-1] })
	reject("padding of base64", func(v *handleVector) { v.Handle += "=" })
	reject("a line end", func(v *handleVector) { v.Handle += "\n" })
	reject("a state's prefix", func(v *handleVector) { v.Handle = "ms1." + v.Handle[4:] })
	reject("longer than 4096 bytes", func(v *handleVector) { v.Handle = "mh1." + strings.Repeat("A", 4096) })
	crafted("another purpose", func(p []byte) []byte { p[0] = 'S'; return p })
	crafted("another version", func(p []byte) []byte { p[1] = 2; return p })
	crafted("from the future", func(p []byte) []byte { p[5]++; return p })
	crafted("expired", func(p []byte) []byte { return append(append(p[:8:8], 0, 0, 0, 1, 0xf4), p[13:]...) })
	crafted("no lifetime", func(p []byte) []byte { clear(p[8:13]); return p })
	crafted("the last byte of the audience", func(p []byte) []byte { p[28]++; return p })
	crafted("the last byte of the kind", func(p []byte) []byte { p[44]++; return p })
	crafted("the last byte of the user", func(p []byte) []byte { p[60]++; return p })
	crafted("no id", func(p []byte) []byte { clear(p[61:]); return p })
	crafted("cut in the head", func(p []byte) []byte { return p[:62] })
	crafted("less padding", func(p []byte) []byte { return p[:len(p)-1] })
	crafted("more padding", func(p []byte) []byte { return append(p, 0) })
	crafted("other padding", func(p []byte) []byte { p[len(p)-1] = 1; return p })
	crafted("an id that is longer than the record", func(p []byte) []byte { p[61] = 1; return p })
	crafted("an id of 1025 bytes", func(p []byte) []byte {
		p[61], p[62] = 4, 1
		return append(p[:63], strings.Repeat("z", 1025)...)
	})
	text, err := json.MarshalIndent(set, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(handleVectorFile, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (v *handleVector) mint(t *testing.T) {
	t.Helper()
	id, err := hex.DecodeString(v.ID)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.UnixMilli(v.Issued)))
		v.Handle, err = v.handles(t).Seal(t.Context(), v.principal(), string(id))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzOpenHandle opens arbitrary texts, and handles with an arbitrary payload. Only somebody with
// the key can make such handles.
func FuzzOpenHandle(f *testing.F) {
	// The keys are new in every process that fuzzes, so only the text that it sealed itself is genuine.
	b, err := New(Config{Keys: Ephemeral(), Audience: "a", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	h, err := NewHandles(b, "session", 0)
	if err != nil {
		f.Fatal(err)
	}
	alice := User("alice")
	minted, err := h.Seal(f.Context(), alice, "session-7")
	if err != nil {
		f.Fatal(err)
	}
	codec := h.format.record.codec
	payload, err := codec.Open(f.Context(), nil, minted[4:])
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(minted), false)
	f.Add([]byte("mh1."), false)
	f.Add(payload, true)
	f.Add(payload[:127], true)
	f.Add(payload[:62], true)
	f.Fuzz(func(t *testing.T, data []byte, crafted bool) {
		text := string(data)
		if crafted {
			sealed, err := codec.Seal(t.Context(), []byte("mh1."), data)
			if err != nil {
				t.Fatal(err)
			}
			text = string(sealed)
		}
		id, err := h.Open(t.Context(), alice, text)
		if err != nil {
			if id != "" || !errors.Is(err, ErrRejected) {
				t.Fatalf("%q beside another error: %v", id, err)
			}
			return
		}
		if !crafted {
			if text != minted {
				t.Fatalf("%q opens and was never sealed", text)
			}
			return
		}
		head, _, reason := parseHandle(data)
		if reason != "" {
			t.Fatalf("opens although it is %s", reason)
		}
		binding, _ := h.bind(t.Context(), alice)
		issued, lifetime := native.Instant(head[:], handleIssued), native.Span(head[:], handleLifetime)
		if again := appendHandle(nil, issued, lifetime, &binding, id); !bytes.Equal(again, data) {
			t.Fatalf("%x opens, and is written as %x", data, again)
		}
	})
}
