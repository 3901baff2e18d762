package proxycmd

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

// proxyUsed holds the settings that say whether each token works only once, and where used
// tokens are stored.
type proxyUsed struct {
	singleUse       bool
	redis, redisEnv string
	durable         bool
}

func (u *proxyUsed) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&u.singleUse, "single-use", false, "let each token work only once: in this process, or with --redis in all")
	f.StringVar(&u.redis, "redis", "", "the `URL` of a Redis or Valkey that remembers used tokens")
	f.StringVar(&u.redisEnv, "redis-env", "", "the environment `VARIABLE` with that URL, if it has a password")
	f.BoolVar(&u.durable, "redis-durable", false, "a restart of this Redis loses nothing: its settings must say so")
}

func (u *proxyUsed) check() error {
	if (u.redis != "" || u.redisEnv != "") && !u.singleUse {
		return errors.New("--redis remembers used tokens; it needs --single-use")
	}
	if u.durable && u.redis == "" && u.redisEnv == "" {
		return errors.New("--redis-durable says something about --redis; it needs --redis or --redis-env")
	}
	if u.redis != "" && u.redisEnv != "" {
		return errors.New("give either --redis or --redis-env")
	}
	return nil
}

// open returns the store of used tokens, or nil if a token may be used more than once. The
// function ready returns an error if the store cannot be reached; ready is nil if the store is
// in this process. Call the function done when the store is no longer needed.
func (u *proxyUsed) open(ctx context.Context, logger *slog.Logger) (store tripseal.ReplayStore, ready func(context.Context) error, done func(), err error) {
	done = func() {}
	address := u.redis
	if u.redisEnv != "" {
		if address = os.Getenv(u.redisEnv); address == "" {
			return nil, nil, done, cli.Failed("the variable that --redis-env names is not set")
		}
	}
	switch {
	case !u.singleUse:
		return nil, nil, done, nil
	case address == "":
		single, err := replay.NewSingleProcess(replay.Config{Logger: logger})
		if err != nil {
			return nil, nil, done, err
		}
		return single, nil, done, nil
	}
	options, err := redis.ParseURL(address)
	if err != nil {
		return nil, nil, done, cli.Usage("the address of Redis is not a URL such as redis://127.0.0.1:6379/0") // err is left out, because it may repeat a password
	}
	options.ContextTimeoutEnabled = true
	redis.SetLogger(silent{}) // the store logs its own records, which say more
	client := redis.NewClient(options)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	shared, err := redisreplay.New(ctx, client, redisreplay.Config{Logger: logger, Durable: u.durable})
	if err != nil {
		client.Close()
		return nil, nil, done, cli.Failed("--redis: %w", err)
	}
	ready = func(ctx context.Context) error {
		switch err := client.Ping(ctx).Err(); {
		case err == nil:
			return nil
		case redis.HasErrorPrefix(err, "NOPERM"):
			return errors.New("its user lacks the right +ping")
		default: // err is left out, because it may repeat an address with a password
			return errors.New("it does not answer")
		}
	}
	return shared, ready, func() { client.Close() }, nil
}

// silent is a logger for the Redis client. It drops every record.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
