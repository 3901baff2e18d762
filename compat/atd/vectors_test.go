package atd

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// vector is one case that was made by running the peer.
type vector struct {
	ID, Name, Kind, Expect, Variant string
	Malleable, Unsafe, Advisory     bool

	KeyHex    string   `json:"key_hex"`
	PayloadIn *content `json:"payload_in"`
	Payload   *content
	Token     string
	BodyHex   string `json:"cbor_hex"`
	Internals *struct {
		BodyHex string `json:"cbor_hex"`
		MACHex  string `json:"mac_hex"`
	}
	Verify *struct {
		KeyHex     string `json:"key_hex"`
		SessionHex string `json:"session_nonce_hex"`
		Now        int64
		TTL        uint64
	}
}

// content is a payload as the vectors write it.
type content struct {
	Tool        string  `json:"tool_id"`
	Caller      *string `json:"caller_id"`
	Fingerprint string  `json:"args_fingerprint"`
	Page        uint32  `json:"page_index"`
	Issued      uint64  `json:"issued_at_unix"`
	Session     string  `json:"server_session"`
	State       string  `json:"opaque_state"`
}

var variants = map[string]error{
	"Expired": ErrExpired, "InvalidSignature": ErrSignature, "Format": ErrFormat,
	"TooLarge": ErrTooLarge, "OpaqueStateTooLarge": ErrStateTooLarge,
}

func TestVectors(t *testing.T) {
	dir := os.Getenv("TRIPSEAL_VECTORS")
	if dir == "" {
		dir = filepath.Join("..", "testdata", "vectors")
	}
	text, err := os.ReadFile(filepath.Join(dir, "atd-cursor.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []vector }
	if err := json.Unmarshal(text, &file); err != nil || len(file.Cases) == 0 {
		t.Fatalf("%d cases, %v", len(file.Cases), err)
	}
	checkers := map[string]func(*testing.T, *vector) error{
		"roundtrip": checkCursor, "mutated": checkCursor, "crafted": checkCursor,
		"issue": checkIssue,
	}
	counts := map[string]int{}
	for i := range file.Cases {
		c := &file.Cases[i]
		check := checkers[c.Kind]
		if c.Kind == "fingerprint" {
			continue // compat checks these
		}
		if check == nil {
			t.Errorf("%s: cases of the kind %q are unknown here", c.ID, c.Kind)
			continue
		}
		counts[c.Kind]++
		t.Run(c.ID, func(t *testing.T) { judge(t, c, check(t, c)) })
	}
	var summary []string
	for kind, count := range counts {
		summary = append(summary, fmt.Sprintf("%d %s", count, kind))
	}
	slices.Sort(summary)
	t.Logf("atd-cursor.json: %s", strings.Join(summary, ", "))
}

// judge compares our result with the peer's. It allows only differences that the vector marks.
func judge(t *testing.T, c *vector, err error) {
	t.Helper()
	if c.Expect != "accept" && c.Expect != "reject" {
		t.Fatalf("%q: expects %q, which is unknown here", c.Name, c.Expect)
	}
	switch {
	case c.Malleable || c.Unsafe:
		if err == nil {
			t.Errorf("%q is accepted, and must not be", c.Name)
		}
	case err == nil && c.Expect == "reject":
		t.Errorf("%q is accepted, the peer rejects it", c.Name)
	case err != nil && c.Expect == "accept" && !c.Advisory:
		t.Errorf("%q is rejected, the peer accepts it: %v", c.Name, err)
	case c.Variant != "" && !errors.Is(err, variants[c.Variant]):
		t.Errorf("%q is rejected with %v, by the peer with %s", c.Name, err, c.Variant)
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (c *content) payload(t *testing.T) *payload {
	return &payload{
		Tool: c.Tool, Caller: c.Caller, Page: c.Page, Issued: c.Issued,
		Fingerprint: numbersOf(unhex(t, c.Fingerprint)), Session: numbersOf(unhex(t, c.Session)), State: unhex(t, c.State),
	}
}

func issuer(t *testing.T, key, session []byte) *Issuer {
	t.Helper()
	i, err := NewIssuer(key, Options{Session: session})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func equal(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %s, want %s", what, got, want)
	}
}

func checkIssue(t *testing.T, c *vector) error {
	p := c.PayloadIn.payload(t)
	body, err := p.encode()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the body", hex.EncodeToString(body), c.BodyHex)
	_, err = issuer(t, unhex(t, c.KeyHex), nil).issue(p)
	return err
}

func checkCursor(t *testing.T, c *vector) error {
	if c.Kind == "roundtrip" {
		p := c.PayloadIn.payload(t)
		body, err := p.encode()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "the body", hex.EncodeToString(body), c.Internals.BodyHex)
		i := issuer(t, unhex(t, c.KeyHex), nil)
		sum := i.mac.sum(body)
		equal(t, "the MAC", hex.EncodeToString(sum), c.Internals.MACHex)
		token, err := i.issue(p)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "the cursor", token, c.Token)
	}
	i := issuer(t, unhex(t, c.Verify.KeyHex), unhex(t, c.Verify.SessionHex))
	i.ttl = c.Verify.TTL
	p, err := i.verify(c.Token)
	if err != nil {
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		if wait := time.Until(time.Unix(c.Verify.Now, 0)); wait > 0 {
			time.Sleep(wait)
		} else {
			t.Fatalf("the instant %d is before the bubble's clock begins", c.Verify.Now)
		}
		err = i.inTime(p)
	})
	if err == nil && c.Payload != nil {
		got, _ := p.encode()
		want, _ := c.Payload.payload(t).encode()
		equal(t, "the payload", hex.EncodeToString(got), hex.EncodeToString(want))
	}
	return err
}
