package identity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func (r *rig) fetches() int { return r.Fetches(jwksPath) }

// This method returns a token with the id of a key that the provider does not have.
func (r *rig) unknown(i int) string {
	return r.SignWith("ES256-1", r.header(map[string]any{"kid": fmt.Sprint("unknown-", i)}), r.claims(nil))
}

func (r *rig) ready() {
	r.t.Helper()
	if err := r.tokens.Ready(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// landed waits for the end of the fetch that is in flight, if there is one.
func (r *rig) landed() {
	s := r.tokens.keys
	s.mu.Lock()
	flight := s.flight
	s.mu.Unlock()
	if flight != nil {
		<-flight
	}
}

// TestManyUnknownKeyIDsCauseTwoFetchesAMinute sends tokens with 1000 unknown key ids in a minute.
// They cause two fetches at most. A new key of the provider works within about half a minute,
// whenever the provider publishes it.
func TestManyUnknownKeyIDsCauseTwoFetchesAMinute(t *testing.T) {
	const ids = 1000
	for _, published := range []int{0, 1, ids / 4, ids/2 - 1, ids / 2, ids/2 + 1} {
		t.Run(fmt.Sprint(published), func(t *testing.T) {
			r := newRig(t)
			r.ready()
			before := r.fetches()
			r.clock.advance(time.Second)
			genuine, works := "", -1
			for i := range ids {
				if i == published {
					id := r.AddKey("ES256")
					genuine = r.SignWith(id, r.header(nil), r.claims(nil))
				}
				r.refuses(r.unknown(i), "no key with the id")
				if genuine != "" && works < 0 {
					if _, err := r.user(genuine); err == nil {
						works = i
					}
				}
				r.clock.advance(time.Minute / ids)
			}
			if n := r.fetches() - before; n > 2 {
				t.Errorf("%d fetches", n)
			}
			if works < 0 || works-published > ids/2+1 {
				t.Errorf("published after %d, works after %d", published, works)
			}
		})
	}
}

func TestConcurrentUnknownKeyIDsShareOneFetch(t *testing.T) {
	r := newRig(t)
	r.ready()
	r.clock.advance(fetchSpacing)
	id := r.AddKey("ES256")
	genuine := r.SignWith(id, r.header(nil), r.claims(nil))
	release := make(chan struct{})
	r.Answer(jwksPath, func(w http.ResponseWriter, _ *http.Request) {
		<-release
		w.Write(r.JWKS())
	})
	before := r.fetches()
	var sent, accepted atomic.Int32
	var all sync.WaitGroup
	for i := range 100 {
		token := genuine
		if i%2 == 0 {
			token = r.unknown(i)
		}
		all.Go(func() {
			if sent.Add(1) == 100 {
				close(release)
			}
			if _, err := r.user(token); err == nil {
				accepted.Add(1)
			}
		})
	}
	all.Wait()
	if n := r.fetches() - before; n != 1 || accepted.Load() != 50 {
		t.Errorf("%d fetches, %d of 50 accepted", n, accepted.Load())
	}
}

// TestARequestThatEndsDoesNotEndTheFetch checks that a fetch does not end with the request that
// started it, because other requests may wait for the keys.
func TestARequestThatEndsDoesNotEndTheFetch(t *testing.T) {
	r := newRig(t)
	asked, release := make(chan struct{}), make(chan struct{})
	r.Answer(jwksPath, func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-release
		w.Write(r.JWKS())
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	token := r.Token("alice")
	if _, err := r.tokens.Caller(withToken(token).WithContext(ctx)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("after its request ended: %v", err)
	}
	close(release)
	r.landed()
	r.accepts(token)
	if r.fetches() != 1 {
		t.Errorf("%d fetches", r.fetches())
	}
}

func TestASlowProviderDoesNotHoldRequests(t *testing.T) {
	r := newRig(t)
	r.ready()
	r.tokens.patience = time.Millisecond
	release := make(chan struct{})
	r.Answer(jwksPath, func(w http.ResponseWriter, _ *http.Request) {
		<-release
		w.Write(r.JWKS())
	})
	defer r.landed()
	defer close(release)
	r.clock.advance(trustFor)
	r.accepts(r.Sign(r.claims(nil)))
	r.refuses(r.unknown(1), "no key with the id")
	r.tokens.keys.mu.Lock()
	defer r.tokens.keys.mu.Unlock()
	if r.tokens.keys.flight == nil || r.fetches() != 2 {
		t.Errorf("a request waited for the end of the fetch, or caused another one: %d", r.fetches())
	}
}

// TestKeysAreRenewedBeforeRequestsHaveToWait checks that keys older than refreshAfter are fetched
// again while requests still use them. The request that starts the fetch is accepted before the
// provider answers.
func TestKeysAreRenewedBeforeRequestsHaveToWait(t *testing.T) {
	r := newRig(t)
	r.ready()
	r.tokens.patience = time.Hour
	asked, release := make(chan struct{}), make(chan struct{})
	r.Answer(jwksPath, func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-release
		w.Write(r.JWKS())
	})
	r.clock.advance(refreshAfter - time.Second)
	r.accepts(r.Sign(r.claims(nil)))
	if r.fetches() != 1 {
		t.Errorf("%d fetches", r.fetches())
	}
	r.clock.advance(time.Second)
	r.accepts(r.Sign(r.claims(nil)))
	<-asked
	r.tokens.keys.mu.Lock()
	flight := r.tokens.keys.flight
	r.tokens.keys.mu.Unlock()
	if flight == nil {
		t.Error("the request waited for the fetch")
	}
	close(release)
	r.landed()
	r.clock.advance(trustFor - refreshAfter)
	r.accepts(r.Sign(r.claims(nil)))
	if r.fetches() != 2 {
		t.Errorf("%d fetches", r.fetches())
	}
}

func TestAProviderThatIsDownAtFirstIsTriedAgain(t *testing.T) {
	r := newRig(t)
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	r.Answer(metadataPath, down)
	token := r.Token("alice")
	err := r.tokens.Ready(t.Context())
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "502") || !strings.Contains(err.Error(), "check the issuer") {
		t.Errorf("not ready because %v", err)
	}
	for range 100 { // the next attempt is a second away
		r.refuses(token, "502")
	}
	if n := r.Fetches(metadataPath); n != 1 {
		t.Errorf("%d attempts at once", n)
	}
	for range 600 {
		r.clock.advance(100 * time.Millisecond)
		r.refuses(token, "502")
	}
	if n := r.Fetches(metadataPath); n < 5 || n > 8 {
		t.Errorf("%d attempts in a minute", n)
	}
	if n := r.log.count("cannot be fetched"); n < 1 || n > 2 {
		t.Errorf("%d records in a minute", n)
	}
	r.Answer(metadataPath, nil)
	r.clock.advance(fetchSpacing)
	r.accepts(token)
	r.ready()
}

// TestReadyWaitsForNobody checks that Ready returns if its context has ended, although there are no
// keys yet.
func TestReadyWaitsForNobody(t *testing.T) {
	r := newRig(t)
	r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.tokens.Ready(ctx); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	r.landed()
}

// TestRequestsDoNotWaitForAProviderThatFails checks that after one fetch has failed, requests use
// the old keys and do not wait for the next fetch.
func TestRequestsDoNotWaitForAProviderThatFails(t *testing.T) {
	r := newRig(t)
	r.ready()
	r.tokens.patience = time.Hour
	r.Answer(jwksPath, http.NotFound)
	r.clock.advance(trustFor)
	r.accepts(r.Sign(r.claims(nil)))
	release := make(chan struct{})
	r.Answer(jwksPath, func(http.ResponseWriter, *http.Request) { <-release })
	r.Answer(metadataPath, func(http.ResponseWriter, *http.Request) { <-release })
	r.clock.advance(fetchSpacing)
	r.accepts(r.Sign(r.claims(nil)))
	r.tokens.keys.mu.Lock()
	flight := r.tokens.keys.flight
	r.tokens.keys.mu.Unlock()
	if flight == nil {
		t.Error("the request waited for the fetch")
	}
	close(release)
	r.landed()
}

// TestKeysStayInUseForADayWhileTheProviderFails checks that keys stay in use for a day if they
// cannot be fetched again, whatever the provider answers.
func TestKeysStayInUseForADayWhileTheProviderFails(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"an error":             func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"nonsense":             func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"no set":               func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) },
		"null":                 func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":null}`) },
		"a set that is a text": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":"x"}`) },
		"two sets":             func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[],"keys":[]}`) },
		"too much": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"keys":[],"x":"`, strings.Repeat("x", maxDocument), `"}`)
		},
		"too many keys": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"keys":[{}`, strings.Repeat(",{}", maxKeys), `]}`)
		},
		"half of it": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"keys":[`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.ready()
			r.Answer(jwksPath, answer)
			for age := time.Duration(0); age < keepAtMost; age += time.Hour {
				r.accepts(r.Sign(r.claims(nil)))
				r.landed()
				r.clock.advance(time.Hour)
			}
			if _, err := r.user(r.Sign(r.claims(nil))); !errors.Is(err, ErrUnavailable) {
				t.Errorf("after a day: %v", err)
			}
			if r.tokens.Ready(t.Context()) == nil {
				t.Error("ready after a day")
			}
			r.Answer(jwksPath, nil)
			r.clock.advance(fetchSpacing)
			r.accepts(r.Sign(r.claims(nil)))
			if n := r.log.count("can be fetched again"); n != 1 {
				t.Errorf("%d records of the recovery", n)
			}
		})
	}
}

// TestARemovedKeyStopsWorkingWithin15Minutes checks that a key stops working within 15 minutes after
// the provider removed it, even if no request came for most of that time.
func TestARemovedKeyStopsWorkingWithin15Minutes(t *testing.T) {
	if trustFor > 15*time.Minute {
		t.Error(trustFor)
	}
	r := newRig(t)
	token := r.Sign(r.claims(nil))
	r.accepts(token)
	r.AddKey("ES256")
	r.RemoveKey("ES256-1")
	r.clock.advance(trustFor - time.Second)
	r.accepts(token)
	r.clock.advance(time.Second)
	r.refuses(token, "no key with the id")
	r.accepts(r.Sign(r.claims(nil)))
}

// TestAnEmptySetOfKeysIsBelieved checks that an empty set replaces the old keys, because the
// provider may have had to withdraw them all.
func TestAnEmptySetOfKeysIsBelieved(t *testing.T) {
	r := newRig(t)
	token := r.Token("alice")
	r.accepts(token)
	r.RemoveKey("ES256-1")
	r.clock.advance(trustFor)
	r.refuses(token, "no key with the id")
	if err := r.tokens.Ready(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("ready without keys: %v", err)
	}
	if r.log.count("no key that can be used") == 0 {
		t.Error("the operator is not told")
	}
}

func TestATokenWithoutAKeyIDNeedsASetOfOneKey(t *testing.T) {
	r := newRig(t)
	nameless := func() string { return r.SignWith(r.Newest(), r.header(map[string]any{"kid": nil}), r.claims(nil)) }
	r.accepts(nameless())
	r.AddKey("ES256")
	r.clock.advance(trustFor)
	r.refuses(nameless(), "names no key")
}

// TestAKeyThatReplacesAnotherUnderItsIDIsFound checks that a new key with the id of an old one is
// found. The first token that the new key signed is refused, as if it were forged, but causes a
// fetch.
func TestAKeyThatReplacesAnotherUnderItsIDIsFound(t *testing.T) {
	r := newRig(t)
	r.ready()
	r.AddKey("ES256")
	r.Answer(jwksPath, func(w http.ResponseWriter, _ *http.Request) {
		jwk := publicJWK(r.Key("ES256-2").Public())
		jwk["kid"] = "ES256-1"
		fmt.Fprint(w, text(map[string]any{"keys": []any{jwk}}))
	})
	r.clock.advance(fetchSpacing)
	token := r.SignWith("ES256-2", r.header(map[string]any{"kid": "ES256-1"}), r.claims(nil))
	r.refuses(token, "signature")
	r.landed()
	r.accepts(token)
	for range 1000 {
		r.refuses(token[:len(token)-8]+"AAAAAAAA", "signature")
	}
	if n := r.fetches(); n != 2 {
		t.Errorf("%d fetches", n)
	}
}

func TestTwoKeysWithOneIDAreRefused(t *testing.T) {
	r := newRig(t)
	r.AddKey("ES256")
	r.Answer(jwksPath, func(w http.ResponseWriter, _ *http.Request) {
		var keys []any
		for _, id := range []string{"ES256-1", "ES256-2"} {
			jwk := publicJWK(r.Key(id).Public())
			jwk["kid"] = "same"
			keys = append(keys, jwk)
		}
		fmt.Fprint(w, text(map[string]any{"keys": keys}))
	})
	r.refuses(r.SignWith("ES256-1", r.header(map[string]any{"kid": "same"}), r.claims(nil)), "two keys")
}

// TestKeysOfTwoKindsMayShareAnID checks that keys for different algorithms may have the same id, as
// RFC 7517 allows.
func TestKeysOfTwoKindsMayShareAnID(t *testing.T) {
	r := newRig(t)
	r.AddKey("EdDSA")
	for _, order := range [][]string{{"ES256-1", "EdDSA-2"}, {"EdDSA-2", "ES256-1"}} {
		r.Answer(jwksPath, func(w http.ResponseWriter, _ *http.Request) {
			var keys []any
			for _, id := range order {
				jwk := publicJWK(r.Key(id).Public())
				jwk["kid"] = "same"
				keys = append(keys, jwk)
			}
			fmt.Fprint(w, text(map[string]any{"keys": keys}))
		})
		r.clock.advance(trustFor)
		for _, id := range order {
			algorithm, _, _ := strings.Cut(id, "-")
			r.accepts(r.SignWith(id, r.header(map[string]any{"kid": "same", "alg": algorithm}), r.claims(nil)))
		}
	}
}
