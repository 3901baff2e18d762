package tripseal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
)

// cause is one way in which a token can be rejected.
type cause struct {
	name  string
	want  tripseal.Reason
	setup func(t *testing.T) (service, tripseal.Request, string)
}

// failingCodec fails or panics with a text that holds secrets.
type failingCodec struct {
	tripseal.Codec
	openErr, sealErr error
	openPanic        any
	sealPanic        any
	openResult       []byte
}

func (c failingCodec) Open(ctx context.Context, dst []byte, text string) ([]byte, error) {
	if c.openPanic != nil {
		panic(c.openPanic)
	}
	if c.openErr != nil || c.openResult != nil {
		return c.openResult, c.openErr
	}
	return c.Codec.Open(ctx, dst, text)
}

func (c failingCodec) Seal(ctx context.Context, dst, payload []byte) ([]byte, error) {
	if c.sealPanic != nil {
		panic(c.sealPanic)
	}
	if c.sealErr != nil {
		return nil, c.sealErr
	}
	return c.Codec.Seal(ctx, dst, payload)
}

// nastyError's methods panic.
type nastyError struct{}

func (nastyError) Error() string { panic("hush: Error") }
func (nastyError) Unwrap() error { panic("hush: Unwrap") }
func (nastyError) Is(error) bool { panic("hush: Is") }
func (nastyError) As(any) bool   { panic("hush: As") }

type loopError struct{}

func (e *loopError) Error() string { return hush }
func (e *loopError) Unwrap() error { return e }

// wordyError is an error of a string type. Without care, every fmt verb would print its text.
type wordyError string

func (e wordyError) Error() string { return string(e) }

type storeFunc func(context.Context, tripseal.Use) (bool, error)

func (f storeFunc) Spend(ctx context.Context, use tripseal.Use) (bool, error) { return f(ctx, use) }

type sourceFunc func() *tripseal.Ring

func (f sourceFunc) Ring() *tripseal.Ring { return f() }

func overCodec(t *testing.T, change func(*failingCodec)) (service, tripseal.Request, string) {
	codec := failingCodec{Codec: tripseal.RingCodec(newRing(t, newKey(t)), tripseal.PurposeState)}
	good := newService(t, tripseal.Config{Format: tripseal.RecordFormat("own1.", codec)})
	token := good.first(t, deploy(), step)
	change(&codec)
	return newService(t, tripseal.Config{Format: tripseal.RecordFormat("own1.", codec)}), deploy(), token
}

func withStore(t *testing.T, store storeFunc) (service, tripseal.Request, string) {
	s := newService(t, tripseal.Config{Replay: store, ReplayTimeout: time.Minute})
	return s, deploy(), s.first(t, deploy(), step)
}

func withHangingStore(t *testing.T, store storeFunc) (service, tripseal.Request, string) {
	s := newService(t, tripseal.Config{Replay: store, ReplayTimeout: 10 * time.Millisecond})
	return s, deploy(), s.first(t, deploy(), step)
}

func withPrincipal(t *testing.T, principal tripseal.Principal) (service, tripseal.Request, string) {
	s := newService(t, tripseal.Config{})
	token := s.first(t, deploy(), step)
	request := deploy()
	request.Principal = principal
	return s, request, token
}

func withRequest(t *testing.T, change func(*tripseal.Request)) (service, tripseal.Request, string) {
	s := newService(t, tripseal.Config{})
	token := s.first(t, deploy(), step)
	request := deploy()
	change(&request)
	return s, request, token
}

func withToken(t *testing.T, change func(string) string) (service, tripseal.Request, string) {
	s := newService(t, tripseal.Config{})
	return s, deploy(), change(s.first(t, deploy(), step))
}

var causes = []cause{
	{"malformed", tripseal.ReasonMalformed, func(t *testing.T) (service, tripseal.Request, string) {
		return withToken(t, func(token string) string { return token + "=" })
	}},
	{"not a token at all", tripseal.ReasonMalformed, func(t *testing.T) (service, tripseal.Request, string) {
		return withToken(t, func(string) string { return `{"step":"hush"}` })
	}},
	{"cut short", tripseal.ReasonMalformed, func(t *testing.T) (service, tripseal.Request, string) {
		return withToken(t, func(token string) string { return token[:20] })
	}},
	{"unknown key", tripseal.ReasonUnknownKey, func(t *testing.T) (service, tripseal.Request, string) {
		other := newService(t, tripseal.Config{})
		return withToken(t, func(string) string { return other.first(t, deploy(), step) })
	}},
	{"forged", tripseal.ReasonForged, func(t *testing.T) (service, tripseal.Request, string) {
		return withToken(t, func(token string) string { return token[:40] + "AAAA" + token[44:] })
	}},
	{"too large", tripseal.ReasonTooLarge, func(t *testing.T) (service, tripseal.Request, string) {
		return withToken(t, func(token string) string { return token + strings.Repeat("A", 70_000) })
	}},
	{"another version", tripseal.ReasonVersion, func(t *testing.T) (service, tripseal.Request, string) {
		return overCodec(t, func(c *failingCodec) { c.openResult = []byte("S\x02hush") })
	}},
	{"a genuine record that breaks the rules", tripseal.ReasonMalformed, func(t *testing.T) (service, tripseal.Request, string) {
		return overCodec(t, func(c *failingCodec) { c.openResult = []byte("S\x01hush") })
	}},
	{"another method", tripseal.ReasonRequest, func(t *testing.T) (service, tripseal.Request, string) {
		return withRequest(t, func(r *tripseal.Request) { r.Method = "prompts/get" })
	}},
	{"another target", tripseal.ReasonRequest, func(t *testing.T) (service, tripseal.Request, string) {
		return withRequest(t, func(r *tripseal.Request) { r.Target = "destroy" })
	}},
	{"other arguments", tripseal.ReasonArguments, func(t *testing.T) (service, tripseal.Request, string) {
		return withRequest(t, func(r *tripseal.Request) { r.Arguments = []byte(`["hush"]`) })
	}},
	{"another audience", tripseal.ReasonAudience, func(t *testing.T) (service, tripseal.Request, string) {
		keys := newRing(t, newKey(t))
		other := newService(t, tripseal.Config{Keys: keys, Audience: "other"})
		return newService(t, tripseal.Config{Keys: keys}), deploy(), other.first(t, deploy(), step)
	}},
	{"another user", tripseal.ReasonUser, func(t *testing.T) (service, tripseal.Request, string) {
		return withPrincipal(t, tripseal.User("hush-mallory"))
	}},
	{"nobody", tripseal.ReasonUser, func(t *testing.T) (service, tripseal.Request, string) {
		return withPrincipal(t, nil)
	}},
	{"a user without a name", tripseal.ReasonPrincipalFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return withPrincipal(t, tripseal.User(""))
	}},
	{"a principal that fails", tripseal.ReasonPrincipalFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return withPrincipal(t, func(context.Context) (string, error) { return "hush-alice", errors.New("hush-alice is unknown") })
	}},
	{"a principal that panics", tripseal.ReasonPrincipalFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return withPrincipal(t, func(context.Context) (string, error) { panic("hush-alice") })
	}},
	{"a principal that panics with nil", tripseal.ReasonPrincipalFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return withPrincipal(t, func(context.Context) (string, error) { panic(nil) })
	}},
	{"a principal that is too long", tripseal.ReasonPrincipalFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return withPrincipal(t, tripseal.User(strings.Repeat("hush", 1025)))
	}},
	{"an error whose methods panic", tripseal.ReasonPrincipalFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return withPrincipal(t, func(context.Context) (string, error) { return "", nastyError{} })
	}},
	{"a codec that fails", tripseal.ReasonCodecFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return overCodec(t, func(c *failingCodec) { c.openErr = errors.New("hush: the key service is away") })
	}},
	{"a codec that panics", tripseal.ReasonCodecFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return overCodec(t, func(c *failingCodec) { c.openPanic = fmt.Errorf("hush: %d", 1) })
	}},
	{"a codec that panics with an error whose methods panic", tripseal.ReasonCodecFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return overCodec(t, func(c *failingCodec) { c.openPanic = nastyError{} })
	}},
	{"a codec that claims a reason that is not its own", tripseal.ReasonCodecFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return overCodec(t, func(c *failingCodec) { c.openErr = tripseal.ReasonReplayed })
	}},
	{"a codec that claims a reason of a format", tripseal.ReasonCodecFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return overCodec(t, func(c *failingCodec) { c.openErr = tripseal.ReasonUser })
	}},
	{"an error that wraps itself", tripseal.ReasonPrincipalFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return withPrincipal(t, func(context.Context) (string, error) { return "", &loopError{} })
	}},
	{"a principal that returns the arguments' error", tripseal.ReasonPrincipalFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return withPrincipal(t, func(context.Context) (string, error) {
			_, err := (&tripseal.Binding{Arguments: []byte("{{")}).ArgumentsDigest()
			return "", err
		})
	}},
	{"a codec that says forged", tripseal.ReasonForged, func(t *testing.T) (service, tripseal.Request, string) {
		return overCodec(t, func(c *failingCodec) { c.openErr = fmt.Errorf("hush: %w", tripseal.ReasonForged) })
	}},
	{"a key source without a ring", tripseal.ReasonCodecFailed, func(t *testing.T) (service, tripseal.Request, string) {
		ring := newRing(t, newKey(t))
		s := newService(t, tripseal.Config{Keys: sourceFunc(func() *tripseal.Ring { return ring })})
		token := s.first(t, deploy(), step)
		ring = nil
		return s, deploy(), token
	}},
	{"a key source that panics", tripseal.ReasonCodecFailed, func(t *testing.T) (service, tripseal.Request, string) {
		ring, broken := newRing(t, newKey(t)), false
		s := newService(t, tripseal.Config{Keys: sourceFunc(func() *tripseal.Ring {
			if broken {
				panic("hush")
			}
			return ring
		})})
		token := s.first(t, deploy(), step)
		broken = true
		return s, deploy(), token
	}},
	{"a store that says no", tripseal.ReasonReplayed, func(t *testing.T) (service, tripseal.Request, string) {
		return withStore(t, func(context.Context, tripseal.Use) (bool, error) { return false, nil })
	}},
	{"a store that fails", tripseal.ReasonStoreFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return withStore(t, func(context.Context, tripseal.Use) (bool, error) {
			return true, &net.OpError{Op: "dial", Err: errors.New("hush refused")}
		})
	}},
	{"a store that panics", tripseal.ReasonStoreFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return withStore(t, func(context.Context, tripseal.Use) (bool, error) { panic("hush") })
	}},
	{"a store that hangs until the context ends", tripseal.ReasonStoreFailed, func(t *testing.T) (service, tripseal.Request, string) {
		return withHangingStore(t, func(ctx context.Context, _ tripseal.Use) (bool, error) { <-ctx.Done(); return true, ctx.Err() })
	}},
	{"a store that hangs past the context", tripseal.ReasonStoreFailed, func(t *testing.T) (service, tripseal.Request, string) {
		release := make(chan struct{})
		t.Cleanup(func() { close(release) })
		return withHangingStore(t, func(context.Context, tripseal.Use) (bool, error) { <-release; return true, nil })
	}},
	{"a format that cannot carry what policy demands", tripseal.ReasonClaimMissing, func(t *testing.T) (service, tripseal.Request, string) {
		s := newService(t, tripseal.Config{
			Replay:      storeFunc(func(context.Context, tripseal.Use) (bool, error) { return true, nil }),
			ReplayTools: []string{"deploy"},
			AlsoOpen:    []tripseal.Accepted{{Format: readable{}, Waive: allClaims &^ tripseal.ClaimSingleUse}},
		})
		return s, deploy(), "plain.hush"
	}},
}

func TestEveryRejectionLooksTheSameFromOutside(t *testing.T) {
	if len(causes) < 20 {
		t.Fatal("fewer than 20 causes")
	}
	seen := make(map[string]bool)
	for _, c := range causes {
		t.Run(c.name, func(t *testing.T) {
			s, request, token := c.setup(t)
			records := len(s.book.records)
			round, err := s.Open(context.Background(), request, token)
			s.checkRejection(t, round, err, c.want)
			if n := len(s.book.records) - records; n != 1 {
				t.Errorf("%d log records for one rejection", n)
			}
			level := "WARN"
			if strings.HasSuffix(string(c.want), "_failed") {
				level = "ERROR" // a part of the service must be repaired
			}
			if got := s.book.last(t)["level"]; got != level {
				t.Errorf("logged at %v, want %s", got, level)
			}
			wire, _ := json.Marshal(tripseal.Wire(err))
			seen[string(wire)+err.Error()] = true
			wire, _ = json.Marshal(tripseal.Wire(fmt.Errorf("an adapter's own words: %w", err)))
			seen[string(wire)+"tripseal: token rejected"] = true
		})
	}
	if len(seen) != 1 {
		t.Errorf("%d different answers: %v", len(seen), seen)
	}
}

// TestAskAgainTreatsEveryRejectionAsNoState checks AskAgainAlways: a rejected token gives a first
// round, whatever the reason, just as a call without a token does. The log and the observer
// still get the reason.
func TestAskAgainTreatsEveryRejectionAsNoState(t *testing.T) {
	for _, c := range causes {
		t.Run(c.name, func(t *testing.T) {
			askAgain = tripseal.AskAgainAlways
			defer func() { askAgain = 0 }()
			s, request, token := c.setup(t)
			round, err := s.Open(context.Background(), request, token)
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := s.Open(context.Background(), request, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range []tripseal.Round{round, fresh} {
				state, ok := r.State()
				questions, pinned := slices.Collect(r.Asked), !r.Accepts("any", tripseal.KindForm)
				if !r.First() || ok || state != "" || r.Number() != 0 || len(questions) != 0 || !pinned {
					t.Errorf("not a first round: %q, %v, %d, %v, %v", state, ok, r.Number(), questions, pinned)
				}
			}
			if logged := s.book.last(t); logged["reason"] != string(c.want) || logged["msg"] != "tripseal: token rejected" {
				t.Errorf("the log says %v, want reason %s", logged, c.want)
			}
			if seen := s.book.lastEvent(t); seen.Reason != c.want {
				t.Errorf("the observer saw %s, want %s", seen.Reason, c.want)
			}
		})
	}
}

// TestOnlyTheRightfulUserOfAnExpiredTokenIsAskedAgain checks AskAgainIfExpired. Open returns an
// error if anything besides the age of the token is wrong, whether or not the token is too old.
func TestOnlyTheRightfulUserOfAnExpiredTokenIsAskedAgain(t *testing.T) {
	askAgain = tripseal.AskAgainIfExpired
	defer func() { askAgain = 0 }()
	for _, c := range causes {
		t.Run(c.name, func(t *testing.T) {
			s, request, token := c.setup(t)
			round, err := s.Open(context.Background(), request, token)
			if !errors.Is(err, tripseal.ErrRejected) || !reflect.DeepEqual(round, tripseal.Round{}) {
				t.Fatalf("%s: %v", c.want, err)
			}
			if logged := s.book.last(t); logged["reason"] != string(c.want) {
				t.Errorf("the log says %v, want reason %s", logged, c.want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, tripseal.Config{})
		token := s.first(t, deploy(), step, confirm)
		time.Sleep(time.Hour)
		for name, change := range map[string]func(*tripseal.Request){
			"another tool":    func(r *tripseal.Request) { r.Target = "rollback" },
			"other arguments": func(r *tripseal.Request) { r.Arguments = []byte(`{"hush":2}`) },
			"no digest":       func(r *tripseal.Request) { r.Arguments = []byte(`{"a":1,"a":2}`) },
			"another user":    func(r *tripseal.Request) { r.Principal = tripseal.User("hush-mallory") },
			"nobody":          func(r *tripseal.Request) { r.Principal = nil },
			"a failed user":   func(r *tripseal.Request) { r.Principal = func(context.Context) (string, error) { panic("hush") } },
		} {
			request := deploy()
			change(&request)
			if round, err := s.Open(context.Background(), request, token); !errors.Is(err, tripseal.ErrRejected) || !reflect.DeepEqual(round, tripseal.Round{}) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := s.Open(context.Background(), deploy(), token[:len(token)-1]); err == nil {
			t.Error("a forged token is asked about again")
		}
		if round, err := s.Open(context.Background(), deploy(), token); err != nil || !round.First() {
			t.Errorf("the rightful user is not asked again: %v", err)
		}
		other := newService(t, tripseal.Config{Audience: "other.example.com", Keys: s.Config().Keys})
		if _, err := other.Open(context.Background(), deploy(), token); err == nil {
			t.Error("another service asks again")
		}
		state, first := step, s.accept(t, deploy(), s.first(t, deploy(), step))
		second, err := s.Seal(context.Background(), &first, &state)
		if err != nil {
			t.Fatal(err)
		}
		short := newService(t, tripseal.Config{MaxRounds: 1, Keys: s.Config().Keys})
		if _, err := short.Open(context.Background(), deploy(), second); err == nil {
			t.Error("a flow of too many rounds is asked about again")
		}
		waived := newService(t, tripseal.Config{AlsoOpen: []tripseal.Accepted{{Format: stale{}, Waive: allClaims}}})
		if _, err := waived.Open(context.Background(), deploy(), "plain.hush"); err == nil {
			t.Error("a token that proves nothing is asked about again")
		}
	})
}

func TestAskAgainBeginsANewFlow(t *testing.T) {
	ctx := context.Background()
	s := newService(t, tripseal.Config{AskAgain: tripseal.AskAgainAlways, MaxRounds: 1})
	token := s.first(t, deploy(), step, confirm)
	if round := s.accept(t, deploy(), token); round.First() {
		t.Error("a token that was accepted left a first round")
	}
	round, err := s.Open(ctx, deploy(), token+"A")
	if err != nil {
		t.Fatal(err)
	}
	state := step
	again, err := s.Seal(ctx, &round, &state, confirm)
	if err != nil {
		t.Fatalf("a flow that begins anew is not sealed: %v", err)
	}
	if round := s.accept(t, deploy(), again); round.Number() != 1 {
		t.Errorf("the new flow's round is %d", round.Number())
	}
	// Arguments that have no digest are one more reason to ask again.
	broken := deploy()
	broken.Arguments = []byte(`{"a":1,"a":2}`)
	if round, err := s.Open(ctx, broken, token); err != nil || !round.First() {
		t.Errorf("arguments that cannot be digested: %v", err)
	}
}

func TestEveryReasonToRejectIsTested(t *testing.T) {
	tested := map[tripseal.Reason]bool{ // other tests cover these, with a clock
		tripseal.ReasonExpired: true, tripseal.ReasonFromTheFuture: true,
		tripseal.ReasonFlowExpired: true, tripseal.ReasonTooManyRounds: true,
		tripseal.ReasonCanceled: true, // other tests cover this one too, with a context that has ended
	}
	for _, c := range causes {
		tested[c.want] = true
	}
	for _, reason := range []tripseal.Reason{"malformed", "unknown_key", "forged", "version", "request", "arguments", "audience",
		"user", "expired", "from_the_future", "flow_expired", "too_many_rounds", "replayed", "too_large", "codec_failed",
		"principal_failed", "store_failed", "claim_missing", "canceled"} {
		if !tested[reason] {
			t.Errorf("no cause for %s", reason)
		}
	}
}

func TestTheCauseBehindAReasonIsForTheOperatorOnly(t *testing.T) {
	original := &net.OpError{Op: "dial", Err: errors.New("hush refused")}
	s, request, token := withStore(t, func(context.Context, tripseal.Use) (bool, error) { return false, original })
	_, err := s.Open(context.Background(), request, token)
	var rejected *tripseal.RejectError
	if !errors.As(err, &rejected) {
		t.Fatal(err)
	}
	if !errors.Is(rejected.Cause(), original) || !errors.Is(s.book.lastEvent(t).Cause, original) {
		t.Error("the original error cannot be reached")
	}
	if errors.Is(err, original) {
		t.Error("the original error is on the chain of an error that may go anywhere")
	}
	if cause := s.book.last(t)["cause"]; cause != "error of type *errors.errorString" {
		t.Errorf("the log says cause %v", cause)
	}

	s, request, token = withStore(t, func(context.Context, tripseal.Use) (bool, error) { return false, wordyError("hush, a secret") })
	_, err = s.Open(context.Background(), request, token)
	errors.As(err, &rejected)
	for _, verb := range strings.Split("v +v #v s q x d e t", " ") {
		leaks.scan("%"+verb+" %"+verb+" %"+verb+" %"+verb, err, *rejected, rejected.Cause(), s.book.lastEvent(t))
	}
	if text, _ := json.Marshal(err); string(text) != "{}" {
		t.Errorf("as JSON the error tells its reason: %s", text)
	}

	s, request, token = withStore(t, func(context.Context, tripseal.Use) (bool, error) { panic("hush") })
	s.reject(t, request, token, tripseal.ReasonStoreFailed)
	logged := s.book.last(t)
	if stack, _ := logged["stack"].(string); !strings.Contains(stack, "TestTheCauseBehind") || len(stack) > 4096 {
		t.Errorf("the log has no useful stack: %q", stack)
	}
	if logged["cause"] != "panic of type string" {
		t.Errorf("the log says cause %v", logged["cause"])
	}
}

func TestFailuresOnTheWayOutAreInternalErrors(t *testing.T) {
	ctx := context.Background()
	state := step
	for name, change := range map[string]func(*failingCodec){
		"codec fails":  func(c *failingCodec) { c.sealErr = errors.New("hush") },
		"codec panics": func(c *failingCodec) { c.sealPanic = "hush" },
		"error panics": func(c *failingCodec) { c.sealErr = nastyError{} },
	} {
		t.Run(name, func(t *testing.T) {
			s, request, _ := overCodec(t, change)
			round, _ := s.Open(ctx, request, "")
			token, err := s.Seal(ctx, &round, &state)
			s.notSealed(t, token, err, tripseal.ReasonCodecFailed)
		})
	}
	for name, principal := range map[string]tripseal.Principal{
		"principal fails":  func(context.Context) (string, error) { return "hush", errors.New("hush") },
		"principal panics": func(context.Context) (string, error) { panic("hush") },
		"no name":          tripseal.User(""),
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, tripseal.Config{})
			request := deploy()
			request.Principal = principal
			round, _ := s.Open(ctx, request, "")
			token, err := s.Seal(ctx, &round, &state)
			s.notSealed(t, token, err, tripseal.ReasonPrincipalFailed)
		})
	}
	t.Run("format forgets its prefix", func(t *testing.T) {
		s := newService(t, tripseal.Config{Format: forgetful{}, Waive: 0})
		round, _ := s.Open(ctx, deploy(), "")
		token, err := s.Seal(ctx, &round, &state)
		s.notSealed(t, token, err, tripseal.ReasonCodecFailed)
	})
	t.Run("codec writes what no token may hold", func(t *testing.T) {
		s := newService(t, tripseal.Config{Format: tripseal.RecordFormat("own1.", spacedCodec{})})
		round, _ := s.Open(ctx, deploy(), "")
		token, err := s.Seal(ctx, &round, &state)
		s.notSealed(t, token, err, tripseal.ReasonCodecFailed)
	})
}

type spacedCodec struct{ tripseal.Codec }

func (spacedCodec) Seal(context.Context, []byte, []byte) ([]byte, error) { return []byte("a b"), nil }

// readable is a format that carries no claims at all.
type readable struct{}

func (readable) Prefix() string             { return "plain." }
func (readable) Carries() tripseal.ClaimSet { return 0 }
func (readable) Digest(*tripseal.Binding) ([]byte, error) {
	return []byte("arguments"), nil
}
func (readable) Seal(_ context.Context, _ *tripseal.Binding, c *tripseal.Claims) (string, error) {
	return "plain." + c.State, nil
}
func (readable) Open(_ context.Context, _ *tripseal.Binding, token string) (tripseal.Claims, error) {
	return tripseal.Claims{
		Expires: time.Now().UnixMilli() + 1000, State: strings.TrimPrefix(token, "plain."), HasState: true,
		Arguments: []byte("arguments"), Flow: [16]byte{1}, Round: -7, Questions: []tripseal.Question{confirm}, // must be dropped, because the format does not carry them
	}, nil
}

// stale is a format that opens every token as one that has expired.
type stale struct{ readable }

func (stale) Open(context.Context, *tripseal.Binding, string) (tripseal.Claims, error) {
	return tripseal.Claims{Expires: 1, Arguments: []byte("arguments")}, nil
}

// forgetful is a format that carries all claims. The tokens that it seals lack the format's prefix.
type forgetful struct{ readable }

func (forgetful) Carries() tripseal.ClaimSet { return allClaims }
func (forgetful) Seal(context.Context, *tripseal.Binding, *tripseal.Claims) (string, error) {
	return "hush", nil
}

func TestALogLineCannotBeBroken(t *testing.T) {
	var text strings.Builder
	book := &logbook{}
	s, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Observer: book.observe,
		Logger: slog.New(slog.NewTextHandler(&text, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	nasty := strings.Repeat("\n\x1b[31m\x00\u202e\"=\xff level=ERROR ", 500)
	for _, request := range []tripseal.Request{
		{Method: "tools/call", Target: nasty},
		{Method: nasty, Target: "x"},
		{Method: "resources/read", Target: "file:///" + hush + nasty},
		{Method: "resources/read", Target: nasty + "://x"},
	} {
		text.Reset()
		if _, err := s.Open(context.Background(), request, "ms1.junk"); err == nil {
			t.Fatal("junk opens")
		}
		line := text.String()
		if strings.Count(line, "\n") != 1 || len(line) > 2000 || strings.Contains(line, hush) {
			t.Errorf("the log line is %d bytes: %.300q", len(line), line)
		}
		for _, c := range strings.TrimSuffix(line, "\n") {
			if c < 0x20 || c > 0x7e {
				t.Fatalf("the log line holds %q", c)
			}
		}
		if e := book.lastEvent(t); len(e.Target) > 128 || len(e.Method) > 128 {
			t.Errorf("the observer gets %d bytes of target and %d of method", len(e.Target), len(e.Method))
		}
	}
}

func TestRoundsDoNotPrint(t *testing.T) {
	s := newService(t, tripseal.Config{})
	round := s.accept(t, deploy(), s.first(t, deploy(), step))
	for _, verb := range strings.Split("v +v #v s q x d e t", " ") {
		leaks.scan("%"+verb+" %"+verb, round, &round)
	}
	s.Seal(context.Background(), nil, nil)
	jsonLogger(s.book).Info("x", "round", round, "pointer", &round)
}

func TestResourcesAreLoggedByTheirSchemeOnly(t *testing.T) {
	s := newService(t, tripseal.Config{})
	s.reject(t, tripseal.Request{Method: "resources/subscribe", Target: "https://alice:hush@host/x"}, "ms1.junk", tripseal.ReasonMalformed)
	for uri, want := range map[string]string{
		"file:///home/hush": "file:", "https://hush@example.com/": "https:", "no scheme hush": "", "hush": "",
		"a b:hush": "", strings.Repeat("a", 40) + ":hush": "",
	} {
		s.reject(t, tripseal.Request{Method: "resources/read", Target: uri}, "ms1.junk", tripseal.ReasonMalformed)
		if got := s.book.last(t)["target"]; got != want {
			t.Errorf("target %q is logged as %q", uri, got)
		}
	}
}

func TestTheObserverSeesEverySealAndOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := newKey(t)
		s := newService(t, tripseal.Config{Keys: newRing(t, key)})
		token := s.first(t, deploy(), step, confirm)
		sealed := s.book.lastEvent(t)
		want := tripseal.Event{
			Op: tripseal.OpSeal, Method: "tools/call", Target: "deploy", Format: "ms1.", KeyID: key.ID().String(),
			TokenBytes: len(token), StateBytes: len(step), Flow: sealed.Flow, Round: 1,
		}
		if sealed != want || len(sealed.Flow) != 32 {
			t.Errorf("seal: %+v, want %+v", sealed, want)
		}
		s.accept(t, deploy(), token)
		want.Op = tripseal.OpOpen
		if opened := s.book.lastEvent(t); opened != want {
			t.Errorf("open: %+v, want %+v", opened, want)
		}
		// If a genuine token is refused, the event names the flow. If a token is forged, the event
		// names no flow.
		other := deploy()
		other.Target = "destroy"
		s.reject(t, other, token, tripseal.ReasonRequest)
		if e := s.book.lastEvent(t); e.Flow != sealed.Flow || e.Round != 1 || e.StateBytes != 0 {
			t.Errorf("genuine but refused: %+v", e)
		}
		time.Sleep(time.Hour)
		s.reject(t, deploy(), token, tripseal.ReasonExpired)
		if e := s.book.lastEvent(t); e.Flow != sealed.Flow || e.StateBytes != 0 {
			t.Errorf("expired: %+v", e)
		}
		s.reject(t, deploy(), token[:40]+"AAAA"+token[44:], tripseal.ReasonForged)
		if e := s.book.lastEvent(t); e.Flow != "" || e.Round != 0 || e.KeyID != key.ID().String() {
			t.Errorf("forged: %+v", e)
		}
	})
}

// TestATargetIsALabelOnlyWhereItIsKnown checks that an event names a target only if a genuine token
// is bound to it. Otherwise an attacker could fill a dashboard with names, by sending garbage, or a
// stolen token, with a new name each time.
func TestATargetIsALabelOnlyWhereItIsKnown(t *testing.T) {
	ctx := context.Background()
	s := newService(t, tripseal.Config{AlsoOpen: []tripseal.Accepted{{Format: readable{}, Waive: allClaims}}})
	token := s.first(t, deploy(), step, confirm)
	if e := s.book.lastEvent(t); e.Op != tripseal.OpSeal || e.Target != "deploy" {
		t.Errorf("sealed: %s %q", e.Op, e.Target)
	}
	other, mallory, resource := deploy(), deploy(), deploy()
	other.Target, resource.Method, resource.Target = "made-up", "resources/read", "made-up:hush"
	mallory.Principal = tripseal.User("hush-mallory")
	for name, c := range map[string]struct {
		request tripseal.Request
		token   string
		want    string
	}{
		"accepted":            {deploy(), token, "deploy"},
		"another user":        {mallory, token, "deploy"},
		"not a token":         {other, "made-up", "unknown"},
		"forged":              {other, token[:40] + "AAAA" + token[44:], "unknown"},
		"for another tool":    {other, token, "unknown"},
		"for a resource":      {resource, token, "unknown"},
		"request was waived":  {other, "plain.hush", "unknown"},
		"forged for the tool": {deploy(), token[:40] + "AAAA" + token[44:], "unknown"},
	} {
		s.Open(ctx, c.request, c.token)
		if e := s.book.lastEvent(t); e.Target != c.want || e.Op != tripseal.OpOpen {
			t.Errorf("%s: %s %q, want %q", name, e.Op, e.Target, c.want)
		}
	}
	s.Open(ctx, other, "made-up")
	if logged := s.book.last(t); logged["target"] != "made-up" {
		t.Errorf("the log names %v", logged["target"])
	}
	round, _ := s.Open(ctx, other, "")
	round.Dropped(ctx, 1)
	if e := s.book.lastEvent(t); e.Op != tripseal.OpDrop || e.Target != "unknown" {
		t.Errorf("dropped on a first round: %q", e.Target)
	}
}
