package tripseal_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
)

const base64url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func TestAnyStateComesBackUnchanged(t *testing.T) {
	s := newService(t, tripseal.Config{})
	for name, state := range map[string]string{
		"empty":          "",
		"text":           step,
		"binary":         "\x00\xff\xfe\x80hush\n\r\t",
		"lone surrogate": `{"hush":"\ud800","\udfff":1}`,
		"16 KiB":         strings.Repeat("hush", 4096),
	} {
		round := s.accept(t, deploy(), s.first(t, deploy(), state))
		if got, ok := round.State(); !ok || got != state {
			t.Errorf("%s: came back as %.40q, %v", name, got, ok)
		}
	}
}

func TestNoStateAndEmptyStateStayTwoThings(t *testing.T) {
	ctx := context.Background()
	s := newService(t, tripseal.Config{})
	round, _ := s.Open(ctx, deploy(), "")
	token, err := s.Seal(ctx, &round, nil, confirm)
	if err != nil {
		t.Fatal(err)
	}
	round = s.accept(t, deploy(), token)
	if state, ok := round.State(); ok || state != "" {
		t.Errorf("no state came back as %q, %v", state, ok)
	}
	if !round.Accepts("confirm", tripseal.KindForm) {
		t.Error("a handler without a state lost its question")
	}
	round = s.accept(t, deploy(), s.first(t, deploy(), ""))
	if state, ok := round.State(); !ok || state != "" {
		t.Errorf("an empty state came back as %q, %v", state, ok)
	}
}

func TestEmptyTokenIsAFirstRound(t *testing.T) {
	s := newService(t, tripseal.Config{RequireUser: true})
	round, err := s.Open(context.Background(), tripseal.Request{Method: "tools/call", Target: "x", Arguments: []byte("{{")}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := round.State(); ok || round.Number() != 0 {
		t.Error("a first round has a state or a number")
	}
	if len(s.book.events) != 0 || len(s.book.records) != 0 {
		t.Error("nothing was opened, but something was observed")
	}
}

func TestEveryChangeOfOneCharacterIsRejected(t *testing.T) {
	s := newService(t, tripseal.Config{})
	token := s.first(t, deploy(), step, confirm)
	body := len("ms1.")
	// After the prefix, the first 32 bits are the key id. A change in these 32 bits makes the key
	// unknown. A change of a later bit is a forgery. The last character may have unused bits at its
	// end; if a change sets them, the token is malformed.
	for i := range len(token) {
		for _, c := range base64url {
			if byte(c) == token[i] {
				continue
			}
			changed := token[:i] + string(c) + token[i+1:]
			want := tripseal.ReasonForged
			switch {
			case i < body:
				want = tripseal.ReasonMalformed
			case sameKeyID(token, changed) != nil && i < body+6:
				want = tripseal.ReasonUnknownKey
			case i == len(token)-1 && len(token[body:])%4 != 0 && trailingBits(changed[body:]):
				want = tripseal.ReasonMalformed
			}
			s.reject(t, deploy(), changed, want)
		}
	}
	s.accept(t, deploy(), token)
}

// sameKeyID returns nil if both tokens have the same key id, which is their first four bytes.
func sameKeyID(a, b string) error {
	x, _ := base64.RawURLEncoding.DecodeString(a[4:12])
	y, err := base64.RawURLEncoding.DecodeString(b[4:12])
	if err == nil && string(x[:4]) != string(y[:4]) {
		return context.Canceled
	}
	return err
}

func trailingBits(text string) bool {
	_, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err != nil
}

func TestEveryTruncationIsRejected(t *testing.T) {
	s := newService(t, tripseal.Config{})
	token := s.first(t, deploy(), step, confirm)
	for n := 1; n < len(token); n++ {
		for _, cut := range []string{token[:n], token[len(token)-n:]} {
			if _, err := s.Open(context.Background(), deploy(), cut); err == nil {
				t.Fatalf("%d of %d characters open", n, len(token))
			} else {
				checkWire(t, err)
			}
		}
	}
}

func TestEveryForeignCharacterAnywhereIsRejected(t *testing.T) {
	s := newService(t, tripseal.Config{})
	for size := range 3 { // one size for each length of the last group in base64
		token := s.first(t, deploy(), step+strings.Repeat("x", size))
		for i := 0; i <= len(token); i++ {
			for _, foreign := range []string{"=", "==", "+", "/", "\r", "\n", "\r\n", "\t", " ", "\x00", "é", "\u200b", "\xff", "%3D", "\n\n\n\n"} {
				s.reject(t, deploy(), token[:i]+foreign+token[i:], tripseal.ReasonMalformed)
			}
		}
		padded := base64.URLEncoding.EncodeToString(must(base64.RawURLEncoding.DecodeString(token[4:])))
		if strings.HasSuffix(padded, "=") {
			s.reject(t, deploy(), "ms1."+padded, tripseal.ReasonMalformed)
		}
	}
	// Try the standard base64 alphabet too: seal until a token looks different in it.
	for {
		token := s.first(t, deploy(), step)
		standard := "ms1." + strings.NewReplacer("-", "+", "_", "/").Replace(token[4:])
		if standard != token {
			s.reject(t, deploy(), standard, tripseal.ReasonMalformed)
			return
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func TestForeignPrefixIsRejected(t *testing.T) {
	s := newService(t, tripseal.Config{})
	token := s.first(t, deploy(), step)
	for _, prefix := range []string{"", "v1.", "ms2.", "MS1.", "mc1.", "ms1", "ms1..", " ms1.", "ms1.ms1."} {
		s.reject(t, deploy(), prefix+token[4:]+map[bool]string{true: "x"}[prefix == ""], tripseal.ReasonMalformed)
	}
}

func TestKeyIDMovedOntoAnotherTokenIsRejected(t *testing.T) {
	a, b := newKey(t), newKey(t)
	s := newService(t, tripseal.Config{Keys: newRing(t, a, b)})
	token := s.first(t, deploy(), step)
	raw := must(base64.RawURLEncoding.DecodeString(token[4:]))
	id := b.ID()
	copy(raw, id[:])
	s.reject(t, deploy(), "ms1."+base64.RawURLEncoding.EncodeToString(raw), tripseal.ReasonForged)
}

func TestEveryKeyOfTheRingOpens(t *testing.T) {
	old, now, next := newKey(t), newKey(t), newKey(t)
	before := newService(t, tripseal.Config{Keys: newRing(t, old)})
	during := newService(t, tripseal.Config{Keys: newRing(t, now, old, next)})
	after := newService(t, tripseal.Config{Keys: newRing(t, next, now)})
	token := before.first(t, deploy(), step)
	during.accept(t, deploy(), token)
	after.reject(t, deploy(), token, tripseal.ReasonUnknownKey) // the token's key is retired
	after.accept(t, deploy(), during.first(t, deploy(), step))
	before.reject(t, deploy(), during.first(t, deploy(), step), tripseal.ReasonUnknownKey) // the token's key is not yet known
}

func TestExpiryIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, tripseal.Config{})
		token := s.first(t, deploy(), step)
		time.Sleep(10*time.Minute - time.Millisecond)
		s.accept(t, deploy(), token)
		time.Sleep(time.Millisecond)
		s.reject(t, deploy(), token, tripseal.ReasonExpired)
		time.Sleep(time.Millisecond)
		s.reject(t, deploy(), token, tripseal.ReasonExpired)
		time.Sleep(10 * 365 * 24 * time.Hour)
		s.reject(t, deploy(), token, tripseal.ReasonExpired)
	})
}

func TestTokenFromTheFutureIsRejectedBeyondTheSkew(t *testing.T) {
	keys := newRing(t, newKey(t))
	var token string
	synctest.Test(t, func(t *testing.T) { // a replica whose clock is ahead
		time.Sleep(time.Hour + 60*time.Second)
		token = newService(t, tripseal.Config{Keys: keys}).first(t, deploy(), step)
	})
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, tripseal.Config{Keys: keys})
		time.Sleep(time.Hour - time.Millisecond)
		s.reject(t, deploy(), token, tripseal.ReasonFromTheFuture) // 60.001 s ahead
		time.Sleep(time.Millisecond)
		s.accept(t, deploy(), token) // 60 s ahead
	})
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, tripseal.Config{Keys: keys})
		s.reject(t, deploy(), token, tripseal.ReasonFromTheFuture)
	})
}

func TestReplicaWithASlowerClockGoesOnWithTheFlow(t *testing.T) {
	keys := newRing(t, newKey(t))
	var token string
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * time.Second)
		token = newService(t, tripseal.Config{Keys: keys}).first(t, deploy(), step)
	})
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, tripseal.Config{Keys: keys})
		round := s.accept(t, deploy(), token)
		state := step
		next, err := s.Seal(t.Context(), &round, &state)
		if err != nil {
			t.Fatal(err)
		}
		s.accept(t, deploy(), next)
	})
}

func TestTokenForAnotherRequestIsRejected(t *testing.T) {
	s := newService(t, tripseal.Config{})
	token := s.first(t, deploy(), step)
	for _, other := range []struct {
		name   string
		change func(*tripseal.Request)
		want   tripseal.Reason
	}{
		{"method", func(r *tripseal.Request) { r.Method = "prompts/get" }, tripseal.ReasonRequest},
		{"target", func(r *tripseal.Request) { r.Target = "destroy" }, tripseal.ReasonRequest},
		{"target case", func(r *tripseal.Request) { r.Target = "Deploy" }, tripseal.ReasonRequest},
		{"moved boundary", func(r *tripseal.Request) { r.Method, r.Target = "tools/calld", "eploy" }, tripseal.ReasonRequest},
		{"one argument", func(r *tripseal.Request) { r.Arguments = []byte(`{"region":"hush-eu","replicas":4}`) }, tripseal.ReasonArguments},
		{"more arguments", func(r *tripseal.Request) {
			r.Arguments = []byte(`{"region":"hush-eu","replicas":3,"hush":null}`)
		}, tripseal.ReasonArguments},
		{"no arguments", func(r *tripseal.Request) { r.Arguments = nil }, tripseal.ReasonArguments},
		{"principal", func(r *tripseal.Request) { r.Principal = tripseal.User("hush-mallory") }, tripseal.ReasonUser},
		{"no principal", func(r *tripseal.Request) { r.Principal = nil }, tripseal.ReasonUser},
	} {
		t.Run(other.name, func(t *testing.T) {
			request := deploy()
			other.change(&request)
			s.reject(t, request, token, other.want)
			// Now the token is for the changed request.
			s.reject(t, deploy(), s.first(t, request, step), other.want)
		})
	}
	same := deploy()
	same.Arguments = []byte(" { \"replicas\" : 30e-1 , \"regi\\u006fn\":\"hush-eu\"} ")
	s.accept(t, same, token)
}

func TestTokenOfAnotherServiceIsRejected(t *testing.T) {
	keys := tripseal.Ephemeral()
	a := newService(t, tripseal.Config{Keys: keys, Audience: "a.example.com"})
	b := newService(t, tripseal.Config{Keys: keys, Audience: "b.example.com"})
	a.reject(t, deploy(), b.first(t, deploy(), step), tripseal.ReasonAudience)
	b.reject(t, deploy(), a.first(t, deploy(), step), tripseal.ReasonAudience)

	book := &logbook{}
	nobody, err := tripseal.New(tripseal.Config{Keys: keys, Logger: jsonLogger(book), Observer: book.observe})
	if err != nil {
		t.Fatal(err)
	}
	none := service{nobody, book}
	none.reject(t, deploy(), a.first(t, deploy(), step), tripseal.ReasonAudience)
	a.reject(t, deploy(), none.first(t, deploy(), step), tripseal.ReasonAudience)
	none.accept(t, deploy(), none.first(t, deploy(), step))
}

func TestRequirePrincipalRefusesNobody(t *testing.T) {
	ctx := context.Background()
	keys := newRing(t, newKey(t))
	strict := newService(t, tripseal.Config{Keys: keys, RequireUser: true})
	lax := newService(t, tripseal.Config{Keys: keys})
	anonymous := deploy()
	anonymous.Principal = nil
	token := lax.first(t, anonymous, step)
	lax.accept(t, anonymous, token)
	strict.reject(t, anonymous, token, tripseal.ReasonUser)
	round, _ := strict.Open(ctx, anonymous, "")
	state := step
	sealed, err := strict.Seal(ctx, &round, &state)
	strict.notSealed(t, sealed, err, tripseal.ReasonUser)
}

func TestRoundsAreLimited(t *testing.T) {
	ctx := context.Background()
	keys := newRing(t, newKey(t))
	s := newService(t, tripseal.Config{Keys: keys})
	token := s.first(t, deploy(), step)
	state := step
	for n := 1; n < 20; n++ {
		round := s.accept(t, deploy(), token)
		if round.Number() != n {
			t.Fatalf("round %d says that it is %d", n, round.Number())
		}
		var err error
		if token, err = s.Seal(ctx, &round, &state); err != nil {
			t.Fatal(err)
		}
	}
	round := s.accept(t, deploy(), token) // round 20, the last one
	sealed, err := s.Seal(ctx, &round, &state)
	s.notSealed(t, sealed, err, tripseal.ReasonTooManyRounds)

	shorter := newService(t, tripseal.Config{Keys: keys, MaxRounds: 19})
	shorter.reject(t, deploy(), token, tripseal.ReasonTooManyRounds)
	endless := newService(t, tripseal.Config{Keys: keys, MaxRounds: tripseal.NoLimit})
	round = endless.accept(t, deploy(), token)
	if _, err = endless.Seal(ctx, &round, &state); err != nil {
		t.Fatal(err)
	}
}

func TestAFlowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		keys := newRing(t, newKey(t))
		s := newService(t, tripseal.Config{Keys: keys})
		endless := newService(t, tripseal.Config{Keys: keys, MaxFlow: tripseal.NoLimit})
		shorter := newService(t, tripseal.Config{Keys: keys, MaxFlow: 50 * time.Minute})
		token := s.first(t, deploy(), step)
		state := step
		for range 6 { // one round every 9 minutes
			time.Sleep(9 * time.Minute)
			round := s.accept(t, deploy(), token)
			var err error
			if token, err = s.Seal(ctx, &round, &state); err != nil {
				t.Fatal(err)
			}
		}
		shorter.reject(t, deploy(), token, tripseal.ReasonFlowExpired)
		// 54 minutes of the flow's hour have passed, so this token lives 6 minutes, not 10.
		time.Sleep(6*time.Minute - time.Millisecond)
		round := s.accept(t, deploy(), token)
		free := endless.accept(t, deploy(), token)
		time.Sleep(time.Millisecond)
		s.reject(t, deploy(), token, tripseal.ReasonExpired)
		sealed, err := s.Seal(ctx, &round, &state)
		s.notSealed(t, sealed, err, tripseal.ReasonFlowExpired)
		if _, err := endless.Seal(ctx, &free, &state); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOversizedTokenIsRefusedBeforeAnyDecoding(t *testing.T) {
	codec := &countingCodec{Codec: tripseal.RingCodec(newRing(t, newKey(t)), tripseal.PurposeState)}
	s := newService(t, tripseal.Config{Format: tripseal.RecordFormat("own1.", codec)})
	s.reject(t, deploy(), "own1."+strings.Repeat("A", 64<<10), tripseal.ReasonTooLarge)
	if codec.opened != 0 {
		t.Error("the codec saw an oversized token")
	}
	s.reject(t, deploy(), "own1."+strings.Repeat("A", 64<<10-5), tripseal.ReasonUnknownKey)
	if codec.opened != 1 {
		t.Error("the codec did not see a token of the largest size")
	}
}

// ownCodec hides that its codec is a RingCodec, so tripseal takes it for the user's own codec.
type ownCodec struct{ tripseal.Codec }

type countingCodec struct {
	tripseal.Codec
	opened int
}

func (c *countingCodec) Open(ctx context.Context, dst []byte, text string) ([]byte, error) {
	c.opened++
	return c.Codec.Open(ctx, dst, text)
}

func TestSealRefusesWhatOpenWouldRefuse(t *testing.T) {
	ctx := context.Background()
	keys := newRing(t, newKey(t))
	s := newService(t, tripseal.Config{Keys: keys})
	state := strings.Repeat("hush", 4096) + "!"
	round, _ := s.Open(ctx, deploy(), "")
	token, err := s.Seal(ctx, &round, &state)
	s.notSealed(t, token, err, tripseal.ReasonTooLarge)

	narrow := newService(t, tripseal.Config{Keys: keys, MaxState: 100, MaxToken: 150})
	narrow.reject(t, deploy(), s.first(t, deploy(), ""), tripseal.ReasonTooLarge)
	round, _ = narrow.Open(ctx, deploy(), "")
	state = ""
	token, err = narrow.Seal(ctx, &round, &state)
	narrow.notSealed(t, token, err, tripseal.ReasonTooLarge)

	small := newService(t, tripseal.Config{Keys: keys, MaxState: 100})
	small.reject(t, deploy(), s.first(t, deploy(), strings.Repeat("hush.", 21)), tripseal.ReasonTooLarge)
	small.accept(t, deploy(), s.first(t, deploy(), strings.Repeat("hush.", 20)))
}

func TestTwoSealsOfOneStateDiffer(t *testing.T) {
	s := newService(t, tripseal.Config{})
	if one, two := s.first(t, deploy(), step), s.first(t, deploy(), step); one == two {
		t.Error("two first rounds share a token")
	}
	ctx := context.Background()
	round, _ := s.Open(ctx, deploy(), "")
	state := step
	a, err := s.Seal(ctx, &round, &state)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Seal(ctx, &round, &state)
	if err != nil || a == b {
		t.Errorf("two seals of one round share a token, %v", err)
	}
	s.accept(t, deploy(), a)
	s.accept(t, deploy(), b)
}

func TestCursorPayloadIsNoState(t *testing.T) {
	// Cursors and states share one codec here: only the payload's first bytes tell them apart.
	ctx := context.Background()
	codec := ownCodec{tripseal.RingCodec(newRing(t, newKey(t)), tripseal.PurposeState)}
	s := newService(t, tripseal.Config{Format: tripseal.RecordFormat("own1.", codec)})
	payload, err := codec.Open(ctx, nil, s.first(t, deploy(), step)[5:])
	if err != nil || payload[0] != 'S' {
		t.Fatal("the payload does not begin with its purpose", err)
	}
	for _, head := range []string{"C\x01", "S\x02", "S\x00", "s\x01", "", "S", "\x00\x00"} {
		text, err := codec.Seal(ctx, nil, append([]byte(head), payload[min(2, len(head)):]...))
		if head == "" || head == "S" {
			text, err = codec.Seal(ctx, nil, []byte(head))
		}
		if err != nil {
			t.Fatal(err)
		}
		s.reject(t, deploy(), "own1."+string(text), tripseal.ReasonVersion)
	}
	// Cursors and states that share one ring have different keys.
	keys := newRing(t, newKey(t))
	native := newService(t, tripseal.Config{Keys: keys})
	text, err := tripseal.RingCodec(keys, tripseal.PurposeCursor).Seal(ctx, nil, payload)
	if err != nil {
		t.Fatal(err)
	}
	native.reject(t, deploy(), "ms1."+string(text), tripseal.ReasonForged)
}

func TestARoundOfAnotherBoundaryIsNotSealed(t *testing.T) {
	ctx := context.Background()
	keys := newRing(t, newKey(t))
	a, b := newService(t, tripseal.Config{Keys: keys}), newService(t, tripseal.Config{Keys: keys})
	round, _ := a.Open(ctx, deploy(), "")
	state := step
	token, err := b.Seal(ctx, &round, &state)
	b.notSealed(t, token, err, tripseal.ReasonMisuse)
	token, err = b.Seal(ctx, &tripseal.Round{}, &state)
	b.notSealed(t, token, err, tripseal.ReasonMisuse)
	token, err = b.Seal(ctx, nil, &state)
	b.notSealed(t, token, err, tripseal.ReasonMisuse)
}

// undigestible lists arguments that have no digest.
var undigestible = []string{`{"hush":1,"hush":2}`, `{"hush"`, "{\"hush\":\"\xff\"}", " ", strings.Repeat("[", 129) + strings.Repeat("]", 129), strings.Repeat(" ", 4<<20) + "{}"}

func TestAFirstRoundWithoutADigestIsInvalidParams(t *testing.T) {
	ctx := context.Background()
	s := newService(t, tripseal.Config{})
	for _, arguments := range undigestible {
		request := deploy()
		request.Arguments = []byte(arguments)
		round, err := s.Open(ctx, request, "")
		if err != nil {
			t.Fatal("a tool that never asks is touched:", err)
		}
		state := step
		_, err = s.Seal(ctx, &round, &state)
		invalidParams(t, s, err)
	}
}

// TestWithATokenEveryFailureIsTheFrozenError combines arguments that have a digest or none, good
// and bad tokens, and calls with and without a user. The client always sees the same error, so it
// cannot tell what is wrong.
func TestWithATokenEveryFailureIsTheFrozenError(t *testing.T) {
	ctx := context.Background()
	frozen, _ := json.Marshal(tripseal.Wire(tripseal.ErrRejected))
	for _, require := range []bool{false, true} {
		s := newService(t, tripseal.Config{
			RequireUser: require, Replay: storeFunc(func(context.Context, tripseal.Use) (bool, error) { return true, nil }), ReplayTools: []string{"deploy"},
			AlsoOpen: []tripseal.Accepted{{Format: readable{}, Waive: allClaims &^ tripseal.ClaimSingleUse}},
		})
		good := s.first(t, deploy(), step)
		for _, arguments := range append(undigestible, `{}`) {
			for token, reason := range map[string]tripseal.Reason{
				good:                              tripseal.ReasonArguments,
				good[:len(good)-4] + "AAAA":       tripseal.ReasonForged,
				"ms1." + strings.Repeat("A", 100): tripseal.ReasonUnknownKey,
				"ms1.":                            tripseal.ReasonMalformed,
				"plain.x":                         tripseal.ReasonClaimMissing,
				"zz1.x":                           tripseal.ReasonMalformed,
				strings.Repeat("x", 1<<20):        tripseal.ReasonTooLarge,
			} {
				for _, user := range []tripseal.Principal{deploy().Principal, nil} {
					request := deploy()
					request.Arguments, request.Principal = []byte(arguments), user
					round, err := s.Open(ctx, request, token)
					if _, ok := round.State(); ok {
						t.Fatal("a state came back beside an error")
					}
					if wire, _ := json.Marshal(tripseal.Wire(err)); string(wire) != string(frozen) {
						t.Fatalf("the client sees %s for %v", wire, err)
					}
					var rejected *tripseal.RejectError
					if user != nil && len(arguments) < 1<<20 && (!errors.As(err, &rejected) || rejected.Reason != reason) {
						t.Errorf("%.20s with %.20s: %v, want %s", token, arguments, s.book.last(t)["reason"], reason)
					}
				}
			}
		}
	}
}

func TestArgumentsBeyondTheLimitAreNotDigested(t *testing.T) {
	s := newService(t, tripseal.Config{MaxArguments: 100})
	request := deploy()
	request.Arguments = []byte(`{"a":"` + strings.Repeat("x", 92) + `"}`)
	token := s.first(t, request, step)
	s.accept(t, request, token)
	request.Arguments = append(request.Arguments, ' ') // the same value, but one byte too long
	s.reject(t, request, token, tripseal.ReasonTooLarge)
}

// foreign hides from a boundary that its format is the native one.
type foreign struct{ tripseal.Format }

func (f foreign) Seal(ctx context.Context, b *tripseal.Binding, c *tripseal.Claims) (string, error) {
	if b.Arguments != nil {
		return "", errors.New("the arguments that the handler has now")
	}
	return f.Format.Seal(ctx, b, c)
}

// TestWhatArrivedIsBound changes the arguments in place between Open and Seal. The token is still
// bound to the arguments that arrived.
func TestWhatArrivedIsBound(t *testing.T) {
	keys := newRing(t, newKey(t))
	for _, config := range []tripseal.Config{{Keys: keys}, {Format: foreign{tripseal.NativeFormat(keys)}}} {
		s := newService(t, config)
		arrived := deploy()
		round := s.accept(t, arrived, s.first(t, arrived, step))
		copy(arrived.Arguments, bytes.Replace(arrived.Arguments, []byte("eu"), []byte("us"), 1))
		token, err := s.Seal(context.Background(), &round, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.accept(t, deploy(), token)
		s.reject(t, arrived, token, tripseal.ReasonArguments)
	}
}

func invalidParams(t *testing.T, s service, err error) {
	t.Helper()
	leaks.scan("%v %+v %#v", err, err, err)
	wire := tripseal.Wire(err)
	if wire.Code != -32602 || wire.Message != "Invalid params" || wire.Data != nil {
		t.Fatalf("the client sees %v for %v", wire, err)
	}
	if logged := s.book.last(t); logged["reason"] != "invalid_params" {
		t.Fatalf("the log says %v", logged)
	}
}

// amount has its JSON methods on the pointer type.
type amount struct{ cents int }

func (a *amount) MarshalJSON() ([]byte, error)    { return json.Marshal(a.cents) }
func (a *amount) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &a.cents) }

func TestAStateMayHaveItsJSONOnThePointer(t *testing.T) {
	type order struct{ Total amount }
	for _, value := range []any{order{amount{7}}, &order{amount{7}}} {
		state, err := tripseal.EncodeState(value)
		if back, err2 := tripseal.DecodeState[order](state); err != nil || err2 != nil || back.Total.cents != 7 {
			t.Errorf("%T: %s, %v, %v, %v", value, state, back, err, err2)
		}
	}
	if state, err := tripseal.EncodeState(nil); state != "null" || err != nil {
		t.Errorf("%q, %v", state, err)
	}
}

// written has a method that writes it as JSON, and none that reads it.
type written string

func (w written) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"name": string(w)})
}

func TestStatesThatJSONWouldChangeAreRefused(t *testing.T) {
	for name, value := range map[string]any{
		"a large integer in an any": map[string]any{"alice": int64(1<<53 + 1)}, "no reader": struct{ At interface{ String() string } }{time.Minute},
		"a writer without a reader": written("alice"), "not JSON": make(chan int),
	} {
		if state, err := tripseal.EncodeState(value); state != "" || err == nil || strings.Contains(err.Error(), "alice") {
			t.Errorf("%s: %q, %v", name, state, err)
		}
	}
	value := struct {
		Text string
		At   time.Time
		Any  map[string]any
	}{"<&>", time.Now(), map[string]any{"step": 1, "share": 0.1}}
	if state, err := tripseal.EncodeState(value); state == "" || err != nil {
		t.Errorf("%q, %v", state, err)
	}
}
