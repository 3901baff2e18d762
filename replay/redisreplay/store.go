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

	"github.com/tripseal/tripseal"
)

// Store is a [tripseal.ReplayStore] in Redis or Valkey. Set it as tripseal.Config.Replay if
// several processes open the same tokens.
type Store struct {
	client redis.UniversalClient
	prefix string
	skew   time.Duration
	logger *slog.Logger

	refused atomic.Bool // true if New failed; then the goroutines that watch the servers must end

	mu      sync.Mutex
	servers map[*redis.Client]*server
}

const (
	errOver     = tripseal.PlainError("the token has expired")
	errStrange  = tripseal.PlainError("Redis answered in a way that it should not")
	errBadRound = tripseal.PlainError("the token's round is not a number that a token can have")
)

const maxRound = 1<<16 - 1

// New returns a store that uses the client. The caller closes the client; until then
// the store checks Redis twice a second. New adds a hook to the client. New returns an
// error if it finds that a token could work twice or a request could hang. For example,
// it refuses a server (or any master of a cluster) that evicts keys or does not say
// which server it is; a replica; a *redis.Ring; a client that ignores deadlines. Call
// New once, when your MCP server starts.
func New(ctx context.Context, client redis.UniversalClient, config Config) (*Store, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	if err := checkClient(client); err != nil {
		return nil, err
	}
	s := &Store{
		client: client, prefix: config.Prefix, skew: config.Skew, logger: tripseal.Logger(config.Logger),
		servers: map[*redis.Client]*server{},
	}
	if err := s.attachAll(ctx); err != nil {
		s.refused.Store(true)
		return nil, fmt.Errorf("redisreplay: %w", explain(err))
	}
	return s, nil
}

// Spend spends a token: see [tripseal.ReplayStore]. It returns no later than the deadline of
// the context. A boundary calls Spend for each token that is otherwise accepted.
func (s *Store) Spend(ctx context.Context, use tripseal.Use) (first bool, err error) {
	by, err := s.spend(ctx, &use)
	if by == nil || err != nil {
		return false, err
	}
	if err := by.confirm(ctx, use.Issued); err != nil {
		return false, err
	}
	return true, nil
}

// spend writes the use of a token to Redis. It returns the server that recorded the use, or
// nil if the token was used before.
func (s *Store) spend(ctx context.Context, use *tripseal.Use) (*server, error) {
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
	milliseconds := int64((keepFor(use, left)-1)/time.Millisecond) + 1
	cmd := &command{StatusCmd: redis.NewStatusCmd(ctx, "set", s.key(use), "1", "nx", "px", milliseconds), store: s}
	cmd.SetStepCount(1) // without this, a cluster client asks the server for the step count
	switch err := s.client.Process(ctx, cmd); {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		if cluster, ok := s.client.(*redis.ClusterClient); ok && !isReply(err) {
			cluster.ReloadState(ctx) // without this, the client goes on asking a lost master for up to a minute
		}
		return nil, explain(err)
	case cmd.Val() != "OK":
		return nil, errStrange
	case cmd.by == nil:
		return nil, errUnknown
	}
	return cmd.by, nil
}

// maxLifetime is longer than any lifetime that a boundary allows.
const maxLifetime = 11 * 365 * 24 * time.Hour

// keepFor returns how long the server must remember a use. The parameter timeLeft is the time until
// use.Until, by the clock of this process. If that clock is ahead, this time is too short, so the
// result is at least the token's whole lifetime. The result is a duration, so that the server's
// clock need not agree with the clock of this process. A lifetime longer than maxLifetime is
// ignored, so that no key of Redis stays for ever.
func keepFor(use *tripseal.Use, timeLeft time.Duration) time.Duration {
	if lifetime := use.Until.Sub(use.Issued); lifetime <= maxLifetime {
		return max(timeLeft, lifetime)
	}
	return timeLeft // the lifetime makes no sense, so use.Issued is ignored
}

func (s *Store) key(use *tripseal.Use) string {
	key := make([]byte, 0, maxPrefix+32)
	key = append(key, s.prefix...)
	key = base64.RawURLEncoding.AppendEncode(key, use.Flow[:])
	key = append(key, '.')
	return string(strconv.AppendInt(key, int64(use.Round), 10))
}

// command is a Redis command that the client does not send again if its answer is lost.
type command struct {
	*redis.StatusCmd
	store *Store
	by    *server // the server that answered the command
}

func (*command) NoRetry() bool { return true }

var _ tripseal.ReplayStore = (*Store)(nil)
