package cursor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/sealtest"
)

const (
	wireInvalid = `{"code":-32602,"message":"Invalid cursor","data":{"reason":"invalid_cursor"}}`
	wireExpired = `{"code":-32602,"message":"Expired cursor","data":{"reason":"expired_cursor"}}`
)

// book collects the log and the events, which must never hold a secret. Every position,
// argument and user of these tests contains the word hush, which newService looks for at the
// end of the test.
type book struct {
	mu     sync.Mutex
	buf    bytes.Buffer
	events []tripseal.Event
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *book) observe(_ context.Context, e tripseal.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

func (b *book) last() tripseal.Event { return b.events[len(b.events)-1] }

type service struct {
	*cursor.Cursors
	book *book
}

func newRing(t testing.TB) *tripseal.Ring {
	t.Helper()
	ring, err := tripseal.NewRing(tripseal.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// settings are those of a boundary and of its cursors.
type settings struct {
	Keys                      tripseal.KeySource
	Codec                     tripseal.Codec
	Audience, Epoch           string
	RequireUser               bool
	TTL                       time.Duration
	MaxPosition, MaxArguments int
	Logger                    *slog.Logger
	Observer                  func(context.Context, tripseal.Event)
}

func newCursors(s settings) (*cursor.Cursors, error) {
	config := tripseal.Config{
		Keys: s.Keys, Audience: s.Audience, RequireUser: s.RequireUser, MaxArguments: s.MaxArguments,
		Logger: s.Logger, Observer: s.Observer,
	}
	if s.Codec != nil {
		config.Format = tripseal.RecordFormat("own1.", unprefixed{s.Codec})
	}
	boundary, err := tripseal.New(config)
	if err != nil {
		return nil, err
	}
	return cursor.New(boundary, cursor.Options{Epoch: s.Epoch, TTL: s.TTL, MaxPosition: s.MaxPosition})
}

func newService(t testing.TB, config settings) service {
	t.Helper()
	if config.Keys == nil && config.Codec == nil {
		config.Keys = newRing(t)
	}
	if config.Audience == "" {
		config.Audience = "rows.example.com"
	}
	b := &book{}
	config.Logger, config.Observer = slog.New(slog.NewJSONHandler(b, nil)), b.observe
	cursors, err := newCursors(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if strings.Contains(b.buf.String()+fmt.Sprintf("%+v", b.events), "hush") {
			t.Errorf("the log or the observer got a secret: %s %+v", b.buf.String(), b.events)
		}
	})
	return service{cursors, b}
}

func list() tripseal.Request {
	return tripseal.Request{
		Method: "tools/call", Target: "list_rows", Arguments: []byte(`{"table":"hush","limit":10}`), Principal: tripseal.User("hush-alice"),
	}
}

func (s service) first(t testing.TB, request tripseal.Request, next cursor.NextPage) string {
	t.Helper()
	page, err := s.Open(t.Context(), request, "")
	if err != nil {
		t.Fatal(err)
	}
	token, err := page.Next(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (s service) accept(t testing.TB, request tripseal.Request, token string) cursor.Page {
	t.Helper()
	page, err := s.Open(t.Context(), request, token)
	if err != nil {
		t.Fatalf("rejected: %v", s.book.last().Reason)
	}
	return page
}

// reject opens a cursor, and checks that it is rejected for this reason.
func (s service) reject(t testing.TB, request tripseal.Request, token string, want tripseal.Reason) {
	t.Helper()
	page, err := s.Open(t.Context(), request, token)
	if err == nil {
		t.Fatalf("accepted, want a rejection as %s", want)
	}
	if page.Position() != nil || page.Number() != 0 {
		t.Fatal("a position came back beside an error")
	}
	if next, err := page.Next(t.Context(), cursor.NextPage{}); next != "" || err == nil {
		t.Fatal("a page that issues cursors came back beside an error")
	}
	var rejected *cursor.Error
	if !errors.As(err, &rejected) || rejected.Reason != want || s.book.last().Reason != want {
		t.Fatalf("rejected as %v, want %s", rejected, want)
	}
	if text, _ := json.Marshal(rejected); string(text) != "{}" {
		t.Fatalf("as JSON, the error says %s", text)
	}
	wantWire, wantErr, wantText := wireInvalid, cursor.ErrInvalid, "tripseal: invalid cursor"
	if want == tripseal.ReasonExpired {
		wantWire, wantErr, wantText = wireExpired, cursor.ErrExpired, "tripseal: cursor expired"
	}
	wire, _ := json.Marshal(cursor.Wire(fmt.Errorf("an adapter's words: %w", err)))
	if string(wire) != wantWire || !errors.Is(err, wantErr) || err.Error() != wantText {
		t.Fatalf("the client sees %s, the caller %v", wire, err)
	}
	if errors.Is(err, cursor.ErrInvalid) == errors.Is(err, cursor.ErrExpired) {
		t.Fatal("both errors, or neither")
	}
}

var at = cursor.NextPage{Position: []byte("hush-row-100")}

func TestAWalk(t *testing.T) {
	s := newService(t, settings{})
	token, seen := "", map[string]bool{}
	for n := range 10 {
		page := s.accept(t, list(), token)
		if page.Number() != n || page.First() != (n == 0) {
			t.Fatalf("page %d is number %d, first %v", n, page.Number(), page.First())
		}
		if want := fmt.Sprint("hush-", n-1); n > 0 && string(page.Position()) != want {
			t.Fatalf("page %d begins at %q, want %q", n, page.Position(), want)
		}
		var err error
		if token, err = page.Next(t.Context(), cursor.NextPage{Position: fmt.Append(nil, "hush-", n)}); err != nil {
			t.Fatal(err)
		}
		if seen[token] || !strings.HasPrefix(token, "mc1.") {
			t.Fatalf("page %d has the cursor %s", n, token)
		}
		seen[token] = true
	}
	// Two cursors for one position differ, so nobody can tell that a page repeats.
	if one, other := s.first(t, list(), at), s.first(t, list(), at); one == other {
		t.Error("two cursors for one position are the same")
	}
}

func TestOnlyTheTextThatWasIssuedOpens(t *testing.T) {
	s := newService(t, settings{})
	token := s.first(t, list(), at)
	refuse := func(text string) {
		if _, err := s.Open(t.Context(), list(), text); !errors.Is(err, cursor.ErrInvalid) {
			t.Fatalf("%q: %v", text, err)
		}
	}
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n\r\t\x00\xff"
	for i := range len(token) {
		for _, c := range []byte(characters) {
			if token[i] != c {
				refuse(token[:i] + string([]byte{c}) + token[i+1:])
			}
			refuse(token[:i] + string([]byte{c}) + token[i:])
		}
		if i > 0 {
			refuse(token[:i])
		}
	}
	for _, more := range []string{"A", "=", "==", "\n", ".", token} {
		refuse(token + more)
	}
	refuse(strings.TrimPrefix(token, "mc1."))
	s.accept(t, list(), token)
}

func TestACursorIsForOneRequestOfOneUserAtOneService(t *testing.T) {
	ring := newRing(t)
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, settings{Keys: ring, Epoch: "1"})
		token := s.first(t, list(), at)
		check := func(t *testing.T) {
			for name, c := range map[string]struct {
				want   tripseal.Reason
				change func(*tripseal.Request)
			}{
				"another tool":        {tripseal.ReasonRequest, func(r *tripseal.Request) { r.Target = "list_rows2" }},
				"another method":      {tripseal.ReasonRequest, func(r *tripseal.Request) { r.Method = "tools/list" }},
				"method and target":   {tripseal.ReasonRequest, func(r *tripseal.Request) { r.Method, r.Target = "tools/calll", "ist_rows" }},
				"another caller":      {tripseal.ReasonUser, func(r *tripseal.Request) { r.Principal = tripseal.User("hush-bob") }},
				"nobody":              {tripseal.ReasonUser, func(r *tripseal.Request) { r.Principal = nil }},
				"another argument":    {tripseal.ReasonArguments, func(r *tripseal.Request) { r.Arguments = []byte(`{"table":"hush","limit":11}`) }},
				"no arguments":        {tripseal.ReasonArguments, func(r *tripseal.Request) { r.Arguments = nil }},
				"broken arguments":    {tripseal.ReasonArguments, func(r *tripseal.Request) { r.Arguments = []byte(`{"a":1,"a":2}`) }},
				"a caller that fails": {tripseal.ReasonPrincipalFailed, func(r *tripseal.Request) { r.Principal = tripseal.User("") }},
			} {
				request := list()
				c.change(&request)
				t.Log(name)
				s.reject(t, request, token, c.want)
			}
			newService(t, settings{Keys: ring, Epoch: "2"}).reject(t, list(), token, tripseal.ReasonAudience)
			newService(t, settings{Keys: ring}).reject(t, list(), token, tripseal.ReasonAudience)
			newService(t, settings{Keys: ring, Epoch: "1", Audience: "other.example.com"}).reject(t, list(), token, tripseal.ReasonAudience)
			newService(t, settings{Epoch: "1"}).reject(t, list(), token, tripseal.ReasonUnknownKey)
		}
		check(t)
		respelled := list()
		respelled.Arguments = []byte(" {\"limit\" : 1e1, \"table\" : \"\\u0068ush\"}")
		s.accept(t, respelled, token)

		// If an expired cursor also fails another check, that check gives the reason. So only the
		// cursor's owner learns that the cursor has expired.
		time.Sleep(2 * time.Hour)
		s.reject(t, list(), token, tripseal.ReasonExpired)
		check(t)
	})
}

func TestTTL(t *testing.T) {
	ring := newRing(t)
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, settings{Keys: ring})
		token := s.first(t, list(), at)
		time.Sleep(time.Hour - time.Millisecond)
		s.accept(t, list(), token)
		time.Sleep(time.Millisecond)
		s.reject(t, list(), token, tripseal.ReasonExpired)
		time.Sleep(time.Millisecond)
		s.reject(t, list(), token, tripseal.ReasonExpired)

		cached := s.first(t, list(), cursor.NextPage{Position: at.Position, Cached: 24 * time.Hour})
		time.Sleep(25*time.Hour - time.Millisecond)
		s.accept(t, list(), cached)
		time.Sleep(time.Millisecond)
		s.reject(t, list(), cached, tripseal.ReasonExpired)
	})
}

func TestTheFutureIsRefused(t *testing.T) {
	ring := newRing(t)
	var ahead string
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		ahead = newService(t, settings{Keys: ring}).first(t, list(), at)
	})
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, settings{Keys: ring})
		s.reject(t, list(), ahead, tripseal.ReasonFromTheFuture)
		time.Sleep(time.Hour - time.Minute - time.Millisecond)
		s.reject(t, list(), ahead, tripseal.ReasonFromTheFuture)
		time.Sleep(time.Millisecond)
		s.accept(t, list(), ahead)
	})
}

func Test256BytesOfPositionAlwaysFit(t *testing.T) {
	s := newService(t, settings{Audience: strings.Repeat("a", 1024), Epoch: strings.Repeat("e", 1024)})
	request := tripseal.Request{Method: "tools/call", Target: strings.Repeat("t", 200), Principal: tripseal.User(strings.Repeat("u", 200))}
	for _, position := range [][]byte{bytes.Repeat([]byte{0}, 256), bytes.Repeat([]byte{0xff}, 256)} {
		token := s.first(t, request, cursor.NextPage{Position: position})
		if len(token) > 512 {
			t.Errorf("a cursor of %d characters", len(token))
		}
		page := s.accept(t, request, token)
		if !bytes.Equal(page.Position(), position) {
			t.Error("the position changed")
		}
	}
	page, err := s.Open(t.Context(), request, "")
	if err != nil {
		t.Fatal(err)
	}
	token, err := page.Next(t.Context(), cursor.NextPage{Position: make([]byte, 257)})
	var issue *cursor.Error
	if token != "" || !errors.As(err, &issue) || issue.Reason != tripseal.ReasonTooLarge || !strings.Contains(issue.Cause().Error(), "257") {
		t.Errorf("257 bytes: %q, %v", token, err)
	}
	if wire, _ := json.Marshal(cursor.Wire(err)); string(wire) != `{"code":-32603,"message":"Internal error"}` {
		t.Errorf("the client sees %s", wire)
	}
}

func TestACursorIsNoStateAndAStateNoCursor(t *testing.T) {
	ring := newRing(t)
	s := newService(t, settings{Keys: ring})
	boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: "rows.example.com", Logger: sealtest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	round, err := boundary.Open(t.Context(), list(), "")
	if err != nil {
		t.Fatal(err)
	}
	state := "hush-step"
	sealed, err := boundary.Seal(t.Context(), &round, &state)
	if err != nil {
		t.Fatal(err)
	}
	s.reject(t, list(), sealed, tripseal.ReasonMalformed)
	s.reject(t, list(), "mc1."+strings.TrimPrefix(sealed, "ms1."), tripseal.ReasonForged)
	token := s.first(t, list(), at)
	for _, text := range []string{token, "ms1." + strings.TrimPrefix(token, "mc1.")} {
		if _, err := boundary.Open(t.Context(), list(), text); !errors.Is(err, tripseal.ErrRejected) {
			t.Errorf("a boundary opens a cursor: %v", err)
		}
	}

	// If cursors and states share one codec, the payload's first bytes keep them apart.
	codec := tripseal.RingCodec(ring, tripseal.PurposeState)
	own := newService(t, settings{Codec: codec})
	token = own.first(t, list(), at)
	own.accept(t, list(), token)
	shared, err := tripseal.New(tripseal.Config{Format: tripseal.RecordFormat("own1.", unprefixed{codec}), Audience: "rows.example.com", Logger: sealtest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Open(t.Context(), list(), "own1."+strings.TrimPrefix(token, "mc1.")); !errors.Is(err, tripseal.ErrRejected) {
		t.Errorf("a boundary opens a cursor of the same codec: %v", err)
	}
	round, _ = shared.Open(t.Context(), list(), "")
	sealed, err = shared.Seal(t.Context(), &round, &state)
	if err != nil {
		t.Fatal(err)
	}
	own.reject(t, list(), "mc1."+strings.TrimPrefix(sealed, "own1."), tripseal.ReasonVersion)
}

// unprefixed hides from tripseal.New that its codec is a RingCodec. New would refuse a RingCodec
// here.
type unprefixed struct{ tripseal.Codec }

func TestTenReplicasAcceptEachOthers(t *testing.T) {
	key := tripseal.GenerateKey()
	var replicas []service
	for range 10 {
		ring, err := tripseal.NewRing(key)
		if err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, newService(t, settings{Keys: ring}))
	}
	token := ""
	for n := range 50 {
		page := replicas[n%10].accept(t, list(), token)
		if page.Number() != n {
			t.Fatalf("page %d has number %d", n, page.Number())
		}
		var err error
		if token, err = page.Next(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
}

type source struct {
	mu   sync.Mutex
	ring *tripseal.Ring
}

func (s *source) Ring() *tripseal.Ring {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ring
}

func (s *source) set(t *testing.T, keys ...tripseal.Key) {
	t.Helper()
	ring, err := tripseal.NewRing(keys...)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring = ring
}

func TestRotationDropsNoWalk(t *testing.T) {
	previous, next := tripseal.GenerateKey(), tripseal.GenerateKey()
	keys := &source{}
	keys.set(t, previous)
	s := newService(t, settings{Keys: keys})
	token := s.first(t, list(), at)
	old := token
	for phase, ring := range [][]tripseal.Key{{previous, next}, {next, previous}, {next, previous}, {next}} {
		keys.set(t, ring...)
		page := s.accept(t, list(), token)
		if page.Number() != phase+1 {
			t.Fatalf("phase %d is on page %d", phase, page.Number())
		}
		var err error
		if token, err = page.Next(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	s.reject(t, list(), old, tripseal.ReasonUnknownKey)
}

func TestASharedCursorOpensForEverybody(t *testing.T) {
	s := newService(t, settings{})
	request := tripseal.Request{Method: "tools/list", Principal: tripseal.User("hush-alice")}
	token := s.first(t, request, cursor.NextPage{Position: at.Position, Shared: true})
	for _, principal := range []tripseal.Principal{tripseal.User("hush-alice"), tripseal.User("hush-bob"), nil} {
		other := request
		other.Principal = principal
		page := s.accept(t, other, token)
		// Without Shared, only the caller of this page may use the next cursor.
		next, err := page.Next(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		s.accept(t, other, next)
		stranger := request
		stranger.Principal = tripseal.User("hush-mallory")
		s.reject(t, stranger, next, tripseal.ReasonUser)
	}
	other := request
	other.Method = "prompts/list"
	s.reject(t, other, token, tripseal.ReasonRequest)
}

type failingCodec struct {
	tripseal.Codec
	err   error
	panic bool
}

func (c failingCodec) Seal(ctx context.Context, dst, payload []byte) ([]byte, error) {
	if c.panic {
		panic("hush")
	}
	return nil, c.err
}

func (c failingCodec) Open(ctx context.Context, dst []byte, text string) ([]byte, error) {
	return c.Seal(ctx, dst, nil)
}

func TestPartsThatFailAreAFailedCheck(t *testing.T) {
	for name, codec := range map[string]failingCodec{
		"error": {err: errors.New("hush")}, "panic": {panic: true}, "wrong reason": {err: tripseal.ReasonExpired},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, settings{Codec: codec})
			s.reject(t, list(), "mc1.AAAA", tripseal.ReasonCodecFailed)
			page, _ := s.Open(t.Context(), list(), "")
			if token, err := page.Next(t.Context(), at); token != "" || err == nil || strings.Contains(err.Error(), "hush") {
				t.Errorf("%q, %v", token, err)
			}
		})
	}
	s := newService(t, settings{})
	request := list()
	request.Principal = func(context.Context) (string, error) { panic("hush") }
	s.reject(t, request, s.first(t, list(), at), tripseal.ReasonPrincipalFailed)
	page, _ := s.Open(t.Context(), request, "")
	if token, err := page.Next(t.Context(), at); token != "" || err == nil {
		t.Errorf("%q, %v", token, err)
	}
	broken := list()
	broken.Arguments = []byte(`{"hush":1,"hush":2}`)
	page, _ = s.Open(t.Context(), broken, "")
	_, err := page.Next(t.Context(), at)
	if wire, _ := json.Marshal(cursor.Wire(err)); string(wire) != `{"code":-32602,"message":"Invalid params"}` {
		t.Errorf("the client sees %s", wire)
	}
	var none cursor.Page
	if _, err := none.Next(t.Context(), at); err == nil {
		t.Error("a page of nobody's issues a cursor")
	}
}

func TestAWalkEndsBeforeItsPageNumbersWrap(t *testing.T) {
	ring := newRing(t)
	codec := tripseal.RingCodec(ring, tripseal.PurposeCursor)
	s := newService(t, settings{Keys: ring})
	payload, err := codec.Open(t.Context(), nil, strings.TrimPrefix(s.first(t, list(), at), "mc1."))
	if err != nil {
		t.Fatal(err)
	}
	copy(payload[14:18], "\xff\xff\xff\xff") // the page's number
	last, err := codec.Seal(t.Context(), []byte("mc1."), payload)
	if err != nil {
		t.Fatal(err)
	}
	page := s.accept(t, list(), string(last))
	if token, err := page.Next(t.Context(), at); uint32(page.Number()) != math.MaxUint32 || token != "" || err == nil {
		t.Errorf("page %d issues %q, %v", page.Number(), token, err)
	}
}

func TestAnythingLongOrStrangeIsInvalid(t *testing.T) {
	s := newService(t, settings{})
	s.reject(t, list(), "mc1."+strings.Repeat("A", 10_000_000), tripseal.ReasonTooLarge)
	for _, text := range []string{"mc1.", "mc1", "100", "eyJvZmZzZXQiOjEwMH0", "mc2.AAAA", "MC1.AAAA", " ", "\x00"} {
		s.reject(t, list(), text, tripseal.ReasonMalformed)
	}
}

func TestConfig(t *testing.T) {
	ring := newRing(t)
	for name, config := range map[string]settings{
		"long epoch": {Keys: ring, Audience: "a", Epoch: strings.Repeat("a", 1025)},
		"short TTL":  {Keys: ring, Audience: "a", TTL: 60},
		"long TTL":   {Keys: ring, Audience: "a", TTL: 100 * 365 * 24 * time.Hour},
		"position":   {Keys: ring, Audience: "a", MaxPosition: -1},
	} {
		if _, err := newCursors(config); err == nil || !strings.HasPrefix(err.Error(), "cursor: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type key struct {
	Created int64  `json:"c"`
	ID      string `json:"i"`
}

// servePage serves one page of a tool whose position has the type T. It returns the position where the page begins, and
// the cursor of the next page, which begins at next.
func servePage[T any](t *testing.T, s cursor.Issuer, token string, next *T) (after *T, nextToken string, err error) {
	t.Helper()
	text, err := cursor.ServePage(t.Context(), s, list(), token, pageOptions(t, cursor.PageOptions{}),
		func(begin *T) ([]int, *T, error) { after = begin; return nil, next, nil })
	var result struct {
		Items      []int
		NextCursor string
	}
	if err == nil && (json.Unmarshal(text, &result) != nil || result.Items == nil || (result.NextCursor == "") != (next == nil)) {
		t.Fatalf("the result is %s", text)
	}
	return after, result.NextCursor, err
}

// walk issues a cursor for a position, and returns the position that comes back.
func walk[T any](t *testing.T, s cursor.Issuer, position T) (T, error) {
	t.Helper()
	var none T
	first, token, err := servePage(t, s, "", &position)
	if err != nil {
		return none, err
	}
	after, _, err := servePage[T](t, s, token, nil)
	if err != nil || first != nil || after == nil {
		t.Fatalf("%T: the pages begin at %v and %v, %v", position, first, after, err)
	}
	return *after, nil
}

func TestTypedPositions(t *testing.T) {
	s := newService(t, settings{})
	want := key{1 << 60, "hush-é\x00"}
	if got, err := walk(t, s, want); err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, text := range []string{strings.Repeat("<", 200), "\ufffd", "é", `C:\ufffd`, `\\ufffd`, "", "\\", `\u`} {
		if got, err := walk(t, s, text); err != nil || got != text {
			t.Errorf("%.10q comes back as %.10q, %v", text, got, err)
		}
	}
	if got, err := walk(t, s, row{7}); err != nil || got.id != 7 {
		t.Errorf("JSON on the pointer: %v, %v", got, err)
	}
	if got, err := walk(t, s, *big.NewInt(7)); err != nil || got.Int64() != 7 {
		t.Errorf("%v, %v", &got, err)
	}
	if got, err := walk[any](t, s, "k"); err != nil || got != "k" {
		t.Errorf("a text in an any: %v, %v", got, err)
	}
	if _, err := walk(t, s, key{ID: strings.Repeat("x", 300)}); err == nil || s.book.last().Reason != tripseal.ReasonTooLarge {
		t.Errorf("a position that is too long: %v", err)
	}
}

func TestPositionsThatJSONWouldChangeAreRefused(t *testing.T) {
	s := newService(t, settings{})
	refused := func(err error) {
		t.Helper()
		var wire tripseal.WireError
		if !errors.As(err, &wire) || wire.Code != -32603 || s.book.last().Reason != tripseal.ReasonMisuse {
			t.Errorf("%v, observed as %s", err, s.book.last().Reason)
		}
	}
	_, err := walk(t, s, func() {})
	refused(err)
	_, err = walk(t, s, struct{ At interface{ String() string } }{time.Minute})
	refused(err)
	for _, id := range []any{int64(1<<53 + 1), uint64(math.MaxUint64)} {
		_, err = walk(t, s, id)
		refused(err)
		_, err = walk(t, s, map[string]any{"id": id})
		refused(err)
		if _, err := walk(t, s, map[string]any{"id": fmt.Sprint(id)}); err != nil {
			t.Errorf("%v as text: %v", id, err)
		}
	}
}

// TestAPositionOfAnotherTypeIsInvalid opens a position whose type has changed. The operator learns it from the reason.
func TestAPositionOfAnotherTypeIsInvalid(t *testing.T) {
	s := newService(t, settings{})
	_, token, err := servePage(t, s, "", &key{1, "a"})
	if err != nil {
		t.Fatal(err)
	}
	type renamed struct {
		Created int64  `json:"c"`
		Name    string `json:"n"`
	}
	_, _, renamedErr := servePage[renamed](t, s, token, nil)
	_, _, listErr := servePage[[]int](t, s, token, nil)
	for _, err := range []error{renamedErr, listErr} {
		var wire tripseal.WireError
		if !errors.As(err, &wire) || wire.Message != "Invalid cursor" || s.book.last().Reason != tripseal.ReasonVersion {
			t.Errorf("%v, observed as %s", err, s.book.last().Reason)
		}
	}
}

func TestAPagePrintsNothingOfItsRequest(t *testing.T) {
	s := newService(t, settings{})
	page, err := s.Open(t.Context(), list(), s.first(t, list(), cursor.NextPage{Position: []byte("hush-position")}))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, value := range []any{page, &page} {
		fmt.Fprintf(&out, "%v %+v %s %#v %q %x", value, value, value, value, value, value)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "page", value)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "page", value)
	}
	hex := fmt.Sprintf("%x", "hush")
	if text := out.String(); strings.Contains(text, "hush") || strings.Contains(text, hex) || !strings.Contains(text, "cursor.Page(1)") {
		t.Errorf("a page prints its request: %s", text)
	}
}

// FuzzCursor opens arbitrary texts, and cursors with an arbitrary payload. Only somebody with the
// key can make such cursors.
func FuzzCursor(f *testing.F) {
	ring := newRing(f)
	codec := tripseal.RingCodec(ring, tripseal.PurposeCursor)
	cursors, err := newCursors(settings{Keys: ring, Audience: "a", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	request := tripseal.Request{Method: "tools/list"}
	minted := service{cursors, &book{}}.first(f, request, at)
	payload, err := codec.Open(f.Context(), nil, strings.TrimPrefix(minted, "mc1."))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(minted), false)
	f.Add(payload, true)
	f.Add(payload[:55], true)
	f.Add(payload[:127], true)
	f.Add([]byte("mc1."), false)
	f.Fuzz(func(t *testing.T, data []byte, crafted bool) {
		text := string(data)
		if crafted {
			sealed, err := codec.Seal(t.Context(), []byte("mc1."), data)
			if err != nil {
				t.Fatal(err)
			}
			text = string(sealed)
		}
		page, err := cursors.Open(t.Context(), request, text)
		if err != nil {
			if !errors.Is(err, cursor.ErrInvalid) && !errors.Is(err, cursor.ErrExpired) {
				t.Fatalf("another error: %v", err)
			}
			return
		}
		if text != "" && (page.Number() < 1 || len(page.Position()) > 256) {
			t.Fatalf("page %d, %d bytes", page.Number(), len(page.Position()))
		}
		if !crafted && text != "" && text != minted {
			t.Fatalf("%q opens and was never issued", text)
		}
	})
}

func TestACursorMayDemandAUser(t *testing.T) {
	ring := newRing(t)
	lenient, strict := newService(t, settings{Keys: ring}), newService(t, settings{Keys: ring, RequireUser: true})
	nobody := list()
	nobody.Principal = nil
	strict.reject(t, nobody, lenient.first(t, nobody, at), tripseal.ReasonUser)
	page, _ := strict.Open(t.Context(), nobody, "")
	if token, err := page.Next(t.Context(), at); token != "" || err == nil {
		t.Errorf("issued for nobody: %q", token)
	}
	strict.accept(t, list(), strict.first(t, list(), at))
	strict.accept(t, nobody, strict.first(t, nobody, cursor.NextPage{Shared: true}))
}

func TestAReplicaWithASmallerLimitRefusesWhatItWouldNotIssue(t *testing.T) {
	ring := newRing(t)
	wide, narrow := newService(t, settings{Keys: ring, MaxPosition: 1000}), newService(t, settings{Keys: ring})
	narrow.accept(t, list(), wide.first(t, list(), cursor.NextPage{Position: make([]byte, 256)}))
	narrow.reject(t, list(), wide.first(t, list(), cursor.NextPage{Position: make([]byte, 257)}), tripseal.ReasonTooLarge)
}

// row has its JSON methods on the pointer type.
type row struct{ id int }

func (r *row) MarshalJSON() ([]byte, error)    { return json.Marshal(r.id) }
func (r *row) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &r.id) }

// ownMemory is a codec that returns its own memory from Open. A codec must not do that, but
// some codec might.
type ownMemory struct {
	tripseal.Codec
	payload []byte
}

func (c *ownMemory) Open(ctx context.Context, dst []byte, text string) ([]byte, error) {
	if c.payload == nil {
		payload, err := c.Codec.Open(ctx, nil, text)
		if err != nil {
			return nil, err
		}
		c.payload = payload
	}
	return c.payload, nil
}

func TestACodecsOwnMemoryIsLeftAlone(t *testing.T) {
	s := newService(t, settings{Codec: &ownMemory{Codec: tripseal.RingCodec(newRing(t), tripseal.PurposeCursor)}})
	token := s.first(t, list(), at)
	for range 3 {
		if page := s.accept(t, list(), token); string(page.Position()) != string(at.Position) {
			t.Fatalf("the position is %q", page.Position())
		}
		s.first(t, list(), cursor.NextPage{Position: []byte("another")})
	}
}

func TestTheDefaultLoggerIsTheOneOfToday(t *testing.T) {
	cursors, err := newCursors(settings{Keys: tripseal.Ephemeral(), Audience: "a"})
	if err != nil {
		t.Fatal(err)
	}
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	cursors.Open(t.Context(), tripseal.Request{Method: "tools/list"}, "mc1.x")
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "cursor rejected") {
		t.Errorf("the log says %q", log.String())
	}
}

// TestAForgedCursorBuysNoDigest presents cursors together with arguments that cannot be digested. A
// forged cursor must be rejected as forged, not because of these arguments. This shows that Open
// checks the cursor before it digests the arguments.
func TestAForgedCursorBuysNoDigest(t *testing.T) {
	cursors, err := newCursors(settings{Keys: tripseal.Ephemeral(), Audience: "a", MaxArguments: 100, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	request := tripseal.Request{Method: "tools/call", Target: "list"}
	page, err := cursors.Open(t.Context(), request, "")
	if err != nil {
		t.Fatal(err)
	}
	good, err := page.Next(t.Context(), cursor.NextPage{Position: []byte("1")})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]tripseal.Reason{
		good: tripseal.ReasonArguments, good[:len(good)-4] + "AAAA": tripseal.ReasonForged, "mc1.A": tripseal.ReasonMalformed,
	} {
		request.Arguments = []byte(`{"a":1,"a":2}`)
		_, err := cursors.Open(t.Context(), request, text)
		var rejected *cursor.Error
		if !errors.As(err, &rejected) || rejected.Reason != want || !errors.Is(err, cursor.ErrInvalid) {
			t.Errorf("%.10s: %v, want %s", text, rejected, want)
		}
		request.Arguments = bytes.Repeat([]byte(" "), 101)
		if _, err := cursors.Open(t.Context(), request, text); !errors.As(err, &rejected) || rejected.Reason != tripseal.ReasonTooLarge {
			t.Errorf("%.10s: %v, want too_large", text, rejected)
		}
	}
	request.Arguments = []byte(`{"a":"` + strings.Repeat("x", 100) + `"}`)
	long := tripseal.Request{Method: "tools/call", Target: strings.Repeat("x", 1<<16)}
	for _, request := range []tripseal.Request{request, long, {Method: long.Target}} {
		page, _ = cursors.Open(t.Context(), request, "")
		if _, err := page.Next(t.Context(), cursor.NextPage{}); cursor.Wire(err).Message != "Invalid params" {
			t.Errorf("issued for arguments or a name beyond the limit: %v", err)
		}
	}
}

// lateCodec keeps its input, so that the test can look at it after Seal has returned.
type lateCodec struct {
	tripseal.Codec
	kept *[][]byte
}

func (c lateCodec) Seal(ctx context.Context, dst, payload []byte) ([]byte, error) {
	*c.kept = append(*c.kept, payload)
	return c.Codec.Seal(ctx, dst, payload)
}

func TestACodecOfTheUsersGetsBuffersOfItsOwn(t *testing.T) {
	var kept [][]byte
	codec := lateCodec{tripseal.RingCodec(tripseal.Ephemeral(), tripseal.PurposeCursor), &kept}
	cursors, err := newCursors(settings{Codec: codec, Audience: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, position := range []string{"alice", "mallory"} {
		page, err := cursors.Open(t.Context(), tripseal.Request{Method: "tools/call", Target: "list"}, "")
		if err != nil {
			t.Fatal(err)
		}
		token, err := page.Next(t.Context(), cursor.NextPage{Position: []byte(position)})
		if err != nil {
			t.Fatal(err)
		}
		if page, err = cursors.Open(t.Context(), tripseal.Request{Method: "tools/call", Target: "list"}, token); err != nil || string(page.Position()) != position {
			t.Errorf("%q, %v", page.Position(), err)
		}
	}
	if !bytes.Contains(kept[0], []byte("alice")) || !bytes.Contains(kept[1], []byte("mallory")) {
		t.Errorf("a codec's input changed after it had returned: %q", kept)
	}
}
