package tripseal_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

const session = "hush-session-7"

var alice, mallory = tripseal.User("hush-alice"), tripseal.User("hush-mallory")

// handles is a Handles under test with the logbook of its boundary.
type handles struct {
	*tripseal.Handles
	book *logbook
}

// newHandles makes handles of the kind session.
func newHandles(t *testing.T, config tripseal.Config, lifetime time.Duration) handles {
	t.Helper()
	return newService(t, config).handles(t, "session", lifetime)
}

func (s service) handles(t *testing.T, kind string, lifetime time.Duration) handles {
	t.Helper()
	h, err := tripseal.NewHandles(s.Boundary, kind, lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return handles{h, s.book}
}

func (h handles) seal(t *testing.T, principal tripseal.Principal, id string) string {
	t.Helper()
	handle, err := h.Seal(t.Context(), principal, id)
	if err != nil {
		t.Fatal(err)
	}
	leaks.register(handle, handle[len(handle)/2:])
	return handle
}

// accept opens a handle that must open.
func (h handles) accept(t *testing.T, principal tripseal.Principal, handle, want string) {
	t.Helper()
	if id, err := h.Open(t.Context(), principal, handle); err != nil || id != want {
		t.Fatalf("opens as %q, %v: %v", id, err, h.book.lastEvent(t).Reason)
	}
}

// reject opens a handle, and checks that it is rejected with the wanted reason, which only the log
// and the observer get.
func (h handles) reject(t *testing.T, principal tripseal.Principal, handle string, want tripseal.Reason) {
	t.Helper()
	id, err := h.Open(t.Context(), principal, handle)
	leaks.scan("%v %+v %#v %q", err, err, err, err)
	var rejected *tripseal.RejectError
	if id != "" || !errors.As(err, &rejected) || !errors.Is(err, tripseal.ErrRejected) {
		t.Fatalf("opens as %q, %v, want a rejection as %s", id, err, want)
	}
	if rejected.Reason != want {
		t.Fatalf("rejected as %s, want %s", rejected.Reason, want)
	}
	if err.Error() != "tripseal: token rejected" {
		t.Fatalf("the error's text differs: %v", err)
	}
	h.told(t, "tripseal: handle rejected", tripseal.OpOpenHandle, want)
}

// refuse seals an id, and checks that this fails with the wanted reason.
func (h handles) refuse(t *testing.T, principal tripseal.Principal, id string, want tripseal.Reason) {
	t.Helper()
	handle, err := h.Seal(t.Context(), principal, id)
	leaks.scan("%v %+v %#v", err, err, err)
	var failed *tripseal.SealError
	if handle != "" || !errors.As(err, &failed) || failed.Reason != want ||
		err.Error() != "tripseal: handle not sealed: "+string(want) {
		t.Fatalf("sealed as %q, %v, want reason %s", handle, err, want)
	}
	h.told(t, "tripseal: handle not sealed", tripseal.OpSealHandle, want)
	logged := h.book.last(t)
	if want != tripseal.ReasonUser && (failed.Cause() == nil || logged["cause"] != failed.Cause().Error()) || logged["level"] != "ERROR" {
		t.Fatalf("the log does not say why: %v", logged)
	}
}

// told checks what the log and the observer were told last.
func (h handles) told(t *testing.T, message string, op tripseal.Op, reason tripseal.Reason) {
	t.Helper()
	logged, seen := h.book.last(t), h.book.lastEvent(t)
	if logged["reason"] != string(reason) || logged["msg"] != message || logged["target"] != "session" {
		t.Fatalf("the log says %v, want %s", logged, reason)
	}
	if seen.Reason != reason || seen.Op != op || seen.Target != "session" {
		t.Fatalf("the observer saw %+v, want %s", seen, reason)
	}
}

func TestAnyIDComesBackUnchanged(t *testing.T) {
	h := newHandles(t, tripseal.Config{}, 0)
	for name, id := range map[string]string{
		"short":      "7",
		"text":       session,
		"binary":     "\x00\xff\xfe\x80hush\n\r\t",
		"zeros":      "hush\x00\x00",
		"64 bytes":   strings.Repeat("hush", 16),
		"65 bytes":   strings.Repeat("hush", 16) + "!",
		"66 bytes":   strings.Repeat("hush", 16) + "!!",
		"1024 bytes": strings.Repeat("hush", 256),
	} {
		t.Run(name, func(t *testing.T) {
			h.accept(t, alice, h.seal(t, alice, id), id)
			h.accept(t, nil, h.seal(t, nil, id), id)
		})
	}
}

func TestAnIDThatDoesNotFitIsNotSealed(t *testing.T) {
	h := newHandles(t, tripseal.Config{}, 0)
	h.refuse(t, alice, "", tripseal.ReasonMisuse)
	h.refuse(t, alice, strings.Repeat("hush", 256)+"!", tripseal.ReasonTooLarge)
}

func TestAShortIDDoesNotShowItsLength(t *testing.T) {
	h := newHandles(t, tripseal.Config{}, 0)
	for n := 1; n <= 66; n++ {
		handle := h.seal(t, alice, strings.Repeat("x", n))
		if (len(handle) == 218) != (n <= 65) || !strings.HasPrefix(handle, "mh1.") {
			t.Errorf("an id of %d bytes: a handle of %d characters", n, len(handle))
		}
	}
	if handle := h.seal(t, alice, strings.Repeat("x", 1024)); len(handle) != 1496 {
		t.Errorf("the longest handle has %d characters", len(handle))
	}
	if one, two := h.seal(t, alice, session), h.seal(t, alice, session); one == two {
		t.Error("two handles of one id are the same")
	}
}

func TestHandleOfAnotherUserIsRejected(t *testing.T) {
	h := newHandles(t, tripseal.Config{}, 0)
	handle := h.seal(t, alice, session)
	h.accept(t, tripseal.User("hush-alice"), handle, session)
	for _, other := range []string{"hush-mallory", "hush-alic", "hush-alice\x00", "Hush-Alice"} {
		h.reject(t, tripseal.User(other), handle, tripseal.ReasonUser)
	}
	h.reject(t, nil, handle, tripseal.ReasonUser)
	nobodys := h.seal(t, nil, session)
	h.accept(t, func(context.Context) (string, error) { return "", nil }, nobodys, session)
	h.reject(t, alice, nobodys, tripseal.ReasonUser)
}

func TestHandleOfAnotherKindIsRejected(t *testing.T) {
	s := newService(t, tripseal.Config{})
	sessions := s.handles(t, "session", 0)
	for _, kind := range []string{"job", "sessio", "sessions", "Session"} {
		others := s.handles(t, kind, 0)
		sessions.reject(t, alice, others.seal(t, alice, session), tripseal.ReasonRequest)
		others.accept(t, alice, others.seal(t, alice, session), session)
	}
	s.handles(t, "session", time.Hour).accept(t, alice, sessions.seal(t, alice, session), session)
}

func TestHandleOfAnotherServiceIsRejected(t *testing.T) {
	keys := newRing(t, newKey(t))
	h := newHandles(t, tripseal.Config{Keys: keys}, 0)
	replica := newHandles(t, tripseal.Config{Keys: keys}, 0)
	replica.accept(t, alice, h.seal(t, alice, session), session)
	for _, audience := range []string{"other", "deploy.example.co", "deploy.example.com."} {
		other := newHandles(t, tripseal.Config{Keys: keys, Audience: audience}, 0)
		h.reject(t, alice, other.seal(t, alice, session), tripseal.ReasonAudience)
	}
}

func TestTextThatWasNotSealedIsNoHandle(t *testing.T) {
	h := newHandles(t, tripseal.Config{}, 0)
	for size := range 3 { // one size for each length of the last group in base64
		handle := h.seal(t, alice, strings.Repeat("hush", 20)+strings.Repeat("!", size))
		rejected := func(text string) {
			t.Helper()
			if id, err := h.Open(t.Context(), alice, text); id != "" || !errors.Is(err, tripseal.ErrRejected) {
				t.Fatalf("%q opens as %q, %v", text, id, err)
			}
		}
		for i := range len(handle) {
			for _, c := range base64url {
				if byte(c) != handle[i] {
					rejected(handle[:i] + string(c) + handle[i+1:])
				}
			}
			rejected(handle[:i])
			rejected(handle[i+1:])
			for _, foreign := range []string{"A", "=", "+", "/", "\n", "\r\n", " ", "\x00", "é", "%3D", "."} {
				rejected(handle[:i] + foreign + handle[i:])
			}
		}
		for _, more := range []string{"A", "AA", "AAA", "AAAA", "=", "==", "\n", " ", ".", handle} {
			rejected(handle + more)
		}
		h.accept(t, alice, handle, strings.Repeat("hush", 20)+strings.Repeat("!", size))
	}
	h.reject(t, alice, "", tripseal.ReasonMalformed)
	h.reject(t, alice, session, tripseal.ReasonMalformed)
	h.reject(t, alice, "mh1.", tripseal.ReasonMalformed)
	handle := h.seal(t, alice, session)
	h.reject(t, alice, "mh2."+handle[4:], tripseal.ReasonMalformed)
	h.reject(t, alice, handle[:40]+"AAAA"+handle[44:], tripseal.ReasonForged)
	other := newHandles(t, tripseal.Config{}, 0)
	h.reject(t, alice, other.seal(t, alice, session), tripseal.ReasonUnknownKey)
}

func TestAHandleExpiresAfterItsLifetime(t *testing.T) {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	for lifetime, want := range map[time.Duration]time.Duration{0: day, time.Millisecond: time.Millisecond, time.Hour: time.Hour, year: year} {
		synctest.Test(t, func(t *testing.T) {
			h := newHandles(t, tripseal.Config{}, lifetime)
			handle := h.seal(t, alice, session)
			time.Sleep(want - time.Millisecond)
			h.accept(t, alice, handle, session)
			time.Sleep(time.Millisecond)
			h.reject(t, alice, handle, tripseal.ReasonExpired)
			h.reject(t, mallory, handle, tripseal.ReasonUser) // others do not learn that it expired
			time.Sleep(10 * 365 * 24 * time.Hour)
			h.reject(t, alice, handle, tripseal.ReasonExpired)
		})
	}
}

func TestAHandleKeepsTheLifetimeThatItWasSealedWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, tripseal.Config{})
		short, long := s.handles(t, "session", time.Minute), s.handles(t, "session", time.Hour)
		a, b := short.seal(t, alice, session), long.seal(t, alice, session)
		time.Sleep(time.Minute)
		long.reject(t, alice, a, tripseal.ReasonExpired)
		short.accept(t, alice, b, session)
	})
}

func TestHandleFromTheFutureIsRejectedBeyondTheSkew(t *testing.T) {
	keys := newRing(t, newKey(t))
	var handle string
	synctest.Test(t, func(t *testing.T) { // a replica whose clock is ahead
		time.Sleep(time.Hour + 60*time.Second)
		handle = newHandles(t, tripseal.Config{Keys: keys}, 0).seal(t, alice, session)
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHandles(t, tripseal.Config{Keys: keys}, 0)
		time.Sleep(time.Hour - time.Millisecond)
		h.reject(t, alice, handle, tripseal.ReasonFromTheFuture)
		h.reject(t, mallory, handle, tripseal.ReasonUser)
		time.Sleep(time.Millisecond)
		h.accept(t, alice, handle, session)
	})
}

// TestStatesCursorsAndHandlesAreThreeThings uses one ring and one codec of a user's for all three.
// Under the latter, only the payload's first bytes tell them apart.
func TestStatesCursorsAndHandlesAreThreeThings(t *testing.T) {
	codec := ownCodec{tripseal.RingCodec(newRing(t, newKey(t)), tripseal.PurposeState)}
	for name, c := range map[string]struct {
		config tripseal.Config
		prefix string
		want   tripseal.Reason
	}{
		"a ring":            {tripseal.Config{Keys: newRing(t, newKey(t))}, "ms1.", tripseal.ReasonForged},
		"a codec of my own": {tripseal.Config{Format: tripseal.RecordFormat("own1.", codec)}, "own1.", tripseal.ReasonVersion},
		"only opened": {tripseal.Config{
			Format: readable{}, Waive: allClaims, AlsoOpen: []tripseal.Accepted{{Format: tripseal.RecordFormat("own1.", codec)}},
		}, "own1.", tripseal.ReasonVersion},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, c.config)
			h := s.handles(t, "session", 0)
			handle := h.seal(t, alice, session)
			h.accept(t, alice, handle, session)
			cursors := must(cursor.New(s.Boundary, cursor.Options{}))
			list := tripseal.Request{Method: "tools/list", Principal: alice}
			page := must(cursors.Open(t.Context(), list, ""))
			next := must(page.Next(t.Context(), cursor.NextPage{Position: []byte(session)}))

			h.reject(t, alice, "mh1."+strings.TrimPrefix(next, "mc1."), c.want)
			h.reject(t, alice, next, tripseal.ReasonMalformed)
			if _, err := cursors.Open(t.Context(), list, "mc1."+handle[4:]); !errors.Is(err, cursor.ErrInvalid) {
				t.Errorf("a handle is a cursor: %v", err)
			}
			s.reject(t, deploy(), handle, tripseal.ReasonMalformed)
			s.reject(t, deploy(), c.prefix+handle[4:], c.want)
			if c.config.Format != (readable{}) {
				token := s.first(t, deploy(), step)
				h.reject(t, alice, "mh1."+strings.TrimPrefix(token, c.prefix), c.want)
				h.reject(t, alice, token, tripseal.ReasonMalformed)
			}
		})
	}
}

func TestAHandleOutlivesARotationButNotItsKey(t *testing.T) {
	old, now := newKey(t), newKey(t)
	before := newHandles(t, tripseal.Config{Keys: newRing(t, old)}, 0)
	during := newHandles(t, tripseal.Config{Keys: newRing(t, now, old)}, 0)
	after := newHandles(t, tripseal.Config{Keys: newRing(t, now)}, 0)
	handle := before.seal(t, alice, session)
	during.accept(t, alice, handle, session)
	after.accept(t, alice, during.seal(t, alice, session), session)
	after.reject(t, alice, handle, tripseal.ReasonUnknownKey)
	logged := after.book.last(t)
	if logged["key"] != old.ID().String() || logged["token_bytes"] != float64(len(handle)) || logged["format"] != "mh1." {
		t.Errorf("the log says %v", logged)
	}
}

func TestEphemeralHandlesNeedNoAudience(t *testing.T) {
	ring := tripseal.Ephemeral()
	boundary := func(keys *tripseal.Ring) service {
		book := &logbook{}
		b := must(tripseal.New(tripseal.Config{Keys: keys, Logger: jsonLogger(book), Observer: book.observe}))
		return service{b, book}
	}
	h := boundary(ring).handles(t, "session", 0)
	handle := h.seal(t, alice, session)
	boundary(ring).handles(t, "session", 0).accept(t, alice, handle, session)
	boundary(tripseal.Ephemeral()).handles(t, "session", 0).reject(t, alice, handle, tripseal.ReasonUnknownKey)
	named := newHandles(t, tripseal.Config{Keys: ring}, 0)
	named.reject(t, alice, handle, tripseal.ReasonAudience)
}

// TestGenuineRecordsThatBreakARuleAreRejected seals records that only somebody with the key can seal.
func TestGenuineRecordsThatBreakARuleAreRejected(t *testing.T) {
	keys := newRing(t, newKey(t))
	h := newHandles(t, tripseal.Config{Keys: keys}, time.Hour)
	codec := tripseal.RingCodec(keys, tripseal.PurposeHandle)
	payload := func(id string) []byte { return must(codec.Open(t.Context(), nil, h.seal(t, alice, id)[4:])) }
	crafted := func(payload []byte) string { return "mh1." + string(must(codec.Seal(t.Context(), nil, payload))) }
	long := strings.Repeat("hush", 256)
	h.accept(t, alice, crafted(payload(session)), session)
	h.accept(t, alice, crafted(payload(long)), long)
	for name, c := range map[string]struct {
		payload []byte
		want    tripseal.Reason
	}{
		"nothing":             {nil, tripseal.ReasonVersion},
		"a purpose alone":     {[]byte("H"), tripseal.ReasonVersion},
		"another purpose":     {append([]byte("S"), payload(session)[1:]...), tripseal.ReasonVersion},
		"another version":     {append([]byte("H\x02"), payload(session)[2:]...), tripseal.ReasonVersion},
		"a head alone":        {payload(session)[:63], tripseal.ReasonMalformed},
		"a cut head":          {payload(session)[:62], tripseal.ReasonMalformed},
		"a cut id":            {payload(long)[:63+1023], tripseal.ReasonMalformed},
		"less padding":        {payload(session)[:127], tripseal.ReasonMalformed},
		"more padding":        {append(payload(session), 0), tripseal.ReasonMalformed},
		"other padding":       {append(payload(session)[:127], 1), tripseal.ReasonMalformed},
		"more than a long id": {append(payload(long), '!'), tripseal.ReasonMalformed},
		"no lifetime":         {withBytes(payload(session), 8, 0, 0, 0, 0, 0), tripseal.ReasonMalformed},
		"an empty id":         {withBytes(payload("\x00"), 61, 0, 0), tripseal.ReasonMalformed},
		"an id of 1025 bytes": {append(withBytes(payload(long), 61, 4, 1), '!'), tripseal.ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) { h.reject(t, alice, crafted(c.payload), c.want) })
	}
	reasons := []tripseal.Reason{tripseal.ReasonAudience, tripseal.ReasonRequest, tripseal.ReasonUser}
	for i := range 48 { // every byte of the three digests counts
		changed := payload(session)
		changed[13+i] ^= 1
		h.reject(t, alice, crafted(changed), reasons[i/16])
	}
}

// withBytes returns the payload with other bytes at an offset.
func withBytes(payload []byte, at int, other ...byte) []byte {
	copy(payload[at:], other)
	return payload
}

func TestRequireUserHoldsForHandles(t *testing.T) {
	keys := newRing(t, newKey(t))
	lenient := newHandles(t, tripseal.Config{Keys: keys}, 0)
	strict := newHandles(t, tripseal.Config{Keys: keys, RequireUser: true}, 0)
	strict.accept(t, alice, strict.seal(t, alice, session), session)
	for _, nobody := range []tripseal.Principal{nil, func(context.Context) (string, error) { return "", nil }} {
		strict.refuse(t, nobody, session, tripseal.ReasonUser)
		strict.reject(t, nobody, lenient.seal(t, nil, session), tripseal.ReasonUser)
	}
}

func TestAUserWhoIsNotKnownGetsNoHandle(t *testing.T) {
	h := newHandles(t, tripseal.Config{}, 0)
	handle, nobodys := h.seal(t, alice, session), h.seal(t, nil, session)
	for name, principal := range map[string]tripseal.Principal{
		"no name":  tripseal.User(""),
		"an error": func(context.Context) (string, error) { return "hush-alice", errors.New("hush-alice is unknown") },
		"a panic":  func(context.Context) (string, error) { panic("hush-alice") },
		"too long": tripseal.User(strings.Repeat("hush", 1025)),
	} {
		t.Run(name, func(t *testing.T) {
			h.reject(t, principal, handle, tripseal.ReasonPrincipalFailed)
			h.reject(t, principal, nobodys, tripseal.ReasonPrincipalFailed)
			h.refuse(t, principal, session, tripseal.ReasonPrincipalFailed)
		})
	}
}

func TestACodecThatFailsIsAFailedCheck(t *testing.T) {
	codec := failingCodec{Codec: tripseal.RingCodec(newRing(t, newKey(t)), tripseal.PurposeState)}
	over := func(change func(*failingCodec)) handles {
		changed := codec
		change(&changed)
		return newHandles(t, tripseal.Config{Format: tripseal.RecordFormat("own1.", changed)}, 0)
	}
	handle := over(func(*failingCodec) {}).seal(t, alice, session)
	over(func(*failingCodec) {}).accept(t, alice, handle, session)
	down := errors.New("hush: no connection")
	over(func(c *failingCodec) { c.openErr = down }).reject(t, alice, handle, tripseal.ReasonCodecFailed)
	over(func(c *failingCodec) { c.openErr = tripseal.ReasonForged }).reject(t, alice, handle, tripseal.ReasonForged)
	over(func(c *failingCodec) { c.openErr = tripseal.ReasonExpired }).reject(t, alice, handle, tripseal.ReasonCodecFailed)
	over(func(c *failingCodec) { c.openErr = nastyError{} }).reject(t, alice, handle, tripseal.ReasonCodecFailed)
	over(func(c *failingCodec) { c.openPanic = "hush" }).reject(t, alice, handle, tripseal.ReasonCodecFailed)
	over(func(c *failingCodec) { c.openResult = []byte("hush") }).reject(t, alice, handle, tripseal.ReasonVersion)
	over(func(c *failingCodec) { c.sealErr = down }).refuse(t, alice, session, tripseal.ReasonCodecFailed)
	over(func(c *failingCodec) { c.sealPanic = "hush" }).refuse(t, alice, session, tripseal.ReasonCodecFailed)
	spaced := newHandles(t, tripseal.Config{Format: tripseal.RecordFormat("own1.", spacedCodec{})}, 0)
	spaced.refuse(t, alice, session, tripseal.ReasonCodecFailed)
}

func TestALongTextIsNotDecoded(t *testing.T) {
	codec := &countingCodec{Codec: tripseal.RingCodec(newRing(t, newKey(t)), tripseal.PurposeState)}
	h := newHandles(t, tripseal.Config{Format: tripseal.RecordFormat("own1.", codec)}, 0)
	called := 0
	principal := func(context.Context) (string, error) { called++; return "hush-alice", nil }
	for _, prefix := range []string{"mh1.", "none"} {
		h.reject(t, principal, prefix+strings.Repeat("A", 4093), tripseal.ReasonTooLarge)
		h.reject(t, principal, prefix+strings.Repeat("A", 1<<20), tripseal.ReasonTooLarge)
	}
	h.reject(t, principal, strings.Repeat("A", 4096), tripseal.ReasonMalformed)
	if codec.opened != 0 || called != 0 {
		t.Errorf("decoded %d times, called the principal %d times", codec.opened, called)
	}
	h.reject(t, principal, "mh1."+strings.Repeat("A", 4092), tripseal.ReasonUnknownKey)
}

func TestACanceledCallIsNoFaultOfTheService(t *testing.T) {
	h := newHandles(t, tripseal.Config{}, 0)
	handle := h.seal(t, alice, session)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	late := func(ctx context.Context) (string, error) { return "", ctx.Err() }
	var rejected *tripseal.RejectError
	if _, err := h.Open(ctx, late, handle); !errors.As(err, &rejected) || rejected.Reason != tripseal.ReasonCanceled {
		t.Errorf("Open: %+v", rejected)
	}
	if logged := h.book.last(t); logged["level"] != "WARN" || logged["reason"] != "canceled" {
		t.Errorf("the log says %v", logged)
	}
	var failed *tripseal.SealError
	if _, err := h.Seal(ctx, late, session); !errors.As(err, &failed) || failed.Reason != tripseal.ReasonCanceled {
		t.Errorf("Seal: %+v", failed)
	}
	if logged := h.book.last(t); logged["level"] != "WARN" || logged["reason"] != "canceled" {
		t.Errorf("the log says %v", logged)
	}
}

func TestTheObserverSeesEveryHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := newKey(t)
		h := newHandles(t, tripseal.Config{Keys: newRing(t, key)}, 0)
		slow := func(context.Context) (string, error) { time.Sleep(time.Second); return "hush-alice", nil }
		records := len(h.book.records)
		handle := h.seal(t, slow, session)
		want := tripseal.Event{
			Op: tripseal.OpSealHandle, Duration: time.Second, Target: "session",
			Format: "mh1.", KeyID: key.ID().String(), TokenBytes: len(handle),
		}
		if seen := h.book.lastEvent(t); seen != want {
			t.Errorf("Seal: %+v, want %+v", seen, want)
		}
		h.accept(t, slow, handle, session)
		want.Op = tripseal.OpOpenHandle
		if seen := h.book.lastEvent(t); seen != want {
			t.Errorf("Open: %+v, want %+v", seen, want)
		}
		if len(h.book.events) != 2 || len(h.book.records) != records {
			t.Errorf("%d events and %d records", len(h.book.events), len(h.book.records)-records)
		}
		h.reject(t, mallory, handle, tripseal.ReasonUser)
		if len(h.book.events) != 3 || len(h.book.records) != records+1 {
			t.Errorf("%d events and %d records", len(h.book.events), len(h.book.records)-records)
		}
	})
}

func TestAKindCannotBreakALogLine(t *testing.T) {
	h := newService(t, tripseal.Config{}).handles(t, "job\n"+strings.Repeat("é", 30), 0)
	h.Open(t.Context(), alice, "no handle")
	if kind, _ := h.book.last(t)["target"].(string); !strings.HasPrefix(kind, `"job\n\u00e9`) || len(kind) > 128 {
		t.Errorf("the log says %s", kind)
	}
}

func TestHandlesThatCannotWorkAreRefused(t *testing.T) {
	b := newService(t, tripseal.Config{}).Boundary
	keyless := newService(t, tripseal.Config{Format: readable{}, Waive: allClaims}).Boundary
	for name, c := range map[string]struct {
		boundary *tripseal.Boundary
		kind     string
		lifetime time.Duration
		want     string
	}{
		"no boundary":          {nil, "session", 0, "make one with New"},
		"a boundary of nobody": {new(tripseal.Boundary), "session", 0, "set Config.Keys"},
		"no keys":              {keyless, "session", 0, "NativeFormat(keys)"},
		"no kind":              {b, "", 0, "name what the ids stand for"},
		"a long kind":          {b, strings.Repeat("k", 65), 0, "1 to 64 bytes, this one has 65"},
		"a short lifetime":     {b, "session", time.Millisecond - 1, "is 999.999µs, not between 1ms and 8760h"},
		"a negative lifetime":  {b, "session", -time.Hour, "not between"},
		"a long lifetime":      {b, "session", 365*24*time.Hour + 1, "not between"},
	} {
		h, err := tripseal.NewHandles(c.boundary, c.kind, c.lifetime)
		if h != nil || err == nil || !strings.HasPrefix(err.Error(), "tripseal: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want %q", name, h, err, c.want)
		}
	}
	if _, err := tripseal.NewHandles(b, strings.Repeat("k", 64), 365*24*time.Hour); err != nil {
		t.Error(err)
	}
}

func TestTheKeySourceIsToldOnlyALifetimeThatWasSet(t *testing.T) {
	source := &datedSource{ring: newRing(t, newKey(t)), outlast: func(time.Duration) error { return nil }}
	s := newService(t, tripseal.Config{Keys: source})
	source.told = nil
	for _, lifetime := range []time.Duration{0, time.Hour, 24 * time.Hour} {
		s.handles(t, "session", lifetime)
	}
	if !slices.Equal(source.told, []time.Duration{time.Hour, 24 * time.Hour}) {
		t.Errorf("told %v", source.told)
	}
	for want, outlast := range map[string]func(time.Duration) error{
		"Config.Keys: too soon":             func(time.Duration) error { return errors.New("too soon") },
		"Config.Keys: panic of type string": func(time.Duration) error { panic("sesame") },
	} {
		source.outlast = outlast
		h, err := tripseal.NewHandles(s.Boundary, "session", time.Hour)
		if h != nil || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := tripseal.NewHandles(s.Boundary, "session", 0); err != nil {
			t.Error("the default was told:", err)
		}
	}
}

func TestHandlesAreSafeForConcurrentUse(t *testing.T) {
	h := newHandles(t, tripseal.Config{}, 0)
	handle := h.seal(t, alice, session)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				h.Seal(t.Context(), alice, session)
				if id, err := h.Open(t.Context(), alice, handle); id != session || err != nil {
					t.Errorf("%q, %v", id, err)
				}
				h.Open(t.Context(), mallory, handle)
			}
		})
	}
	group.Wait()
}

// TestACodecsSecretDoesNotPrint prints the handles over a codec that is a value and holds a secret.
func TestACodecsSecretDoesNotPrint(t *testing.T) {
	codec := secretCodec{tripseal.RingCodec(tripseal.Ephemeral(), tripseal.PurposeState), "sesame"}
	h := newHandles(t, tripseal.Config{Format: tripseal.RecordFormat("own1.", codec)}, 0).Handles
	var out bytes.Buffer
	printEverywhere(&out, h, struct{ hidden *tripseal.Handles }{h}, []any{h})
	if out.Len() < 1000 || strings.Contains(out.String(), "sesame") || strings.Contains(out.String(), "736573616d65") {
		t.Errorf("%d bytes are printed, with the secret", out.Len())
	}
}

type secretCodec struct {
	tripseal.Codec
	secret string
}
