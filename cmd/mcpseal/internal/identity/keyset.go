package identity

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/mcpseal/mcpseal"
)

const (
	// fetchSpacing is the least time from one fetch to the next. Whoever sends unknown key
	// ids causes no more fetches than that, and a new key has to wait no longer.
	fetchSpacing = 30 * time.Second
	// refreshAfter is how old keys get before they are fetched again, and stay in use.
	refreshAfter = 10 * time.Minute
	// trustFor is how old keys get before requests wait for new ones. It is how long a key
	// works after its removal, if the provider answers.
	trustFor = 15 * time.Minute
	// keepAtMost is how old keys get if the provider cannot be reached.
	keepAtMost = 24 * time.Hour
	// logSpacing is the least time from one record about a failed fetch to the next.
	logSpacing = time.Minute
)

// key is a key of the provider, with the algorithms that it may be used with.
type key struct {
	id         string
	algorithms []jose.SignatureAlgorithm
	public     crypto.PublicKey
}

var errUnknownKey = errors.New("unknown key")

// find returns the key that a token names.
func find(keys []key, id string, algorithm jose.SignatureAlgorithm) (crypto.PublicKey, error) {
	if id == "" && len(keys) > 1 {
		return nil, errors.New("the token names no key, and the provider has more than one")
	}
	var found crypto.PublicKey
	err := errUnknownKey
	for _, k := range keys {
		switch {
		case id != "" && k.id != id:
		case !slices.Contains(k.algorithms, algorithm):
			if found == nil {
				err = fmt.Errorf("the key that the token names is not for %s", algorithm)
			}
		case found != nil:
			return nil, errors.New("the provider has two keys with the id that the token names")
		default:
			found, err = k.public, nil
		}
	}
	return found, err
}

// keySet keeps the provider's keys. It fetches them when a request needs them, so that it
// needs no goroutine of its own.
type keySet struct {
	fetch  func(context.Context) ([]key, error) // never called twice at a time
	life   context.Context
	logger *slog.Logger
	now    func() time.Time

	mu       sync.Mutex
	keys     []key // those of the last fetch that succeeded
	fetched  time.Time
	tried    time.Time     // when the last fetch began
	flight   chan struct{} // closed when the fetch in flight ends; nil if there is none
	failures int           // since the last success
	failure  error
	logged   time.Time
}

// find returns the key with this id. It looks for an unknown id at the provider, unless
// it did so a moment ago.
func (s *keySet) find(ctx context.Context, id string, algorithm jose.SignatureAlgorithm) (crypto.PublicKey, error) {
	keys, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	found, err := find(keys, id, algorithm)
	if !errors.Is(err, errUnknownKey) {
		return found, err
	}
	if flight := s.renew(); flight != nil && ended(ctx, flight) {
		if keys, err = s.get(ctx); err != nil {
			return nil, err
		}
		found, err = find(keys, id, algorithm)
	}
	if errors.Is(err, errUnknownKey) {
		err = fmt.Errorf("the provider has no key with the id %s", mcpseal.PlainText(id))
	}
	return found, err
}

// get returns the keys, and fetches them before if they are missing or old. If the
// provider fails, it returns the old ones.
func (s *keySet) get(ctx context.Context) ([]key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var flight <-chan struct{}
	if !s.fresh(refreshAfter) {
		flight = s.start()
	}
	// While the provider fails, only requests that cannot do without it wait for it.
	if flight != nil && (s.failures == 0 && !s.fresh(trustFor) || !s.fresh(keepAtMost)) {
		s.mu.Unlock()
		ended(ctx, flight)
		s.mu.Lock()
	}
	switch {
	case s.fresh(keepAtMost):
		return s.keys, nil
	case s.failure != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, s.failure)
	default:
		return nil, fmt.Errorf("%w: the provider has not answered yet", ErrUnavailable)
	}
}

// fresh reports whether there are keys that are younger than the limit.
func (s *keySet) fresh(limit time.Duration) bool {
	return !s.fetched.IsZero() && s.now().Sub(s.fetched) < limit
}

// renew begins a fetch unless it is too early for one. It returns the end of the fetch in
// flight, or nil.
func (s *keySet) renew() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start()
}

func (s *keySet) start() <-chan struct{} {
	if s.flight != nil {
		return s.flight
	}
	spacing := fetchSpacing
	if s.fetched.IsZero() { // nobody can be known, so try harder: after 1, 2, 4, 8 and 16 seconds
		spacing = min(spacing, time.Second<<min(max(s.failures-1, 0), 5))
	}
	now := s.now()
	if !s.tried.IsZero() && now.Sub(s.tried) < spacing {
		return nil
	}
	s.tried, s.flight = now, make(chan struct{})
	go s.run(now)
	return s.flight
}

// run fetches the keys. No request can cut it short, since others may wait for it too.
func (s *keySet) run(began time.Time) {
	ctx, cancel := context.WithTimeout(s.life, fetchTimeout)
	defer cancel()
	keys, err := s.fetchSafely(ctx)
	s.tell(ctx, keys, err) // a logger may take its time, so that comes before the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.flight)
	s.flight = nil
	if err != nil {
		s.failures++
		s.failure = err
		return
	}
	s.keys, s.fetched, s.failures, s.failure = keys, began, 0, nil
}

func (s *keySet) fetchSafely(ctx context.Context) (keys []key, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the provider's answer cannot be read")
		}
	}()
	return s.fetch(ctx)
}

// tell logs what became of a fetch. It needs no lock, since only fetches change what it
// reads, and there is one at a time.
func (s *keySet) tell(ctx context.Context, keys []key, err error) {
	now := s.now()
	switch {
	case err == nil && len(keys) == 0:
		s.logger.WarnContext(ctx, "identity: the provider has no key that can be used, so every token is refused")
	case err == nil && s.failures > 0:
		s.logger.InfoContext(ctx, "identity: the provider's keys can be fetched again")
	case err == nil, s.life.Err() != nil, !s.logged.IsZero() && now.Sub(s.logged) < logSpacing:
	default:
		s.logged = now
		age := "none"
		if !s.fetched.IsZero() {
			age = now.Sub(s.fetched).Round(time.Second).String()
		}
		s.logger.ErrorContext(ctx, "identity: the provider's keys cannot be fetched", "cause", err, "age of the keys in use", age)
	}
}

// ended waits for a fetch. It reports whether it ended before the context did.
func ended(ctx context.Context, flight <-chan struct{}) bool {
	select {
	case <-flight:
		return true
	case <-ctx.Done():
		return false
	}
}
