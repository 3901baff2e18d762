package redisreplay

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/mcpseal/mcpseal"
)

const (
	keepsKeys = "noeviction"

	errEvicts = mcpseal.PlainError("a server evicts keys when its memory is full, so that used tokens would work again: " +
		"set its maxmemory-policy to noeviction, or use another server")
)

// checkPolicy refuses a server that forgets keys before their time.
func checkPolicy(ctx context.Context, server redis.Cmdable, logger *slog.Logger) error {
	policy, err := readPolicy(ctx, server)
	switch {
	case err != nil:
		return err
	case policy == "":
		logger.LogAttrs(ctx, slog.LevelWarn, "redisreplay: neither CONFIG GET nor INFO says whether the server evicts keys: "+
			"make sure that its maxmemory-policy is noeviction, or used tokens may work again")
	case policy != keepsKeys:
		return errEvicts
	}
	return nil
}

// readPolicy returns "" if the server does not tell.
func readPolicy(ctx context.Context, server redis.Cmdable) (string, error) {
	config, err := server.ConfigGet(ctx, "maxmemory-policy").Result()
	if err == nil && config["maxmemory-policy"] != "" {
		return config["maxmemory-policy"], nil
	}
	if err != nil && !isReply(err) {
		return "", err
	}
	info, err := server.Info(ctx, "memory").Result()
	if err != nil && !isReply(err) {
		return "", err
	}
	for line := range strings.Lines(info) {
		if policy, ok := strings.CutPrefix(line, "maxmemory_policy:"); ok {
			return strings.TrimSpace(policy), nil
		}
	}
	return "", nil
}

// isReply says whether a server answered, and not the network.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}
