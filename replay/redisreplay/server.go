package redisreplay

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
)

const (
	errNoMaster = tripseal.PlainError("the cluster has no master")
	errEvicts   = tripseal.PlainError("a server evicts keys when its memory is full, and used tokens would work again: " +
		"set its maxmemory-policy to noeviction, or use another server")
	errNobody = tripseal.PlainError("this Redis does not say in INFO which server it is (role, master_replid, evicted_keys, " +
		"maxmemory_policy), so the store cannot notice when this Redis forgets used tokens: use another server")
	errOld        = tripseal.PlainError("this Redis is older than version 6: use a newer one")
	errClock      = tripseal.PlainError("the clock of this Redis and the clock of this machine differ by more than Config.Skew: set them")
	errNotDurable = tripseal.PlainError("Config.Durable says that a restart of this Redis loses nothing, but its settings do not: set " +
		"appendonly yes, appendfsync always and no-appendfsync-on-rewrite no, use no replicas, and allow the user +config|get")
)

// checkServers checks the server, or every master of a cluster.
func (s *Store) checkServers(ctx context.Context) error {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return s.checkServer(ctx, s.client.(*redis.Client))
	}
	var masters atomic.Int32
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		masters.Add(1)
		return s.checkServer(ctx, master)
	})
	if err == nil && masters.Load() == 0 {
		return errNoMaster
	}
	return err
}

// checkServer returns an error if a server is a replica, evicts keys, or cannot be identified.
func (s *Store) checkServer(ctx context.Context, client *redis.Client) error {
	info, err := client.Info(ctx).Result()
	if err != nil {
		return err
	}
	said := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			said[name] = value
		}
	}
	version := said["redis_version"]
	switch id := said["master_replid"]; {
	case len(id) != 40 || strings.Trim(id, "0123456789abcdef") != "" || strings.Trim(id, "0") == "",
		said["role"] == "", said["evicted_keys"] == "", said["maxmemory_policy"] == "":
		return errNobody
	case said["role"] != "master":
		return errReplica
	case said["maxmemory_policy"] != "noeviction":
		return errEvicts
	case len(version) < 2 || version[1] == '.' && version[0] < '6':
		return errOld
	case s.config.Durable && (said["aof_enabled"] != "1" || said["connected_slaves"] != "0"):
		return errNotDurable
	}
	if s.config.Durable {
		config, err := client.ConfigGet(ctx, "*append*").Result()
		if err != nil && !isType[redis.Error](err) {
			return err
		}
		if config["appendfsync"] != "always" || config["no-appendfsync-on-rewrite"] != "no" {
			return errNotDurable
		}
	}
	asked := time.Now()
	clock, err := client.Time(ctx).Result()
	if err != nil {
		return err
	}
	allowed := max(s.config.Skew, time.Second)
	if clock.Before(asked.Add(-allowed)) || clock.After(time.Now().Add(allowed)) {
		return errClock
	}
	return nil
}
