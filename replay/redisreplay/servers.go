package redisreplay

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/mcpseal/mcpseal"
)

const errNoMaster = mcpseal.PlainError("the cluster has no master")

// checkServers refuses servers that are away, take no claims, or forget them
// before their time.
func checkServers(ctx context.Context, client redis.UniversalClient, logger *slog.Logger) error {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return checkServer(ctx, client, logger)
	}
	var masters atomic.Int32
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		masters.Add(1)
		return checkServer(ctx, master, logger)
	})
	if err == nil && masters.Load() == 0 {
		return errNoMaster
	}
	return err
}

func checkServer(ctx context.Context, server redis.Cmdable, logger *slog.Logger) error {
	if err := server.Ping(ctx).Err(); err != nil {
		return err
	}
	if err := checkRole(ctx, server); err != nil {
		return err
	}
	return checkPolicy(ctx, server, logger)
}
