package sealtest_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/sealtest"
)

func TestBoundaryInOneLine(t *testing.T) {
	ctx := context.Background()
	boundary := sealtest.Boundary(t)
	request := tripseal.Request{Method: "tools/call", Target: "deploy"}
	round, _ := boundary.Open(ctx, request, "")
	state := "step=1"
	token, err := boundary.Seal(ctx, &round, &state)
	if err != nil {
		t.Fatal(err)
	}
	if round, err = boundary.Open(ctx, request, token); err != nil {
		t.Fatal(err)
	}
	if got, ok := round.State(); !ok || got != state {
		t.Errorf("state %q, %v", got, ok)
	}
}

// readableCodec does not hide its payload.
type readableCodec struct{}

func (readableCodec) Seal(_ context.Context, dst, payload []byte) ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(dst, payload), nil
}
func (readableCodec) Open(_ context.Context, dst []byte, text string) ([]byte, error) {
	return base64.RawURLEncoding.AppendDecode(dst, []byte(text))
}

// lenientCodec accepts white space around a text.
type lenientCodec struct{ tripseal.Codec }

func (c lenientCodec) Open(ctx context.Context, dst []byte, text string) ([]byte, error) {
	return c.Codec.Open(ctx, dst, strings.TrimSpace(text))
}

// mumblingCodec does not say why a text cannot be opened.
type mumblingCodec struct{ tripseal.Codec }

func (c mumblingCodec) Open(ctx context.Context, dst []byte, text string) ([]byte, error) {
	payload, err := c.Codec.Open(ctx, dst, text)
	if err != nil {
		return nil, errors.New("no")
	}
	return payload, nil
}

// sharedCodec returns the same buffer to all callers.
type sharedCodec struct {
	tripseal.Codec
	mu     *sync.Mutex
	buffer []byte
}

func (c *sharedCodec) Open(ctx context.Context, dst []byte, text string) ([]byte, error) {
	payload, err := c.Codec.Open(ctx, nil, text)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buffer = append(append(c.buffer[:0], dst...), payload...)
	return c.buffer[:min(len(c.buffer), 100)], nil
}

// jsonFormat makes tokens that are not sealed at all.
type jsonFormat struct{}

func (jsonFormat) Prefix() string             { return "json." }
func (jsonFormat) Carries() tripseal.ClaimSet { return 0 }
func (jsonFormat) Digest(*tripseal.Binding) ([]byte, error) {
	return nil, nil
}
func (jsonFormat) Seal(_ context.Context, _ *tripseal.Binding, c *tripseal.Claims) (string, error) {
	text, err := json.Marshal(c)
	return "json." + string(text), err
}
func (jsonFormat) Open(_ context.Context, _ *tripseal.Binding, token string) (c tripseal.Claims, err error) {
	err = json.Unmarshal([]byte(strings.TrimPrefix(token, "json.")), &c)
	return c, err
}

// unboundFormat forgets one part of the binding.
type unboundFormat struct {
	tripseal.Format
	forget func(*tripseal.Binding)
}

func (f unboundFormat) Digest(b *tripseal.Binding) ([]byte, error) {
	f.forget(b)
	return f.Format.Digest(b)
}
func (f unboundFormat) Seal(ctx context.Context, b *tripseal.Binding, c *tripseal.Claims) (string, error) {
	f.forget(b)
	return f.Format.Seal(ctx, b, c)
}
func (f unboundFormat) Open(ctx context.Context, b *tripseal.Binding, token string) (tripseal.Claims, error) {
	f.forget(b)
	return f.Format.Open(ctx, b, token)
}

type sourceFunc func() *tripseal.Ring

func (f sourceFunc) Ring() *tripseal.Ring { return f() }

type storeFunc func(tripseal.Use) bool

func (f storeFunc) Spend(_ context.Context, use tripseal.Use) (bool, error) { return f(use), nil }

// Each entry has the name of a broken implementation, its test, and a text that the failing test
// must print.
var broken = map[string]struct {
	run  func(*testing.T)
	want string
}{
	"codec readable": {func(t *testing.T) { sealtest.TestCodec(t, readableCodec{}) }, "a text that was never sealed opens"},
	"codec lenient":  {func(t *testing.T) { sealtest.TestCodec(t, lenientCodec{ringCodec()}) }, "a text that was never sealed opens"},
	"codec mumbling": {func(t *testing.T) { sealtest.TestCodec(t, mumblingCodec{ringCodec()}) }, "does not say that the text is not genuine"},
	"codec shared": {func(t *testing.T) {
		sealtest.TestCodec(t, &sharedCodec{Codec: ringCodec(), mu: new(sync.Mutex)})
	}, "came back as"},
	"format plain": {func(t *testing.T) { sealtest.TestFormat(t, jsonFormat{}) }, "a changed token opens"},
	"format unbound": {func(t *testing.T) {
		sealtest.TestFormat(t, unboundFormat{nativeFormat(), func(b *tripseal.Binding) { b.Target = "" }})
	}, "with another target the token still opens"},
	"format userless": {func(t *testing.T) {
		sealtest.TestFormat(t, unboundFormat{nativeFormat(), func(b *tripseal.Binding) { b.User = "" }})
	}, "with another user the token still opens"},
	"format argless": {func(t *testing.T) {
		sealtest.TestFormat(t, unboundFormat{nativeFormat(), func(b *tripseal.Binding) { b.Arguments = nil }})
	}, "with other arguments the token still opens"},
	"format anybody":   {func(t *testing.T) { sealtest.TestFormat(t, anybodyFormat{nativeFormat()}) }, "a token with no user opens without"},
	"format ageless":   {func(t *testing.T) { sealtest.TestFormat(t, agelessFormat{nativeFormat()}) }, "the flow's start moved"},
	"format disguised": {func(t *testing.T) { sealtest.TestFormat(t, disguisedFormat{nativeFormat()}) }, "which is tripseal's own"},
	"codec signed":     {func(t *testing.T) { sealtest.TestCodec(t, &signedCodec{}) }, "can be read from the text"},
	"store small":      {func(t *testing.T) { sealtest.TestReplayStore(t, smallStore()) }, "/NothingIsForgottenEarly"},
	"source empty": {func(t *testing.T) {
		sealtest.TestKeySource(t, sourceFunc(func() *tripseal.Ring { return nil }))
	}, "no ring"},
	"source changing": {func(t *testing.T) { sealtest.TestKeySource(t, sourceFunc(tripseal.Ephemeral)) }, "token rejected"},
	"store forgetful": {func(t *testing.T) {
		sealtest.TestReplayStore(t, storeFunc(func(tripseal.Use) bool { return true }))
	}, "Spend = true, want false"},
	"store refusing": {func(t *testing.T) {
		sealtest.TestReplayStore(t, storeFunc(func(tripseal.Use) bool { return false }))
	}, "Spend = false, want true"},
	"store of half a second": {func(t *testing.T) { sealtest.TestReplayStore(t, shortStore(500*time.Millisecond)) }, "/NothingIsForgottenBeforeItsTime"},
	"store impatient":        {func(t *testing.T) { sealtest.TestReplayStore(t, impatientStore{}) }, "counts as used because its context ended"},
	"unwrapper readable":     {func(t *testing.T) { testUnwrapper(t, brokenUnwrapper{plain: true}) }, "the secret can be read"},
	"unwrapper lenient":      {func(t *testing.T) { testUnwrapper(t, brokenUnwrapper{lenient: true}) }, "never wrapped were unwrapped"},
	"unwrapper unsigned":     {func(t *testing.T) { testUnwrapper(t, brokenUnwrapper{unsigned: true}) }, "unwrapped all the same"},
	"unwrapper deaf":         {func(t *testing.T) { testUnwrapper(t, brokenUnwrapper{deaf: true}) }, "although the context had ended"},
	"unwrapper nameless":     {func(t *testing.T) { testUnwrapper(t, brokenUnwrapper{nameless: true}) }, "is not a scheme"},
	"store racing":           {func(t *testing.T) { sealtest.TestReplayStore(t, racingStore()) }, "uses of one token succeeded"},
	"store racing later":     {func(t *testing.T) { sealtest.TestReplayStore(t, tiredStore()) }, "of 100 succeeded"},
	"store of bytes": {func(t *testing.T) {
		sealtest.TestReplayStore(t, keyedStore(func(use tripseal.Use) any { return fmt.Sprint(use.Flow, byte(use.Round)) }))
	}, "/RoundsAreToldApart"},
	"store of half flows": {func(t *testing.T) {
		sealtest.TestReplayStore(t, keyedStore(func(use tripseal.Use) any { return fmt.Sprint(use.Flow[:8], use.Round) }))
	}, "/FlowsAreToldApart"},
	"store of C strings": {func(t *testing.T) {
		sealtest.TestReplayStore(t, keyedStore(func(use tripseal.Use) any {
			flow, _, _ := bytes.Cut(use.Flow[:], []byte{0})
			return fmt.Sprint(flow, use.Round)
		}))
	}, "/FlowsAreToldApart"},
	"store by owner": {func(t *testing.T) {
		sealtest.TestReplayStore(t, keyedStore(func(use tripseal.Use) any { return fmt.Sprint(use.Flow, use.Round, use.Owner) }))
	}, "/OnlyFlowAndRoundCount"},
	"store without time": {func(t *testing.T) {
		sealtest.TestReplayStore(t, keyedStore(func(use tripseal.Use) any { return fmt.Sprint(use.Flow, use.Round) }))
	}, "with a context that has ended, Spend = true"},
	"store too late": {func(t *testing.T) {
		sealtest.TestReplayStore(t, lateStore{keyedStore(func(use tripseal.Use) any { return fmt.Sprint(use.Flow, use.Round) })})
	}, "a context that had ended spent the token"},
	"store that sleeps": {func(t *testing.T) {
		sealtest.TestReplayStore(t, &boastingStore{wait: func(context.Context) { time.Sleep(time.Millisecond) }})
	}, "a call of Spend waits: goroutine"},
	"store of an actor": {func(t *testing.T) {
		asked, answered := make(chan bool), make(chan bool)
		go func() {
			for range asked {
				answered <- true
			}
		}()
		sealtest.TestReplayStore(t, &boastingStore{wait: func(context.Context) { asked <- true; <-answered }})
	}, "a call of Spend waits: goroutine"},
	"store of a network": {func(t *testing.T) {
		echo := echoServer(t)
		sealtest.TestReplayStore(t, &boastingStore{wait: func(context.Context) { echo.Write([]byte{1}); echo.Read(make([]byte, 1)) }})
	}, "a call of Spend waits: goroutine"},
	"store with a timeout": {func(t *testing.T) {
		sealtest.TestReplayStore(t, &boastingStore{wait: func(ctx context.Context) {
			_, cancel := context.WithTimeout(ctx, time.Second)
			cancel()
		}})
	}, "calls the context's method Done"},
	"results for anybody":   {func(t *testing.T) { testResults(t, func(r *brokenResults) { r.anyTag = true }) }, "/OtherAnswersGetNothing"},
	"results run twice":     {func(t *testing.T) { testResults(t, func(r *brokenResults) { r.repeats = true }) }, "/ALostCallStaysLost"},
	"results unfenced":      {func(t *testing.T) { testResults(t, func(r *brokenResults) { r.unfenced = true }) }, "/OnlyTheHolderOfTheLease"},
	"results never renewed": {func(t *testing.T) { testResults(t, func(r *brokenResults) { r.unrenewed = true }) }, "/ALeaseIsRenewed"},
	"results for ever":      {func(t *testing.T) { testResults(t, func(r *brokenResults) { r.keeps = true }) }, "/AResultEndsBeforeItsUse"},
	"results kept back":     {func(t *testing.T) { testResults(t, func(r *brokenResults) { r.greedy = true }) }, "/WhatIsGivenBackWorksAgain"},
}

// brokenResults is a store of results with a fault.
type brokenResults struct {
	*replay.SingleProcess
	anyTag, repeats, unfenced, unrenewed, keeps, greedy bool
	holder                                              sync.Map // the claim that began each flow
}

func testResults(t *testing.T, spoil func(*brokenResults)) {
	store, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := &brokenResults{SingleProcess: store}
	spoil(r)
	sealtest.TestReplayStore(t, r)
}

func (r *brokenResults) Begin(ctx context.Context, use tripseal.Use, claim tripseal.Claim) (tripseal.Begun, error) {
	if r.anyTag {
		claim.Tag = [32]byte{}
	}
	claim.Repeat = claim.Repeat || r.repeats
	begun, err := r.SingleProcess.Begin(ctx, use, claim)
	if begun.State == tripseal.CallFirst {
		r.holder.Store(use.Flow, claim.Call)
	}
	return begun, err
}

func (r *brokenResults) Renew(ctx context.Context, use tripseal.Use, claim tripseal.Claim) error {
	if r.unrenewed {
		return nil
	}
	return r.SingleProcess.Renew(ctx, use, claim)
}

func (r *brokenResults) End(ctx context.Context, use tripseal.Use, claim tripseal.Claim, end tripseal.End) error {
	if call, ok := r.holder.Load(use.Flow); ok && r.unfenced {
		claim.Call = call.([16]byte)
	}
	if r.keeps {
		end.Result, end.Keep = []byte{1}, time.Hour
	}
	end.GiveBack = end.GiveBack && !r.greedy
	return r.SingleProcess.End(ctx, use, claim, end)
}

// boastingStore says that it cannot block. But its method Spend calls the function wait, and a test
// can choose a function that blocks.
type boastingStore struct {
	used sync.Map
	wait func(context.Context)
}

func (s *boastingStore) Spend(ctx context.Context, use tripseal.Use) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	s.wait(ctx)
	_, seen := s.used.LoadOrStore(fmt.Sprint(use.Flow, use.Round), true)
	return !seen, nil
}
func (s *boastingStore) NonBlocking() tripseal.ReplayStore { return s }

func echoServer(t *testing.T) net.Conn {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		if conn, err := listener.Accept(); err == nil {
			io.Copy(conn, conn)
		}
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestReplayStoreSuitePassesAStoreThatCannotBlock(t *testing.T) {
	t.Parallel()
	sealtest.TestReplayStore(t, &boastingStore{wait: func(context.Context) {}})
}

// TestReplayStoreSuiteLetsAWrapperWait embeds a boastingStore in a wrapper that waits. The suite
// must allow this: the method NonBlocking speaks only for the embedded store.
func TestReplayStoreSuiteLetsAWrapperWait(t *testing.T) {
	t.Parallel()
	sealtest.TestReplayStore(t, struct{ *boastingStore }{&boastingStore{wait: func(context.Context) { time.Sleep(time.Microsecond) }}})
}

// anybodyFormat lets every user open a token that was sealed without a user.
type anybodyFormat struct{ tripseal.Format }

func (f anybodyFormat) Open(ctx context.Context, b *tripseal.Binding, token string) (tripseal.Claims, error) {
	claims, err := f.Format.Open(ctx, b, token)
	if err != nil && b.User != "" {
		b.User = ""
		return f.Format.Open(ctx, b, token)
	}
	return claims, err
}

// disguisedFormat says that native tokens have no prefix.
type disguisedFormat struct{ tripseal.Format }

func (disguisedFormat) Prefix() string { return "" }

// agelessFormat forgets when a flow began.
type agelessFormat struct{ tripseal.Format }

func (f agelessFormat) Open(ctx context.Context, b *tripseal.Binding, token string) (tripseal.Claims, error) {
	claims, err := f.Format.Open(ctx, b, token)
	claims.FlowStart = claims.Issued
	return claims, err
}

// signedCodec signs the payload, but does not hide it.
type signedCodec struct{}

func (signedCodec) Seal(_ context.Context, dst, payload []byte) ([]byte, error) {
	mac := hmac.New(sha256.New, []byte("a key that is long enough for FIPS"))
	mac.Write(payload)
	return base64.RawURLEncoding.AppendEncode(dst, mac.Sum(bytes.Clone(payload))), nil
}
func (c signedCodec) Open(ctx context.Context, dst []byte, text string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) < 32 {
		return nil, tripseal.ReasonMalformed
	}
	payload := raw[:len(raw)-32]
	if again, _ := c.Seal(ctx, nil, payload); string(again) != text {
		return nil, tripseal.ReasonForged
	}
	return append(dst, payload...), nil
}

// smallStore remembers only the last 100 tokens.
func smallStore() storeFunc {
	var mu sync.Mutex
	var used []string
	return func(use tripseal.Use) bool {
		mu.Lock()
		defer mu.Unlock()
		id := fmt.Sprint(use.Flow, use.Round)
		if slices.Contains(used, id) {
			return false
		}
		used = append(used, id)
		used = used[max(0, len(used)-100):]
		return true
	}
}

func ringCodec() tripseal.Codec {
	return tripseal.RingCodec(tripseal.Ephemeral(), tripseal.PurposeState)
}
func nativeFormat() tripseal.Format { return tripseal.NativeFormat(tripseal.Ephemeral()) }

// racingStore first looks whether a token was used, and records its use later.
func racingStore() storeFunc {
	var used sync.Map
	return func(use tripseal.Use) bool {
		id := fmt.Sprint(use.Flow, use.Round)
		_, seen := used.Load(id)
		time.Sleep(time.Millisecond)
		used.Store(id, true)
		return !seen
	}
}

// keyedStore tells tokens apart by a key, and ignores the context.
func keyedStore(key func(tripseal.Use) any) storeFunc {
	var used sync.Map
	return func(use tripseal.Use) bool {
		_, seen := used.LoadOrStore(key(use), true)
		return !seen
	}
}

// shortStore forgets each token after the given time.
func shortStore(keeps time.Duration) storeFunc {
	var mu sync.Mutex
	used := map[string]time.Time{}
	return func(use tripseal.Use) bool {
		mu.Lock()
		defer mu.Unlock()
		id := fmt.Sprint(use.Flow, use.Round)
		if time.Since(used[id]) < keeps {
			return false
		}
		used[id] = time.Now()
		return true
	}
}

// If the context ends before Spend has finished, impatientStore says that the token was used
// already.
type impatientStore struct{}

func (impatientStore) Spend(ctx context.Context, _ tripseal.Use) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < time.Second {
		<-ctx.Done()
		return false, nil
	}
	return true, nil
}

// tiredStore works well at first, and becomes a racingStore after 3000 uses.
func tiredStore() storeFunc {
	fresh, racing := keyedStore(func(use tripseal.Use) any { return fmt.Sprint(use.Flow, use.Round) }), racingStore()
	var uses atomic.Int32
	return func(use tripseal.Use) bool {
		if uses.Add(1) > 3000 {
			return racing(use)
		}
		return fresh(use)
	}
}

// lateStore looks at the context only after it has spent the token.
type lateStore struct{ tripseal.ReplayStore }

func (s lateStore) Spend(ctx context.Context, use tripseal.Use) (bool, error) {
	first, err := s.ReplayStore.Spend(ctx, use)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return first, err
}

// brokenUnwrapper flips every bit of a secret and appends a MAC. Each field that is true breaks it in
// a different way.
type brokenUnwrapper struct {
	plain, lenient, unsigned, deaf, nameless bool
}

func (u brokenUnwrapper) flip(b []byte) []byte {
	b = bytes.Clone(b)
	for i := range b {
		if !u.plain {
			b[i] ^= 0xff
		}
	}
	return b
}

func macOf(b []byte) []byte {
	mac := hmac.New(sha256.New, []byte("a key that is long enough for FIPS"))
	mac.Write(b)
	return mac.Sum(nil)
}

func (u brokenUnwrapper) wrap(secret []byte) ([]byte, error) {
	flipped := u.flip(secret)
	return append(flipped, macOf(flipped)...), nil
}

func (u brokenUnwrapper) Scheme() string {
	if u.nameless {
		return "No Name"
	}
	return "test"
}

func (u brokenUnwrapper) Unwrap(ctx context.Context, wrapped []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil && !u.deaf {
		return nil, err
	}
	secret, err := u.open(wrapped)
	if err != nil && u.lenient {
		secret, err = u.open(bytes.TrimSuffix(wrapped, []byte{0}))
	}
	return secret, err
}

func (u brokenUnwrapper) open(wrapped []byte) ([]byte, error) {
	if len(wrapped) < sha256.Size {
		return nil, errors.New("short")
	}
	body, mac := wrapped[:len(wrapped)-sha256.Size], wrapped[len(wrapped)-sha256.Size:]
	if !u.unsigned && !hmac.Equal(mac, macOf(body)) {
		return nil, errors.New("changed")
	}
	return u.flip(body), nil
}

func testUnwrapper(t *testing.T, u brokenUnwrapper) { sealtest.TestUnwrapper(t, u, u.wrap) }

func TestUnwrapperSuitePasses(t *testing.T) { testUnwrapper(t, brokenUnwrapper{}) }

const brokenEnv = "SEALTEST_BROKEN"

// TestSuitesFindWhatIsBroken checks that the suites fail for broken implementations, because a suite
// that cannot fail is worth nothing. It runs this test binary again for each implementation.
func TestSuitesFindWhatIsBroken(t *testing.T) {
	if name := os.Getenv(brokenEnv); name != "" {
		broken[name].run(t)
		return
	}
	for name, c := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			args := []string{"-test.run=^TestSuitesFindWhatIsBroken$"}
			if !strings.HasPrefix(c.want, "/NothingIsForgotten") {
				args = append(args, "-test.skip=/NothingIsForgotten") // it takes a while, and finds no other fault
			}
			cmd := exec.CommandContext(ctx, os.Args[0], args...)
			cmd.Env = append(os.Environ(), brokenEnv+"="+name)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !bytes.Contains(out, []byte(c.want)) {
				t.Errorf("%v, and no %q in:\n%.2000s", err, c.want, out)
			}
		})
	}
}
