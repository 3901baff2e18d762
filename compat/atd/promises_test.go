package atd

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var testKey = []byte("hush-hush-hush-hush-hush-hush-32")

var list = Request{Tool: "list_rows", Caller: "alice", Arguments: []byte(`{"table":"t","limit":10}`)}

func mustIssue(t *testing.T, i *Issuer, request Request, page Page) string {
	t.Helper()
	cursor, err := i.Issue(request, page)
	if err != nil {
		t.Fatal(err)
	}
	return cursor
}

func TestACursorOpensForItsRequestAlone(t *testing.T) {
	i := issuer(t, testKey, nil)
	page := Page{Index: 2, State: []byte("after=100")}
	cursor := mustIssue(t, i, list, page)
	for _, spelling := range []string{`{"table":"t","limit":10}`, ` {"limit":10, "table":"\u0074"} `} {
		request := list
		request.Arguments = []byte(spelling)
		if got, err := i.Open(request, cursor); err != nil || got.Index != 2 || !bytes.Equal(got.State, page.State) {
			t.Errorf("%v, %v", got, err)
		}
	}
	for name, change := range map[string]func(*Request){
		"tool":         func(r *Request) { r.Tool = "list_rows2" },
		"caller":       func(r *Request) { r.Caller = "bob" },
		"nobody":       func(r *Request) { r.Caller = "" },
		"arguments":    func(r *Request) { r.Arguments = []byte(`{"table":"t","limit":11}`) },
		"no arguments": func(r *Request) { r.Arguments = nil },
	} {
		request := list
		change(&request)
		if _, err := i.Open(request, cursor); !errors.Is(err, ErrMismatch) {
			t.Errorf("another %s: %v", name, err)
		}
		reverse := mustIssue(t, i, request, page)
		if _, err := i.Open(list, reverse); !errors.Is(err, ErrMismatch) {
			t.Errorf("another %s, the other way: %v", name, err)
		}
	}
	broken := list
	broken.Arguments = []byte(`{"a":1,"a":2}`)
	if _, err := i.Issue(broken, page); err == nil {
		t.Error("two members of one name are fingerprinted")
	}
}

func TestNoSecondTextOpens(t *testing.T) {
	i := issuer(t, testKey, nil)
	cursor := mustIssue(t, i, list, Page{Index: 1})
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ \n\r\t\x00\xff."
	refuse := func(text string) {
		if _, err := i.Open(list, text); !errors.Is(err, ErrSignature) && !errors.Is(err, ErrFormat) {
			t.Fatalf("%q: %v", text, err)
		}
	}
	for n := range len(cursor) {
		for _, c := range []byte(characters) {
			if cursor[n] != c {
				refuse(cursor[:n] + string([]byte{c}) + cursor[n+1:])
			}
			refuse(cursor[:n] + string([]byte{c}) + cursor[n:])
		}
		refuse(cursor[:n])
	}
	refuse(cursor + "=")
	if _, err := issuer(t, bytes.Repeat([]byte("k"), 32), nil).Open(list, cursor); !errors.Is(err, ErrSignature) {
		t.Errorf("another key: %v", err)
	}
}

func TestTimeIsCheckedLast(t *testing.T) {
	i := issuer(t, testKey, nil)
	synctest.Test(t, func(t *testing.T) {
		cursor := mustIssue(t, i, list, Page{Index: 1})
		other := list
		other.Caller = "bob"
		time.Sleep(defaultTTL)
		if _, err := i.Open(list, cursor); err != nil {
			t.Errorf("at the last instant: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := i.Open(list, cursor); !errors.Is(err, ErrExpired) {
			t.Errorf("a second later: %v", err)
		}
		if _, err := i.Open(other, cursor); !errors.Is(err, ErrMismatch) {
			t.Errorf("another caller's, expired: %v", err)
		}
	})
}

func TestReplicasShareASession(t *testing.T) {
	cursor := mustIssue(t, issuer(t, testKey, nil), list, Page{Index: 1})
	if _, err := issuer(t, testKey, nil).Open(list, cursor); err != nil {
		t.Errorf("a replica with the same key: %v", err)
	}
	session := []byte("release7")
	cursor = mustIssue(t, issuer(t, testKey, session), list, Page{Index: 1})
	if _, err := issuer(t, testKey, session).Open(list, cursor); err != nil {
		t.Errorf("a replica with the same session: %v", err)
	}
	if _, err := issuer(t, testKey, []byte("release8")).Open(list, cursor); !errors.Is(err, ErrExpired) {
		t.Errorf("another session: %v", err)
	}
}

func TestBothSpellingsOfLargeFloatsOpen(t *testing.T) {
	request := Request{Tool: "t", Arguments: []byte(`{"x":1e16,"y":1e-7}`)}
	for _, style := range []bool{false, true} {
		i, err := NewIssuer(testKey, Options{PlainExponents: style})
		if err != nil {
			t.Fatal(err)
		}
		cursor := mustIssue(t, i, request, Page{Index: 1})
		for _, plain := range []bool{false, true} {
			other, err := NewIssuer(testKey, Options{PlainExponents: plain})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := other.Open(request, cursor); err != nil {
				t.Errorf("%v does not open for %v: %v", style, plain, err)
			}
		}
	}
}

func TestSizes(t *testing.T) {
	i := issuer(t, testKey, nil)
	request := Request{Tool: strings.Repeat("t", 20), Caller: strings.Repeat("c", 12)}
	if _, err := i.Issue(request, Page{State: make([]byte, 137)}); err != nil {
		t.Errorf("137 bytes do not fit: %v", err)
	}
	if _, err := i.Issue(request, Page{State: make([]byte, MaxState)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("256 bytes fit: %v", err)
	}
	if _, err := i.Issue(request, Page{State: make([]byte, MaxState+1)}); !errors.Is(err, ErrStateTooLarge) {
		t.Errorf("257 bytes: %v", err)
	}
	if _, err := i.Open(request, strings.Repeat("A", MaxCursor+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("513 characters: %v", err)
	}
	for levels, ok := range map[int]bool{127: true, 128: false} {
		deep := Request{Arguments: []byte(strings.Repeat("[", levels) + strings.Repeat("]", levels))}
		if _, err := i.Issue(deep, Page{}); (err == nil) != ok {
			t.Errorf("%d levels: %v", levels, err)
		}
	}
	if _, err := i.Issue(Request{Tool: "\xff"}, Page{}); err == nil {
		t.Error("a tool that is not text has a cursor")
	}
}

func TestTheKeyComesFromTheEnvironment(t *testing.T) {
	var log strings.Builder
	options := Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	cursor := mustIssue(t, issuer(t, testKey, nil), list, Page{Index: 1})
	for _, text := range []string{
		base64.StdEncoding.EncodeToString(testKey), base64.RawURLEncoding.EncodeToString(testKey), " " + base64.StdEncoding.EncodeToString(testKey) + "\n",
	} {
		t.Setenv(keyName, text)
		i, err := NewIssuer(nil, options)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := i.Open(list, cursor); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"hush", base64.StdEncoding.EncodeToString(testKey[:31]), "hush!" + base64.StdEncoding.EncodeToString(testKey)} {
		t.Setenv(keyName, text)
		if _, err := NewIssuer(nil, options); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if log.Len() != 0 {
		t.Errorf("the log says %s", log.String())
	}
	t.Setenv(keyName, " ")
	i, err := NewIssuer(nil, options)
	if err != nil || !strings.Contains(log.String(), "random") {
		t.Errorf("%v, the log says %s", err, log.String())
	}
	if _, err := i.Open(list, cursor); !errors.Is(err, ErrSignature) {
		t.Errorf("a random key: %v", err)
	}
	for name, make := range map[string]func() (*Issuer, error){
		"short key":     func() (*Issuer, error) { return NewIssuer(testKey[:31], options) },
		"empty key":     func() (*Issuer, error) { return NewIssuer([]byte{}, options) },
		"short session": func() (*Issuer, error) { return NewIssuer(testKey, Options{Session: []byte("x")}) },
		"short TTL":     func() (*Issuer, error) { return NewIssuer(testKey, Options{TTL: 300}) },
	} {
		if _, err := make(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestTheKeyDoesNotPrint(t *testing.T) {
	i := issuer(t, testKey, nil)
	printed := fmt.Sprintf("%v %+v %#v %s %x %d", i, i, i, i, i, i) + fmt.Sprintf("%+v", struct{ i *Issuer }{i})
	for _, leak := range []string{"hush", "68757368", "104 117", "0x68, 0x75"} {
		if strings.Contains(printed, leak) {
			t.Errorf("printed: %s", printed)
		}
	}
}

// FuzzCursor verifies arbitrary texts, and cursors with an arbitrary body. Only somebody with the
// key can make such cursors.
func FuzzCursor(f *testing.F) {
	i, err := NewIssuer(testKey, Options{})
	if err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("..", "testdata", "vectors", "atd-cursor.json"))
	if err != nil {
		f.Fatal(err)
	}
	var file struct{ Cases []vector }
	if err := json.Unmarshal(text, &file); err != nil {
		f.Fatal(err)
	}
	for _, c := range file.Cases {
		f.Add([]byte(c.Token), false)
		if body, err := base64.RawURLEncoding.DecodeString(c.Token); err == nil && len(body) > 32 {
			f.Add(body[:len(body)-32], true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, crafted bool) {
		cursor := string(data)
		if crafted {
			sum := i.mac.sum([]byte(cursor))
			cursor = base64.RawURLEncoding.EncodeToString(append(data[:len(data):len(data)], sum...))
		}
		p, err := i.verify(cursor)
		if err != nil {
			return
		}
		if !crafted {
			t.Fatalf("%q opens and was never issued", cursor)
		}
		again, err := i.issue(p)
		if err != nil || again != cursor {
			t.Fatalf("the payload of %q is issued as %q, %v", cursor, again, err)
		}
	})
}
