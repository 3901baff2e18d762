package tripseal

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tripseal/tripseal/internal/native"
)

func testBinding() *Binding {
	return &Binding{Method: "tools/call", Target: "deploy", Arguments: []byte(`{"a":1}`), Audience: "svc", User: "alice"}
}

func testClaims() Claims {
	return Claims{
		Issued: 1_800_000_000_000, Expires: 1_800_000_600_000, Flow: [16]byte{1, 2, 3}, FlowStart: 1_799_999_999_000, Round: 2,
		Questions: []Question{{Key: "confirm", Kind: KindForm}, {Key: "", Kind: KindURL}},
		State:     "step=1", HasState: true,
	}
}

func testRecord(t testing.TB, claims Claims, binding *Binding) []byte {
	t.Helper()
	payload, ok := appendRecord(nil, &claims, binding, testDigests(t, binding, claims.Flow))
	if !ok {
		t.Fatal("the claims do not fit")
	}
	return payload
}

func testDigests(t testing.TB, binding *Binding, flow [16]byte) *digests {
	t.Helper()
	plain, err := binding.ArgumentsDigest()
	if err != nil {
		t.Fatal(err)
	}
	d := &digests{plain: plain, plainKnown: true}
	d.saltFor(binding, flow)
	return d
}

func TestEveryTruncatedRecordIsRefusedOrShortensTheState(t *testing.T) {
	claims := testClaims()
	payload := testRecord(t, claims, testBinding())
	for n := range payload {
		rec, reason := parseRecord(payload[:n])
		if reason == "" {
			reason = rec.decode(new(contents))
		}
		if inState := n >= len(payload)-len(claims.State); (reason == "") != inState {
			t.Errorf("%d of %d bytes: %v", n, len(payload), reason)
		}
	}
}

func TestRecordsThatBreakARuleAreRefused(t *testing.T) {
	good := testRecord(t, testClaims(), testBinding())
	questions := headSize + 2*digestSize
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   Reason
	}{
		"another purpose":    {func(p []byte) []byte { p[0] = 'C'; return p }, ReasonVersion},
		"version 0":          {func(p []byte) []byte { p[1] = 0; return p }, ReasonVersion},
		"version 2":          {func(p []byte) []byte { p[1] = 2; return p }, ReasonVersion},
		"unknown flag":       {func(p []byte) []byte { p[2] |= 16; return p }, ReasonMalformed},
		"highest flag":       {func(p []byte) []byte { p[2] |= 128; return p }, ReasonMalformed},
		"lifetime 0":         {func(p []byte) []byte { clear(p[atLifetime : atLifetime+5]); return p }, ReasonMalformed},
		"round 0":            {func(p []byte) []byte { clear(p[atRound : atRound+2]); return p }, ReasonMalformed},
		"state without flag": {func(p []byte) []byte { p[2] &^= flagState; return p }, ReasonMalformed},
		"65 questions": {func(p []byte) []byte {
			p = append(p[:questions], 65)
			for i := range 65 {
				p = fmt.Appendf(p, "\x01\x02%02d", i)
			}
			return p
		}, ReasonMalformed},
		"255 questions": {func(p []byte) []byte { p[questions] = 255; return p }, ReasonMalformed},
		"kind 0":        {func(p []byte) []byte { p[questions+1] = 0; return p }, ReasonMalformed},
		"kind 5":        {func(p []byte) []byte { p[questions+1] = 5; return p }, ReasonMalformed},
		"key too long":  {func(p []byte) []byte { p[questions+2] = 200; return append(p, make([]byte, 500)...) }, ReasonMalformed},
		"kind 129":      {func(p []byte) []byte { p[questions+1] |= 128; return p }, ReasonMalformed},
		"elicit without a state": {func(p []byte) []byte {
			p[2] = p[2]&^flagState | flagElicit
			return bytes.TrimSuffix(p, []byte("step=1"))
		}, ReasonMalformed},
	} {
		rec, reason := parseRecord(c.change(bytes.Clone(good)))
		if reason == "" {
			reason = rec.decode(new(contents))
		}
		if reason != c.want {
			t.Errorf("%s: %v, want %v", name, reason, c.want)
		}
	}
	twice := testClaims()
	twice.Arguments = make([]byte, digestSize)
	twice.Questions[1].Key = "confirm"
	if token, err := NativeFormat(Ephemeral()).Seal(context.Background(), testBinding(), &twice); err == nil || token != "" {
		t.Error("two questions of one key are sealed")
	}
	payload := testRecord(t, testClaims(), testBinding())
	payload = bytes.Replace(payload, []byte("\x02\x00step"), []byte("\x02\x07confirmstep"), 1)
	if rec, reason := parseRecord(payload); reason != "" {
		t.Error(reason)
	} else if reason := rec.decode(new(contents)); reason != ReasonMalformed {
		t.Errorf("two questions of one key open: %v", reason)
	}
}

func TestDigestsAreComparedWhole(t *testing.T) {
	digest := [digestSize]byte{1, 2, 3}
	for i := range digest {
		other := digest
		other[i] ^= 0x80
		if native.Same(other[:], &digest) {
			t.Errorf("byte %d of a digest does not count", i)
		}
	}
}

// TestTwoQuestionsOfOneKeyAreRefusedWhereverTheyAre gives the same key to every pair of questions
// in turn. All keys are long and differ only in the last two characters.
func TestTwoQuestionsOfOneKeyAreRefusedWhereverTheyAre(t *testing.T) {
	opens := func(questions []Question) bool {
		list, rest, ok := cutQuestions(append(appendQuestions(nil, questions), "state"...), len(questions))
		return ok && rest == "state" && slices.Equal(slices.Collect(list.inOrder), questions)
	}
	for _, n := range []int{1, 2, 3, 13, MaxQuestions} {
		questions := make([]Question, n)
		for i := range questions {
			questions[i] = Question{Key: strings.Repeat("k", MaxQuestionKey-2) + fmt.Sprintf("%02d", i*37%n), Kind: KindForm}
		}
		if before := slices.Clone(questions); !wellFormed(questions) || !opens(questions) || !slices.Equal(before, questions) {
			t.Errorf("%d questions are refused or changed", n)
		}
		for i := range questions {
			for j := range i {
				twice := slices.Clone(questions)
				twice[i].Key, twice[i].Kind = twice[j].Key, KindURL
				if wellFormed(twice) || opens(twice) {
					t.Fatalf("questions %d and %d of %d have the same key, and are accepted", j, i, n)
				}
			}
		}
	}
}

func TestClaimsThatDoNotFitAreNotSealed(t *testing.T) {
	for name, change := range map[string]func(*Claims){
		"":                    func(*Claims) {}, // these fit
		"no arguments":        func(c *Claims) { c.Arguments = nil },
		"issued before 1970":  func(c *Claims) { c.Issued, c.FlowStart = -1, -1 },
		"issued too late":     func(c *Claims) { c.Issued = 1 << 48; c.Expires = c.Issued + 1; c.FlowStart = c.Issued },
		"no lifetime":         func(c *Claims) { c.Expires = c.Issued },
		"negative lifetime":   func(c *Claims) { c.Expires = c.Issued - 1 },
		"endless lifetime":    func(c *Claims) { c.Expires = c.Issued + 1<<40 },
		"flow not yet begun":  func(c *Claims) { c.FlowStart = c.Issued + 1 },
		"flow too old":        func(c *Claims) { c.FlowStart = c.Issued - 1<<40 },
		"round 0":             func(c *Claims) { c.Round = 0 },
		"round 65536":         func(c *Claims) { c.Round = 65536 },
		"a question too many": func(c *Claims) { c.Questions = make([]Question, 65) },
	} {
		claims := testClaims()
		claims.Arguments = make([]byte, digestSize)
		change(&claims)
		token, err := NativeFormat(Ephemeral()).Seal(context.Background(), testBinding(), &claims)
		if sealed := err == nil && token != ""; sealed != (name == "") {
			t.Errorf("%q: sealed %v", name, sealed)
		}
	}
}

func TestDigestsAreComputedOnceARound(t *testing.T) {
	b := testBinding()
	d := testDigests(t, b, [16]byte{1})
	want := *d
	b.Target, b.User = "changed", "changed" // the digests would change if saltFor read the binding again
	if d.saltFor(b, [16]byte{1}); *d != want {
		t.Error("computed again")
	}
	if other := testDigests(t, testBinding(), [16]byte{2}); other.request == want.request || other.mask == want.mask ||
		other.user == want.user || other.audience != want.audience {
		t.Errorf("the salt of another flow: %+v", other)
	}
}

func TestARoundReusesItsDigests(t *testing.T) {
	ctx := context.Background()
	b, err := New(Config{Keys: Ephemeral(), Audience: "svc"})
	if err != nil {
		t.Fatal(err)
	}
	request := Request{Method: "tools/call", Target: "deploy", Arguments: []byte(`{"a":1}`), Principal: User("alice")}
	round, _ := b.Open(ctx, request, "")
	token, err := b.Seal(ctx, &round, nil)
	if err != nil {
		t.Fatal(err)
	}
	if round, err = b.Open(ctx, request, token); err != nil || !round.digests.known || !round.digests.plainKnown {
		t.Fatal("the digests are not kept", err)
	}
	round.binding.Arguments = []byte("{{")
	if _, err := b.Seal(ctx, &round, nil); err != nil {
		t.Error("Seal looked at the arguments again:", err)
	}
}

func TestAKeyIsUsedUpAfter32Bits(t *testing.T) {
	ring, err := NewRing(GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	warned := 0
	codec := &ringCodec{keys: ring, purpose: PurposeState, halfUsed: func(KeyID) { warned++ }}
	count := ring.keys.first[PurposeState].seals
	seal := func() error {
		_, err := codec.Seal(context.Background(), nil, []byte("x"))
		return err
	}
	count.Store(maxSeals/2 - 2)
	for range 3 {
		if err := seal(); err != nil {
			t.Fatal(err)
		}
	}
	if warned != 1 {
		t.Errorf("warned %d times at half", warned)
	}
	count.Store(maxSeals - 1)
	if err := seal(); err != nil {
		t.Errorf("the last seal: %v", err)
	}
	if err := seal(); err != errUsedUp {
		t.Errorf("one more: %v", err)
	}
}

// countingStore counts uses, and lets every token be used again.
type countingStore struct{ uses *int }

func (s countingStore) Spend(context.Context, Use) (bool, error) { *s.uses++; return true, nil }
func (s countingStore) NonBlocking() ReplayStore                 { return s }

func TestTokenLength(t *testing.T) {
	ring := Ephemeral()
	b, err := New(Config{Keys: ring, Audience: "svc"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	round, _ := b.Open(ctx, Request{Method: "tools/call", Target: "deploy", Principal: User("alice")}, "")
	state := strings.Repeat("x", 256)
	token, err := b.Seal(ctx, &round, &state, Question{Key: "confirm", Kind: KindForm})
	if err != nil || len(token) > 540 {
		t.Errorf("256 bytes of state and one question take %d characters, %v", len(token), err)
	}
}

// FuzzRecord checks that each record has only one encoding: if a payload can be read, the result
// is written as the same payload.
func FuzzRecord(f *testing.F) {
	f.Add(testRecord(f, testClaims(), testBinding()))
	f.Add(testRecord(f, Claims{Expires: 1, Round: 1}, &Binding{}))
	f.Add(testRecord(f, Claims{Expires: 1, Round: 1, HasState: true}, &Binding{User: "p"}))
	f.Add(bytes.Repeat([]byte{'S', 1}, 100))
	f.Fuzz(func(t *testing.T, payload []byte) {
		rec, reason := parseRecord(payload)
		if reason != "" {
			return
		}
		var c contents
		if rec.decode(&c) != "" {
			return
		}
		claims, questions := c.claims, c.questions
		claims.Questions = slices.Collect(questions.inOrder)
		keys := map[string]bool{}
		for _, q := range claims.Questions {
			keys[q.Key] = true
			if kind, ok := questions.kindOf(q.Key); !ok || kind != q.Kind {
				t.Fatalf("%v is found as one of kind %d, %v", q, kind, ok)
			}
		}
		if len(keys) != len(claims.Questions) || len(keys) != rec.questions {
			t.Fatalf("%d questions are read as %v", rec.questions, claims.Questions)
		}
		d := digests{}
		var b Binding
		copy(d.request[:], rec.head[atRequest:])
		copy(d.plain[:], rec.head[atArguments:]) // the mask of d is zero, so it changes nothing
		if rec.audience != nil {
			b.Audience = "present"
			copy(d.audience[:], rec.audience)
		}
		if rec.user != nil {
			b.User = "present"
			copy(d.user[:], rec.user)
		}
		again, ok := appendRecord(nil, &claims, &b, &d)
		if !ok || !bytes.Equal(again, payload) {
			t.Fatalf("%x is read as %+v and written as %x", payload, claims, again)
		}
	})
}

// FuzzToken checks that a text opens only if it is one of the tokens that were sealed. These are
// fixed tokens, because every fuzzing process must know the same ones.
func FuzzToken(f *testing.F) {
	vectors := readVectors(f).Vectors
	var keys []Key
	genuine := make(map[string]vector)
	for _, v := range vectors {
		keys = append(keys, v.key(f))
		genuine[v.Token] = v
		f.Add(v.Token)
		f.Add(v.Token + "\n")
		f.Add(v.Token[:len(v.Token)-1] + "A")
		f.Add(v.Token + "==")
	}
	f.Add("ms1.")
	ring, err := NewRing(keys...)
	if err != nil {
		f.Fatal(err)
	}
	format, codec := NativeFormat(ring), RingCodec(ring, PurposeState)
	f.Fuzz(func(t *testing.T, token string) {
		v, isGenuine := genuine[token]
		if _, err := format.Open(context.Background(), vectors[0].binding(), token); (err == nil) != (token == vectors[0].Token) {
			t.Fatalf("%q: %v", token, err)
		}
		if !isGenuine {
			v = vectors[0]
		}
		if _, err := format.Open(context.Background(), v.binding(), token); (err == nil) != isGenuine {
			t.Fatalf("%q: %v", token, err)
		}
		if text, ok := strings.CutPrefix(token, "ms1."); ok {
			if _, err := codec.Open(context.Background(), nil, text); (err == nil) != isGenuine {
				t.Fatalf("%q: %v", token, err)
			}
		}
	})
}
