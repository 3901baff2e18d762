package redisreplay

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpseal/mcpseal"
)

// Store is a store in Redis or Valkey.
type Store struct {
	client redis.UniversalClient
	prefix string
	skew   time.Duration
	logger *slog.Logger

	refused atomic.Bool // by New: nobody uses it

	mu      sync.Mutex
	servers map[*redis.Client]*server
}

const (
	errOver     = mcpseal.PlainError("the token is over")
	errStrange  = mcpseal.PlainError("Redis answered in a way that it should not")
	errBadRound = mcpseal.PlainError("the token's round is not a number that a token can have")
)

const maxRound = 1<<16 - 1

// New returns a store that uses the client, which stays the caller's to close;
// until then the store looks at the server twice a second. New adds a hook to the client.
// It refuses clients and servers that would let a token work twice, or a request
// hang, as far as it can see that: a server that evicts keys, on any master of a
// cluster, or that does not say which server it is; a replica; a *redis.Ring; a
// client that ignores deadlines.
func New(ctx context.Context, client redis.UniversalClient, config Config) (*Store, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	if err := checkClient(client); err != nil {
		return nil, err
	}
	s := &Store{
		client: client, prefix: config.Prefix, skew: config.Skew, logger: mcpseal.Logger(config.Logger),
		servers: map[*redis.Client]*server{},
	}
	if err := s.attachAll(ctx); err != nil {
		s.refused.Store(true)
		return nil, fmt.Errorf("redisreplay: %w", explain(err))
	}
	return s, nil
}

// Spend implements [mcpseal.ReplayStore]. It returns by the context's deadline.
func (s *Store) Spend(ctx context.Context, use mcpseal.Use) (first bool, err error) {
	by, err := s.spend(ctx, &use)
	if by == nil || err != nil {
		return false, err
	}
	if err := by.vouch(ctx, use.Issued); err != nil {
		return false, err
	}
	return true, nil
}

// spend returns who took the use, or nil if somebody else was first.
func (s *Store) spend(ctx context.Context, use *mcpseal.Use) (*server, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if use.Round < 0 || use.Round > maxRound {
		return nil, errBadRound
	}
	left := time.Until(use.Until.Round(0))
	if left <= 0 {
		return nil, errOver
	}
	milliseconds := int64((keep(use, left)-1)/time.Millisecond) + 1
	cmd := &command{StatusCmd: redis.NewStatusCmd(ctx, "set", s.key(use), "1", "nx", "px", milliseconds), store: s}
	cmd.SetStepCount(1) // or a cluster's client asks the server for it
	switch err := s.client.Process(ctx, cmd); {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		if cluster, ok := s.client.(*redis.ClusterClient); ok && !isReply(err) {
			cluster.ReloadState(ctx) // or it goes on asking a master that is gone, for a minute
		}
		return nil, explain(err)
	case cmd.Val() != "OK":
		return nil, errStrange
	case cmd.by == nil:
		return nil, errUnknown
	}
	return cmd.by, nil
}

// maxLifetime is longer than any that a boundary allows.
const maxLifetime = 11 * 365 * 24 * time.Hour

// keep returns for how long to remember a use. That is relative, so that the
// server's clock need not agree with ours, and it has an end, or the key would stay
// for ever. If our clock is ahead, less is left by it than by those of others, so a
// use is kept for as long as its token lasts in all.
func keep(use *mcpseal.Use, left time.Duration) time.Duration {
	if lifetime := use.Until.Sub(use.Issued); lifetime <= maxLifetime {
		return max(left, lifetime)
	}
	return left // nobody knows when it was issued
}

func (s *Store) key(use *mcpseal.Use) string {
	key := make([]byte, 0, maxPrefix+32)
	key = append(key, s.prefix...)
	key = base64.RawURLEncoding.AppendEncode(key, use.Flow[:])
	key = append(key, '.')
	return string(strconv.AppendInt(key, int64(use.Round), 10))
}

// command is one that the client does not send again when the answer is
// lost.
type command struct {
	*redis.StatusCmd
	store *Store
	by    *server // who answered
}

func (*command) NoRetry() bool { return true }

var _ mcpseal.ReplayStore = (*Store)(nil)
