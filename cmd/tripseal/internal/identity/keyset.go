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
	"github.com/tripseal/tripseal"
)

const (
	// fetchSpacing is the least time from one fetch to the next, once the first fetch has
	// succeeded. It limits the fetches that a client can cause with tokens that name unknown
	// keys. It is also how long a new key of the provider may remain unknown.
	fetchSpacing = 30 * time.Second
	// refreshAfter is the age at which the keys are fetched again. Requests use the old keys
	// meanwhile.
	refreshAfter = 10 * time.Minute
	// trustFor is the age up to which requests use the keys without waiting. If the keys are
	// older, a request waits for a fetch, unless the last one failed. So trustFor is also how
	// long a key still works after the provider removed it, if the provider answers.
	trustFor = 15 * time.Minute
	// keepAtMost is the age up to which keys are used if the provider cannot be reached.
	keepAtMost = 24 * time.Hour
	// logSpacing is the least time between two log records about failed fetches.
	logSpacing = time.Minute
)

// key is a key of the provider, with the algorithms that it may be used with.
type key struct {
	id         string
	algorithms []jose.SignatureAlgorithm
	public     crypto.PublicKey
}

var errUnknownKey = errors.New("unknown key")

// find searches the given keys, and returns the key that has the id and is for the algorithm. If
// the id is "", there must be only one key. The error is errUnknownKey if no key has the id.
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

// keySet holds the provider's keys. It fetches them only when a request needs them, so no
// goroutine has to run all the time.
type keySet struct {
	fetch  func(context.Context) ([]key, error) // one call ends before the next begins
	life   context.Context
	logger *slog.Logger
	now    func() time.Time

	mu       sync.Mutex
	keys     []key // from the last fetch that succeeded
	fetched  time.Time
	tried    time.Time     // when the last fetch began
	flight   chan struct{} // closed when the running fetch ends; nil if no fetch is running
	failures int           // how many fetches have failed since the last success
	failure  error
	logged   time.Time
}

// find returns the key with this id. If the id is unknown, it first fetches the keys again,
// unless the last fetch began less than fetchSpacing ago.
func (s *keySet) find(ctx context.Context, id string, algorithm jose.SignatureAlgorithm) (crypto.PublicKey, error) {
	keys, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	found, err := find(keys, id, algorithm)
	if !errors.Is(err, errUnknownKey) {
		return found, err
	}
	if flight := s.renew(); flight != nil && awaitFetch(ctx, flight) {
		if keys, err = s.get(ctx); err != nil {
			return nil, err
		}
		found, err = find(keys, id, algorithm)
	}
	if errors.Is(err, errUnknownKey) {
		err = fmt.Errorf("the provider has no key with the id %s", tripseal.PlainText(id))
	}
	return found, err
}

// get returns the keys. If there are none, or they are older than refreshAfter, it starts a
// fetch. It waits for the fetch only if there are no keys, or if they are older than trustFor.
// If the fetch fails, get returns the old keys. It returns an error if there are no keys, or
// if they are older than keepAtMost.
func (s *keySet) get(ctx context.Context) ([]key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var flight <-chan struct{}
	if !s.fresh(refreshAfter) {
		flight = s.start()
	}
	// After a failed fetch, do not wait for the next fetch while the old keys may still be used.
	if flight != nil && (s.failures == 0 && !s.fresh(trustFor) || !s.fresh(keepAtMost)) {
		s.mu.Unlock()
		awaitFetch(ctx, flight)
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

// renew begins a fetch, unless one runs already or the last one began only a short time ago.
// It returns a channel that is closed when the running fetch ends, or nil if none runs.
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
	if s.fetched.IsZero() { // no user can be known yet, so try again sooner: after 1, 2, 4, 8 and 16 seconds
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

// run fetches the keys. It does not end when a request is canceled, because other requests
// may wait for the keys too.
func (s *keySet) run(began time.Time) {
	ctx, cancel := context.WithTimeout(s.life, fetchTimeout)
	defer cancel()
	keys, err := s.fetchSafely(ctx)
	s.logFetch(ctx, keys, err) // before the lock, because a logger may be slow
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

// logFetch logs the result of a fetch. It needs no lock, because only a fetch changes the fields
// that logFetch reads, and only one fetch runs at a time.
func (s *keySet) logFetch(ctx context.Context, keys []key, err error) {
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

// awaitFetch waits until the fetch or the context ends. It reports whether the fetch has ended.
func awaitFetch(ctx context.Context, flight <-chan struct{}) bool {
	select {
	case <-flight:
		return true
	case <-ctx.Done():
		return false
	}
}
