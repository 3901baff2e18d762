package cursor_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// testdata/cursors.json holds fixed cursors. Every release must open some of them and reject
// the others. The script testdata/verify.mjs in the root directory checks them against
// docs/token.md.
const vectorFile = "testdata/cursors.json"

var update = flag.Bool("update", false, "mint "+vectorFile+" anew")

type vector struct {
	Name      string  `json:"name"`
	Secret    string  `json:"secret"`
	Cursor    string  `json:"cursor"`
	Method    string  `json:"method"`
	Target    string  `json:"target"`
	Arguments *string `json:"arguments,omitempty"`
	Audience  string  `json:"audience"`
	Epoch     string  `json:"epoch"`
	User      string  `json:"user"`
	Who       byte    `json:"who"`
	Issued    int64   `json:"issued"`
	Lifetime  int64   `json:"lifetime"`
	Page      int     `json:"page"`
	Position  string  `json:"position"` // in hexadecimal
}

type vectorSet struct {
	Cursors  []vector `json:"cursors"`
	Rejected []vector `json:"rejected"`
}

func (v *vector) request() tripseal.Request {
	request := tripseal.Request{Method: v.Method, Target: v.Target}
	if v.Arguments != nil {
		request.Arguments = []byte(*v.Arguments)
	}
	if v.User != "" {
		request.Principal = tripseal.User(v.User)
	}
	return request
}

func (v *vector) ring(t *testing.T) *tripseal.Ring {
	t.Helper()
	secret, err := hex.DecodeString(v.Secret)
	if err != nil {
		t.Fatal(err)
	}
	key, err := tripseal.NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := tripseal.NewRing(key)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func (v *vector) service(t *testing.T) service {
	return newService(t, settings{Keys: v.ring(t), Audience: v.Audience, Epoch: v.Epoch})
}

// open opens the cursor half a second after it was issued.
func (v *vector) open(t *testing.T) (page cursor.Page, err error) {
	s, request := v.service(t), v.request()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.UnixMilli(v.Issued + 500)))
		page, err = s.Open(t.Context(), request, v.Cursor)
	})
	return page, err
}

func TestVectors(t *testing.T) {
	if *update {
		mintVectors(t)
	}
	text, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var set vectorSet
	if err := json.Unmarshal(text, &set); err != nil || len(set.Cursors) < 5 || len(set.Rejected) < 10 {
		t.Fatalf("%d cursors, %d rejected, %v", len(set.Cursors), len(set.Rejected), err)
	}
	for _, v := range set.Cursors {
		page, err := v.open(t)
		if err != nil || page.Number() != v.Page || hex.EncodeToString(page.Position()) != v.Position {
			t.Errorf("%s: page %d at %x, %v", v.Name, page.Number(), page.Position(), err)
		}
	}
	for _, v := range set.Rejected {
		if page, err := v.open(t); err == nil {
			t.Errorf("%s: opens page %d", v.Name, page.Number())
		}
	}
}

// mintVectors writes the file: cursors that must open, and cursors that must be rejected. Some of
// the latter could be made only by somebody with the key.
func mintVectors(t *testing.T) {
	arguments := `{"table":"t","limit":1e1}`
	secret := "7205f81c88f5a891dfdcb257e58d6e54e0ebb9124b7124d6d5b4c2293af76e0b"
	base := vector{Secret: secret, Method: "tools/call", Target: "list_rows", Audience: "rows.example.com"}
	var set vectorSet
	for _, change := range []func(*vector){
		func(v *vector) { v.Name, v.Arguments, v.User, v.Position = "a user's", &arguments, "alice", "0102ff" },
		func(v *vector) { v.Name = "nobody's" },
		func(v *vector) { v.Name, v.Method, v.Target, v.Who = "everybody's list", "tools/list", "", 2 },
		func(v *vector) { v.Name, v.Epoch, v.User = "with an epoch", "7", "älice" },
		func(v *vector) {
			v.Name, v.Target, v.User, v.Position = "long names", strings.Repeat("t", 200), strings.Repeat("u", 200), strings.Repeat("ff", 256)
		},
	} {
		v := base
		change(&v)
		v.mint(t)
		set.Cursors = append(set.Cursors, v)
	}
	reject := func(name string, change func(*vector)) {
		v := set.Cursors[0]
		v.Name = name
		change(&v)
		set.Rejected = append(set.Rejected, v)
	}
	crafted := func(name string, change func(payload []byte) []byte) {
		reject(name, func(v *vector) {
			codec := tripseal.RingCodec(v.ring(t), tripseal.PurposeCursor)
			payload, err := codec.Open(t.Context(), nil, strings.TrimPrefix(v.Cursor, "mc1."))
			if err != nil {
				t.Fatal(err)
			}
			sealed, err := codec.Seal(t.Context(), []byte("mc1."), change(payload))
			if err != nil {
				t.Fatal(err)
			}
			v.Cursor = string(sealed)
		})
	}
	reject("another user", func(v *vector) { v.User = "bob" })
	reject("nobody", func(v *vector) { v.User = "" })
	reject("another target", func(v *vector) { v.Target = "list_row" })
	reject("moved between method and target", func(v *vector) { v.Method, v.Target = "tools/calll", "ist_rows" })
	reject("moved between audience and epoch", func(v *vector) { v.Audience, v.Epoch = "rows.example.co", "m" })
	other := `{"table":"t","limit":11}`
	reject("other arguments", func(v *vector) { v.Arguments = &other })
	reject("padding", func(v *vector) { v.Cursor += "=" })
	reject("a state's prefix", func(v *vector) { v.Cursor = "ms1." + v.Cursor[4:] })
	crafted("another purpose", func(p []byte) []byte { p[0] = 'S'; return p })
	crafted("another version", func(p []byte) []byte { p[1] = 2; return p })
	crafted("an unknown who", func(p []byte) []byte { p[2] = 3; return p })
	crafted("a user's as everybody's", func(p []byte) []byte { p[2] = 2; return p })
	crafted("no lifetime", func(p []byte) []byte { clear(p[9:14]); return p })
	crafted("page 0", func(p []byte) []byte { clear(p[14:18]); return p })
	crafted("the last byte of the service", func(p []byte) []byte { p[33]++; return p })
	crafted("the last byte of the digest", func(p []byte) []byte { p[49]++; return p })
	crafted("cut short", func(p []byte) []byte { return p[:55] })
	crafted("less padding", func(p []byte) []byte { return p[:len(p)-1] })
	crafted("more padding", func(p []byte) []byte { return append(p, 0) })
	crafted("other padding", func(p []byte) []byte { p[len(p)-1] = 1; return p })
	crafted("a position that is longer than the record", func(p []byte) []byte { p[54] = 1; return p })
	crafted("expired", func(p []byte) []byte { binary.BigEndian.PutUint32(p[10:], 400); return p })
	text, err := json.MarshalIndent(set, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(vectorFile, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (v *vector) mint(t *testing.T) {
	t.Helper()
	position, err := hex.DecodeString(v.Position)
	if err != nil {
		t.Fatal(err)
	}
	s, request := v.service(t), v.request()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.UnixMilli(1_766_620_800_000)))
		v.Cursor = s.first(t, request, cursor.NextPage{Position: position, Shared: v.Who == 2})
	})
	v.Issued, v.Lifetime, v.Page = 1_766_620_800_000, time.Hour.Milliseconds(), 1
	if v.User != "" {
		v.Who = 1
	}
}
