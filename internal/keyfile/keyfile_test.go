package keyfile_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
)

var noon = time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)

func TestDocumentComesBackAsItWas(t *testing.T) {
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	text := "tripseal-keys 1\n# who to ask\n\n" +
		"key " + a.ID().String() + " made=2026-07-28T11:00:00Z seals-from=2026-07-28T12:00:00Z opens-until=2026-07-29T12:00:00.5Z secret=" + a.Reveal() + "\n" +
		"  # the next\n" +
		"key " + b.ID().String() + " made=2026-07-28T11:00:00Z seals-from=2026-07-28T13:00:00Z opens-until=never secret=age:YWdl\n" +
		"revoked 01234567 seals-from=2026-06-01T00:00:00Z at=2026-07-01T00:00:00Z\n" +
		"lifetime 1h30m\n" +
		"skew 2m\n" +
		"end\n"
	d, err := keyfile.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(d.Bytes()); got != text {
		t.Errorf("it came back as\n%s", got)
	}
	// If the file was written by hand, white space may differ.
	loose := strings.NewReplacer("\n", " \r\n", " made", "\t  made", "tripseal-keys 1", " tripseal-keys  1").Replace(text) + "\n\n"
	if d, err = keyfile.Parse([]byte(loose)); err != nil {
		t.Fatal(err)
	}
	if got := string(d.Bytes()); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(text), " ") {
		t.Errorf("it came back as\n%s", got)
	}
	if k := d.Find(a.ID()); k == nil || !k.OpensUntil.Equal(noon.Add(24*time.Hour+500*time.Millisecond)) || k.Secret.Scheme() != "" {
		t.Errorf("key %v", k)
	}
	if k := d.Find(b.ID()); k == nil || !k.OpensUntil.IsZero() || k.Secret.Scheme() != "age" {
		t.Errorf("key %v", k)
	}
	if r := d.Room(); r.TTL != 90*time.Minute || r.Skew != 2*time.Minute {
		t.Errorf("room %v", r)
	}
	if r := d.Revoked(); len(r) != 1 || r[0].ID.String() != "01234567" {
		t.Errorf("revoked %v", r)
	}
}

func TestWhatIsNotADocument(t *testing.T) {
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	line := func(id, dates, secret string) string { return "key " + id + " " + dates + " secret=" + secret + "\n" }
	const dates = "made=2026-07-28T11:00:00Z seals-from=2026-07-28T12:00:00Z opens-until=never"
	good := line(a.ID().String(), dates, a.Reveal())
	file := func(body string) string { return "tripseal-keys 1\n" + body + "end\n" }
	if _, err := keyfile.Parse([]byte(file(good))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{"", "first line"},
		{" \n\t\n", "first line"},
		{"tripseal-keys 1\n" + good, "cut"},
		{"tripseal-keys 1\n" + good + "en", "cut"},
		{"tripseal-keys 2\n" + good + "end\n", "first line"},
		{good + "end\n", "first line"},
		{"end\n", "first line"},
		{"\ufeff" + file(good), "first line"},
		{file(good) + file(good), `line 3: "end" is not on the last line`},
		{file("kay\n"), "line 2: the line begins with neither"},
		{file(good + "sesame 2h\n"), "line 3: the line begins with neither"}, // what a newer release may write
		{file("lifetime\n" + good), "line 2: lifetime is not one duration"},
		{file("lifetime sesame\n" + good), "line 2: lifetime is not one duration"},
		{file("lifetime 2h 3h\n" + good), "line 2: lifetime is not one duration"},
		{file("lifetime 0s\n" + good), "line 2: lifetime is not one duration"},
		{file("lifetime -2h\n" + good), "line 2: lifetime is not one duration"},
		{file("lifetime 90000h\n" + good), "line 2: lifetime is not one duration"},
		{file("skew 61m\n" + good), "line 2: skew is not one duration"},
		{file("lifetime 2h\n" + good + "lifetime 2h\n"), "lines 2 and 4 are both about lifetime"},
		{file("key\n"), "line 2: the id is missing"},
		{file(line("0123456", dates, a.Reveal())), "line 2: the second word is not an id"},
		{file(line("012345678", dates, a.Reveal())), "line 2: the second word is not an id"},
		{file(line(strings.ToUpper("abcdefab"), dates, a.Reveal())), "line 2: the second word is not an id"},
		{file(line(b.ID().String(), dates, a.Reveal())), "the secret is that of another key, " + a.ID().String()},
		{file("\n" + line(a.ID().String(), "made=2026-07-28T11:00:00Z opens-until=never", a.Reveal())), "line 3: key " + a.ID().String() + ": seals-from is missing"},
		{file(line(a.ID().String(), dates+" made=2026-07-28T11:00:00Z", a.Reveal())), "word 6 is not one of made=…, seals-from=…"},
		{file(line(a.ID().String(), dates+" sesame=1", a.Reveal())), "word 6 is not one of"},
		{file(line(a.ID().String(), dates+" sesame", a.Reveal())), "word 6 is not one of"},
		{file(line(a.ID().String(), strings.Replace(dates, "never", "soon", 1), a.Reveal())), `opens-until is not a time such as 2026-07-28T09:30:00Z`},
		{file(line(a.ID().String(), strings.Replace(dates, "2026-07-28T12", "1926-07-28T12", 1), a.Reveal())), "seals-from is not a time"},
		{file(line(a.ID().String(), dates, a.Reveal()[:30])), "the secret is not the text of a key"},
		{file(line(a.ID().String(), dates, "sesame")), "the secret is not the text of a key"},
		{file(line(a.ID().String(), dates, "age:sesame!")), "not base64"},
		{file(line(a.ID().String(), dates, "age:")), "not base64"},
		{file(line(a.ID().String(), dates, "Sesame:YWdl")), "neither a key nor a wrapped key"},
		{file(good + good), "lines 2 and 3 are both about " + a.ID().String()},
		{file(good + "revoked " + a.ID().String() + " seals-from=2026-07-28T11:00:00Z at=2026-07-28T11:00:00Z\n"), "both about"},
		{file("revoked 01234567 seals-from=2026-06-01T00:00:00Z at=sesame\n"), "at is not a time"},
		{file("revoked 01234567\n"), "seals-from is missing"},
		{file(strings.Repeat("#"+strings.Repeat("x", 1022)+"\n", 1024)), "more than"},
	} {
		_, err := keyfile.Parse([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %q", c.text, err, c.want)
		}
		if err != nil && (strings.Contains(strings.ToLower(err.Error()), "sesame") || strings.Contains(err.Error(), a.Reveal()[15:25])) {
			t.Errorf("the error repeats the file: %v", err)
		}
	}
}

func TestTooManyKeys(t *testing.T) {
	var body strings.Builder
	for i := range keyfile.MaxKeys + 1 {
		fmt.Fprintf(&body, "key %08x made=2026-07-28T11:00:00Z seals-from=2026-07-28T12:00:00Z opens-until=never secret=x:YQ==\n", i)
	}
	if _, err := keyfile.Parse([]byte("tripseal-keys 1\n" + body.String() + "end\n")); err == nil || !strings.Contains(err.Error(), "more than 1000") {
		t.Error(err)
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	key := tripseal.GenerateKey()
	k := &keyfile.Key{ID: key.ID(), Secret: keyfile.Plain(key)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%e"} {
		for _, value := range []any{k, *k, k.Secret, &k.Secret} {
			if text := fmt.Sprintf(verb, value); strings.Contains(text, key.Reveal()[13:30]) {
				t.Errorf("%s of %T prints the secret", verb, value)
			}
		}
	}
}

var room = keyfile.Room{TTL: 10 * time.Minute, Skew: time.Minute}

// schedule returns a document with a key for each pair of numbers, in minutes after noon. The key
// seals from the first number on, and opens until the second number. If the second number is -1,
// the key never expires.
func schedule(t *testing.T, keys ...[2]int) *keyfile.Document {
	t.Helper()
	var d keyfile.Document
	for _, k := range keys {
		key := tripseal.GenerateKey()
		made := &keyfile.Key{ID: key.ID(), Made: noon, SealsFrom: noon.Add(time.Duration(k[0]) * time.Minute), Secret: keyfile.Plain(key)}
		if k[1] >= 0 {
			made.OpensUntil = noon.Add(time.Duration(k[1]) * time.Minute)
		}
		d.Add(made)
	}
	return &d
}

func at(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }

// TestRevokedKeysStillEndedTheOnesBefore revokes one of three keys. The first key stopped sealing
// when the second key began to seal. A revocation of the second key does not change that if the
// third key already seals.
func TestRevokedKeysStillEndedTheOnesBefore(t *testing.T) {
	for _, c := range []struct {
		name      string
		keys      [][2]int
		revoke    int
		revokedAt int
		now       int
		want      string
	}{
		{"replaced at once", [][2]int{{0, 72}, {60, 100}, {65, -1}}, 1, 65, 65, ""},
		{"the one before is long over", [][2]int{{0, 72}, {60, 2000}, {1000, -1}}, 1, 1000, 1000, ""},
		{"ended too early all the same", [][2]int{{0, 71}, {60, 100}, {65, -1}}, 1, 65, 65, "opens-until must be 2026-07-28T13:12:00Z"},
		{"revoked before it sealed", [][2]int{{0, 72}, {60, 100}, {120, -1}}, 1, 30, 30, "opens-until must be 2026-07-28T14:12:00Z"},
		{"of another time", [][2]int{{0, -1}, {60, 71}, {120, -1}}, 0, 120, 60, "opens-until must be"},
	} {
		d := schedule(t, c.keys...)
		d.Revoke(d.Schedule()[c.revoke].ID, at(c.revokedAt), keyfile.Room{})
		again, err := keyfile.Parse(d.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		err = again.Check(at(c.now), room)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestScheduleThatWouldLoseTokensIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		keys [][2]int
		now  int
		want string // "" is accepted
	}{
		{"one", [][2]int{{0, -1}}, 0, ""},
		{"none", nil, 0, "there is no key"},
		{"exactly the TTL and twice the skew", [][2]int{{0, 72}, {60, -1}}, 0, ""},
		{"a minute less", [][2]int{{0, 71}, {60, -1}}, 0, "opens-until must be 2026-07-28T13:12:00Z"},
		{"whatever the order in the file", [][2]int{{60, -1}, {0, 71}}, 0, "opens-until must be"},
		{"gone before its successor seals", [][2]int{{0, 30}, {60, -1}}, 0, "opens-until must be"},
		{"still too early although both dates are past", [][2]int{{0, 61}, {60, -1}}, 71, "opens-until must be"},
		{"so long ago that no token is left", [][2]int{{0, 61}, {60, -1}}, 72, ""},
		{"measured against the successor, not the last", [][2]int{{0, 72}, {60, 252}, {240, -1}}, 0, ""},
		{"the middle one too early", [][2]int{{0, 72}, {60, 251}, {240, -1}}, 0, "opens-until must be"},
		{"nothing follows the last", [][2]int{{0, 72}, {60, 600}}, 0, "no key follows"},
		{"an only one that ends", [][2]int{{0, 600}}, 0, "no key follows"},
		{"two at once", [][2]int{{0, -1}, {0, -1}}, 0, "the same seals-from"},
		{"old ones that never end", [][2]int{{0, -1}, {10, -1}, {20, -1}}, 0, ""},
	} {
		err := schedule(t, c.keys...).Check(noon.Add(time.Duration(c.now)*time.Minute), room)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestKeysSealInTurn(t *testing.T) {
	s := schedule(t, [2]int{0, 72}, [2]int{60, -1}).Schedule()
	for _, c := range []struct {
		minute, sealer int
		firstOpens     bool
		since, until   int // -1 is none
	}{
		{-5, 0, true, -1, 0}, // a clock that is behind
		{0, 0, true, 0, 60},
		{59, 0, true, 0, 60},
		{60, 1, true, 60, 72},
		{71, 1, true, 60, 72},
		{72, 1, false, 72, -1},
		{10000, 1, false, 72, -1},
	} {
		now := at(c.minute)
		if s.SealerAt(now) != s[c.sealer] || s[0].Opens(now) != c.firstOpens || !s[1].Opens(now) {
			t.Errorf("minute %d: %s seals", c.minute, s.SealerAt(now).ID)
		}
		since, until := s.Around(now)
		for _, m := range []struct {
			got  time.Time
			want int
		}{{since, c.since}, {until, c.until}} {
			if m.want < 0 && !m.got.IsZero() || m.want >= 0 && !m.got.Equal(at(m.want)) {
				t.Errorf("minute %d: %v, want minute %d", c.minute, m.got, m.want)
			}
		}
	}
	if s := schedule(t, [2]int{0, 10}).Schedule(); s.SealerAt(at(60)) != nil {
		t.Error("a key past its time seals")
	}
}

func FuzzParse(f *testing.F) {
	key := tripseal.GenerateKey() // differs from process to process, but only the shape of the text matters
	f.Add([]byte("tripseal-keys 1\n#\nkey " + key.ID().String() + " made=2026-07-28T11:00:00Z seals-from=2026-07-28T12:00:00Z opens-until=never secret=" + key.Reveal() + "\nend\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := keyfile.Parse(text)
		if err != nil {
			return
		}
		written := d.Bytes()
		again, err := keyfile.Parse(written)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, written)
		}
		if !bytes.Equal(again.Bytes(), written) {
			t.Fatalf("%s\nbecame\n%s", written, again.Bytes())
		}
		if s := d.Schedule(); d.Check(noon, room) == nil {
			for _, at := range []time.Time{noon, noon.Add(time.Hour), noon.Add(1e6 * time.Hour)} {
				if sealing := s.SealerAt(at); sealing == nil || !sealing.Opens(at) {
					t.Fatalf("a schedule that was accepted has nothing to seal with at %v", at)
				}
			}
		}
		keyfile.MakeRoom(d, noon, room)
		if err := d.Check(noon, room); err != nil && strings.Contains(err.Error(), "too early") {
			t.Fatalf("there is room, and still: %v", err)
		}
	})
}
