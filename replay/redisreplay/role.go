package redisreplay

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/mcpseal/mcpseal"
)

const errReplica = mcpseal.PlainError("this Redis is a replica: connect to the master")

// checkRole refuses a replica, where it can be seen: it takes no claims, or takes
// them without telling the others.
func checkRole(ctx context.Context, server redis.Cmdable) error {
	info, err := server.Info(ctx, "replication").Result()
	if err != nil && !isReply(err) {
		return err
	}
	for line := range strings.Lines(info) {
		if role, ok := strings.CutPrefix(line, "role:"); ok && strings.TrimSpace(role) == "slave" {
			return errReplica
		}
	}
	return nil
}
