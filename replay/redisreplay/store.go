package redisreplay

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
)

// Store is a [tripseal.ResultStore] in Redis or Valkey. Set it as tripseal.Config.Replay if
// several processes open the same tokens.
type Store struct {
	config  Config
	client  redis.UniversalClient
	tags    int          // how many hash tags the keys have in a cluster; 0 for a single server
	refused atomic.Int64 // the last epoch for which the log got a warning
	looking atomic.Bool
}

//go:embed script.lua
var source string

// script is all that the store does in the server. It may be sent again: it knows a call by its id.
var script = redis.NewScript(source)

// clusterTags is how many hash tags, each with an epoch of its own, spread the keys over a cluster.
const clusterTags = 64

const (
	errOver     = tripseal.PlainError("the token has expired")
	errStrange  = tripseal.PlainError("Redis answered in a way that it should not")
	errBadRound = tripseal.PlainError("the token's round is not a number that a token can have")
	errNotHeld  = tripseal.PlainError("the call does not hold the lease of its token")
	errReplica  = tripseal.PlainError("this Redis is a replica: connect to the master")
	errForgot   = tripseal.PlainError("Redis may have forgotten whether this token was used: " +
		"the user starts over; normal for a minute after Redis was new, restarted, flushed or failed over")
)

// New returns a store that uses the client. The caller closes the client. New returns an error if
// it finds that a token could work twice or a request could hang: for example, if a server, or any
// master of a cluster, evicts keys, is a replica, or does not say which server it is. Call New once,
// when your MCP server starts.
func New(ctx context.Context, client redis.UniversalClient, config Config) (*Store, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	if err := checkClient(client); err != nil {
		return nil, err
	}
	config.Logger = tripseal.Logger(config.Logger)
	s := &Store{config: config, client: client}
	if _, ok := client.(*redis.ClusterClient); ok {
		s.tags = clusterTags
	}
	err := s.checkServers(ctx)
	if err == nil {
		err = s.look(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("redisreplay: %w", explain(err))
	}
	return s, nil
}

// look makes an epoch where there is none, with every hash tag.
func (s *Store) look(ctx context.Context) error {
	for tag := range max(1, s.tags) {
		use := tripseal.Use{Flow: [16]byte{byte(tag)}}
		answer, err := s.run(ctx, &use, "look", "", time.Now().UnixMilli(), s.config.Durable)
		if err != nil {
			return err
		}
		if began, ok := answer.([]any); !ok || len(began) != 1 || began[0] == nil {
			return errReplica
		}
	}
	return nil
}

// Spend spends a token: see [tripseal.ReplayStore]. It returns no later than the deadline of
// the context. A boundary calls Spend for each token that is otherwise accepted.
func (s *Store) Spend(ctx context.Context, use tripseal.Use) (first bool, err error) {
	var call [16]byte
	rand.Read(call[:]) // never fails
	begun, err := s.begin(ctx, &use, "spend", call)
	return begun.State == tripseal.CallFirst, err
}

// Begin uses a token for a call: see [tripseal.ResultStore].
func (s *Store) Begin(ctx context.Context, use tripseal.Use, claim tripseal.Claim) (tripseal.Begun, error) {
	return s.begin(ctx, &use, "begin", claim.Call, claim.Tag[:], claim.Lease.Milliseconds(), claim.Repeat)
}

func (s *Store) begin(ctx context.Context, use *tripseal.Use, op string, call [16]byte, more ...any) (begun tripseal.Begun, err error) {
	left := time.Until(use.Until.Round(0))
	if left <= 0 {
		return begun, errOver
	}
	if lifetime := use.Until.Sub(use.Issued); lifetime <= maxLifetime { // the clock of this process may be ahead
		left = max(left, lifetime)
	}
	keep := int64((left-1)/time.Millisecond) + 1 // rounded up
	answer, err := s.run(ctx, use, op, append([]any{
		call[:], time.Now().UnixMilli(), s.config.Durable, use.Issued.Add(-s.config.Skew).UnixMilli(), keep,
	}, more...)...)
	switch got := answer.(type) {
	case nil:
		return begun, err
	case int64:
		if got == -1 {
			return begun, errReplica
		}
		begun.State = tripseal.CallState(got)
	case string:
		if op == "begin" {
			begun.State, begun.Result = tripseal.CallDone, []byte(got)
		}
	case []any: // the date of the epoch
		s.warn(got)
		return begun, errForgot
	}
	if begun.State < tripseal.CallFirst || begun.State > tripseal.CallNotKept || begun.State == tripseal.CallDone && begun.Result == nil {
		return tripseal.Begun{}, errStrange
	}
	return begun, nil
}

// Renew makes the lease of a call last longer: see [tripseal.ResultStore].
func (s *Store) Renew(ctx context.Context, use tripseal.Use, claim tripseal.Claim) error {
	return s.change(ctx, &use, "renew", claim.Call[:], claim.Lease.Milliseconds())
}

// End ends a call: see [tripseal.ResultStore].
func (s *Store) End(ctx context.Context, use tripseal.Use, claim tripseal.Claim, end tripseal.End) error {
	if end.GiveBack {
		return s.change(ctx, &use, "free", claim.Call[:])
	}
	if len(end.Result) > s.config.MaxResult {
		end.Result = nil
	}
	return s.change(ctx, &use, "end", claim.Call[:], min(end.Keep, maxLifetime).Milliseconds(), end.Result)
}

func (s *Store) change(ctx context.Context, use *tripseal.Use, op string, args ...any) error {
	switch answer, err := s.run(ctx, use, op, args...); {
	case err != nil:
		return err
	case answer == int64(-2):
		return errNotHeld
	case answer != int64(1):
		return errStrange
	}
	return nil
}

// run runs the script in the server that has the use.
func (s *Store) run(ctx context.Context, use *tripseal.Use, op string, args ...any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if use.Round < 0 || use.Round > 1<<16-1 {
		return nil, errBadRound
	}
	prefix := s.config.Prefix
	if s.tags > 0 {
		prefix += "{" + strconv.Itoa(int(use.Flow[0])%s.tags) + "}"
	}
	key := prefix + base64.RawURLEncoding.EncodeToString(use.Flow[:]) + "." + strconv.Itoa(use.Round)
	answer, err := s.eval(ctx, append([]any{"evalsha", script.Hash(), 3, key, prefix + "epoch", key + ".result", op}, args...))
	if err == nil && answer == nil {
		err = errStrange
	}
	if err != nil {
		return nil, explain(err)
	}
	return answer, nil
}

// eval sends the script again if the connection was lost: the server knows the call by its id.
func (s *Store) eval(ctx context.Context, args []any) (any, error) {
	for tries := 3; ; tries-- {
		cmd := command{redis.NewCmd(ctx, args...)}
		s.client.Process(ctx, cmd)
		answer, err := cmd.Result()
		lost := err != nil && !isType[redis.Error](err)
		if cluster, ok := s.client.(*redis.ClusterClient); ok && lost {
			cluster.ReloadState(ctx) // without this, the client goes on asking a lost master for up to a minute
		}
		switch {
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			args[0], args[1] = "eval", source
		case !lost, ctx.Err() != nil, is(syscall.ECONNREFUSED, redis.ErrClosed)(err), tries <= 1:
			return answer, err
		}
	}
}

// command is a command that the client itself does not send again: it would try for longer than a
// boundary waits, also if nothing listens.
type command struct{ *redis.Cmd }

func (command) NoRetry() bool { return true }

// warn logs once for each epoch that tokens are refused, and makes the other epochs of a cluster.
func (s *Store) warn(epoch []any) {
	if len(epoch) != 1 {
		return
	}
	began, _ := epoch[0].(int64)
	if s.refused.Swap(began) == began {
		return
	}
	s.config.Logger.LogAttrs(context.Background(), slog.LevelWarn,
		"redisreplay: tokens issued before issued_before are refused, because Redis is new, or may have forgotten used tokens",
		slog.Time("issued_before", time.UnixMilli(began).Add(s.config.Skew)))
	if s.tags > 0 && s.looking.CompareAndSwap(false, true) {
		go func() {
			defer s.looking.Store(false)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			s.look(ctx)
		}()
	}
}

// maxLifetime is longer than any lifetime that a boundary allows.
const maxLifetime = 11 * 365 * 24 * time.Hour

var _ tripseal.ResultStore = (*Store)(nil)
